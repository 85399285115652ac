/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "peer_poll.h"

#define US 1000u
#define MS 1000000u

/*
 * Two reads of the peer's counter within this time, ns, show whether the peer busy-polls now: a
 * busy poll without frames lasts as long.
 */
#define SOON (50 * US)
/*
 * For this time, ns, after a change of the counter the peer counts as busy-polling: its thread
 * counts only between bursts of frames, which take time.
 */
#define FRESH (50 * US)
/* If the counter grew by more than this between two reads, the peer has busy-polled without frames.
 */
#define IDLE 100
/* Number of reads in a row that find no busy poll, before this process wakes the peer. */
#define VAIN 16
/*
 * Pause between two wake-ups of a peer, ns; it doubles after each useless one: a thread that got no
 * processor will most likely get none again. A thread that busy-polled for LASTING had one.
 */
#define PAUSE_MIN (250 * US)
#define PAUSE_MAX (128 * MS)
#define LASTING   (10 * MS)

bool peer_poll_look(struct peer_poll *poll, uint32_t polls, uint64_t now)
{
	bool soon = now - poll->looked_at < SOON;
	bool awake;

	/* A useful wake-up: the peer's thread had a processor for long, or polled without frames.
	 */
	if (poll->awake_since &&
	    (now - poll->awake_since > LASTING || (!soon && polls - poll->polls > IDLE)))
		poll->pause = 0;
	if (soon && polls != poll->polls)
		poll->moved_at = now;
	poll->polls = polls;
	poll->looked_at = now;
	awake = poll->moved_at && now - poll->moved_at < FRESH;
	if (!awake)
		poll->awake_since = 0;
	else if (!poll->awake_since)
		poll->awake_since = now;
	poll->in_vain = soon && !awake ? poll->in_vain + 1 : 0;
	return awake;
}

bool peer_poll_wakes(struct peer_poll *poll, uint64_t now)
{
	if (poll->in_vain < VAIN || now - poll->woken_at < poll->pause)
		return false;
	poll->woken_at = now;
	if (!poll->pause)
		poll->pause = PAUSE_MIN;
	else if (poll->pause < PAUSE_MAX)
		poll->pause *= 2;
	return true;
}
