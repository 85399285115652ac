/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hands the requests of offloaded queue pairs to the HCA. */
#include <errno.h>

#include "objects/completion.h"
#include "objects/device.h"
#include "objects/qp_counters.h"
#include "offload/hooks.h"

/* Most requests that one call hands to the HCA. */
#define BATCH 16

/* --- Send requests. */

static void describe_send(struct urxe_send_wr *wr, const struct urxe_qp *qp,
			  const struct send_wqe *wqe)
{
	*wr = (struct urxe_send_wr){
		.wr_id = wqe->wr_id,
		.opcode = wqe->opcode,
		.flags = wqe->flags,
		.imm = wqe->imm,
		.invalidate_key = wqe->invalidate_key,
		.remote_addr = wqe->remote_addr,
		.rkey = wqe->rkey,
	};
	if (wqe->flags & URXE_SEND_INLINE) {
		wr->inline_data = wqe->data;
		wr->inline_len = wqe->length;
	} else {
		wr->segs = (const struct urxe_seg *)wqe->data;
		wr->n_segs = wqe->n_segs;
	}
	if (qp->type == URXE_QPT_UD) {
		wr->path = &wqe->path;
		wr->remote_qpn = wqe->remote_qpn;
		wr->remote_qkey = wqe->remote_qkey;
	} else if (wqe->kind == WR_ATOMIC) {
		wr->compare_add = wqe->compare_add;
		wr->swap = wqe->swap;
	}
}

/* The status of a request that the engine does not hand to the HCA, because it fails;
 * URXE_WC_SUCCESS: the HCA gets the request. */
static enum urxe_wc_status refused_status(const struct send_wqe *wqe)
{
	if (wqe->kind == WR_MALFORMED)
		return wqe->error;
	if (wqe->opcode == URXE_WR_BIND_MW)
		return URXE_WC_MW_BIND_ERR;
	if (wqe->opcode == URXE_WR_REG_MR || wqe->kind == WR_FLUSH || wqe->kind == WR_ATOMIC_WRITE)
		return URXE_WC_LOC_QP_OP_ERR;
	return URXE_WC_SUCCESS;
}

/* The request at `cur` fails, and so uses up no receive request of the peer: decrements recv_seq
 * from that request on. */
static void forget_receive(struct urxe_qp *qp)
{
	for (uint32_t i = qp->sq.cur; i != qp->sq.head; i++)
		sq_wqe(&qp->sq, i)->recv_seq--;
	qp->req.recv_seq--;
}

/* Turns the request at `cur` into one that fails when all earlier requests have completed. The
 * entry is as by urxe_post_malformed, so that a saved device does not depend on the HCA. */
static void refuse_request(struct urxe_qp *qp)
{
	struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.cur);

	if (wr_takes_receive(wqe->opcode))
		forget_receive(qp);
	*wqe = (struct send_wqe){
		.wr_id = wqe->wr_id,
		.opcode = URXE_WR_SEND,
		.flags = URXE_SEND_SIGNALED,
		.kind = WR_MALFORMED,
		.recv_seq = wqe->recv_seq,
		.error = URXE_WC_LOC_QP_OP_ERR,
	};
}

/* Sets wrs to the requests from `cur` on, at most BATCH, up to one that fails (refused_status).
 * Returns their number. */
static uint32_t describe_batch(const struct urxe_qp *qp, struct urxe_send_wr *wrs)
{
	const struct sq *sq = &qp->sq;
	uint32_t n = 0;

	while (n < BATCH && sq->cur + n != sq->head) {
		const struct send_wqe *wqe = sq_wqe(sq, sq->cur + n);

		if (refused_status(wqe))
			break;
		describe_send(&wrs[n++], qp, wqe);
	}
	return n;
}

static void count_sends(struct urxe_qp *qp, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		qp_count(qp, URXE_EVENT_HCA_REQUESTS);
		qp_count_bytes(qp, URXE_EVENT_HCA_BYTES, sq_wqe(&qp->sq, qp->sq.cur + i)->length);
	}
}

/* Hands up to BATCH send requests to the HCA. False: the HCA takes no more at the moment, or the
 * next request does not go to the HCA. */
static bool send_batch(struct urxe_qp *qp)
{
	struct urxe_send_wr wrs[BATCH];
	uint32_t n = describe_batch(qp, wrs), taken;
	int rc = 0;

	if (!n)
		return false;
	taken = qp->hca_ops->post_send(qp->hca, wrs, n, &rc);
	count_sends(qp, taken);
	qp->sq.cur += taken;
	if (taken == n)
		return true;
	if (rc != -ENOMEM || qp->sq.cur == qp->sq.tail)
		refuse_request(qp);
	return false;
}

