/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requester/retransmit.h"

#include <string.h>

#include "congestion/rtt.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "requester/window.h"

/*
 * The local ACK timeout counts in 4.096 us, and may last between once and four times the
 * attribute's time (IBA 9.7.6.1.3). A responder in software may have to wait for a busy core, so
 * this engine uses three times; the rest allows for late calls of urxe_output.
 */
#define ACK_TIMEOUT_UNIT_NS (3 * UINT64_C(4096))
/* Most announcements of a peer that cause a retransmission until una moves or a timeout expires.
 * QEMU and `urxe vm` announce a machine five times. */
#define ANNOUNCEMENTS 8
/* While the round trip is unknown, no probe follows a silence that is shorter than this, ns. */
#define FIRST_PROBE_MIN_NS 1000000
/*
 * Shortest silence, ns of the device's time, after which a packet behind the last answer counts as
 * lost. It applies after an absence, and after the answer to a repair, when such a loss is
 * probable.
 */
#define SHORT_SILENCE_NS 500000
/* Number of packets sent without payload references after a loss: PLAIN_PACKETS_MIN after the first
 * one, twice as many after each further loss. */
#define PLAIN_PACKETS_MIN 64
#define PLAIN_PACKETS_MAX 4096
/*
 * After so many consecutive answers that each stop at the end of a repair, the peer counts as one
 * that drops packets behind a gap. A peer that keeps packets also answers so if the next packet is
 * lost as well.
 */
#define STOPS_OF_SELECTIVE 4
#define STOPS_OF_UNKNOWN   2
/* After so many NAKs of a peer that counts as one that drops packets, the requester sends only one
 * packet again. If the peer was misjudged, its answer then shows that it keeps packets. */
#define GO_BACK_N_NAKS 64
/* Most NAKs that a responder of urxe sends for one gap: the first one and its repeats. */
#define GAP_NAKS (PSN_GAP_REPEATS + 1)

static bool is_go_back_n(const struct urxe_qp *qp)
{
	return qp->dev->attr.go_back_n;
}

void retransmit_init(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	req->acked = req->resent_end = req->psn;
	if (req->answered)
		memset(req->answered, 0, (req->answered_mask + 1) / 8);
	req->probe_all = req->timed_out = false;
	req->naks = 0;
	req->resend.psn = req->resend.end = req->psn;
	req->probe_span = 1;
	req->timeout_due = req->probe_due = req->missing_due = URXE_NEVER;
	window_init(qp);
}

/* --- Timer. */

/* Arms the retry timer for the earliest of the three deadlines. During an RNR wait the timer runs
 * for that wait, whose end calls this function again. */
static void arm_timer(struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;
	uint64_t due = req->timeout_due;

	if (req->rnr_wait)
		return;
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

/* Silence before a probe while the round trip is unknown; 0 = no probe. */
static uint64_t first_probe_silence(const struct urxe_qp *qp)
{
	uint64_t ns = qp->attr.timeout ? (ACK_TIMEOUT_UNIT_NS << qp->attr.timeout) / 16 : 0;

	return ns < FIRST_PROBE_MIN_NS ? 0 : ns;
}

static uint64_t probe_silence(const struct urxe_qp *qp)
{
	const struct rtt *rtt = &qp->req.rtt;
	uint64_t ns = rtt->smoothed + 4 * rtt->deviation;

	if (!rtt->smoothed)
		return first_probe_silence(qp);
	if (ns < 2 * rtt->smoothed)
		ns = 2 * rtt->smoothed;
	return ns < qp->dev->attr.probe_ns ? qp->dev->attr.probe_ns : ns;
}

/* Time of the next probe; URXE_NEVER: none. If the peer is silent for much longer than its usual
 * round trip, a packet or its answer was lost. */
static uint64_t probe_due(const struct urxe_qp *qp)
{
	if (is_go_back_n(qp) || qp->req.probes == RETRANSMIT_PROBES ||
	    (!qp->req.rtt.smoothed && !first_probe_silence(qp)))
		return URXE_NEVER;
	return qp->dev->now + (probe_silence(qp) << qp->req.probes);
}

/* Restarts the retry timer, or stops it if no PSN is outstanding. */
static void retransmit_restart_timer(struct urxe_qp *qp)
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
	arm_timer(qp);
}

void retransmit_packet_sent(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	if (req->timeout_due == URXE_NEVER || qp->paced)
		req->timeout_due = timeout_due(qp);
	/* New packets do not delay the repair after an absence. */
	if (!req->probe_all || probe_due(qp) < req->probe_due)
		req->probe_due = probe_due(qp);
	arm_timer(qp);
}

