/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The algorithm needs no timers: only packets and CNPs need the rate, so they run the steps that
 * have fallen due.
 */
#include "congestion/dcqcn.h"

#include "congestion/congestion.h"
#include "wire/header_fields.h"

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

bool dcqcn_valid(const struct urxe_dcqcn *p, uint64_t link_bps)
{
	return p->g_shift >= 1 && p->g_shift <= 16 && p->alpha_ns >= 1000 &&
	       p->increase_ns >= 1000 && p->increase_size && p->ai_bps >= 1000000 &&
	       p->hai_bps >= p->ai_bps && p->min_bps && p->min_bps <= link_bps;
}

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* alpha = (1 - g) alpha, rounded so that it comes down to 0. */
static void decay_alpha(const struct urxe_dcqcn *params, struct dcqcn *d)
{
	d->alpha -= (d->alpha + (1u << params->g_shift) - 1) >> params->g_shift;
}

/* An increase by T or BC. A rate within 1/256 of the link's counts as the link's. */
static void increase_rate(const struct cong_config *config, struct dcqcn *d)
{
	const struct urxe_dcqcn *params = &config->dcqcn;

	if (min32(d->by_time, d->by_size) > params->f)
		d->target_bps += params->hai_bps;
	else if (max32(d->by_time, d->by_size) > params->f)
		d->target_bps += params->ai_bps;
	if (d->target_bps > config->link_bps)
		d->target_bps = config->link_bps;
	d->current_bps = (d->current_bps + d->target_bps + 1) / 2;
	if (config->link_bps - d->current_bps <= config->link_bps >> 8)
		d->current_bps = 0;
}

/* Runs the steps due by `now`. Both loops end: alpha reaches 0, the rate that of the link. */
static void run_due_steps(const struct cong_config *config, struct dcqcn *d, uint64_t now)
{
	while (d->alpha && d->alpha_at <= now) {
		decay_alpha(&config->dcqcn, d);
		d->alpha_at += config->dcqcn.alpha_ns;
	}
	while (d->current_bps && d->increase_at <= now) {
		d->by_time++;
		increase_rate(config, d);
		d->increase_at += config->dcqcn.increase_ns;
	}
}

/* alpha starts at 1, so the first CNP halves the rate. */
static void dcqcn_init(struct cong *cong)
{
	cong->dcqcn = (struct dcqcn){.alpha = DCQCN_ALPHA_ONE, .alpha_at = URXE_NEVER};
}

static bool dcqcn_notified(const struct cong_config *config, struct cong *cong, uint64_t now)
{
	const struct urxe_dcqcn *params = &config->dcqcn;
	struct dcqcn *d = &cong->dcqcn;
	uint64_t rate;

	run_due_steps(config, d, now);
	rate = d->current_bps ? d->current_bps : config->link_bps;
	d->target_bps = rate;
	rate -= rate * d->alpha >> (DCQCN_ALPHA_SHIFT + 1);
	d->current_bps = rate > params->min_bps ? rate : params->min_bps;
	d->alpha += (DCQCN_ALPHA_ONE - d->alpha) >> params->g_shift;
	d->alpha_at = now + params->alpha_ns;
	d->increase_at = now + params->increase_ns;
	d->by_time = d->by_size = d->bytes = 0;
	return true;
}

static uint64_t dcqcn_sent(const struct cong_config *config, struct cong *cong, uint64_t now,
			   uint32_t len)
{
	struct dcqcn *d = &cong->dcqcn;

	run_due_steps(config, d, now);
	d->bytes += len;
	if (d->current_bps && d->bytes >= config->dcqcn.increase_size) {
		d->bytes = 0;
		d->by_size++;
		increase_rate(config, d);
	}
	return d->current_bps;
}

const struct cong_ops cong_dcqcn = {
	.ecn = ECN_ECT0,
	.init = dcqcn_init,
	.notified = dcqcn_notified,
	.sent = dcqcn_sent,
};
