/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completions of the HCA: these functions update the engine's queue pair, and complete the
 * program's requests. */
#include <stddef.h>
#include <string.h>

#include "objects/completion.h"
#include "objects/device.h"
#include "objects/qp_counters.h"
#include "offload/hooks.h"

/* The state of the HCA's QP after a send has failed. UC and UD QPs may be in SQE instead of the
 * error state (IBA 10.3.1), or already in RTS if the program has moved them there. */
static uint8_t state_after_error(const struct urxe_qp *qp)
{
	struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};

	if (qp->type != URXE_QPT_RC)
		qp->hca_ops->qp_query(qp->hca, &attr);
	return attr.state;
}

static void follow_send_error(struct urxe_qp *qp, uint32_t status)
{
	uint8_t state;

	if (qp->attr.state == URXE_QPS_ERR)
		return;
	state = state_after_error(qp);
	if (state == URXE_QPS_SQE)
		qp->attr.state = URXE_QPS_SQE;
	else if (state == URXE_QPS_ERR || status != URXE_WC_WR_FLUSH_ERR)
		qp_error(qp);
}

static bool is_flushing(const struct urxe_qp *qp)
{
	return qp->attr.state == URXE_QPS_ERR || qp->attr.state == URXE_QPS_SQE;
}

/* Counts a received message, because a take-over needs the expected PSN (device/take_over.c). */
static void count_receive(struct urxe_qp *qp, uint32_t length)
{
	qp->resp.psn = urxe_psn_add(qp->resp.psn, qp_packets(qp, length));
	qp->resp.msn = urxe_psn_add(qp->resp.msn, 1);
}

static void count_send(struct urxe_qp *qp)
{
	const struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.tail);

	qp->req.psn = urxe_psn_add(qp->req.psn, wqe->n_packets);
	qp->req.credit.acked_seq = wqe->recv_seq;
}

static void complete_offloaded_send(struct urxe_qp *qp, const struct urxe_wc *wc)
{
	if (!offload_has_sends(qp))
		return;
	if (wc->status == URXE_WC_SUCCESS)
		count_send(qp);
	complete_send(qp, wc->status);
	if (wc->status != URXE_WC_SUCCESS)
		follow_send_error(qp, wc->status);
	if (!is_flushing(qp))
		offload_send(qp);
	else
		flush_sends(qp);
}

static void tell_receive(struct urxe_qp *qp, uint64_t wr_id, const struct urxe_wc *wc)
{
	struct urxe_wc own = *wc;

	own.wr_id = wr_id;
	own.qp_ctx = qp->ctx;
	own.solicited |= own.status != URXE_WC_SUCCESS;
	if (own.status == URXE_WC_SUCCESS) {
		count_receive(qp, own.byte_len);
		qp_count(qp, URXE_EVENT_HCA_RECEIVES);
		qp_count_bytes(qp, URXE_EVENT_HCA_BYTES, own.byte_len);
	}
	complete_request(qp, qp->recv_cq, &own);
	if (own.status != URXE_WC_SUCCESS)
		qp_error(qp);
	if (qp->attr.state == URXE_QPS_ERR)
		flush_recvs(qp);
	else
		offload_receive(qp->rq);
}

static void complete_offloaded_recv(struct urxe_qp *qp, const struct urxe_wc *wc)
{
	if (!offload_has_receives(qp))
		return;
	if (qp->stopping && wc->status == URXE_WC_WR_FLUSH_ERR) {
		qp->returned++;
		return;
	}
	rq_retire(qp->rq);
	tell_receive(qp, wc->wr_id, wc);
}

struct urxe_qp *offload_complete(struct urxe_dev *dev, const struct urxe_wc *wc, bool recv)
{
	struct urxe_qp *qp = idmap_find(&dev->qps, wc->qpn);

	if (!qp || !qp->offloaded)
		return NULL;
	if (recv)
		complete_offloaded_recv(qp, wc);
	else
		complete_offloaded_send(qp, wc);
	return qp->stopping ? qp : NULL;
}

/* --- Shared receive queues. */

/* The HCA's QP has stopped in the middle of a message: the engine's QP now holds the receive
 * request of that message. */
static void hold_returned(struct urxe_qp *qp, const struct recv_wqe *wqe)
{
	memcpy(qp->resp.copy, wqe, rq_wqe_size(qp->rq));
	qp->resp.wqe = qp->resp.copy;
	qp->resp.has_wqe = true;
}

static bool is_returned(const struct urxe_qp *qp, const struct urxe_wc *wc)
{
	return qp->stopping && qp->attr.state != URXE_QPS_ERR && wc->status == URXE_WC_WR_FLUSH_ERR;
}

static void tell_recv_retired(const struct urxe_rq *srq)
{
	if (srq->dev->attr.ops->recv_retired)
		srq->dev->attr.ops->recv_retired(srq->attr.ctx);
}

/*
 * Takes the completed request out of srq->kept, and completes it for the program. If the QP is
 * destroyed, or the engine executes it, the program gets no completion: recv_retired tells the
 * owner. If the HCA has flushed the request because its QP stops, completes nothing: the engine's
 * QP holds the request. If that QP holds another request already, the request stays in srq->kept.
 */
static void take_completion(struct urxe_rq *srq, struct urxe_qp *qp, const struct urxe_wc *wc)
{
	struct kept_recv *kept = (struct kept_recv *)(uintptr_t)wc->wr_id;
	const bool completes = qp && qp->offloaded && qp->rq == srq;

	if (completes && is_returned(qp, wc) && qp->resp.has_wqe)
		return;
	offload_forget_recv(srq, kept);
	srq->retired++;
	if (completes && is_returned(qp, wc))
		hold_returned(qp, kept_wqe(kept));
	else if (completes)
		tell_receive(qp, kept_wqe(kept)->wr_id, wc);
	else
		tell_recv_retired(srq);
}

/* If the queue was full, calls refill, because the owner may have requests that it could not
 * post. */
void urxe_offload_srq_complete(struct urxe_rq *srq, const struct urxe_wc *wc)
{
	const bool full = srq->head - srq->retired >= srq->attr.max_wr;

	take_completion(srq, idmap_find(&srq->dev->qps, wc->qpn), wc);
	if (full)
		urxe_offload_refill(srq);
	else
		offload_receive(srq);
}
