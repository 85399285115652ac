/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The algorithm needs no timers: the rate matters only when a packet is sent or a CNP arrives, and
 * then these functions run the steps that have fallen due. */
#include "congestion/dcqcn.h"

#include <errno.h>

/*
 * The link's rate if it is unknown. The rate that the port reports is not reliable: virtual
 * interfaces report 10 Gb/s and may carry more. If the link is slower, the first cuts have no
 * effect, and a few more CNPs come.
 */
#define UNKNOWN_LINK_BPS UINT64_C(100000000000)

const struct urxe_dcqcn urxe_dcqcn_default = {
	.g_shift = 8,
	.f = 5,
	.alpha_ns = 55000,
	.increase_ns = 55000,
	.increase_size = 10000000,
	.ai_bps = 40000000,
	.hai_bps = 400000000,
	.min_bps = 10000000,
};

static bool is_valid(const struct urxe_dcqcn *p, uint64_t link_bps)
{
	return p->g_shift >= 1 && p->g_shift <= 16 && p->alpha_ns >= 1000 &&
	       p->increase_ns >= 1000 && p->increase_size && p->ai_bps >= 1000000 &&
	       p->hai_bps >= p->ai_bps && p->min_bps && p->min_bps <= link_bps;
}

int dcqcn_configure(struct dcqcn_config *config, const struct urxe_dev_attr *attr)
{
	if (attr->congestion >= URXE_CONGESTION_COUNT || attr->link_bps > URXE_MAX_LINK_BPS)
		return -EINVAL;
	config->enabled = attr->congestion == URXE_CONGESTION_DCQCN;
	config->params = attr->dcqcn ? *attr->dcqcn : urxe_dcqcn_default;
	config->link_bps = attr->link_bps ? attr->link_bps : UNKNOWN_LINK_BPS;
	/* The default minimum rate may exceed the rate of a slow link. */
	if (!attr->dcqcn && config->params.min_bps > config->link_bps)
		config->params.min_bps = config->link_bps;
	return is_valid(&config->params, config->link_bps) ? 0 : -EINVAL;
}

/*
 * A step of additive increase is at most 1 / STEPS_OF_PACKET of a packet in a round trip, so that
 * many senders on a slow link do not fill its queue before they learn of congestion. After
 * ROOM_AFTER increases by T without a CNP the network has room, and the step is R_AI.
 */
#define STEPS_OF_PACKET 32
#define ROOM_AFTER      256

/*
 * Least time between two cuts of the rate: half the default of cnp_interval_ns. Two CNPs may come
 * closer together: the network delayed the first one, this device takes both in one batch, the
 * receiver is a NIC with a shorter interval, a UD QP has several receivers, or they are forged.
 */
#define CUT_INTERVAL_NS 25000

/* The greatest weight of an update of alpha is 2^-LEAST_G_SHIFT, however long the interval. */
#define LEAST_G_SHIFT 6

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/*
 * The interval of a timer whose parameter is `least`. The sender learns of congestion after a round
 * trip, and only packets can be marked. On slow links the round trip and the time between packets
 * are longer than the paper's timers, so the longest of these times counts.
 */
static uint64_t timer_interval(const struct dcqcn *d, uint64_t least, uint64_t rtt)
{
	uint64_t gap = d->current_bps ? d->len * UINT64_C(8000000000) / d->current_bps : 0;

	if (rtt > least)
		least = rtt;
	return gap > least ? gap : least;
}

/* The weight g of an update is 2^-result: greater after a longer interval, up to
 * 2^-LEAST_G_SHIFT. */
static uint32_t weight_shift(const struct urxe_dcqcn *params, const struct dcqcn *d, uint64_t rtt)
{
	uint64_t times = timer_interval(d, params->alpha_ns, rtt) / params->alpha_ns;
	uint32_t shift = params->g_shift;

	for (; times > 1 && shift > LEAST_G_SHIFT; times /= 2)
		shift--;
	return shift;
}

/* alpha = (1 - g) alpha, rounded so that it comes down to 0. */
static void decay_alpha(struct dcqcn *d, uint32_t shift)
{
	d->alpha -= (d->alpha + (1u << shift) - 1) >> shift;
}