/* Fails the request at `cur`, if it does not go to the HCA and the HCA has no earlier one. */
static void fail_refused(struct urxe_qp *qp)
{
	enum urxe_wc_status status = refused_status(sq_wqe(&qp->sq, qp->sq.cur));

	if (qp->sq.cur != qp->sq.tail || !status)
		return;
	qp_count(qp, URXE_EVENT_LOCAL_ERROR);
	fail_send(qp, status);
}

/* Whether requests wait in the engine: the HCA resets its QP or is gone, or a take-over stops
 * it. */
static bool holds_requests(const struct urxe_qp *qp)
{
	return qp->resetting || qp->orphaned || qp->stopping;
}

static bool has_requests(const struct urxe_qp *qp)
{
	return qp->sq.cur != qp->sq.head;
}

void offload_send(struct urxe_qp *qp)
{
	if (qp->attr.state != URXE_QPS_RTS || qp->dev->taking_over || holds_requests(qp))
		return;
	while (has_requests(qp) && send_batch(qp))
		;
	if (has_requests(qp))
		fail_refused(qp);
}

/* --- Receive requests. */

/* Sets wrs to the next receive requests, at most BATCH, and returns their number. The wr_id of an
 * SRQ's request becomes the address of its kept copy, by which its completion finds it: such
 * requests complete in any order. */
static uint32_t describe_receives(struct urxe_rq *rq, struct urxe_recv_wr *wrs)
{
	uint32_t n = 0;

	for (; n < BATCH && rq->tail + n != rq->head; n++) {
		const struct recv_wqe *wqe = rq_slot(rq, rq->tail + n);

		wrs[n] = (struct urxe_recv_wr){wqe->wr_id, wqe->n_segs, wqe->segs};
		if (!rq->qp)
			wrs[n].wr_id = (uintptr_t)offload_keep_recv(rq, wqe);
	}
	return n;
}

static void forget_receives(struct urxe_rq *rq, const struct urxe_recv_wr *wrs, uint32_t n)
{
	for (uint32_t i = 0; i < n && !rq->qp; i++)
		offload_forget_recv(rq, (struct kept_recv *)(uintptr_t)wrs[i].wr_id);
}

static uint32_t post_receives(struct urxe_rq *rq, const struct urxe_recv_wr *wrs, uint32_t n,
			      int *rc)
{
	const struct urxe_offload_ops *ops = rq->dev->offload;

	return rq->qp ? rq->qp->hca_ops->post_recv(rq->qp->hca, wrs, n, rc)
		      : ops->post_srq_recv(rq->hca, wrs, n, rc);
}

/* The HCA has refused a receive request because of its contents. A message would have used the
 * request next, so a QP with a queue of its own fails (false). A SRQ goes on without it. */
static bool refuse_receive(struct urxe_rq *rq)
{
	if (rq->qp) {
		qp_error_event(rq->qp, URXE_ASYNC_QP_FATAL);
		return false;
	}
	rq->tail++;
	rq->retired++;
	return true;
}

/* Hands up to BATCH receive requests to the HCA. False: no request is left, the HCA takes no more
 * at the moment, or the QP has failed. */
static bool receive_batch(struct urxe_rq *rq)
{
	struct urxe_recv_wr wrs[BATCH];
	uint32_t n = describe_receives(rq, wrs), taken;
	int rc = 0;

	if (!n)
		return false;
	taken = post_receives(rq, wrs, n, &rc);
	rq->tail += taken;
	forget_receives(rq, wrs + taken, n - taken);
	return taken == n || (rc != -ENOMEM && refuse_receive(rq));
}

void offload_receive(struct urxe_rq *rq)
{
	if (!offload_has_queue(rq))
		return;
	if (rq->stopping ||
	    (rq->qp && (rq->qp->attr.state == URXE_QPS_ERR || holds_requests(rq->qp))))
		return;
	while (receive_batch(rq))
		;
}

void urxe_offload_refill(struct urxe_rq *rq)
{
	if (!offload_has_queue(rq))
		return;
	rq_refill(rq);
	if (rq->qp && rq->qp->attr.state == URXE_QPS_ERR)
		flush_recvs(rq->qp);
	else
		offload_receive(rq);
}
