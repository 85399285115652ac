/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lists of the pages of a ring, as pointers in this process. */
#ifndef URXE_PVRDMA_PAGE_LIST_H
#define URXE_PVRDMA_PAGE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* Whether a page of the list lies in these bytes, which are whole pages. */
static inline bool pv_page_list_uses(uint8_t *const *pages, uint32_t n_pages,
				     const struct urxe_extent *bytes)
{
	for (uint32_t i = 0; i < n_pages; i++)
		if ((uintptr_t)pages[i] - (uintptr_t)bytes->addr < bytes->length)
			return true;
	return false;
}

#endif