static uint64_t additive_step(const struct urxe_dcqcn *params, const struct dcqcn *d, uint64_t rtt)
{
	uint64_t period = rtt > params->increase_ns ? rtt : params->increase_ns;
	uint64_t step = d->len * (UINT64_C(8000000000) / STEPS_OF_PACKET) / period;

	/* Queue pairs with few packets step less often, but must gain as much in the same time. */
	step = step * (timer_interval(d, params->increase_ns, rtt) * 16 / period) / 16;
	if (step > d->target_bps / 2)
		step = d->target_bps / 2;
	return step < params->ai_bps && d->by_time < ROOM_AFTER ? step : params->ai_bps;
}

/* An increase by T or BC. A rate within 1/256 of the link's counts as the link's. */
static void increase_rate(const struct dcqcn_config *config, struct dcqcn *d, uint64_t rtt)
{
	const struct urxe_dcqcn *params = &config->params;

	if (min32(d->by_time, d->by_size) > params->f)
		d->target_bps += params->hai_bps;
	else if (max32(d->by_time, d->by_size) > params->f)
		d->target_bps += additive_step(params, d, rtt);
	if (d->target_bps > config->link_bps)
		d->target_bps = config->link_bps;
	d->current_bps = (d->current_bps + d->target_bps + 1) / 2;
	if (config->link_bps - d->current_bps <= config->link_bps >> 8)
		d->current_bps = 0;
}

/* Runs the steps that are due at `now`. Both loops end: alpha falls to 0, and the rate rises to
 * that of the link. */
static void run_due_steps(const struct dcqcn_config *config, struct dcqcn *d, uint64_t now,
			  uint64_t rtt)
{
	while (d->alpha && d->alpha_at <= now) {
		decay_alpha(d, weight_shift(&config->params, d, rtt));
		d->alpha_at += timer_interval(d, config->params.alpha_ns, rtt);
	}
	while (d->current_bps && d->increase_at <= now) {
		d->by_time++;
		increase_rate(config, d, rtt);
		d->increase_at += timer_interval(d, config->params.increase_ns, rtt);
	}
}

/* alpha starts at 1, so the first CNP halves the rate. */
void dcqcn_init(struct dcqcn *d)
{
	*d = (struct dcqcn){.alpha = DCQCN_ALPHA_ONE, .alpha_at = URXE_NEVER};
}

/* Lowers the rate by alpha / 2. */
static void cut_rate(const struct dcqcn_config *config, struct dcqcn *d)
{
	const uint64_t least = config->params.min_bps;
	uint64_t rate = d->current_bps ? d->current_bps : config->link_bps;

	d->target_bps = rate;
	rate -= rate * d->alpha >> (DCQCN_ALPHA_SHIFT + 1);
	d->current_bps = rate > least ? rate : least;
}

bool dcqcn_notified(const struct dcqcn_config *config, struct dcqcn *d, uint64_t now, uint64_t rtt)
{
	const struct urxe_dcqcn *params = &config->params;
	const bool is_cut = d->cut_at <= now;

	run_due_steps(config, d, now, rtt);
	if (is_cut) {
		cut_rate(config, d);
		d->cut_at = now + CUT_INTERVAL_NS;
	}
	d->alpha_at = now + timer_interval(d, params->alpha_ns, rtt);
	/* However many packets of the interval are marked, alpha rises only once in it, as it
	 * decays only once. */
	if (d->raise_at <= now) {
		d->alpha += (DCQCN_ALPHA_ONE - d->alpha) >> weight_shift(params, d, rtt);
		d->raise_at = d->alpha_at;
	}
	d->increase_at = now + timer_interval(d, params->increase_ns, rtt);
	d->by_time = d->by_size = d->bytes = 0;
	return is_cut;
}

uint64_t dcqcn_sent(const struct dcqcn_config *config, struct dcqcn *d, uint64_t now, uint64_t rtt,
		    uint32_t len)
{
	d->len = len;
	run_due_steps(config, d, now, rtt);
	d->bytes += len;
	if (d->current_bps && d->bytes >= config->params.increase_size) {
		d->bytes = 0;
		d->by_size++;
		increase_rate(config, d, rtt);
	}
	return d->current_bps;
}
