/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Compares the list of a ring's pages, which are pointers in this process, with memory that the
 * guest loses. */
#ifndef URXE_PVRDMA_PAGE_LIST_H
#define URXE_PVRDMA_PAGE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>
#include <vnic/guest_memory.h>

/* Whole pages of guest memory that are about to be removed, in the order of their addresses. */
struct pv_removed {
	bool all; /* all memory of the guest is removed; `n` and `bytes` do not count then */
	uint32_t n;
	struct urxe_extent bytes[VNIC_GUEST_REGIONS];
};

/* Whether a page of the list is among the removed ones. */
bool pv_removed_uses(const struct pv_removed *removed, uint8_t *const *pages, uint32_t n_pages);

#endif
