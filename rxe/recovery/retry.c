/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "recovery/retry.h"

#include <string.h>

#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "recovery/rtt.h"

/*
 * The local ACK timeout counts in 4.096 us, and lies between once and four times
 * what the attribute says (IBA 9.7.6.1.3). A responder in software may have to wait
 * for its turn on a busy core, so it gets three; the rest is for our own lateness.
 */
#define ACK_TIMEOUT_UNIT_NS (3 * UINT64_C(4096))
/* Probes of a silence, each after twice the time of the one before; then the timeout decides. */
#define PROBES             6
#define FIRST_PROBE_MIN_NS 1000000
/* Packets of a probe, at most. */
#define PROBE_SPAN_MAX 16
/* Packets sent without payload references after a loss; twice as many after the next loss. */
#define PLAIN_MIN 64
#define PLAIN_MAX 4096
/* Losses do not bring the window below this, in packets. */
#define WINDOW_MIN 16
/* NAKs in a row that each name the packet behind what was just sent again: the peer keeps nothing.
 */
#define DROPS_AFTER 4

static bool strict(const struct urxe_qp *qp)
{
	return qp->dev->attr.go_back_n;
}

static uint32_t max_window(const struct urxe_qp *qp)
{
	const struct urxe_dev *dev = qp->dev;
	uint32_t fit = dev->window_bytes / qp->mtu;

	if (!memcmp(qp->attr.path.dmac, dev->attr.mac, sizeof(dev->attr.mac)))
		return dev->attr.max_packets;
	return fit < dev->window_packets ? fit : dev->window_packets;
}

void retry_init(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	req->acked = req->asked = req->psn;
	if (req->answered)
		memset(req->answered, 0, (req->answered_mask + 1) / 8);
	req->window = max_window(qp);
	req->window_cut = false;
	req->window_mark = req->psn;
	req->resend.psn = req->resend.end = req->psn;
	req->probe_span = 1;
	req->timeout_due = req->probe_due = req->missing_due = URXE_NEVER;
}

/* --- The window: an eighth less after a loss, a quarter more after a window without one. */

static void window_loss(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t less = req->window - req->window / 8;

	if (strict(qp) || req->window_lossy)
		return;
	req->window_lossy = true;
	req->window_mark = req->psn;
	if (less < WINDOW_MIN)
		return;
	req->window = less;
	req->window_cut = true;
}

static void window_grow(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t max = max_window(qp), more = req->window + req->window / 4 + 1;

	req->window_cut = more < max;
	if (req->window < max)
		req->window = more < max ? more : max;
}

static void window_progress(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	if (urxe_psn_diff(req->una, req->window_mark) < 0)
		return;
	if (!req->window_lossy && req->window_cut)
		window_grow(qp);
	req->window_lossy = false;
	req->window_mark = req->psn;
}

/* --- Timer. */

static void arm(struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;
	uint64_t due = req->timeout_due;

	if (req->probe_due < due)
		due = req->probe_due;
	if (req->missing_due < due)
		due = req->missing_due;
	if (due == URXE_NEVER)
		timer_clear(&qp->timer);
	else
		timer_set(&qp->dev->timers, &qp->timer, due);
}

static uint64_t timeout_due(const struct urxe_qp *qp)
{
	if (!qp->attr.timeout)
		return URXE_NEVER;
	return qp->dev->now + (ACK_TIMEOUT_UNIT_NS << qp->attr.timeout);
}

/* Where nothing is known of the peer yet; 0 = leave it to the timeout. */
static uint64_t first_silence(const struct urxe_qp *qp)
{
	uint64_t ns = qp->attr.timeout ? (ACK_TIMEOUT_UNIT_NS << qp->attr.timeout) / 16 : 0;

	return ns < FIRST_PROBE_MIN_NS ? 0 : ns;
}

static uint64_t silence(const struct urxe_qp *qp)
{
	const struct rtt *rtt = &qp->req.rtt;
	uint64_t ns = rtt->smoothed + 4 * rtt->deviation;

	if (!rtt->smoothed)
		return first_silence(qp);
	if (ns < 2 * rtt->smoothed)
		ns = 2 * rtt->smoothed;
	return ns < qp->dev->attr.probe_ns ? qp->dev->attr.probe_ns : ns;
}

/* A peer that is silent for much longer than it ever was has lost something, or its answer was. */
static uint64_t probe_due(const struct urxe_qp *qp)
{
	if (strict(qp) || qp->req.probes == PROBES || (!qp->req.rtt.smoothed && !first_silence(qp)))
		return URXE_NEVER;
	return qp->dev->now + (silence(qp) << qp->req.probes);
}

void retry_restart_timer(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	if (req->rnr_wait)
		return;
	if (req->una == req->psn) {
		req->timeout_due = req->probe_due = req->missing_due = URXE_NEVER;
		timer_clear(&qp->timer);
		return;
	}
	req->timeout_due = timeout_due(qp);
	req->probe_due = probe_due(qp);
	arm(qp);
}

