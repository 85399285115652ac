/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/completion.h"

#include "objects/copy_table.h"
#include "objects/cq.h"
#include "objects/device.h"
#include "objects/offload_objects.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "objects/references.h"
#include "objects/rq.h"
#include "record/recorder.h"

/* --- Completion queues. */

static void count_error(struct urxe_qp *qp, const struct urxe_wc *wc)
{
	static const uint8_t events[] = {
		[URXE_WC_LOC_LEN_ERR] = URXE_EVENT_WC_LOC_LEN,
		[URXE_WC_LOC_QP_OP_ERR] = URXE_EVENT_WC_LOC_QP_OP,
		[URXE_WC_LOC_PROT_ERR] = URXE_EVENT_WC_LOC_PROT,
		[URXE_WC_WR_FLUSH_ERR] = URXE_EVENT_WC_WR_FLUSH,
		[URXE_WC_MW_BIND_ERR] = URXE_EVENT_WC_MW_BIND,
		[URXE_WC_BAD_RESP_ERR] = URXE_EVENT_WC_BAD_RESP,
		[URXE_WC_LOC_ACCESS_ERR] = URXE_EVENT_WC_LOC_ACCESS,
		[URXE_WC_REM_INV_REQ_ERR] = URXE_EVENT_WC_REM_INV_REQ,
		[URXE_WC_REM_ACCESS_ERR] = URXE_EVENT_WC_REM_ACCESS,
		[URXE_WC_REM_OP_ERR] = URXE_EVENT_WC_REM_OP,
		[URXE_WC_RETRY_EXC_ERR] = URXE_EVENT_WC_RETRY_EXC,
		[URXE_WC_RNR_RETRY_EXC_ERR] = URXE_EVENT_WC_RNR_RETRY_EXC,
	};

	/* Completions of an HCA may have further statuses, which no counter counts. */
	if (wc->status < sizeof(events))
		qp_count(qp, events[wc->status]);
}

static bool call_complete(struct urxe_cq *cq, const struct urxe_wc *wc)
{
	bool taken;

	if (HAS_RECORDING(cq->dev))
		record_completion(cq->dev, cq->ctx, wc);
	taken = cq->dev->attr.ops->complete(cq->ctx, wc);
	return HAS_RECORDING(cq->dev) ? record_answer(cq->dev, QUESTION_COMPLETE, taken) : taken;
}

static void call_comp_event(struct urxe_cq *cq)
{
	if (HAS_RECORDING(cq->dev))
		record_comp_event(cq->dev, cq->ctx);
	cq->dev->attr.ops->comp_event(cq->ctx);
}

/* Adds the completion to the CQ, and raises the CQ's event if the CQ is armed for it. False: the CQ
 * has overrun, now or earlier, and the completion is lost. */
static bool add_to_cq(struct urxe_cq *cq, struct urxe_qp *qp, const struct urxe_wc *wc)
{
	if (cq->overrun)
		return false;
	if (!call_complete(cq, wc)) {
		cq_overrun(cq);
		return false;
	}
	if (wc->status != URXE_WC_SUCCESS)
		count_error(qp, wc);
	if (cq->armed == CQ_ARMED_NEXT || (cq->armed == CQ_ARMED_SOLICITED && wc->solicited)) {
		cq->armed = CQ_DISARMED;
		call_comp_event(cq);
	}
	return true;
}

void complete_request(struct urxe_qp *qp, struct urxe_cq *cq, const struct urxe_wc *wc)
{
	if (!add_to_cq(cq, qp, wc))
		qp_error_event(qp, URXE_ASYNC_QP_FATAL);
}

/* --- Send requests. */

/* Tells the owner once that unsignaled requests have left the queue: urxe_sq_retired clears
 * send_retired_called. For most requests of a burst this function only reads that member, in a
 * cache line that the caller has just written. */
static void tell_send_retired(struct urxe_qp *qp)
{
	if (qp->sq.send_retired_called)
		return;
	qp->sq.send_retired_called = true;
	if (qp->dev->attr.ops->send_retired)
		qp->dev->attr.ops->send_retired(qp->ctx);
}

void complete_send(struct urxe_qp *qp, enum urxe_wc_status status)
{
	struct sq *sq = &qp->sq;
	const struct send_wqe *wqe = sq_wqe(sq, sq->tail);
	struct urxe_wc wc = {
		.wr_id = wqe->wr_id,
		.qp_ctx = qp->ctx,
		.status = status,
		.opcode = wr_wc_opcode(wqe->opcode),
		.byte_len = wqe->length,
		.qpn = qp->qpn,
		.solicited = status != URXE_WC_SUCCESS,
	};

	if (status != URXE_WC_SUCCESS)
		end_references(qp);
	if (sq->cur == sq->tail)
		qp_begin_next_send(qp);
	sq->tail++;
	if (status == URXE_WC_SUCCESS && !qp->sq_sig_all && !(wqe->flags & URXE_SEND_SIGNALED))
		tell_send_retired(qp);
	else
		complete_request(qp, qp->send_cq, &wc);
}

