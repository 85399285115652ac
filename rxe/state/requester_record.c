/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester: PSNs, credits, window, retransmission and its deadlines. The stream lacks the
 * proof of the copy transport: the restored connection has to prove anew that its packets reach the
 * peer.
 */
#include "requester/requester.h"

#include "objects/device.h"
#include "objects/qp.h"
#include "requester/retransmit.h"
#include "requester/window.h"
#include "state/state_records.h"

static void credit_fields(struct state_stream *s, struct credit *credit)
{
	state_bool(s, &credit->limited);
	state_u32s(s, &credit->limit, &credit->acked_seq);
}

/* Saves `open` as false if no PSN is outstanding, because then the repair has ended. */
static void repair_fields(struct state_stream *s, struct requester *req)
{
	struct repair *repair = &req->repair;
	bool open = repair->open && req->una != req->psn;

	state_bool(s, &open);
	if (s->restoring)
		repair->open = open;
	state_bool(s, &repair->by_nak);
	state_u24s(s, &repair->high, &repair->frontier);
}

static void rtt_fields(struct state_stream *s, struct rtt *rtt)
{
	state_durations(s, &rtt->smoothed, &rtt->deviation, &rtt->least);
	state_time(s, &rtt->sent);
	state_u24(s, &rtt->psn);
	state_bool(s, &rtt->timing);
}

/* The local error that waits for a request, and the request's distance from the queue's head. */
static void error_fields(struct state_stream *s, struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	const uint32_t n = qp->sq.head - qp->sq.tail;
	uint32_t behind = req->error ? qp->sq.head - req->error_wqe : 0;

	state_u8_max(s, &req->error, URXE_WC_RNR_RETRY_EXC_ERR);
	state_u32_max(s, &behind, n);
	state_require(s, !req->error == !behind);
	if (s->restoring)
		req->error_wqe = qp->sq.head - behind;
}

static void window_fields(struct state_stream *s, struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	state_u32(s, &req->window);
	state_bools(s, &req->window_lossy, &req->window_may_grow);
	state_u24(s, &req->window_mark);
	/* The default window of the saved device may have been larger. */
	if (s->restoring && req->window > qp->dev->attr.max_packets)
		req->window = qp->dev->attr.max_packets;
}

/* If the last READ request of a retransmission has taken psn beyond `end`, the stream has `end`. */
static void resend_fields(struct state_stream *s, struct resend *resend)
{
	uint32_t psn = urxe_psn_diff(resend->psn, resend->end) < 0 ? resend->psn : resend->end;

	state_u24s(s, &psn, &resend->end);
	state_require(s, urxe_psn_diff(resend->end, psn) >= 0);
	resend->psn = psn;
}

static void retry_fields(struct state_stream *s, struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	/* These members are not in the stream. The saved device loses them as well, so that it
	 * equals the restored one. */
	req->timed_out = false;
	req->repair.announcements = 0;
	req->asks_ack = false;
	req->frame_span = 0;
	req->copy = (struct copy_proof){0};
	qp->peer_gso = false;
	qp->turn = 0;
	state_u8_max(s, &req->retries, 7);
	state_u8_max(s, &req->rnr_retries, 7);
	state_bools(s, &req->rnr_wait, &req->held, &req->nak_seen);
	/* Counts a sequence NAK if any NAK has come, so that the next NAK uses no retry. That is
	 * too lenient after an RNR NAK, but ends no connection early. */
	req->naks = req->nak_seen;
	state_bool(s, &req->missing);
	state_u8_max(s, &req->probes, RETRANSMIT_PROBES);
	state_u8_flag(s, &req->probe_span, RETRANSMIT_PROBE_SPAN, &req->probe_all);
	state_u8(s, &req->streak);
	state_u8_max(s, &req->peer, PEER_GO_BACK_N);
	resend_fields(s, &req->resend);
	repair_fields(s, req);
	state_times(s, &req->una_sent, &req->timeout_due, &req->probe_due, &req->missing_due);
	state_u32s(s, &req->plain, &req->plain_after);
	state_bool(s, &req->after_rnr);
}

/* --- Answered READs and atomics: a bit for each outstanding PSN. */

/*
 * Restoring: whether the outstanding PSN belongs to a request that a response of its own completes
 * instead of an ACK (wr_is_rd_atomic). *at, an index in the send queue, is first that of the
 * previous PSN's request, and becomes that of this PSN's request. The caller passes PSNs in their
 * order.
 */
