/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory that the program unmaps, or replaces by another mapping: those pages of its
 * regions are refused from then on, whatever lies there, until they are registered anew. What is
 * unmapped where it cannot be seen, memory/sigbus_guard.h catches as long as nothing else comes
 * there.
 */
#ifndef URXE_VERBS_MEMORY_MMU_NOTIFIER_H
#define URXE_VERBS_MEMORY_MMU_NOTIFIER_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* A call of the program that unmaps, while it goes on. */
struct unmapping {
	struct urxe_extent bytes; /* none: nothing that is registered goes */
	uint64_t registrations;   /* the last before it: those behind it have other memory */
};

/*
 * Before the real call: on return the range is no region's, and nobody touches it as one's. So what
 * another thread maps there as soon as the call has unmapped it, and registers, is whole. Any
 * thread, without the port's lock, which is taken where something is registered there. A start
 * that is no page's is of a call that will fail.
 */
void unmap_begin(struct unmapping *u, const void *start, uint64_t length);
/* After it; not `done`: nothing was unmapped, and the range is its regions' again. Leaves errno
 * alone. */
void unmap_end(struct unmapping *u, bool done);

#endif
