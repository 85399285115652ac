/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Polls of empty CQs that wait for a completion. A program that polls without end rings a doorbell
 * each time, which stops its virtual processor until the device process replies. So the process
 * delays the reply, and the processor is free for the peer whose message the program waits for.
 *
 * A poll waits for POLL_HOLD_NS at most, and only if it follows the reply to the last one within
 * POLL_HOLD_SPIN_NS, without a completion or another doorbell in between. The path through QEMU
 * takes most of POLL_HOLD_SPIN_NS, so a program that works a little between its polls waits, too.
 * While a poll waits, its virtual processor takes no interrupt, and later messages of the function
 * wait.
 */
#ifndef URXE_VM_POLL_HOLD_H
#define URXE_VM_POLL_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#define POLL_HOLD_NS      100000u
#define POLL_HOLD_SPIN_NS 100000u

struct poll_hold {
	uint64_t replied_at;  /* time of the reply to the last poll, ns */
	uint64_t completions; /* of the device, at that time */
	uint64_t until;       /* end of the wait, ns; 0 = no poll waits */
};

/* The guest has polled an empty CQ; `completions` is the number of the device's completions. */
void poll_hold_polled(struct poll_hold *hold, uint64_t now, uint64_t completions);
/* The guest has rung another doorbell: it does more than poll, so its next poll does not wait. */
void poll_hold_end_series(struct poll_hold *hold);
/* Whether a poll still waits. False: none does, and the caller replies to the last one now. */
bool poll_hold_waits(struct poll_hold *hold, uint64_t now, uint64_t completions);

#endif
