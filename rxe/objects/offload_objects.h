/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA's side of each object: the engine's objects pass their creation, changes and destruction
 * on to the HCA (rxe/offload.h). On a device without an HCA the functions do nothing.
 *
 * `tail` means different things in the two queues of an offloaded QP. Send queue: the HCA has the
 * requests [tail, cur), and [cur, head) wait for room in the HCA's queue. Receive queue: the HCA
 * has [retired, tail), and [tail, head) wait. The requests of a SRQ complete in any order, so those
 * that the HCA has are in a list (urxe_rq.kept), and the slots of [retired, tail) are unused, but
 * reserved for them.
 */
#ifndef URXE_OBJECTS_OFFLOAD_OBJECTS_H
#define URXE_OBJECTS_OFFLOAD_OBJECTS_H

#include <stdbool.h>

#include <rxe/offload.h>
#include <rxe/rxe.h>

#include "objects/qp.h"
#include "objects/rq.h"

/* For an operation that waits (rxe/offload.h): offload_current returns the device's HCA before the
 * operation, and offload_is_current tells after it whether the device still has this HCA. */
struct offload_hca {
	const struct urxe_offload_ops *ops; /* NULL: none */
	void *ctx;
};
struct offload_hca offload_current(const struct urxe_dev *dev);
bool offload_is_current(const struct urxe_dev *dev, const struct offload_hca *hca);

/* --- Queue pairs. */

/* Destroys the HCA's QP, if there is one. Then the engine executes the QP, and has the receive
 * requests again that the HCA has not completed. */
void offload_destroy_qp(struct urxe_qp *qp);
/* The engine executes the QP from now on. The HCA's QP, if there is one, stays. */
void offload_end(struct urxe_qp *qp);
/*
 * The device's HCA has gone: destroys the HCA's QP; an offloaded QP enters the error state. If an
 * operation of the QP waits, offload_end_call() does both.
 */
void offload_release_qp(struct urxe_qp *qp);
/*
 * A caller brackets each operation of the QP that waits (rxe/offload.h) with these functions.
 * offload_end_call returns false if the HCA went meanwhile, or its QP could not enter the error
 * state. Then the HCA's QP is destroyed, and an offloaded QP is in the error state.
 */
void offload_begin_call(struct urxe_qp *qp);
bool offload_end_call(struct urxe_qp *qp);
/* The HCA's QP, if there is one, joins a multicast group, or leaves it. Both functions wait for the
 * HCA. Joining returns 0 or an error of mcast_attach; 0 also if the HCA went meanwhile. */
int offload_join_group(struct urxe_qp *qp, const struct urxe_gid *gid);
void offload_leave_group(struct urxe_qp *qp, const struct urxe_gid *gid);
/*
 * The engine's QP has entered the error state: moves the HCA's QP to it, once. If the HCA refuses,
 * the HCA's QP is destroyed, so that it accesses no memory after its requests are flushed.
 */
void offload_fail(struct urxe_qp *qp);
/* The HCA's QP was reset or destroyed: the engine has the receive requests again that the HCA has
 * not completed. Does nothing for a SRQ. */
void offload_return_receives(struct urxe_rq *rq);

/* Whether the HCA has send requests of the QP. While it has, the engine flushes none: the HCA
 * completes its requests first. */
static inline bool offload_has_sends(const struct urxe_qp *qp)
{
	return qp->offloaded && qp->sq.cur != qp->sq.tail;
}

/* Whether the HCA has receive requests of the QP's own queue: then the engine flushes none of them.
 * False with a SRQ. */
static inline bool offload_has_receives(const struct urxe_qp *qp)
{
	return qp->offloaded && qp->rq->qp && qp->rq->tail != qp->rq->retired;
}

/* Whether the HCA takes the queue's requests: it executes the queue's QP, or has the SRQ, too. */
static inline bool offload_has_queue(const struct urxe_rq *rq)
{
	return rq->qp ? rq->qp->offloaded : rq->hca != NULL;
}

/* --- Shared receive queues. */

/* Whether QPs that the engine executes would get no receive request from the queue: it is a SRQ
 * whose requests the HCA has, and no take-over is stopping the SRQ. */
bool offload_keeps_receives(const struct urxe_rq *rq);
/* Waits for the HCA. Sets srq->hca; NULL: the SRQ is the engine's alone. 0 or -ENOMEM. */
int offload_create_srq(struct urxe_rq *srq);
/* Destroys the HCA's SRQ, if there is one. The requests that the HCA had are lost. */
void offload_destroy_srq(struct urxe_rq *srq);
/* As offload_destroy_srq, for a SRQ none of whose QPs the HCA has. The engine gets the requests
 * back that the HCA has not completed, in the order of posting. */
void offload_end_srq(struct urxe_rq *srq);
/* Makes urxe_rq.kept_room at least n. 0 or -ENOMEM. */
int offload_make_room(struct urxe_rq *srq, uint32_t n);
/* The HCA is about to get the request: copies it to srq->kept, and returns the copy, never NULL,
 * because the caller has checked that the HCA has fewer than kept_room requests. */
struct kept_recv *offload_keep_recv(struct urxe_rq *srq, const struct recv_wqe *wqe);
/* The HCA has the request no longer. *kept can be read until the next offload_keep_recv. */
void offload_forget_recv(struct urxe_rq *srq, struct kept_recv *kept);

static inline const struct recv_wqe *kept_wqe(const struct kept_recv *kept)
{
	return (const struct recv_wqe *)kept->wqe;
}

/* --- Completion queues. */

/* Waits for the HCA. Creates the HCA's queue, if the CQ has none. -EOPNOTSUPP: the HCA went
 * meanwhile; or an error of cq_create. */
int offload_create_cq(struct urxe_cq *cq);
void offload_destroy_cq(struct urxe_cq *cq);
/* Requests the HCA's event, if an offloaded QP uses the CQ. */
void offload_arm_cq(struct urxe_cq *cq, bool solicited_only);

/* --- Regions. */

/* Counts a region that the HCA has (`by` is 1), or has no longer (-1). */
void offload_count_region(struct urxe_dev *dev, uint64_t length, int by);
/*
 * Registers the region with the HCA, which chooses *key. Returns 0 or an error of mr_reg. If *hca
 * is NULL after success, the region is the engine's alone and *key is not set: the device has no
 * HCA, the owner chose attr->key, or the HCA cannot have such a region.
 */
int offload_register(struct urxe_dev *dev, const struct urxe_mr_attr *attr, void **hca,
		     uint32_t *key);
/* Deregisters the HCA's region, if there is one. The engine's region stays, without the HCA's. */
void offload_deregister(struct urxe_mr *mr);
/* Whether the HCA lacks regions of the PD. Fast registrations do not count. */
bool offload_lacks_regions(const struct urxe_dev *dev, uint32_t pd);

#endif
