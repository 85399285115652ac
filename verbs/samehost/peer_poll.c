/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "samehost/peer_poll.h"

#define US 1000u
#define MS 1000000u

/* Two looks no further apart tell whether the peer polls now: a busy poll without frames lasts so
 * long. */
#define SOON (50 * US)
/* A change of the counter is valid for so long: a poll with frames takes its time. */
#define FRESH (50 * US)
/* Polls of most of a busy poll in which no frame comes. */
#define IDLE 100
/* Looks in vain that are worth a wake-up, which costs as much as some of them. */
#define VAIN 16
/*
 * Between wake-ups. A thread that got no processor for itself most likely gets none the next time;
 * a thread that was awake for LASTING had a processor.
 */
#define PAUSE_MIN (250 * US)
#define PAUSE_MAX (128 * MS)
#define LASTING   (10 * MS)

bool peer_poll_look(struct peer_poll *poll, uint32_t polls, uint64_t now)
{
	bool soon = now - poll->looked_at < SOON;
	bool awake;

	/* The peer's thread had a processor for long, or polled without frames. */
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
