/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long the device process looks for the next message of QEMU without sleeping, after a trapped
 * doorbell. QEMU sends a message for each doorbell and stops the virtual processor until the reply,
 * so a process that sleeps between doorbells adds its wake-up to each. The process spins only while
 * doorbells follow one another within DOORBELL_SPIN_NS: a machine with rare doorbells costs
 * nothing.
 */
#ifndef URXE_VM_DOORBELL_SPIN_H
#define URXE_VM_DOORBELL_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define DOORBELL_SPIN_NS 200000u

struct doorbell_spin {
	uint64_t rung_at; /* time of the last doorbell, ns; 0 = none yet */
	bool quick;       /* it came within DOORBELL_SPIN_NS of the one before */
};

/* QEMU's message of a doorbell has arrived at time `now`. */
void doorbell_spin_rung(struct doorbell_spin *spin, uint64_t now);
/* Whether the next doorbell may come so soon after `now` that the process should not sleep. */
bool doorbell_spin_expects(const struct doorbell_spin *spin, uint64_t now);

#endif
