/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether the engine's thread of another process keeps its vigil (progress.c): it looks for
 * frames without a pause, and counts its looks for all to see. And when to wake it, so that it
 * may begin one.
 *
 * Times are nanoseconds of one clock, that of whoever looks.
 */
#ifndef URXE_VERBS_SAMEHOST_PEER_POLL_H
#define URXE_VERBS_SAMEHOST_PEER_POLL_H

#include <stdbool.h>
#include <stdint.h>

struct peer_poll {
	uint32_t turns; /* that were counted when we looked last */
	uint32_t vain;  /* looks one soon after the other that saw nothing move */
	uint64_t looked_at;
	uint64_t awake_since; /* as far as we saw; 0 = it was asleep then */
	uint64_t moved_at;    /* when two looks saw it move; 0 = never */
	uint64_t roused_at;   /* when it was last to be woken */
	uint64_t pause;       /* before the next time */
};

/* It has counted so many turns. True: it is awake. */
bool peer_poll_look(struct peer_poll *vigil, uint32_t turns, uint64_t now);
/*
 * After a look in vain: whether to wake it. Not for one who asks now and then; and where waking it
 * leads to nothing, as on a machine with more to run than cores, ever more seldom.
 */
bool peer_poll_rouse(struct peer_poll *vigil, uint64_t now);

#endif