/* --- Sending again. */

static uint32_t later_psn(uint32_t a, uint32_t b)
{
	return urxe_psn_diff(a, b) >= 0 ? a : b;
}

static uint32_t earlier_psn(uint32_t a, uint32_t b)
{
	return urxe_psn_diff(a, b) <= 0 ? a : b;
}

/* Makes PSNs [from, end) due for retransmission, with those that are due already. */
static void resend_range(struct urxe_qp *qp, uint32_t from, uint32_t end)
{
	struct requester *req = &qp->req;

	if (req->resend.psn != req->resend.end) {
		from = earlier_psn(from, later_psn(req->resend.psn, req->una));
		end = later_psn(end, req->resend.end);
	}
	req->resend.psn = from;
	req->resend.end = end;
	req->resend.wqe = qp->sq.tail;
	req->error = 0;
	rtt_cancel(&req->rtt);
	qp_schedule(qp);
}

/*
 * Sends the next packets without references: if the peer cannot read referenced payloads, every
 * message would need a retransmission. Further losses while `plain` counts down belong to the same
 * loss.
 */
static void avoid_references(struct requester *req)
{
	req->after_rnr = false;
	if (req->plain)
		return;
	req->plain_after = req->plain_after ? 2 * req->plain_after : PLAIN_PACKETS_MIN;
	if (req->plain_after > PLAIN_PACKETS_MAX)
		req->plain_after = PLAIN_PACKETS_MAX;
	req->plain = req->plain_after;
}

/* Starts a repair: sends [una, end) again, and records it to interpret the answer. */
static void start_repair(struct urxe_qp *qp, uint32_t end, bool by_nak)
{
	struct requester *req = &qp->req;

	req->repair.open = true;
	req->repair.by_nak = by_nak;
	req->repair.high = req->una;
	req->repair.frontier = req->psn;
	resend_range(qp, req->una, end);
}

/* The first PSN of the request, from psn on, whose packet may have to be sent again: later than psn
 * only if the PSNs between are answered. */
static uint32_t skip_answered(const struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t psn)
{
	const struct requester *req = &qp->req;

	if (wqe_is_rd_atomic(wqe))
		return answered(req, psn) ? urxe_psn_add(psn, 1) : psn;
	/* A message may have 2^23 packets: urxe_psn_diff can compare its end only with PSNs
	 * within. */
	if (urxe_psn_diff(req->acked, psn) <= 0)
		return psn;
	return later_psn(psn,
			 earlier_psn(req->acked, urxe_psn_add(wqe->first_psn, wqe->n_packets)));
}

