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
#include <sys/queue.h>

struct urxe_extent;

/* A call of the program that unmaps, on its thread's stack while it goes on. */
struct unmapping {
	uint64_t start, length; /* a length of 0: nothing that is registered goes */
	LIST_ENTRY(unmapping) link;
};
LIST_HEAD(unmapping_list, unmapping);

/*
 * Before the real call: on return nobody touches registered memory in the range, nor will until
 * unmap_end. Any thread, without the port's lock, which is taken where something is registered
 * there. A start that is no page's is of a call that will fail.
 */
void unmap_begin(struct unmapping *u, const void *start, uint64_t length);
/* After it; `done` says that the range was unmapped. Leaves errno alone. */
void unmap_end(struct unmapping *u, bool done);

/* The engine's `guard`, with the port's lock: as fault_guard, but what is being unmapped is gone.
 */
bool unmap_guard(void *dev_ctx, const struct urxe_extent *bytes, void (*touch)(void *arg),
		 void *arg);

#endif
