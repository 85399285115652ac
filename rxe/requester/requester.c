/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requester/requester.h"

#include "congestion/pacing.h"
#include "memory/fast_mr.h"
#include "memory/mw.h"
#include "objects/completion.h"
#include "objects/copy_table.h"
#include "objects/device.h"
#include "objects/pkey.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "requester/copy_request.h"
#include "requester/e2e_credits.h"
#include "requester/request_packet.h"
#include "requester/retransmit.h"
#include "requester/window.h"
#include "wire/packet_build.h"

/* Most response packets of one READ request. */
#define READ_CHUNK 64

uint32_t req_read_chunk(const struct urxe_qp *qp)
{
	uint32_t window = qp->dev->attr.max_packets;

	return window < READ_CHUNK ? window : READ_CHUNK;
}

/* The request at `index` cannot be sent: it completes with `status`, after all earlier requests. */
static void fail_locally(struct urxe_qp *qp, uint32_t index, enum urxe_wc_status status)
{
	if (qp->type == URXE_QPT_RC && index != qp->sq.tail) {
		/* Called before req.error is set, because a retransmission clears req.error. The
		 * peer answers a READ or an atomic without AckReq. */
		if (!wqe_is_rd_atomic(sq_wqe(&qp->sq, index - 1)))
			retransmit_for_ack(qp, sq_wqe(&qp->sq, index)->first_psn);
		qp->req.error = status;
		qp->req.error_wqe = index;
		return;
	}
	qp_count(qp, URXE_EVENT_LOCAL_ERROR);
	fail_send(qp, status);
}

/* --- Send queue drain (IBA 10.3.1.4). */

/* Whether a packet of request `cur` was sent. */
static bool is_begun(const struct urxe_qp *qp)
{
	const struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.cur);

	return qp->sq.cur != qp->sq.head && wqe->first_psn != qp->req.psn;
}

bool req_drained(const struct urxe_qp *qp)
{
	return qp->req.una == qp->req.psn && !is_begun(qp);
}

void req_check_drained(struct urxe_qp *qp)
{
	if (!qp->req.drain_event || !req_drained(qp))
		return;
	qp->req.drain_event = false;
	qp_event(qp, URXE_ASYNC_SQ_DRAINED);
}

void req_begin_drain(struct urxe_qp *qp)
{
	if (qp->type == URXE_QPT_RC && !qp->offloaded && !is_begun(qp))
		retransmit_for_ack(qp, qp->req.psn);
	req_check_drained(qp);
}

/* --- Sending. */

static bool is_sending_state(const struct urxe_qp *qp)
{
	if (qp->attr.state == URXE_QPS_SQD)
		return is_begun(qp);
	return qp->attr.state == URXE_QPS_RTS;
}

/* Number of PSNs of the packet at psn. */
static uint32_t packet_span(const struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t psn)
{
	uint32_t pos, chunk, end;

	if (wqe->kind != WR_READ)
		return 1;
	pos = (uint32_t)urxe_psn_diff(psn, wqe->first_psn);
	chunk = req_read_chunk(qp);
	end = (pos / chunk + 1) * chunk;
	return (end < wqe->n_packets ? end : wqe->n_packets) - pos;
}

/* First PSN of the READ request that psn belongs to. */
static uint32_t chunk_start(const struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t psn)
{
	uint32_t pos = (uint32_t)urxe_psn_diff(psn, wqe->first_psn);

	return urxe_psn_add(wqe->first_psn, pos - pos % req_read_chunk(qp));
}

/*
 * The PSN at which the retransmission of psn begins. For a READ: the first missing response of the
 * READ request. Linux' rxe accepts no repetition that begins before its last one, so the requester
 * asks for a later part only if no earlier part is missing.
 */
static uint32_t find_resend_start(const struct urxe_qp *qp, const struct send_wqe *wqe,
				  uint32_t psn)
{
	uint32_t start;

	if (wqe->kind != WR_READ)
		return psn;
	start = chunk_start(qp, wqe, psn);
	if (urxe_psn_diff(start, qp->req.una) < 0)
		start = qp->req.una;
	while (answered(&qp->req, start))
		start = urxe_psn_add(start, 1);
	return start;
}

/* The number n of PSNs from `psn` on, less those at the end whose responses have arrived. */
static uint32_t trim_answered(const struct requester *req, uint32_t psn, uint32_t n)
{
	while (n && answered(req, urxe_psn_add(psn, n - 1)))
		n--;
	return n;
}

