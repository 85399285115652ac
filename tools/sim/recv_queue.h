/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A receive queue with its buffers: a QP's own, or shared by many. */
#ifndef URXE_SIM_RECV_QUEUE_H
#define URXE_SIM_RECV_QUEUE_H

#include "sim/content.h"
#include "sim/simhost.h"

#define RECV_QUEUE_DEPTH 16

struct recv_queue {
	struct simhost *host;
	struct urxe_rq *rq;
	uint32_t depth; /* 0: nothing comes that takes a receive request */
	bool shared;
	bool lazy;     /* posts from the engine's refill callback too */
	uint64_t base; /* offset of depth slots in the host's memory */
	uint64_t posted;
	uint64_t consumed;
	bool out[RECV_QUEUE_DEPTH]; /* the slot's buffer is with the engine */
	uint64_t wr_id[RECV_QUEUE_DEPTH];
	struct layout layout[RECV_QUEUE_DEPTH];
};

/* Plans an inbox of the host: takes the memory that its buffers will lie in. */
struct recv_queue *recv_queue_plan(struct simhost *host, bool shared, uint32_t depth);
/* Creates the SRQ of a shared one. */
void recv_queue_open(struct recv_queue *inbox);
void recv_queue_free(struct recv_queue *inbox);
/* Posts up to n receive requests. */
void recv_queue_post(struct recv_queue *inbox, uint32_t n);
/* Takes the buffer of a completion back; NULL, and the world fails, where it is none. */
const struct layout *recv_queue_take(struct recv_queue *inbox, uint64_t wr_id);

#endif
