/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds out whether the engine thread of a peer busy-polls, or has to be woken. A thread that
 * busy-polls (poll/busy_poll.h) counts its looks in memory that its peers read. For peer_copy.c.
 *
 * Times are nanoseconds of the caller's clock.
 */
#ifndef URXE_VERBS_SAMEHOST_PEER_POLL_H
#define URXE_VERBS_SAMEHOST_PEER_POLL_H

#include <stdbool.h>
#include <stdint.h>

struct peer_poll {
	uint32_t polls;     /* the peer's counter at the last look */
	uint32_t in_vain;   /* reads in a row, each within 50 us of the last, without a busy poll */
	uint64_t looked_at; /* when this process last looked at the counter */
	uint64_t awake_since; /* since when each read has found a busy poll; 0: the last found none
			       */
	uint64_t moved_at; /* when the counter last grew between two looks within 50 us; 0: never */
	uint64_t woken_at; /* when this process last woke the peer */
	uint64_t pause;    /* least time from woken_at to the next wake-up */
};

/* Notes a look at the peer's counter, which is `polls` now. True: the peer's thread busy-polls. */
bool peer_poll_look(struct peer_poll *poll, uint32_t polls, uint64_t now);
/*
 * Call it after a look that returned false. True: the caller has to wake the peer now, so that its
 * thread begins a busy poll. That is so only in a stream of requests: after 16 looks that returned
 * false, each within 50 us of the last. If the peer does not busy-poll after a wake-up, as on a
 * machine with more runnable threads than processors, the pause before the next wake-up doubles.
 */
bool peer_poll_wakes(struct peer_poll *poll, uint64_t now);

#endif
