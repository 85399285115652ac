/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory that is not there any more.
 *
 * A program may unmap a region, or truncate the file behind it, without giving the region back.
 * An access then raises SIGSEGV or SIGBUS in whoever runs the engine: here that becomes a refusal,
 * and all other faults are the program's, whose own handlers get them as if we were not there.
 */
#ifndef URXE_VERBS_MEMORY_SIGBUS_GUARD_H
#define URXE_VERBS_MEMORY_SIGBUS_GUARD_H

#include <signal.h>
#include <stdbool.h>

struct urxe_extent;

/* The engine's `guard` (rxe/rxe.h). Any thread; not from within a touch. */
bool fault_guard(void *dev_ctx, const struct urxe_extent *bytes, void (*touch)(void *arg),
		 void *arg);

/* Takes the two signals, at each opening of the port; a negative errno value where the kernel
 * refuses. */
int fault_install(void);
/* Whether they are taken. Until then nothing is guarded. */
bool fault_installed(void);
/* After fork: another thread may have been at it. */
void fault_in_child(void);

/* Whether a signal is one of the two. */
static inline bool fault_concerns(int number)
{
	return number == SIGSEGV || number == SIGBUS;
}
/* sigaction(2) for these two: once they are taken, it is the program's action that is set and
 * told. */
int fault_action(int number, const struct sigaction *act, struct sigaction *old);

#endif
