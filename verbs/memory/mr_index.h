/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An index of the registered pages of the process, without those of on-demand regions. Each call of
 * the program that unmaps memory looks up the pages, in any thread or signal handler, so a look-up
 * takes no lock. The index is a tree that counts the regions which cover each page, and each
 * aligned block of pages. For map_calls.c, mmu_notifier.c, verbs_mr.c, uverbs.c and fork.c.
 */
#ifndef URXE_VERBS_MEMORY_MR_INDEX_H
#define URXE_VERBS_MEMORY_MR_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern atomic_uint mr_index_regions __attribute__((visibility("hidden")));

/* Whether the index has any region. Each call that unmaps memory makes this fast check first. */
static inline bool mr_index_any(void)
{
	return __builtin_expect(atomic_load_explicit(&mr_index_regions, memory_order_relaxed) != 0,
				0);
}

/*
 * Adds a region of at least one byte below address 2^57. With adapter.lock. 0, or -ENOMEM: nothing
 * is changed.
 */
int mr_index_add(uint64_t start, uint64_t length);
/* Removes a region that was added with the same arguments. With adapter.lock. */
void mr_index_remove(uint64_t start, uint64_t length);
/* Whether a page of [start, start + length) is in a region; false if length is 0. Any thread or
 * signal handler, without a lock. */
bool mr_index_overlaps(uint64_t start, uint64_t length);

/* In a forked child, with one thread: forgets the parent's regions. */
void mr_index_forget(void);

#endif
