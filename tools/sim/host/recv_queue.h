/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A receive queue with its buffers, of one QP or shared (SRQ), of a simulated host. */
#ifndef URXE_SIM_HOST_RECV_QUEUE_H
#define URXE_SIM_HOST_RECV_QUEUE_H

#include "sim/host/content.h"
#include "sim/host/simhost.h"

#define RECV_QUEUE_DEPTH 16

struct recv_queue {
	struct simhost *host;
	struct urxe_rq *rq;
	uint32_t depth;   /* maximum number of outstanding requests; 0: no message from a peer
			     needs one */
	uint32_t room;    /* outstanding requests for which the engine's queue has room */
	uint64_t resizes; /* of the SRQ, still to come */
	bool shared;
	/* SRQ: the limit for which an event is requested, 0 = none, and the value of
	 * urxe_rq_retired at the request. */
	uint32_t limit;
	uint32_t limit_from;
	bool stopped;             /* the application posts no more */
	bool refills_in_callback; /* posts from the engine's refill callback too */
	uint64_t base;            /* offset of depth slots in the host's memory */
	uint64_t posted;
	uint64_t consumed;
	bool out[RECV_QUEUE_DEPTH]; /* the slot's buffer is posted */
	uint64_t wr_id[RECV_QUEUE_DEPTH];
	struct layout layout[RECV_QUEUE_DEPTH];
};

/* Creates a queue of the host, and reserves the memory of its buffers. */
struct recv_queue *recv_queue_plan(struct simhost *host, bool shared, uint32_t depth);
/* Creates the SRQ of a shared queue. The queue of one QP comes with its QP, and the QP's creator
 * sets rq. */
void recv_queue_open(struct recv_queue *recv_queue);
void recv_queue_free(struct recv_queue *recv_queue);
/* Posts n receive requests, or fewer if fewer slots are free. */
void recv_queue_post(struct recv_queue *recv_queue, uint32_t n);
/* The number of posted requests that are not completed and, in an SRQ, that no QP has taken. */
uint32_t recv_queue_outstanding(const struct recv_queue *recv_queue);
/* SRQ: requests the event of this limit in place of an earlier request; 0: no event. */
void recv_queue_set_limit(struct recv_queue *recv_queue, uint32_t limit);
/* SRQ: requests the event of a limit at random, unless one is requested. */
void recv_queue_arm(struct recv_queue *recv_queue);
/* Chooses the SRQs that are resized (--resizes). */
void recv_queues_plan_resizes(struct world *world);
/* The application's turn: at random moments, may resize the SRQ and change its limit, also to
 * values that the engine has to refuse. check/srq.c checks the results. */
void recv_queue_turn(struct recv_queue *recv_queue);
/*
 * Takes the buffer of a receive completion back, and returns it. NULL: the world has failed,
 * because the request was not outstanding or not the next one, or because a gap was overwritten.
 */
const struct layout *recv_queue_take(struct recv_queue *recv_queue, uint64_t wr_id);

#endif
