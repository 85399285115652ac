/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA's side of each object: objects and regions pass their creation, change and end on to the
 * HCA (rxe/offload.h). On a device without an HCA the functions do nothing.
 *
 * `tail` means different things in the two queues of an offloaded QP. Send queue: the HCA has the
 * requests [tail, cur), and [cur, head) wait for room. Its own receive queue: the HCA has [retired,
 * tail), and [tail, head) wait. A SRQ's requests leave the engine's queue when the HCA gets them.
 */
#ifndef URXE_OFFLOAD_OBJECTS_H
#define URXE_OFFLOAD_OBJECTS_H

#include <stdbool.h>

#include <rxe/offload.h>
#include <rxe/rxe.h>

#include "objects/qp.h"
#include "objects/rq.h"

/* The HCA before a call that waits, and whether it is that of the device afterwards. */
struct offload_hca {
	const struct urxe_offload_ops *ops; /* NULL: none */
	void *ctx;
};
struct offload_hca offload_current(const struct urxe_dev *dev);
bool offload_is_current(const struct urxe_dev *dev, const struct offload_hca *hca);

/* --- Queue pairs. */

void offload_destroy_qp(struct urxe_qp *qp);
/* The engine executes the QP from now on: the QP is in RESET, or the HCA has no QP for it. */
void offload_end(struct urxe_qp *qp);
/* The HCA has gone: of a QP whose operation waits, offload_end_call() ends the HCA's QP. */
void offload_release_qp(struct urxe_qp *qp);
/*
 * Around an operation of the QP that waits (rxe/offload.h). False: the HCA went meanwhile; the QP
 * has none any more, and is in the error state if it was offloaded.
 */
void offload_begin_call(struct urxe_qp *qp);
bool offload_end_call(struct urxe_qp *qp);
/* The HCA's QP joins a multicast group, or leaves it. */
int offload_join_group(struct urxe_qp *qp, const struct urxe_gid *gid);
void offload_leave_group(struct urxe_qp *qp, const struct urxe_gid *gid);
/* The QP enters the error state. If the HCA does not follow, the QP is not offloaded any more. */
void offload_fail(struct urxe_qp *qp);
/* The HCA gives back the receive requests of a QP that it has reset. */
void offload_return_receives(struct urxe_rq *rq);

/* Whether the HCA has requests of the queue: these are completed before others are flushed. */
static inline bool offload_has_sends(const struct urxe_qp *qp)
{
	return qp->offloaded && qp->sq.cur != qp->sq.tail;
}

static inline bool offload_has_receives(const struct urxe_qp *qp)
{
	return qp->offloaded && qp->rq->qp && qp->rq->tail != qp->rq->retired;
}

/* Whether the HCA executes messages to the queue. */
static inline bool offload_has_queue(const struct urxe_rq *rq)
{
	return rq->qp ? rq->qp->offloaded : rq->hca != NULL;
}

/* --- Shared receive queues. */

void offload_create_srq(struct urxe_rq *srq);
void offload_destroy_srq(struct urxe_rq *srq);

/* --- Completion queues. */

/* Creates the HCA's queue, if the CQ has none. */
int offload_create_cq(struct urxe_cq *cq);
void offload_destroy_cq(struct urxe_cq *cq);
/* Requests the HCA's event, if an offloaded QP uses the CQ. */
void offload_arm_cq(struct urxe_cq *cq, bool solicited_only);

/* --- Regions. */

/* Registers the region with the HCA, which chooses its key; *hca NULL: it is the engine's alone. */
int offload_register(struct urxe_dev *dev, const struct urxe_mr_attr *attr, void **hca,
		     uint32_t *key);
/* Deregisters the HCA's region, if there is one. The engine's region stays, without the HCA's. */
void offload_deregister(struct urxe_mr *mr);
/* Whether the PD has regions that are the engine's alone. */
bool offload_has_alone(const struct urxe_dev *dev, uint32_t pd);

#endif