static bool has_answered(const struct requester *req, uint32_t psn, uint32_t n)
{
	while (n && !answered(req, urxe_psn_add(psn, n - 1)))
		n--;
	return n;
}

/*
 * Number of PSNs of the next retransmission. A READ request that was answered in part: from the
 * first to the last missing response. A READ request without any answer may be lost, so it is
 * repeated whole: a responder accepts later repetitions only inside the range of the first one (IBA
 * 9.7.5.1.4).
 */
static uint32_t find_resend_span(const struct urxe_qp *qp, const struct send_wqe *wqe,
				 uint32_t start)
{
	const struct requester *req = &qp->req;
	uint32_t span = packet_span(qp, wqe, start);
	uint32_t rest = (uint32_t)urxe_psn_diff(req->resend.end, start);

	if (span == 1)
		return 1;
	if (start == chunk_start(qp, wqe, start) && !has_answered(req, start, span))
		return span;
	return trim_answered(req, start, span < rest ? span : rest);
}

/* Whether window, responder resources, fence and credits allow the next packet. */
static bool may_send_packet(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct requester *req = &qp->req;

	if (qp->type != URXE_QPT_RC)
		return true;
	if (!window_allows(qp, packet_span(qp, wqe, req->psn)))
		return false;
	if (wqe_is_rd_atomic(wqe) && req->rd_atomic >= qp->attr.max_rd_atomic)
		return false;
	if (wqe->flags & URXE_SEND_FENCE && req->rd_atomic && req->psn == wqe->first_psn)
		return false;
	return credit_allows(qp, wqe);
}

/* Moves psn over the packet that was just built. */
static void advance_psn(struct urxe_qp *qp, const struct request_packet *rp)
{
	struct requester *req = &qp->req;
	bool end;

	req->psn = urxe_psn_add(req->psn, rp->span);
	end = req->psn == urxe_psn_add(rp->wqe->first_psn, rp->wqe->n_packets);
	if (qp->type == URXE_QPT_RC) {
		qp_update_unacked(qp);
		req->rd_atomic += wqe_is_rd_atomic(rp->wqe);
		if (end)
			qp_begin_next_send(qp);
		retransmit_packet_sent(qp);
		return;
	}
	if (end) {
		req->una = req->psn;
		complete_send(qp, URXE_WC_SUCCESS);
	}
	req_check_drained(qp);
}

/* --- Local requests send no packet: the requester executes them in their order. */

static bool execute_local(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	switch (wqe->opcode) {
	case URXE_WR_BIND_MW: return mw_bind(qp, &wqe->bind);
	case URXE_WR_REG_MR: return fast_mr_register(qp, &wqe->fast_reg);
	default: return key_invalidate(qp, wqe->invalidate_key);
	}
}

/* Withdraws the rights that the request ends. False: a peer still copies (key_release). */
static bool release_rights(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	switch (wqe->opcode) {
	case URXE_WR_BIND_MW: return mw_withdraw_key(qp->dev, wqe->bind.mw_key);
	case URXE_WR_REG_MR: return true;
	default: return key_release(qp->dev, wqe->invalidate_key);
	}
}

/*
 * Whether a local request has to wait for earlier requests. A local invalidate waits until all of
 * them are complete, as if it had the local invalidate fence (IBA 10.6.5.1): READs and
 * retransmissions need the key until then. Linux' rxe waits, too.
 */
static bool is_fenced(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	if (wqe->opcode == URXE_WR_LOCAL_INV)
		return qp->sq.cur != qp->sq.tail;
	return wqe->flags & URXE_SEND_FENCE && qp->req.rd_atomic;
}

/* Executes a local request. False: the request has to wait, or has failed. */
static bool run_local(struct urxe_qp *qp, struct send_wqe *wqe)
{
	if (is_fenced(qp, wqe))
		return false;
	if (!release_rights(qp, wqe)) {
		pace_again(qp, COPIES_AGAIN_NS);
		return false;
	}
	if (!execute_local(qp, wqe)) {
		fail_locally(qp, qp->sq.cur,
			     wqe->opcode == URXE_WR_BIND_MW ? URXE_WC_MW_BIND_ERR
							    : URXE_WC_LOC_QP_OP_ERR);
		return false;
	}
	wqe->executed = true;
	qp_begin_next_send(qp);
	complete_executed_sends(qp);
	return true;
}

/*
 * Executes the local operations and the copies from `cur` on, and moves `cur` behind them. Returns
 * whether the request at `cur` then has to be sent in packets.
 */
