/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A state machine that tells the main loop of the device process, after each look for work, whether
 * it looks again or sleeps. The new state, by the old one:
 *
 *            ASLEEP (was woken)  RUNNING                          BUSY
 * work       RUNNING             RUNNING                          RUNNING
 * no work    ASLEEP              BUSY if the last sleep lasted    BUSY for 50 us, then ASLEEP
 *                                100 us at most, else ASLEEP
 *
 * The loop sleeps if the new state is ASLEEP. A busy poll that found nothing delays the next one,
 * by 250 us at first and then by twice as much each time, up to 128 ms: the virtual machine wants
 * the processor, too.
 */
#ifndef URXE_VM_LOOP_POLL_H
#define URXE_VM_LOOP_POLL_H

#include <stdbool.h>
#include <stdint.h>

enum loop_poll_state { LOOP_ASLEEP, LOOP_RUNNING, LOOP_BUSY };

struct loop_poll {
	enum loop_poll_state state;
	uint64_t slept_at, woke_at; /* begin and end of the last sleep, ns */
	uint64_t busy_since;        /* begin of the busy poll, ns */
	uint64_t pause; /* from the last busy poll to the next, ns; 0: the last one found work */
	uint64_t busy_after; /* end of that time, ns */
};

/* Call it after a look for work at time `now`; work: the look found some. True: look again; false:
 * sleep. */
bool loop_poll_looked(struct loop_poll *m, uint64_t now, bool work);
/* Call it after a sleep from `slept_at` to `now`. */
void loop_poll_woke(struct loop_poll *m, uint64_t slept_at, uint64_t now);

#endif
