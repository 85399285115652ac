/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/psn_gap.h"

#include "objects/copy_table.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "responder/acknowledge.h"
#include "wire/aeth.h"

/*
 * The network may lose a NAK, or the packet that it requests; the requester would then wait for its
 * timeout. So the responder repeats the NAK a few times: first after four times the usual repair
 * time, then each time after twice the previous interval.
 */
#define REPEAT_MIN_NS   100000
#define REPEAT_FIRST_NS 1000000  /* while repair_ns is unknown */
#define REPAIR_MAX_NS   25000000 /* greatest repair_ns after repeated NAKs, ns */
/* Time that a responder which suspects a loss waits before it sends a NAK. A peer that knows of the
 * loss, or of an absence, repeats its requests sooner, and needs no NAK. The NAK may be lost too,
 * so the responder sends a second one. */
#define SUSPICION_NS       3000000
#define SUSPICION_AGAIN_NS (4 * SUSPICION_NS)

void psn_gap_init(struct psn_gap *gap)
{
	*gap = (struct psn_gap){0};
	TAILQ_INIT(&gap->kept);
}

static uint64_t repeat_ns(const struct psn_gap *gap)
{
	uint64_t ns = gap->repair_ns ? 4 * gap->repair_ns : REPEAT_FIRST_NS;

	return (ns < REPEAT_MIN_NS ? REPEAT_MIN_NS : ns) << gap->repeats;
}

static void send_gap_nak(struct urxe_qp *qp)
{
	struct psn_gap *gap = &qp->resp.gap;
	struct urxe_dev *dev = qp->dev;

	gap->repeats = gap->naks_begun ? gap->repeats + 1 : 0;
	gap->naks_begun = true;
	gap->nak_at = dev->now;
	resp_refuse(qp, AETH_NAK_PSN_SEQUENCE);
	if (!dev->attr.go_back_n && gap->repeats < PSN_GAP_REPEATS)
		timer_set(&dev->timers, &qp->gap_timer, dev->now + repeat_ns(gap));
}

/* For a gap that exists since `since`: sends its NAK now, or sets the timer for it. */
static void wait_for_gap(struct urxe_qp *qp, uint64_t since)
{
	struct urxe_dev *dev = qp->dev;
	uint64_t due = since + dev->attr.reorder_ns;

	if (qp->resp.nak_sent || timer_armed(&qp->gap_timer))
		return;
	if (dev->attr.go_back_n || dev->attr.reorder_ns == 1 || due <= dev->now)
		send_gap_nak(qp);
	else
		timer_set(&dev->timers, &qp->gap_timer, due);
}

/* Whether psn_gap_suspect has started the gap timer: only then is `repeats` PSN_GAP_REPEATS while
 * the timer runs. */
static bool is_suspicion(const struct urxe_qp *qp)
{
	return qp->resp.gap.naks_begun && qp->resp.gap.repeats == PSN_GAP_REPEATS &&
	       timer_armed(&qp->gap_timer);
}

static void end_suspicion(struct urxe_qp *qp)
{
	if (!is_suspicion(qp))
		return;
	timer_clear(&qp->gap_timer);
	qp->resp.gap.naks_begun = qp->resp.gap.first_nak_sent = false;
}

bool psn_gap_has_expected(const struct urxe_qp *qp)
{
	const struct out_of_order_packet *first = TAILQ_FIRST(&qp->resp.gap.kept);

	return first && first->packet.psn == qp->resp.psn;
}

static void begin_gap(struct urxe_qp *qp)
{
	if (!qp->resp.in_gap)
		qp->resp.gap.dropped = false;
	qp->resp.in_gap = true;
}

void psn_gap_early_packet(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t ahead)
{
	struct urxe_dev *dev = qp->dev;

	end_suspicion(qp);
	begin_gap(qp);
	if (!dev->attr.go_back_n && !p->reference &&
	    out_of_order_keep(dev, &qp->resp.gap.kept, p, ahead)) {
		qp_count(qp, URXE_EVENT_REORDERED);
	} else {
		qp->resp.gap.dropped |= !dev->attr.go_back_n || psn_gap_has_expected(qp);
		qp_drop(qp, URXE_DROP_OUT_OF_SEQUENCE);
	}
	wait_for_gap(qp, dev->now);
}

static void postpone_kept(struct urxe_qp *qp)
{
	struct urxe_dev *dev = qp->dev;

	qp->resp.in_gap = true;
	timer_set(&dev->timers, &qp->gap_timer, dev->now + COPIES_AGAIN_NS);
}

bool psn_gap_keep_expected(struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (p->reference || !out_of_order_keep(qp->dev, &qp->resp.gap.kept, p, 0))
		return false;
	begin_gap(qp);
	postpone_kept(qp);
	return true;
}

