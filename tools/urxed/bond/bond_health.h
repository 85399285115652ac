/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The health of one uplink of a bond, as a state machine without clock and I/O. bond.c reports
 * events; next_state in bond_health.c says what each event does in each state.
 */
#ifndef URXE_URXED_BOND_BOND_HEALTH_H
#define URXE_URXED_BOND_BOND_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

/* A member becomes BOND_SILENT after this many successive rounds of probes in which another member
 * got an answer, and this one got none. */
#define BOND_ROUNDS 2
/* After a failure, a member must have a link and no further failure for this time before it is
 * BOND_HEALTHY again. */
#define BOND_STABLE_NS 1000000000ull
/*
 * If a member fails within BOND_TRIAL_NS after it became HEALTHY, its next recovery lasts twice as
 * long as the last one, up to BOND_STABLE_MAX_NS. So a loose cable does not move all connections
 * again and again.
 */
#define BOND_TRIAL_NS      60000000000ull
#define BOND_STABLE_MAX_NS 32000000000ull

enum bond_state {
	BOND_DOWN,       /* no link */
	BOND_SILENT,     /* it has a link, but other members get answers and it gets none */
	BOND_RECOVERING, /* it was down or silent, and has not failed since */
	BOND_HEALTHY,
};

enum bond_event {
	BOND_LINK_LOST,
	BOND_LINK_FOUND,
	BOND_ANSWER,    /* a station has answered through this member */
	BOND_NO_ANSWER, /* a round of probes got answers through another member, but not here */
};

struct bond_health {
	enum bond_state state;
	/* Number of successive rounds without an answer; valid in RECOVERING and HEALTHY. */
	uint32_t unanswered;
	uint64_t since;     /* time at which the state began, ns */
	uint64_t stable_ns; /* duration of RECOVERING; 0 = the member has never failed */
};

/* Makes a member HEALTHY if it has a link at the start, otherwise DOWN. */
void bond_health_init(struct bond_health *h, uint64_t now, bool link);
/* Applies an event. Returns true if the state has changed. */
bool bond_health_event(struct bond_health *h, uint64_t now, enum bond_event event);
/*
 * Makes a RECOVERING member HEALTHY when its time is over; returns true if the state has changed.
 */
bool bond_health_tick(struct bond_health *h, uint64_t now);
/* Returns the time of the next bond_health_tick, ns; UINT64_MAX = none needed. */
uint64_t bond_health_deadline(const struct bond_health *h);

#endif
