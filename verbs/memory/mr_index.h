/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which pages of the process's memory are registered: what each unmapping of the program asks, in
 * any thread or signal handler, before it has to do with anything else here. So to ask takes no
 * lock; a tree counts for each page, and for each aligned block of pages, the regions that cover
 * it.
 */
#ifndef URXE_VERBS_MEMORY_MR_INDEX_H
#define URXE_VERBS_MEMORY_MR_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern atomic_uint registered_regions __attribute__((visibility("hidden")));

/* What every program asks at each unmapping. */
static inline bool registered_any(void)
{
	return __builtin_expect(
		atomic_load_explicit(&registered_regions, memory_order_relaxed) != 0, 0);
}

/* A region of length bytes, at least one, below address 2^57; with the port's lock. -ENOMEM:
 * nothing is changed. */
int registered_add(uint64_t start, uint64_t length);
/* One that was added. */
void registered_remove(uint64_t start, uint64_t length);
/* Whether a page of [start, start + length) is in a region; length may be 0. */
bool registered_within(uint64_t start, uint64_t length);

/* After fork, when nobody else is here: what was registered is the parent's. */
void registered_forget(void);

#endif