void retry_packet_sent(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	if (req->timeout_due == URXE_NEVER || qp->paced)
		req->timeout_due = timeout_due(qp);
	req->probe_due = probe_due(qp);
	arm(qp);
}

/* --- Sending again. */

static uint32_t later(uint32_t a, uint32_t b)
{
	return urxe_psn_diff(a, b) >= 0 ? a : b;
}

static uint32_t earlier(uint32_t a, uint32_t b)
{
	return urxe_psn_diff(a, b) <= 0 ? a : b;
}

/* Sends PSNs [from, end) again, beside those that are to be sent again already. */
static void resend(struct urxe_qp *qp, uint32_t from, uint32_t end)
{
	struct requester *req = &qp->req;

	if (req->resend.psn != req->resend.end) {
		from = earlier(from, later(req->resend.psn, req->una));
		end = later(end, req->resend.end);
	}
	req->resend.psn = from;
	req->resend.end = end;
	req->resend.wqe = qp->sq.tail;
	req->error = 0;
	rtt_cancel(&req->rtt);
	qp_schedule(qp);
}

/*
 * The peer may be unable to read referenced payloads: then every message would wait for its
 * repetition. Packets that are in flight together count as one loss.
 */
static void avoid_references(struct requester *req)
{
	if (req->plain)
		return;
	req->plain_after = req->plain_after ? 2 * req->plain_after : PLAIN_MIN;
	if (req->plain_after > PLAIN_MAX)
		req->plain_after = PLAIN_MAX;
	req->plain = req->plain_after;
}

/* Sends again from the oldest unacknowledged PSN on, and watches what comes of it. */
static void repair(struct urxe_qp *qp, uint32_t end, bool naked)
{
	struct requester *req = &qp->req;

	req->repair.open = true;
	req->repair.naked = naked;
	req->repair.high = req->una;
	req->repair.frontier = req->psn;
	resend(qp, req->una, end);
}

/* Behind what of the request at psn needs not be sent again; psn itself: it has to be. */
static uint32_t skip_answered(const struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t psn)
{
	const struct requester *req = &qp->req;

	if (wqe_is_rd_atomic(wqe))
		return answered(req, psn) ? urxe_psn_add(psn, 1) : psn;
	return later(psn, earlier(req->acked, urxe_psn_add(wqe->first_psn, wqe->n_packets)));
}

const struct send_wqe *retry_next(struct urxe_qp *qp)
{
	struct resend *r = &qp->req.resend;

	while (urxe_psn_diff(r->psn, r->end) < 0) {
		const struct send_wqe *wqe;
		uint32_t next;

		r->psn = later(r->psn, qp->req.una);
		if ((int32_t)(r->wqe - qp->sq.tail) < 0)
			r->wqe = qp->sq.tail;
		if (urxe_psn_diff(r->psn, r->end) >= 0)
			break;
		wqe = sq_wqe(&qp->sq, r->wqe);
		if (urxe_psn_diff(r->psn, urxe_psn_add(wqe->first_psn, wqe->n_packets)) >= 0) {
			r->wqe++;
			continue;
		}
		next = skip_answered(qp, wqe, r->psn);
		if (next == r->psn)
			return wqe;
		r->psn = next;
	}
	r->psn = r->end;
	return NULL;
}

void retry_packet_resent(struct urxe_qp *qp, uint32_t span)
{
	struct requester *req = &qp->req;

	qp_count(qp, URXE_EVENT_RETRANSMIT);
	if (req->resend.psn == req->una)
		req->una_sent = qp->dev->now;
	sq_wqe(&qp->sq, req->resend.wqe)->again = true;
	req->resend.psn = urxe_psn_add(req->resend.psn, span);
	req->repair.high = later(req->repair.high, req->resend.psn);
	retry_packet_sent(qp);
}

/* --- NAKs. */

/* Uses up one retry; false if none is left. */
static bool use_retry(struct urxe_qp *qp)
{
	if (!qp->req.retries)
		return false;
	qp->req.retries--;
	return true;
}

/*
 * How far the peer has to be sent everything again. One that keeps what is behind
 * a gap asks for the gaps alone, and each time that it asks for more right behind
 * the last one, gets twice as much.
 */
static uint32_t gap_end(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	bool more = req->repair.open && req->repair.naked && req->una == req->repair.high;

	req->streak = more ? req->streak + 1 : 0;
	if (req->streak >= (req->peer == PEER_KEEPS ? DROPS_AFTER : 1))
		req->peer = PEER_DROPS;
	if (strict(qp) || req->peer == PEER_DROPS)
		return req->psn;
	return earlier(urxe_psn_add(req->una, 1u << req->streak), req->psn);
}

bool retry_is_copy(const struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;

	return req->nak_seen &&
	       (!req->una_sent || qp->dev->now - req->una_sent < req->rtt.least / 2);
}

/*
 * What una was sent again for has brought nothing: a NAK that was taken for a copy may have been
 * the answer, of a peer that is quicker than it ever was, as one that was busy all the time.
 */
static void doubt_copies(struct urxe_qp *qp)
{
	if (qp->req.nak_seen && qp->req.una_sent)
		qp->req.rtt.least = 0;
}

