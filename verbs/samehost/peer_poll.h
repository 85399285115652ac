/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does the engine thread of a peer busy-poll, or must this process wake it? A thread that
 * busy-polls (poll/busy_poll.h) counts its looks in memory that its peers read. For peer.c.
 *
 * Times are nanoseconds of the caller's clock.
 */
#ifndef URXE_VERBS_SAMEHOST_PEER_POLL_H
#define URXE_VERBS_SAMEHOST_PEER_POLL_H

#include <stdbool.h>
#include <stdint.h>

struct peer_poll {
	uint32_t polls;   /* the peer's counter at the last look */
	uint32_t in_vain; /* looks, each soon after the last, that found the counter unchanged */
	uint64_t looked_at;
	uint64_t awake_since; /* the first of the looks that found the peer awake; 0: none did */
	uint64_t moved_at;    /* when two looks found different counters; 0: never */
	uint64_t woken_at;    /* when the peer was last woken */
	uint64_t pause;       /* before it is woken again */
};

/* The peer has counted `polls`. True: its thread busy-polls. */
bool peer_poll_look(struct peer_poll *poll, uint32_t polls, uint64_t now);
/*
 * After a look that returned false: shall the caller wake the peer? Only for a stream of requests;
 * and more and more seldom if the peer then does not busy-poll, as on a machine with more runnable
 * threads than processors.
 */
bool peer_poll_wakes(struct peer_poll *poll, uint64_t now);

#endif
