/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "congestion/pacing.h"

#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"

/*
 * The thread that runs the engine may wake late: tens of microseconds on an idle processor,
 * milliseconds on a busy one. If a packet is late by up to MADE_UP_NS, or up to the time of
 * MADE_UP_PACKETS packets of the path MTU at the rate, the next packets keep their times. After a
 * longer pause the schedule restarts, so bursts stay small.
 */
#define MADE_UP_NS      50000
#define MADE_UP_PACKETS 4

void pace_init(struct urxe_qp *qp)
{
	struct pace *pace = &qp->pace;

	qp->paced = false;
	pace->limit_bps = 0;
	pace->next = 0;
	if (qp->dev->dcqcn.enabled)
		dcqcn_init(&pace->dcqcn);
}

void pace_set_limit(struct urxe_qp *qp, uint32_t kbps)
{
	qp->pace.limit_bps = kbps * UINT64_C(1000);
	if (kbps)
		qp->paced = true;
	/* The new limit ends a wait for the old one. */
	qp->pace.next = qp->dev->now;
	qp_schedule(qp);
}

void pace_notified(struct urxe_qp *qp)
{
	struct urxe_dev *dev = qp->dev;

	if (!dev->dcqcn.enabled)
		return;
	if (dcqcn_notified(&dev->dcqcn, &qp->pace.dcqcn, dev->now, qp->req.rtt.smoothed))
		qp_count(qp, URXE_EVENT_RATE_CUT);
	qp->paced = true;
}

bool pace_ready(struct urxe_qp *qp)
{
	struct urxe_dev *dev = qp->dev;
	struct pace *pace = &qp->pace;

	if (!qp->paced || dev->now >= pace->next)
		return true;
	timer_set(&dev->timers, &pace->timer, pace->next);
	return false;
}

void pace_again(struct urxe_qp *qp, uint64_t ns)
{
	timer_set(&qp->dev->timers, &qp->pace.timer, qp->dev->now + ns);
}

/* Rate of the next packet, bits/s; 0 = no limit. */
static uint64_t current_rate(struct urxe_qp *qp, uint32_t len)
{
	const struct urxe_dev *dev = qp->dev;
	uint64_t limit = qp->pace.limit_bps, bps = 0;

	if (dev->dcqcn.enabled)
		bps = dcqcn_sent(&dev->dcqcn, &qp->pace.dcqcn, dev->now, qp->req.rtt.smoothed, len);
	return limit && (!bps || limit < bps) ? limit : bps;
}

static uint64_t sending_time(uint32_t bytes, uint64_t bps)
{
	return (bytes * UINT64_C(8000000000) + bps - 1) / bps;
}

void pace_sent(struct urxe_qp *qp, uint32_t len)
{
	struct pace *pace = &qp->pace;
	uint64_t now = qp->dev->now, bps;

	if (!qp->paced)
		return;
	bps = current_rate(qp, len);
	if (!bps) {
		qp->paced = false;
		return;
	}
	if (now > pace->next + MADE_UP_NS &&
	    now > pace->next + MADE_UP_PACKETS * sending_time(qp->mtu, bps))
		pace->next = now;
	pace->next += sending_time(len, bps);
}
