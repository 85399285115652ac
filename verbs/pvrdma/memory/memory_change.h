/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The hypervisor removes memory from the guest: the device forgets the rings in it. */
#ifndef URXE_PVRDMA_MEMORY_CHANGE_H
#define URXE_PVRDMA_MEMORY_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>
#include <vnic/guest_memory.h>

#include "memory/guest_ring.h"

struct pvrdma;

/* Whole pages of guest memory that are about to be removed, in the order of their addresses. */
struct pv_removed {
	bool all; /* all memory of the guest is removed; `n` and `bytes` do not count then */
	uint32_t n;
	struct urxe_extent bytes[VNIC_GUEST_REGIONS];
};

/* If a page of the ring is among the removed ones, forgets the ring, and counts that. False: the
 * ring stays, or was lost before. */
bool pv_removed_takes(const struct pv_removed *removed, struct pvrdma *dev, struct pv_ring *ring,
		      const struct pv_pages *pages);

#endif
