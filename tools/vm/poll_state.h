/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether the main loop of the device process looks for work again, or sleeps:
 *
 *            ASLEEP: an event    RUNNING                          BUSY
 * work       RUNNING             RUNNING                          RUNNING
 * no work    stays               BUSY if the work came quickly    ASLEEP after 50 us
 *                                after the sleep, else ASLEEP
 *
 * A busy poll that found nothing delays the next one, by 250 us at first and then by twice as much
 * each time, up to 128 ms: the virtual machine wants the processor, too.
 */
#ifndef URXE_VM_POLL_STATE_H
#define URXE_VM_POLL_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum poll_state { POLL_ASLEEP, POLL_RUNNING, POLL_BUSY };

struct poll_machine {
	enum poll_state state;
	uint64_t slept_at, woke_at; /* of the last sleep, ns */
	uint64_t busy_since;
	uint64_t pause;      /* delay after the last busy poll in vain, ns; 0 = it found work */
	uint64_t busy_after; /* no busy poll before */
};

/* After a look for work at `now`. True: look again; false: sleep. */
bool poll_machine_looked(struct poll_machine *m, uint64_t now, bool work);
/* After a sleep that began at `slept_at`. */
void poll_machine_woke(struct poll_machine *m, uint64_t slept_at, uint64_t now);

#endif
