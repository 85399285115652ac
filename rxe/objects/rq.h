/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive queues: a QP's own, or shared (SRQ). */
#ifndef URXE_OBJECTS_RQ_H
#define URXE_OBJECTS_RQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

/* A receive request in the queue, followed by its segments. */
struct recv_wqe {
	uint64_t wr_id;
	uint32_t n_segs;
	uint32_t length; /* sum of the segments, at most 2^32 - 1 */
	struct urxe_seg segs[];
};

/* Copy of a SRQ's request that the HCA has (in `kept`), or memory for one (in `kept_free`). */
struct kept_recv {
	TAILQ_ENTRY(kept_recv) link;
	uint64_t wqe[]; /* a struct recv_wqe */
};
TAILQ_HEAD(kept_recvs, kept_recv);

/* A block of memory for elements of `kept` and `kept_free`. */
struct kept_block {
	SLIST_ENTRY(kept_block) link;
	uint64_t memory[];
};

/* The members that each message needs are in one cache line. */
struct urxe_rq {
	struct urxe_rq_attr attr __attribute__((aligned(URXE_CACHE_LINE)));
	struct urxe_qp *qp; /* NULL: shared */
	uint8_t *wqes;
	uint32_t stride;  /* bytes of a slot */
	uint32_t mask;    /* slots - 1 */
	uint32_t head;    /* number of requests posted; free-running, as tail and retired */
	uint32_t tail;    /* number of requests taken */
	uint32_t retired; /* number of requests whose slots are free again */
	uint32_t limit;   /* SRQ: fewer posted requests raise SRQ_LIMIT_REACHED; 0 = not armed */

	struct urxe_dev *dev;
	bool refilling; /* within the refill callback */
	uint32_t users; /* SRQ: QPs */
	void *hca;      /* SRQ: the HCA's SRQ, which takes the requests; NULL: none */
	/* Of a SRQ that the HCA has, too (objects/offload_objects.h): */
	struct kept_recvs kept;      /* of the HCA, tail - retired of them, in posting order */
	struct kept_recvs kept_free; /* unused elements for further requests */
	SLIST_HEAD(, kept_block) kept_blocks;
	uint32_t kept_room;       /* number of elements of both lists together */
	bool stopping;            /* the HCA's QPs stop, and the HCA gets no more requests */
	uint64_t stopped_at;      /* stopping: since this time, ns */
	uint32_t number;          /* SRQ: index in the saved stream; valid during urxe_state_save
				     (state/state_save.c) */
	LIST_ENTRY(urxe_rq) link; /* SRQ: in dev->srqs */
};
_Static_assert(offsetof(struct urxe_rq, dev) == URXE_CACHE_LINE, "one line");

/* The slot of the request with this free-running index. */
static inline struct recv_wqe *rq_slot(const struct urxe_rq *rq, uint32_t index)
{
	return (struct recv_wqe *)(rq->wqes + (size_t)(index & rq->mask) * rq->stride);
}

/* Creates a queue; qp NULL: a shared one. -EINVAL: attr is over a limit; -ENOMEM. */
int rq_create(struct urxe_dev *dev, const struct urxe_rq_attr *attr, struct urxe_qp *qp,
	      struct urxe_rq **rq);
void rq_free(struct urxe_rq *rq);
/* Bytes of a buffer that holds any request of the queue. */
uint32_t rq_wqe_size(const struct urxe_rq *rq);

/* The oldest request, which stays in the queue. NULL: the queue is empty, also after
 * urxe_ops.refill. */
const struct recv_wqe *rq_first(struct urxe_rq *rq);
/*
 * Takes the oldest request; NULL if the queue is empty. A request of a QP's own queue stays in its
 * slot until rq_retire. A request of a SRQ is copied to `copy`, because its slot is free at once.
 */
const struct recv_wqe *rq_take(struct urxe_rq *rq, struct recv_wqe *copy);
/* Number of requests in a QP's own queue. Calls urxe_ops.refill first if the queue is at most half
 * full, except in the error state. */
uint32_t rq_available(struct urxe_rq *rq);
/* A taken request was completed: frees its slot. Does nothing for a SRQ. */
void rq_retire(struct urxe_rq *rq);
/* Calls urxe_ops.refill, by which the owner may post requests to the queue. */
void rq_refill(struct urxe_rq *rq);
/* Removes all posted requests. */
void rq_reset(struct urxe_rq *rq);

#endif
