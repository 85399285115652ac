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
	struct urxe_extent bytes; /* empty: no registered memory is unmapped */
	uint64_t registrations; /* registrations before the call: later ones belong to new mappings
				 */
};

/*
 * Before the libc call: withdraws the range from all regions, and waits until no thread or peer
 * accesses it by them. So memory that another thread maps and registers at the same address, once
 * the call has unmapped it, is valid. Any thread, without adapter.lock, which is taken if
 * registered memory is concerned. If `start` is not the start of a page, the call will fail.
 */
void unmap_begin(struct unmapping *u, const void *start, uint64_t length);
/*
 * After the libc call. `done` is false if it failed: the range belongs to its regions again.
 * Preserves errno.
 */
void unmap_end(struct unmapping *u, bool done);

#endif