bool retry_sequence_nak(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	if (!use_retry(qp))
		return false;
	req->nak_seen = true;
	req->una_sent = 0;
	window_loss(qp);
	avoid_references(req);
	repair(qp, gap_end(qp), true);
	retry_restart_timer(qp);
	return true;
}

/*
 * The answer to what a NAK asked for covers just that, although all that had been
 * sent behind it came before: the peer has none of it.
 */
void retry_acked(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	const struct repair *last = &req->repair;

	if (!last->open || !last->naked || req->una != last->high ||
	    req->resend.psn != req->resend.end || req->una == last->frontier)
		return;
	if (req->peer == PEER_UNKNOWN)
		req->peer = PEER_DROPS;
	repair(qp, last->frontier, false);
}

/* Nothing that followed was executed; a peer that keeps it does so here too. */
void retry_rnr_nak(struct urxe_qp *qp, uint64_t wait_ns)
{
	struct requester *req = &qp->req;
	bool keeps = req->peer == PEER_KEEPS && !strict(qp);

	req->nak_seen = true;
	req->una_sent = 0;
	req->rnr_wait = true;
	repair(qp, keeps ? urxe_psn_add(req->una, 1) : req->psn, false);
	req->timeout_due = req->probe_due = req->missing_due = URXE_NEVER;
	timer_set(&qp->dev->timers, &qp->timer, qp->dev->now + wait_ns);
}

/* --- Missing responses. */

/* Each is asked for once, beyond that time decides. */
static bool ask_for_missing(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t from = strict(qp) ? req->una : later(req->asked, req->una);

	req->missing_due = URXE_NEVER;
	if (urxe_psn_diff(req->acked, from) <= 0) { /* they came meanwhile */
		arm(qp);
		return true;
	}
	qp_count(qp, URXE_EVENT_IMPLIED_NAK);
	if (!req->missing && !use_retry(qp))
		return false;
	req->missing = true;
	req->asked = req->acked;
	window_loss(qp);
	if (strict(qp))
		repair(qp, req->psn, false);
	else
		resend(qp, from, req->acked);
	retry_restart_timer(qp);
	return true;
}

bool retry_missing(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	struct urxe_dev *dev = qp->dev;

	if (strict(qp) && req->missing)
		return true;
	if (strict(qp) || dev->attr.reorder_ns == 1)
		return ask_for_missing(qp);
	if (req->missing_due == URXE_NEVER &&
	    urxe_psn_diff(req->acked, later(req->asked, req->una)) > 0) {
		req->missing_due = dev->now + dev->attr.reorder_ns;
		arm(qp);
	}
	return true;
}

/* --- Progress and silence. */

void retry_progress(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	req->probes = 0;
	req->asked = later(req->asked, req->una);
	if (req->repair.open) {
		/* More than it was sent since it named the gap: it had kept the rest. */
		if (req->repair.naked && urxe_psn_diff(req->una, req->repair.high) > 0)
			req->peer = PEER_KEEPS;
		req->repair.open = urxe_psn_diff(req->una, req->repair.frontier) < 0;
	}
	window_progress(qp);
	retry_restart_timer(qp);
}

static bool time_out(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	qp_count(qp, URXE_EVENT_TIMEOUT);
	if (!use_retry(qp))
		return false;
	req->missing = false;
	doubt_copies(qp);
	window_loss(qp);
	avoid_references(req);
	repair(qp, req->psn, false);
	retry_restart_timer(qp);
	return true;
}

/* Packets of the next probe: twice as many as the last time where those were what lacked. */
static uint8_t probe_span(const struct requester *req)
{
	uint8_t last = req->repair.naked ? 1 : req->probe_span;

	if (!req->repair.open || req->una != req->repair.high)
		return 1;
	return last < PROBE_SPAN_MAX / 2 ? 2 * last : PROBE_SPAN_MAX;
}

/* The oldest packets once more. */
static void probe(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	if (req->resend.psn != req->resend.end) { /* its turn has not come yet */
		req->probe_due = probe_due(qp);
		arm(qp);
		return;
	}
	qp_count(qp, URXE_EVENT_PROBE);
	req->probe_span = probe_span(req);
	req->probes++;
	doubt_copies(qp);
	avoid_references(req);
	repair(qp, earlier(urxe_psn_add(req->una, req->probe_span), req->psn), false);
	req->probe_due = probe_due(qp);
	arm(qp);
}

bool retry_timer(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint64_t now = qp->dev->now;

	if (req->rnr_wait) {
		req->rnr_wait = false;
		retry_restart_timer(qp); /* a copy may have been taken: then nothing is resent */
		qp_schedule(qp);
	} else if (req->una == req->psn) {
		return true;
	} else if (req->missing_due <= now) {
		return ask_for_missing(qp);
	} else if (req->held) {
		retry_restart_timer(qp); /* what asks for the acknowledgement has yet to be sent */
	} else if (req->timeout_due <= now) {
		return time_out(qp);
	} else if (req->probe_due <= now) {
		probe(qp);
	} else {
		arm(qp);
	}
	return true;
}
