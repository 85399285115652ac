/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/bond/bond_health.h"

void bond_health_init(struct bond_health *h, uint64_t now, bool link)
{
	*h = (struct bond_health){.state = link ? BOND_HEALTHY : BOND_DOWN, .since = now};
}

/*
 * Call it when a HEALTHY member fails: sets how long its next recovery lasts. That is
 * BOND_STABLE_NS; if the member became HEALTHY less than BOND_TRIAL_NS ago, twice the last time, up
 * to BOND_STABLE_MAX_NS.
 */
static void note_failure(struct bond_health *h, uint64_t now)
{
	if (!h->stable_ns || now - h->since >= BOND_TRIAL_NS)
		h->stable_ns = BOND_STABLE_NS;
	else if (h->stable_ns < BOND_STABLE_MAX_NS)
		h->stable_ns *= 2;
}

static bool enter_state(struct bond_health *h, uint64_t now, enum bond_state state)
{
	if (h->state == BOND_HEALTHY)
		note_failure(h, now);
	if (!h->stable_ns)
		h->stable_ns = BOND_STABLE_NS;
	h->state = state;
	h->since = now;
	h->unanswered = 0;
	return true;
}

/* Counts the event, and returns the state after it. */
static enum bond_state next_state(struct bond_health *h, enum bond_event event)
{
	switch (event) {
	case BOND_LINK_LOST: return BOND_DOWN;
	case BOND_LINK_FOUND: return h->state == BOND_DOWN ? BOND_RECOVERING : h->state;
	case BOND_ANSWER:
		h->unanswered = 0;
		return h->state == BOND_SILENT ? BOND_RECOVERING : h->state;
	default:
		if (h->state < BOND_RECOVERING)
			return h->state;
		return ++h->unanswered < BOND_ROUNDS ? h->state : BOND_SILENT;
	}
}

bool bond_health_event(struct bond_health *h, uint64_t now, enum bond_event event)
{
	const enum bond_state next = next_state(h, event);

	return next != h->state && enter_state(h, now, next);
}

bool bond_health_tick(struct bond_health *h, uint64_t now)
{
	if (now < bond_health_deadline(h))
		return false;
	h->state = BOND_HEALTHY;
	h->since = now;
	return true;
}

uint64_t bond_health_deadline(const struct bond_health *h)
{
	return h->state == BOND_RECOVERING ? h->since + h->stable_ns : UINT64_MAX;
}
