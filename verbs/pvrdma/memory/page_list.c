/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/page_list.h"

/* Whether a page is among the removed ones. */
static bool pv_removed_has(const struct pv_removed *removed, const uint8_t *page)
{
	const struct urxe_extent *from = removed->bytes;
	uint32_t n = removed->n;

	/* The last extent that does not begin behind the page. */
	while (n > 1) {
		const uint32_t half = n / 2;

		if ((uintptr_t)from[half].addr <= (uintptr_t)page)
			from += half;
		n -= half;
	}
	return n && (uintptr_t)page - (uintptr_t)from->addr < from->length;
}

bool pv_removed_uses(const struct pv_removed *removed, uint8_t *const *pages, uint32_t n_pages)
{
	if (removed->all)
		return n_pages;
	for (uint32_t i = 0; i < n_pages; i++)
		if (pv_removed_has(removed, pages[i]))
			return true;
	return false;
}
