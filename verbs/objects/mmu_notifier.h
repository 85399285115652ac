/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory that the program unmaps, or replaces by another mapping: accesses to these
 * pages by the region's keys are refused from then on, until the program registers them anew. For
 * interpose/map_calls.c. Memory that is unmapped past these calls is left to memory/sigbus_guard.h.
 */
#ifndef URXE_VERBS_OBJECTS_MMU_NOTIFIER_H
#define URXE_VERBS_OBJECTS_MMU_NOTIFIER_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* One unmapping call of the program, in progress. */
struct unmapping {
	struct urxe_extent bytes; /* what the call unmaps; empty: no registered memory */
	/* adapter.registrations before the call: regions with a larger number belong to new
	 * mappings. */
	uint64_t registrations;
	bool done; /* the call has unmapped the bytes; set by unmap_end */
};

/*
 * Call it before the libc call: withdraws the range from all regions, and waits until no thread or
 * peer accesses it by them. So memory that another thread maps and registers at the same address,
 * once the call has unmapped it, is valid. If `start` is not the start of a page, the libc call
 * will fail, so nothing is withdrawn. Any thread. The function takes adapter.lock if registered
 * memory is concerned. Without effect in a thread that holds the lock or waits for it: the library
 * unmaps there, or a signal handler does, whose call goes unseen.
 */
void unmap_begin(struct unmapping *u, const void *start, uint64_t length);
/*
 * Call it after the libc call. `done`: the libc call succeeded; if not, what is still mapped of the
 * range belongs to its regions again. If /proc/self/maps cannot be read and a part of the range is
 * not mapped, all of it leaves the regions. Preserves errno.
 */
void unmap_end(struct unmapping *u, bool done);

#endif
