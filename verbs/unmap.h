/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory that the program unmaps, or replaces by another mapping: those pages of its
 * regions are refused from then on, whatever lies there, until they are registered anew. What is
 * unmapped where it cannot be seen, fault.h catches as long as nothing else comes there.
 */
#ifndef URXE_VERBS_UNMAP_H
#define URXE_VERBS_UNMAP_H

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

/*
 * The program changes what the memory is in another way, or divides it: of what is registered
 * there nothing is reached by the arena any more (adopt.h). Any thread, without the port's lock.
 */
void unmap_unshare(const void *start, uint64_t length);
/* The program gives up what is in the memory: so do we (adopt.h). As unmap_begin. */
void unmap_give_up(const void *start, uint64_t length);
/* unmap_unshare of all memory; with the port's lock. */
void unmap_unshare_all(void);
/*
 * The program locks all that it has mapped, and maybe what it maps from now on: that would fill the
 * arenas, ours and those of others, which are gigabytes of holes. So it shares no memory any more.
 * Any thread, without the port's lock.
 */
void unmap_before_locking(void);

#endif