void psn_gap_put_back(struct urxe_qp *qp, struct out_of_order_packet *kept)
{
	TAILQ_INSERT_HEAD(&qp->resp.gap.kept, kept, link);
	postpone_kept(qp);
}

void psn_gap_suspect(struct urxe_qp *qp, uint64_t delay)
{
	struct psn_gap *gap = &qp->resp.gap;

	/* Only the peer's timeout makes the peer repeat this message from its first packet
	 * (responder/resume.h): a NAK would prevent that. */
	if (qp->resp.message == RESP_UNKNOWN)
		return;
	/* The last NAK of the gap, or the packet that it requested, may have been lost. */
	if (qp->resp.in_gap && gap->naks_begun && !timer_armed(&qp->gap_timer)) {
		gap->naks_begun = false;
		send_gap_nak(qp);
		return;
	}
	/* No suspicion in a gap, or while a NAK is due or was sent. After an RNR NAK a sequence NAK
	 * would make the peer repeat its request too early, and use up an RNR retry. */
	if (qp->resp.in_gap || qp->resp.nak || qp->resp.nak_sent)
		return;
	qp->resp.in_gap = true;
	gap->naks_begun = true;
	gap->repeats = PSN_GAP_REPEATS;
	gap->first_nak_sent = false;
	timer_set(&qp->dev->timers, &qp->gap_timer, qp->dev->now + SUSPICION_NS + delay);
}

void psn_gap_time_out(struct urxe_qp *qp)
{
	struct psn_gap *gap = &qp->resp.gap;

	/* Not is_suspicion(): a timer that has fallen due is not armed any more, so it is false. */
	if (!gap->naks_begun || gap->repeats < PSN_GAP_REPEATS) {
		send_gap_nak(qp);
		return;
	}
	/* A peer that still gets responses may wait for them before it sends requests. It would
	 * send these just when the NAK, which follows the responses, arrives. */
	if (qp->resp.res_pending) {
		timer_set(&qp->dev->timers, &qp->gap_timer, qp->dev->now + SUSPICION_NS);
		return;
	}
	resp_repeat_and_nak(qp);
	if (!gap->first_nak_sent) {
		gap->first_nak_sent = true;
		timer_set(&qp->dev->timers, &qp->gap_timer, qp->dev->now + SUSPICION_AGAIN_NS);
		return;
	}
	gap->naks_begun = gap->first_nak_sent = false;
	qp->resp.in_gap = false;
}

/*
 * A gap was filled after a repeated NAK, `took` after the last one. The responder cannot know which
 * of the NAKs the peer has answered, so it measures no repair time. If the peer's repairs have
 * become slower than the first repetition, that would never end. So the repetitions for the next
 * gap come later: a little if `took` is usual, because then an earlier NAK or its packet was
 * probably lost.
 */
static void lengthen_repair_time(struct psn_gap *gap, uint64_t took)
{
	const uint64_t usual = gap->repair_ns ? gap->repair_ns : REPEAT_FIRST_NS / 4;
	const uint64_t longer = took < 2 * usual ? usual + usual / 8 : 2 * usual;

	gap->repair_ns = longer < REPAIR_MAX_NS ? longer : REPAIR_MAX_NS;
}

static void learn_repair_time(struct psn_gap *gap, uint64_t took)
{
	if (gap->repeats)
		lengthen_repair_time(gap, took);
	else if (took <= repeat_ns(gap)) /* else the process was stopped: the NAK was due again */
		gap->repair_ns = gap->repair_ns ? (7 * gap->repair_ns + took) / 8 : took;
}

void psn_gap_filled(struct urxe_qp *qp)
{
	struct psn_gap *gap = &qp->resp.gap;

	end_suspicion(qp);
	timer_clear(&qp->gap_timer);
	if (gap->naks_begun) {
		resp_start_ack_timer(qp);
		learn_repair_time(gap, qp->dev->now - gap->nak_at);
	}
	gap->naks_begun = false;
	qp->resp.in_gap = !TAILQ_EMPTY(&gap->kept) || gap->dropped;
}

struct out_of_order_packet *psn_gap_next_kept(struct urxe_qp *qp)
{
	struct psn_gap *gap = &qp->resp.gap;
	struct out_of_order_packet *kept = out_of_order_take(qp->dev, &gap->kept, qp->resp.psn);

	if (kept)
		return kept;
	if (!TAILQ_EMPTY(&gap->kept)) { /* the next gap */
		wait_for_gap(qp, TAILQ_FIRST(&gap->kept)->arrival);
	} else if (gap->dropped) {
		gap->dropped = false;
		qp->resp.in_gap = true;
		wait_for_gap(qp, qp->dev->now);
	}
	return NULL;
}