static bool has_responses(const struct urxe_qp *qp, uint32_t psn, uint32_t *at)
{
	for (;; ++*at) {
		const struct send_wqe *wqe = sq_wqe(&qp->sq, *at);

		if (((psn - wqe->first_psn) & URXE_PSN_MASK) < wqe->n_packets)
			return wqe_is_rd_atomic(wqe);
		if (*at == qp->sq.cur)
			return false;
	}
}

/* Saving: the bits of 8 PSNs from psn on. */
static uint8_t answered_bits(const struct requester *req, uint32_t psn)
{
	uint8_t bits = 0;

	for (uint32_t i = 0; i < 8; i++, psn = urxe_psn_add(psn, 1))
		if (urxe_psn_diff(psn, req->psn) < 0 && answered(req, psn))
			bits |= (uint8_t)(1 << i);
	return bits;
}

static void set_answered_bits(struct state_stream *s, struct urxe_qp *qp, uint32_t psn,
			      uint8_t bits, uint32_t *at)
{
	for (; bits && state_ok(s); bits >>= 1, psn = urxe_psn_add(psn, 1)) {
		if (!(bits & 1))
			continue;
		state_require(s, urxe_psn_diff(psn, qp->req.psn) < 0 && has_responses(qp, psn, at));
		if (state_ok(s))
			set_answered(&qp->req, psn, true);
	}
}

static void answered_fields(struct state_stream *s, struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;
	const uint32_t n = qp->type == URXE_QPT_RC ? requester_outstanding(req) : 0;
	uint32_t at = qp->sq.tail;

	for (uint32_t i = 0; i < n && state_ok(s); i += 8) {
		const uint32_t psn = urxe_psn_add(req->una, i);
		uint8_t bits = s->restoring ? 0 : answered_bits(req, psn);

		state_u8(s, &bits);
		if (s->restoring)
			set_answered_bits(s, qp, psn, bits, &at);
	}
}

/* Number of a send request's READ requests, or atomics, that are sent and not answered. */
static uint32_t count_outstanding(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct requester *req = &qp->req;
	const uint32_t chunk = wqe->kind == WR_READ ? req_read_chunk(qp) : 1;
	uint32_t sent = (req->psn - wqe->first_psn) & URXE_PSN_MASK;
	uint32_t done = (req->una - wqe->first_psn) & URXE_PSN_MASK;

	if (sent > wqe->n_packets)
		sent = wqe->n_packets;
	if (done > sent) /* una is in an earlier request */
		done = 0;
	return (sent + chunk - 1) / chunk - done / chunk;
}

static uint32_t count_all_outstanding(const struct urxe_qp *qp)
{
	const struct sq *sq = &qp->sq;
	uint32_t n = 0;

	for (uint32_t i = sq->tail; i != sq->head; i++) {
		if (wqe_is_rd_atomic(sq_wqe(sq, i)))
			n += count_outstanding(qp, sq_wqe(sq, i));
		if (i == sq->cur)
			break;
	}
	return n;
}

/* Members that follow from others: restoring computes them, saving checks them. */
static void derive_fields(struct state_stream *s, struct urxe_qp *qp)
{
	const uint32_t rd_atomic = count_all_outstanding(qp);

	qp_update_unacked(qp); /* retry_fields may have changed timed_out */
	if (s->restoring) {
		qp->req.rd_atomic = rd_atomic;
		qp->req.resend.wqe = qp->sq.tail;
		window_path_changed(qp);
	} else if (qp->sq.tail != qp->sq.head) {
		state_require(s, qp->req.rd_atomic == rd_atomic);
	}
}

void requester_record(struct state_stream *s, struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	state_begin(s, STATE_RECORD_QP_REQUESTER);
	state_u24s(s, &req->psn, &req->una, &req->acked, &req->resent_end);
	state_bools(s, &req->drain_event, &req->sent_to_group);
	error_fields(s, qp);
	credit_fields(s, &req->credit);
	window_fields(s, qp);
	retry_fields(s, qp);
	rtt_fields(s, &req->rtt);
	timer_field(s, qp, &qp->timer);
	state_require(s, is_requester_consistent(qp));
	answered_fields(s, qp);
	if (state_ok(s))
		derive_fields(s, qp);
	state_end(s);
}
