/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks whether the PSNs of a requester agree with its send queue: the engine computes positions
 * in messages and in the queue from these PSNs, without further checks. */
#include "objects/qp.h"
#include "requester/requester.h"
#include "state/state_records.h"

/* a - b in the space of PSNs, 0 to 2^24 - 1. */
static uint32_t psn_distance(uint32_t a, uint32_t b)
{
	return (a - b) & URXE_PSN_MASK;
}

/* Whether psn lies in [from, to]. */
static bool is_between(uint32_t psn, uint32_t from, uint32_t to)
{
	return psn_distance(psn, from) <= psn_distance(to, from);
}

/* Whether the requests up to `cur` have consecutive PSNs, and req.psn is in request `cur`. */
static bool has_consecutive_psns(const struct urxe_qp *qp)
{
	const struct sq *sq = &qp->sq;
	uint32_t at = sq->tail == sq->head ? qp->req.psn : sq_wqe(sq, sq->tail)->first_psn;
	const struct send_wqe *wqe;
	uint32_t sent;

	for (uint32_t i = sq->tail; i != sq->cur; i++) {
		wqe = sq_wqe(sq, i);
		if (wqe->first_psn != at)
			return false;
		at = urxe_psn_add(at, wqe->n_packets);
	}
	sent = psn_distance(qp->req.psn, at);
	if (sq->cur == sq->head)
		return !sent;
	wqe = sq_wqe(sq, sq->cur);
	return wqe->first_psn == at && (wqe->n_packets ? sent < wqe->n_packets : !sent);
}

/* Whether exactly the requests without packets before `cur` are executed. The oldest request is not
 * executed, because then it would be completed. */
static bool has_executed_in_order(const struct urxe_qp *qp)
{
	const struct sq *sq = &qp->sq;

	for (uint32_t i = sq->tail; i != sq->head; i++) {
		const struct send_wqe *wqe = sq_wqe(sq, i);
		const bool begun = (int32_t)(sq->cur - i) > 0;

		if (wqe->executed && (!begun || i == sq->tail))
			return false;
		if (begun && !wqe->executed && !wqe->n_packets)
			return false;
	}
	return true;
}

/* Whether the oldest unacknowledged PSN is in the oldest request. */
static bool has_valid_una(const struct urxe_qp *qp)
{
	const struct sq *sq = &qp->sq;
	const struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_wqe(sq, sq->tail);
	uint32_t done;

	if (sq->tail == sq->head)
		return req->una == req->psn;
	done = psn_distance(req->una, wqe->first_psn);
	if (sq->tail == sq->cur)
		return done <= psn_distance(req->psn, wqe->first_psn);
	return done < wqe->n_packets;
}

/* Whether the requester waits for no answer, because requests of UC and UD QPs get none. */
static bool is_unreliable_idle(const struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;

	return qp->sq.tail == qp->sq.cur && !timer_armed(&qp->timer) && !req->error &&
	       !req->rnr_wait && req->resend.psn == req->resend.end;
}

/* Whether `acked` and `resent_end` are between una and psn. After a response `acked` may be one PSN
 * before una. */
static bool has_valid_acks(const struct requester *req)
{
	const int32_t ahead = urxe_psn_diff(req->acked, req->una);

	return ahead >= -1 && urxe_psn_diff(req->acked, req->psn) <= 0 &&
	       is_between(req->resent_end, req->una, req->psn);
}

/* Whether the PSNs to send again, if any, end at psn or before; they may begin before una. */
static bool has_valid_resend(const struct requester *req)
{
	const struct resend *resend = &req->resend;
	const int32_t n = urxe_psn_diff(resend->end, resend->psn);

	if (n <= 0)
		return true;
	return n <= (int32_t)REQ_MAX_WINDOW && urxe_psn_diff(resend->end, req->psn) <= 0 &&
	       urxe_psn_diff(resend->end, req->una) >= -(int32_t)REQ_MAX_WINDOW;
}

static bool has_valid_repair(const struct requester *req)
{
	const struct repair *repair = &req->repair;

	/* If no PSN is outstanding, the repair has ended. In a device that is being saved, `open`
	 * may still be set then. */
	if (req->una == req->psn)
		return true;
	return !repair->open ||
	       (repair->frontier != req->una && is_between(repair->frontier, req->una, req->psn));
}

bool is_requester_consistent(const struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;

	if (qp->attr.state < URXE_QPS_RTS && qp->sq.tail != qp->sq.head)
		return false;
	if (!has_consecutive_psns(qp) || !has_executed_in_order(qp) || !has_valid_una(qp))
		return false;
	if (qp->type != URXE_QPT_RC)
		return is_unreliable_idle(qp);
	if (requester_outstanding(req) > req->answered_mask + 1)
		return false;
	return has_valid_acks(req) && has_valid_resend(req) && has_valid_repair(req);
}
