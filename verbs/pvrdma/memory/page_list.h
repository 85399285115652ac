/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lists of the pages of a ring, as pointers in this process, and bytes that are removed. */
#ifndef URXE_PVRDMA_PAGE_LIST_H
#define URXE_PVRDMA_PAGE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>
#include <vnic/guest_memory.h>

/* Whole pages of guest memory that are about to be removed, in the order of their addresses. */
struct pv_removed {
	bool all; /* the guest has no other memory */
	uint32_t n;
	struct urxe_extent bytes[VNIC_GUEST_REGIONS];
};

/* Whether a page of the list is among the removed ones. */
bool pv_removed_uses(const struct pv_removed *removed, uint8_t *const *pages, uint32_t n_pages);

#endif