const struct send_wqe *retransmit_next(struct urxe_qp *qp)
{
	struct resend *r = &qp->req.resend;

	while (urxe_psn_diff(r->psn, r->end) < 0) {
		const struct send_wqe *wqe;
		uint32_t next;

		r->psn = later_psn(r->psn, qp->req.una);
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

void retransmit_packet_resent(struct urxe_qp *qp, uint32_t span)
{
	struct requester *req = &qp->req;

	qp_count(qp, URXE_EVENT_RETRANSMIT);
	if (req->resend.psn == req->una)
		req->una_sent = qp->dev->now;
	sq_wqe(&qp->sq, req->resend.wqe)->again = true;
	req->resend.psn = urxe_psn_add(req->resend.psn, span);
	req->repair.high = later_psn(req->repair.high, req->resend.psn);
	retransmit_packet_sent(qp);
}

/* --- NAKs. */

/* Uses up one retry; false: none is left. */
static bool use_retry(struct urxe_qp *qp)
{
	if (!qp->req.retries)
		return false;
	qp->req.retries--;
	return true;
}

/*
 * Uses up a retry for a sequence NAK; false: none is left. A responder of urxe repeats its NAK
 * within milliseconds if the retransmission is lost too. All NAKs of one gap together use up one
 * retry, so that enough retries are left for the timeouts.
 */
static bool use_nak_retry(struct urxe_qp *qp)
{
	bool counts = is_go_back_n(qp) || qp->req.naks++ % GAP_NAKS == 0;

	return !counts || use_retry(qp);
}

/* The peer's answer stops at the end of a repair: counts it against the peer. */
static void count_stop(struct requester *req)
{
	req->streak++;
	if (req->streak < (req->peer == PEER_SELECTIVE ? STOPS_OF_SELECTIVE : STOPS_OF_UNKNOWN))
		return;
	req->peer = PEER_GO_BACK_N;
	req->streak = 0;
}

/* A peer that counts as PEER_GO_BACK_N has sent a NAK. True: the peer counts as PEER_UNKNOWN from
 * now on; its next answer that stops at the end of a repair makes it PEER_GO_BACK_N again. */
static bool doubt_go_back_n(struct requester *req)
{
	if (req->streak < GO_BACK_N_NAKS)
		req->streak++;
	if (req->streak < GO_BACK_N_NAKS || req->repair.open)
		return false;
	req->peer = PEER_UNKNOWN;
	req->streak = STOPS_OF_UNKNOWN - 1;
	return true;
}

/*
 * End of the retransmission after a sequence NAK. A peer that keeps packets behind a gap needs only
 * the missing packets: the requester sends one, and doubles the number after each NAK for the PSN
 * right after the last repair.
 */
static uint32_t gap_end(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	bool stops = req->repair.open && req->repair.by_nak && req->una == req->repair.high;
	uint32_t span = 1;

	if (is_go_back_n(qp) || (req->peer == PEER_GO_BACK_N && !doubt_go_back_n(req)))
		return req->psn;
	if (stops) {
		count_stop(req);
		if (req->peer == PEER_GO_BACK_N)
			return req->psn;
		span = 1u << req->streak;
	} else if (req->peer == PEER_SELECTIVE) {
		req->streak = 0;
	}
	return earlier_psn(urxe_psn_add(req->una, span), req->psn);
}

bool retransmit_is_repeated_nak(const struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;

	return req->nak_seen &&
	       (!req->una_sent || qp->dev->now - req->una_sent < req->rtt.least / 2);
}

/* The retransmission of una got no answer. If the peer was faster than ever before,
 * retransmit_is_repeated_nak may have taken its NAK for a copy: forgets the least round trip. */
static void doubt_copies(struct urxe_qp *qp)
{
	if (qp->req.nak_seen && qp->req.una_sent)
		qp->req.rtt.least = 0;
}

bool retransmit_sequence_nak(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	if (!use_nak_retry(qp))
		return false;
	req->nak_seen = true;
	req->una_sent = 0;
	window_lost(qp);
	avoid_references(req);
	start_repair(qp, gap_end(qp), true);
	retransmit_restart_timer(qp);
	return true;
}

/* If the ACK covers only the repaired PSNs, the peer has dropped everything behind the gap, or the
 * other packets were lost: sends these again. */
void retransmit_ack_arrived(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	const struct repair *last = &req->repair;

	if (!last->open || !last->by_nak || req->una != last->high ||
	    req->resend.psn != req->resend.end || req->una == last->frontier)
		return;
	if (req->peer == PEER_UNKNOWN)
		count_stop(req);
	start_repair(qp, last->frontier, false);
}

/* End of the retransmission of `psn`, which the peer has not executed. A peer that keeps packets
 * behind a gap has kept those after psn, but no packets with references. */
static uint32_t refused_end(const struct urxe_qp *qp, uint32_t psn)
{
	const struct requester *req = &qp->req;
	bool keeps = req->peer == PEER_SELECTIVE && !is_go_back_n(qp) && !req->referenced;

	return keeps ? urxe_psn_add(psn, 1) : req->psn;
}

void retransmit_rnr_nak(struct urxe_qp *qp, uint64_t wait_ns)
{
	struct requester *req = &qp->req;

	req->nak_seen = true;
	req->una_sent = 0;
	req->rnr_wait = true;
	req->after_rnr = true;
	start_repair(qp, refused_end(qp, req->una), false);
	req->timeout_due = req->probe_due = req->missing_due = URXE_NEVER;
	qp_update_unacked(qp);
	timer_set(&qp->dev->timers, &qp->timer, qp->dev->now + wait_ns);
}

/* If the peer has acknowledged the refused packet meanwhile, retransmit_next passes over it. */
void retransmit_end_rnr_wait(struct urxe_qp *qp)
{
	if (!qp->req.rnr_wait)
		return;
	qp->req.rnr_wait = false;
	qp_update_unacked(qp);
	retransmit_restart_timer(qp);
	qp_schedule(qp);
}

/* --- Missing responses. */

/*
 * Sends the requests of missing responses again, once for each response PSN; with go-back-N, all
 * outstanding packets. After that the timers decide. Uses up only one retry until una moves or the
 * ACK timeout expires. False: none is left.
 */
static bool ask_for_missing(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t from = is_go_back_n(qp) ? req->una : later_psn(req->resent_end, req->una);

	req->missing_due = URXE_NEVER;
	if (urxe_psn_diff(req->acked, from) <= 0) { /* all responses have arrived */
		arm_timer(qp);
		return true;
	}
	qp_count(qp, URXE_EVENT_IMPLIED_NAK);
	if (!req->missing && !use_retry(qp))
		return false;
	req->missing = true;
	req->resent_end = req->acked;
	window_lost(qp);
	if (is_go_back_n(qp))
		start_repair(qp, req->psn, false);
	else
		resend_range(qp, from, req->acked);
	retransmit_restart_timer(qp);
	return true;
}

bool retransmit_implied_nak(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	struct urxe_dev *dev = qp->dev;

	if (is_go_back_n(qp) && req->missing)
		return true;
	if (is_go_back_n(qp) || dev->attr.reorder_ns == 1)
		return ask_for_missing(qp);
	if (req->missing_due == URXE_NEVER &&
	    urxe_psn_diff(req->acked, later_psn(req->resent_end, req->una)) > 0) {
		req->missing_due = dev->now + dev->attr.reorder_ns;
		arm_timer(qp);
	}
	return true;
}

void retransmit_later_nak(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t from = later_psn(req->resent_end, req->una);

	if (is_go_back_n(qp) || urxe_psn_diff(from, req->acked) > 0)
		return;
	req->missing_due = URXE_NEVER;
	req->resent_end = urxe_psn_add(req->acked, 1);
	window_lost(qp);
	resend_range(qp, from, refused_end(qp, req->acked));
	retransmit_restart_timer(qp);
}

/* --- Progress and silence. */

/* A round trip, but at least SHORT_SILENCE_NS. */
static uint64_t short_silence(const struct urxe_qp *qp)
{
	const struct rtt *rtt = &qp->req.rtt;
	uint64_t round_trip = rtt->smoothed + 4 * rtt->deviation;

	return round_trip < SHORT_SILENCE_NS ? SHORT_SILENCE_NS : round_trip;
}

bool retransmit_is_answer_to_repetition(const struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;
	const uint64_t since = qp->dev->now - req->una_sent;

	return req->una_sent && req->rtt.smoothed && since >= req->rtt.least / 2 &&
	       since <= short_silence(qp);
}

/*
 * The peer has answered exactly the packets of the repair. If it does not answer the next ones
 * soon, they are lost as well, and the next probe repeats them. After a probe that was too early,
 * answers to the original packets come sooner, so the next probe is not early, too.
 */
static void hasten_probe(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint64_t due = qp->dev->now + short_silence(qp);

	if (req->probe_due != URXE_NEVER && due < req->probe_due) {
		req->probe_due = due;
		arm_timer(qp);
	}
}

/* Whether the ACK covers packets that were sent before the NAK and not again since: the peer has
 * kept them. Packets from `frontier` on were sent for the first time after the NAK. */
static bool shows_kept_packets(const struct requester *req)
{
	const struct repair *last = &req->repair;

	return last->by_nak && urxe_psn_diff(last->high, last->frontier) < 0 &&
	       urxe_psn_diff(req->una, last->high) > 0;
}

void retransmit_progress(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	req->probes = req->naks = req->repair.announcements = 0;
	req->probe_all = req->timed_out = false;
	req->resent_end = later_psn(req->resent_end, req->una);
	if (req->repair.open) {
		if (shows_kept_packets(req))
			req->peer = PEER_SELECTIVE;
		req->repair.open = urxe_psn_diff(req->una, req->repair.frontier) < 0;
	}
	window_acked(qp);
	/* Only the retransmission of the refused request has to wait (IBA 9.7.5.2.8). Since una has
	 * moved, the peer has executed a copy of that request that was on its way. */
	retransmit_end_rnr_wait(qp);
	retransmit_restart_timer(qp);
	if (req->repair.open && req->una == req->repair.high)
		hasten_probe(qp);
}

static bool is_cut(const struct urxe_qp *qp)
{
	const struct urxe_dev_attr *attr = &qp->dev->attr;
	bool cut = attr->ops->path_cut && attr->ops->path_cut(attr->ctx, &qp->attr.path);

	return HAS_RECORDING(qp->dev) ? record_answer(qp->dev, QUESTION_PATH_CUT, cut) : cut;
}

static bool time_out(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	qp_count(qp, URXE_EVENT_TIMEOUT);
	if (!is_cut(qp) && !use_retry(qp))
		return false;
	req->missing = req->probe_all = false;
	req->timed_out = !is_go_back_n(qp);
	req->probes = req->repair.announcements = 0;
	qp_update_unacked(qp);
	doubt_copies(qp);
	window_lost(qp);
	avoid_references(req);
	start_repair(qp, req->psn, false);
	retransmit_restart_timer(qp);
	return true;
}

/* Packets of the next probe: twice as many as in the last one if the peer missed exactly those. */
static uint8_t probe_span(const struct requester *req)
{
	uint8_t last = req->repair.by_nak ? 1 : req->probe_span;

	if (!req->repair.open || req->una != req->repair.high)
		return 1;
	return last < RETRANSMIT_PROBE_SPAN / 2 ? 2 * last : RETRANSMIT_PROBE_SPAN;
}

/* Sends the packets from the oldest one to `end` again. */
static void probe_until(struct urxe_qp *qp, uint32_t end)
{
	struct requester *req = &qp->req;

	qp_count(qp, URXE_EVENT_PROBE);
	req->probes++;
	doubt_copies(qp);
	avoid_references(req);
	start_repair(qp, end, false);
	req->probe_due = probe_due(qp);
	arm_timer(qp);
}

static bool is_resending(const struct requester *req)
{
	return req->resend.psn != req->resend.end;
}

/* Sends all outstanding packets again, as the first probe of a series. */
static void resend_outstanding(struct urxe_qp *qp)
{
	qp->req.probes = 0;
	qp->req.probe_all = false;
	probe_until(qp, qp->req.psn);
}

/* Sends the oldest packets again, or all after an absence. */
static void send_probe(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	if (is_resending(req)) { /* the previous retransmission is not sent yet */
		req->probe_due = probe_due(qp);
		arm_timer(qp);
		return;
	}
	if (req->probe_all) {
		resend_outstanding(qp);
		return;
	}
	req->probe_span = probe_span(req);
	probe_until(qp, earlier_psn(urxe_psn_add(req->una, req->probe_span), req->psn));
}

static bool may_resend(const struct requester *req)
{
	return req->una != req->psn && !req->rnr_wait && !req->held && !is_resending(req);
}

/*
 * The time at which the peer counts as silent: short_silence() after the last answer that moved
 * una, or after the first packet that was sent since then. With a rate limit the last packet
 * counts, because each packet starts the ACK timeout anew.
 */
static uint64_t silence_end(const struct urxe_qp *qp)
{
	const uint64_t timeout_ns = ACK_TIMEOUT_UNIT_NS << qp->attr.timeout;
	const uint64_t due = qp->req.timeout_due;

	/* The attribute may have had another value, or 0, when the timer was set. */
	if (!qp->attr.timeout || due == URXE_NEVER || due < timeout_ns)
		return 0;
	return due - timeout_ns + short_silence(qp);
}

void retransmit_for_ack(struct urxe_qp *qp, uint32_t end)
{
	const struct requester *req = &qp->req;
	bool asked = req->asks_ack && end == req->psn;

	if (req->una != end && !req->rnr_wait && !is_resending(req) && !asked)
		resend_range(qp, urxe_psn_add(end, URXE_PSN_MASK), end);
}

void retransmit_after_absence(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint64_t due;

	if (req->una == req->psn || req->rnr_wait)
		return;
	due = silence_end(qp);
	if (due <= qp->dev->now && may_resend(req)) {
		resend_outstanding(qp);
		return;
	}
	req->probe_all = true;
	/* With more probes than a series has, only the ACK timeout would repeat the packets. */
	req->probes = 0;
	if (due < req->probe_due && due > qp->dev->now) {
		req->probe_due = due;
		arm_timer(qp);
	}
}

void retransmit_peer_announced(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	if (is_go_back_n(qp) || req->repair.announcements == ANNOUNCEMENTS)
		return;
	req->repair.announcements++;
	if (!req->probes && !req->timed_out)
		retransmit_after_absence(qp);
	else if (may_resend(req))
		resend_outstanding(qp);
}

bool retransmit_timer(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint64_t now = qp->dev->now;

	if (req->rnr_wait) {
		retransmit_end_rnr_wait(qp);
	} else if (req->una == req->psn) {
		return true;
	} else if (req->missing_due <= now) {
		return ask_for_missing(qp);
	} else if (req->held) {
		retransmit_restart_timer(qp); /* the packet that asks for the acknowledgement waits
					    for the rate limit */
	} else if (req->timeout_due <= now) {
		return time_out(qp);
	} else if (req->probe_due <= now) {
		send_probe(qp);
	} else {
		arm_timer(qp);
	}
	return true;
}