void complete_executed_sends(struct urxe_qp *qp)
{
	while (qp->sq.tail != qp->sq.head && sq_wqe(&qp->sq, qp->sq.tail)->executed)
		complete_send(qp, URXE_WC_SUCCESS);
}

static void fail_unreliable(struct urxe_qp *qp, enum urxe_wc_status status)
{
	qp->attr.state = URXE_QPS_SQE;
	complete_send(qp, status);
	flush_sends(qp);
}

void fail_send(struct urxe_qp *qp, enum urxe_wc_status status)
{
	if (qp->type != URXE_QPT_RC) {
		fail_unreliable(qp, status);
		return;
	}
	complete_send(qp, status);
	qp_error(qp);
}

void flush_sends(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	/* The HCA completes its requests first; then this function is called again. */
	if (offload_has_sends(qp))
		return;
	while (qp->sq.tail != qp->sq.head)
		complete_send(qp, URXE_WC_WR_FLUSH_ERR);
	req->una = req->acked = req->resent_end = req->psn;
	qp_update_unacked(qp);
	req->resend.psn = req->resend.end = req->psn;
	req->timeout_due = req->probe_due = req->missing_due = URXE_NEVER;
}

/* --- Receive requests. */

/* The buffer to which rq_take copies a SRQ's request. NULL for a QP with its own queue; the cache
 * line of resp.copy is then not read. */
static struct recv_wqe *copy_of(const struct urxe_qp *qp)
{
	return qp->rq->qp ? NULL : qp->resp.copy;
}

const struct recv_wqe *next_recv(struct urxe_qp *qp)
{
	return qp->resp.has_wqe ? qp->resp.wqe : rq_first(qp->rq);
}

bool hold_recv(struct urxe_qp *qp)
{
	if (!qp->resp.has_wqe) {
		qp->resp.wqe = rq_take(qp->rq, copy_of(qp));
		qp->resp.has_wqe = qp->resp.wqe;
	}
	return qp->resp.has_wqe;
}

void complete_recv(struct urxe_qp *qp, struct urxe_wc *wc)
{
	wc->wr_id = qp->resp.wqe->wr_id;
	wc->qp_ctx = qp->ctx;
	wc->qpn = qp->qpn;
	wc->solicited |= wc->status != URXE_WC_SUCCESS;
	qp->resp.has_wqe = false;
	rq_retire(qp->rq);
	complete_request(qp, qp->recv_cq, wc);
}

void fail_recv(struct urxe_qp *qp, enum urxe_wc_status status)
{
	struct urxe_wc wc = {.status = status};

	complete_recv(qp, &wc);
}

void flush_recvs(struct urxe_qp *qp)
{
	if (offload_has_receives(qp))
		return;
	if (qp->resp.has_wqe)
		fail_recv(qp, URXE_WC_WR_FLUSH_ERR);
	while (qp->rq->qp && hold_recv(qp))
		fail_recv(qp, URXE_WC_WR_FLUSH_ERR);
}

/* --- Error state. */

bool urxe_qp_has_answers(const struct urxe_qp *qp)
{
	return qp->resp.res_pending || qp->resp.nak || qp->resp.ack_due ||
	       timer_armed(&qp->ack_timer);
}

/* Lets urxe_output send the answers that are due although the QP is in the error state: the program
 * has the messages, so the peer must not take them for lost. A delayed ACK falls due at once; its
 * timer's function (resp_ack_at_last) decides whether to send it. */
static void send_last_answers(struct urxe_qp *qp)
{
	struct urxe_dev *dev = qp->dev;

	if (timer_armed(&qp->ack_timer))
		timer_set(&dev->timers, &qp->ack_timer, dev->now);
	if (urxe_qp_has_answers(qp))
		qp_schedule(qp);
}

void tell_last_wqe(struct urxe_qp *qp)
{
	if (qp->rq->qp || qp->offloaded || qp->last_wqe)
		return;
	qp->last_wqe = true;
	qp_event(qp, URXE_ASYNC_QP_LAST_WQE_REACHED);
}

void qp_error(struct urxe_qp *qp)
{
	if (qp->attr.state == URXE_QPS_ERR)
		return;
	qp->attr.state = URXE_QPS_ERR;
	copy_table_withdraw_qp(qp->dev, qp->qpn);
	qp->req.rnr_wait = false;
	qp->req.error = 0;
	qp->req.drain_event = false;
	timer_clear(&qp->timer);
	qp_clear_gap(qp);
	offload_fail(qp);
	flush_sends(qp);
	flush_recvs(qp);
	tell_last_wqe(qp);
	send_last_answers(qp);
}

void qp_error_event(struct urxe_qp *qp, enum urxe_async event)
{
	if (qp->attr.state == URXE_QPS_ERR)
		return;
	qp_error(qp);
	qp_event(qp, event);
}