static bool is_packet_ready(struct urxe_qp *qp)
{
	while (is_sending_state(qp) && !qp->req.error && qp->sq.cur != qp->sq.head) {
		struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.cur);

		if (wqe->kind == WR_MALFORMED) {
			fail_locally(qp, qp->sq.cur, wqe->error);
			return false;
		}
		if (wqe->kind == WR_LOCAL) {
			if (!run_local(qp, wqe))
				return false;
			continue;
		}
		switch (copy_try(qp, wqe)) {
		case COPY_DONE: break;
		case COPY_WAIT: return false;
		case COPY_USE_PACKETS: return true;
		}
	}
	return false;
}

bool req_execute(struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;

	return !req->rnr_wait && req->resend.psn == req->resend.end && !is_packet_ready(qp) &&
	       qp->sq.cur == qp->sq.head;
}

/* The request whose next packet may be sent now; NULL if there is none. */
static const struct send_wqe *ready_request(struct urxe_qp *qp)
{
	const struct send_wqe *wqe;

	if (!is_packet_ready(qp))
		return NULL;
	wqe = sq_wqe(&qp->sq, qp->sq.cur);
	if (!may_send_packet(qp, wqe))
		return NULL;
	qp->req.held = !pace_ready(qp);
	return qp->req.held ? NULL : wqe;
}

/* Sends the next packet of the retransmission. False: the rate limit delays the packet, or the
 * memory of the request is gone and the request has failed. */
static bool output_resend(struct urxe_qp *qp, const struct send_wqe *wqe, struct urxe_frame *frame)
{
	struct resend *resend = &qp->req.resend;
	struct request_packet rp = {.wqe = wqe, .again = true};

	resend->psn = find_resend_start(qp, wqe, resend->psn);
	rp.psn = resend->psn;
	rp.span = find_resend_span(qp, wqe, rp.psn);
	qp->req.held = !pace_ready(qp);
	if (qp->req.held)
		return false;
	if (!reqpkt_build(qp, &rp, &qp->header, frame)) {
		resend->end = resend->psn;
		fail_locally(qp, resend->wqe, URXE_WC_LOC_PROT_ERR);
		return false;
	}
	pace_sent(qp, frame->len);
	retransmit_packet_resent(qp, rp.span);
	return true;
}

/* Builds the header of a datagram from the address handle. False: no next hop, P_Key or source GID;
 * the request fails. Without a next hop Linux' rxe fails the request, too. */
static bool build_datagram_header(struct header_template *header, const struct urxe_qp *qp,
				  const struct send_wqe *wqe)
{
	return urxe_path_has_next_hop(&wqe->path) &&
	       pkey_valid(qp->dev->pkeys[reqpkt_pkey_index(qp, wqe)]) &&
	       build_template(header, qp->dev, &wqe->path, qp->qpn, wqe->remote_qpn);
}

static bool output_new(struct urxe_qp *qp, struct urxe_frame *frame)
{
	const struct header_template *header = &qp->header;
	struct request_packet rp = {.wqe = ready_request(qp), .psn = qp->req.psn};
	struct header_template ud_header;

	if (!rp.wqe)
		return false;
	if (qp->type == URXE_QPT_UD) {
		header = &ud_header;
		if (!build_datagram_header(&ud_header, qp, rp.wqe)) {
			fail_locally(qp, qp->sq.cur, URXE_WC_LOC_QP_OP_ERR);
			return false;
		}
		qp->req.sent_to_group = rp.wqe->remote_qpn == URXE_QPN_MULTICAST;
	}
	rp.span = packet_span(qp, rp.wqe, rp.psn);
	if (!reqpkt_build(qp, &rp, header, frame)) {
		fail_locally(qp, qp->sq.cur, URXE_WC_LOC_PROT_ERR);
		return false;
	}
	pace_sent(qp, frame->len);
	advance_psn(qp, &rp); /* may complete the request and free its slot */
	return true;
}

/* Sends packets of a retransmission before new ones, also in SQD. */
bool req_output(struct urxe_qp *qp, struct urxe_frame *frame)
{
	const struct send_wqe *wqe;

	qp->req.held = false;
	if (qp->req.rnr_wait)
		return false;
	if (qp->req.resend.psn != qp->req.resend.end &&
	    (qp->attr.state == URXE_QPS_RTS || qp->attr.state == URXE_QPS_SQD)) {
		wqe = retransmit_next(qp);
		if (wqe)
			return window_allows_resend(qp) && output_resend(qp, wqe, frame);
	}
	return output_new(qp, frame);
}
