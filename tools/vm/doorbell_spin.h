/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether the device process polls for the next message of QEMU, instead of sleeping, after a
 * trapped doorbell. A trapped doorbell is a write to the UAR that exits to QEMU. QEMU sends the
 * process a message, and stops the virtual processor until the reply. If the process slept, its
 * wake-up would delay each reply. The process polls only after two doorbells within
 * DOORBELL_SPIN_NS, so rare doorbells take no processor time for polling.
 */
#ifndef URXE_VM_DOORBELL_SPIN_H
#define URXE_VM_DOORBELL_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* Longest time between two doorbells after which the process polls, and how long the process polls
 * after the second doorbell; ns. */
#define DOORBELL_SPIN_NS 200000u

struct doorbell_spin {
	uint64_t rung_at; /* time of the last doorbell, ns; 0 = none yet */
	bool quick;       /* the last doorbell came within DOORBELL_SPIN_NS after the one before */
};

/* QEMU's message of a doorbell has arrived at time `now`. */
void doorbell_spin_rung(struct doorbell_spin *spin, uint64_t now);
/* Whether the next doorbell may come so soon after `now` that the process should not sleep. */
bool doorbell_spin_expects(const struct doorbell_spin *spin, uint64_t now);

#endif
