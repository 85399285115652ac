/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "samehost/peer_poll.h"

#define US 1000u
#define MS 1000000u

/* What was counted between two looks tells of now if they are no further apart: as a vigil lasts.
 */
#define SOON (50 * US)
/* And for so long: a turn with frames to handle takes its time. */
#define FRESH (50 * US)
/* Turns that take a thread through most of a vigil in which nobody sends. */
#define IDLE 100
/* Looks in vain that are worth a wake-up, which costs some of them. */
#define VAIN 16
/*
 * Between wake-ups. A thread that got no core for itself most likely gets none the next time; one
 * that was awake for LASTING had one.
 */
#define PAUSE_MIN (250 * US)
#define PAUSE_MAX (128 * MS)
#define LASTING   (10 * MS)

bool peer_poll_look(struct peer_poll *vigil, uint32_t turns, uint64_t now)
{
	bool soon = now - vigil->looked_at < SOON;
	bool awake;

	/* It had its core for long, or for nothing. */
	if (vigil->awake_since &&
	    (now - vigil->awake_since > LASTING || (!soon && turns - vigil->turns > IDLE)))
		vigil->pause = 0;
	if (soon && turns != vigil->turns)
		vigil->moved_at = now;
	vigil->turns = turns;
	vigil->looked_at = now;
	awake = vigil->moved_at && now - vigil->moved_at < FRESH;
	if (!awake)
		vigil->awake_since = 0;
	else if (!vigil->awake_since)
		vigil->awake_since = now;
	vigil->vain = soon && !awake ? vigil->vain + 1 : 0;
	return awake;
}

bool peer_poll_rouse(struct peer_poll *vigil, uint64_t now)
{
	if (vigil->vain < VAIN || now - vigil->roused_at < vigil->pause)
		return false;
	vigil->roused_at = now;
	if (!vigil->pause)
		vigil->pause = PAUSE_MIN;
	else if (vigil->pause < PAUSE_MAX)
		vigil->pause *= 2;
	return true;
}
