/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/bond/bond_health.h"

enum { BOND_STATES = BOND_HEALTHY + 1 };

/* Values of the table beside states. STAY: the state does not change; FAIL: it becomes SILENT after
 * BOND_ROUNDS successive such events. */
enum { STAY = BOND_STATES, FAIL };

static const uint8_t transitions[BOND_STATES][BOND_EVENTS] = {
	[BOND_DOWN] = {[BOND_LINK_LOST] = STAY,
		       [BOND_LINK_FOUND] = BOND_RECOVERING,
		       [BOND_ANSWER] = STAY,
		       [BOND_NO_ANSWER] = STAY},
	[BOND_SILENT] = {[BOND_LINK_LOST] = BOND_DOWN,
			 [BOND_LINK_FOUND] = STAY,
			 [BOND_ANSWER] = BOND_RECOVERING,
			 [BOND_NO_ANSWER] = STAY},
	[BOND_RECOVERING] = {[BOND_LINK_LOST] = BOND_DOWN,
			     [BOND_LINK_FOUND] = STAY,
			     [BOND_ANSWER] = STAY,
			     [BOND_NO_ANSWER] = FAIL},
	[BOND_HEALTHY] = {[BOND_LINK_LOST] = BOND_DOWN,
			  [BOND_LINK_FOUND] = STAY,
			  [BOND_ANSWER] = STAY,
			  [BOND_NO_ANSWER] = FAIL},
};

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

bool bond_health_event(struct bond_health *h, uint64_t now, enum bond_event event)
{
	uint8_t next = transitions[h->state][event];

	if (event == BOND_ANSWER)
		h->unanswered = 0;
	if (next == FAIL)
		next = ++h->unanswered < BOND_ROUNDS ? STAY : BOND_SILENT;
	return next != STAY && enter_state(h, now, (enum bond_state)next);
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
