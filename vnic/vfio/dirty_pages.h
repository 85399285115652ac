/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A set of pages of a guest's address space, DIRTY_PAGE bytes each: a bitmap for each 128 MiB in
 * which a page was added. guest_memory.c has one as its log.
 */
#ifndef URXE_VNIC_DIRTY_PAGES_H
#define URXE_VNIC_DIRTY_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#define DIRTY_PAGE_SHIFT  12u
#define DIRTY_PAGE        (UINT64_C(1) << DIRTY_PAGE_SHIFT)
#define DIRTY_CHUNK_PAGES 32768u
#define DIRTY_LOST        64u

struct dirty_chunk {
	uint64_t number; /* of its first page, in units of DIRTY_CHUNK_PAGES */
	uint64_t bits[DIRTY_CHUNK_PAGES / 64];
};

/* All 0 is the empty set. */
struct dirty_pages {
	struct dirty_chunk **chunks; /* in the order of their numbers */
	uint32_t n, room;
	uint32_t last; /* index of the chunk that was used last */
	/* Numbers of chunks for which there was no memory: every page of these counts as added. */
	uint64_t lost[DIRTY_LOST];
	uint32_t n_lost;
	bool all; /* there was no room in `lost`: every page counts as added, until the clear */
};

void dirty_pages_clear(struct dirty_pages *pages);
/*
 * Adds all pages of [addr, addr + size), also those that the range has in part. The size is not 0,
 * and addr + size is at most 2^64. If memory is short, it adds further pages instead: a page too
 * many only costs a copy.
 */
void dirty_pages_add(struct dirty_pages *pages, uint64_t addr, uint64_t size);
/*
 * Moves the pages of [addr, addr + size) to a bitmap, whose bit n stands for the `page_size` bytes
 * from addr + n * page_size on; sets bits and clears none. A page that the range has in part sets
 * bits, and stays in the set. page_size is a power of two, also below DIRTY_PAGE. The size is not
 * 0, and addr + size is at most 2^64. The bitmap's words are in host byte order. If there is still
 * no memory for pages that were added, sets the bits of the whole range.
 */
void dirty_pages_take(struct dirty_pages *pages, uint64_t addr, uint64_t size, uint64_t page_size,
		      uint64_t *bitmap);

#endif
