/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive queues, a QP's own and shared ones. */
#ifndef URXE_RQ_H
#define URXE_RQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/fetch.h>
#include <rxe/rxe.h>

/* A receive request in the queue; its segments stand behind it. */
struct recv_wqe {
	uint64_t wr_id;
	uint32_t n_segs;
	uint32_t length; /* sum of the segments, at most 2^32 - 1 */
	struct urxe_seg segs[];
};

/* What messages need of it is in one line of memory. */
struct urxe_rq {
	struct urxe_rq_attr attr __attribute__((aligned(URXE_CACHE_LINE)));
	struct urxe_qp *qp; /* NULL: shared */
	uint8_t *wqes;
	uint32_t stride;  /* bytes of a slot */
	uint32_t mask;    /* slots - 1 */
	uint32_t head;    /* posted; free-running, as tail */
	uint32_t tail;    /* taken */
	uint32_t retired; /* places given back */
	uint32_t limit;   /* SRQ: armed while not 0 */

	struct urxe_dev *dev;
	bool refilling;           /* within the refill callback */
	uint32_t users;           /* SRQ: QPs */
	LIST_ENTRY(urxe_rq) link; /* SRQ: in the device */
};
_Static_assert(offsetof(struct urxe_rq, dev) == URXE_CACHE_LINE, "one line");

/* The slot of the request with this free-running index. */
static inline struct recv_wqe *rq_slot(const struct urxe_rq *rq, uint32_t index)
{
	return (struct recv_wqe *)(rq->wqes + (size_t)(index & rq->mask) * rq->stride);
}

/* qp NULL makes a shared one. */
int rq_create(struct urxe_dev *dev, const struct urxe_rq_attr *attr, struct urxe_qp *qp,
	      struct urxe_rq **rq);
void rq_free(struct urxe_rq *rq);
/* Bytes of a buffer that holds any request of the queue. */
uint32_t rq_wqe_size(const struct urxe_rq *rq);

/*
 * Takes the oldest request; NULL where there is none. One of a QP's own queue stays in its place
 * until rq_retire. A shared queue's place is another request's at once: it is copied there.
 */
const struct recv_wqe *rq_take(struct urxe_rq *rq, struct recv_wqe *copy);
/* Of a QP's own queue: how many requests there are, those counted that the application has queued
 * lately. */
uint32_t rq_available(struct urxe_rq *rq);
/* Tells that a taken request of a QP's own queue was completed; a SRQ's are retired when taken. */
void rq_retire(struct urxe_rq *rq);
/* Forgets everything posted. */
void rq_reset(struct urxe_rq *rq);

#endif
