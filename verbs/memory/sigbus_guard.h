/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guards the engine's accesses to registered memory.
 *
 * A program may unmap registered memory, or truncate the file behind it. An access then raises
 * SIGSEGV or SIGBUS in the thread that runs the engine. This library handles both signals: such an
 * access fails, and all other faults go to the program's own handlers.
 */
#ifndef URXE_VERBS_MEMORY_SIGBUS_GUARD_H
#define URXE_VERBS_MEMORY_SIGBUS_GUARD_H

#include <signal.h>
#include <stdbool.h>

struct urxe_extent;

/*
 * urxe_ops.guard (rxe/rxe.h): calls touch(arg). False: touch accessed an address within `bytes`
 * that faulted, and was ended there, so touch must hold no lock. touch must not call this function.
 * Any thread: SIGSEGV and SIGBUS are unblocked there from now on.
 */
bool sigbus_guard_run(void *dev_ctx, const struct urxe_extent *bytes, void (*touch)(void *arg),
		      void *arg);

/* Installs the handlers, unless they are installed. Called each time the process attaches. 0 or a
 * negative errno value. */
int sigbus_guard_install(void);
/* Whether both handlers are installed. Until then no access is guarded. */
bool sigbus_guard_installed(void);
/* In a forked child: initialises this file's lock, which a thread of the parent may have held. */
void sigbus_guard_fork_child(void);

static inline bool sigbus_guard_covers(int number)
{
	return number == SIGSEGV || number == SIGBUS;
}
/*
 * Does the program's sigaction(2) for SIGSEGV or SIGBUS. Once the handlers are installed, it sets
 * and returns only the program's own action, which this library calls for faults of the program. In
 * a child without an engine, also after vfork, it sets the child's action. 0, or -1 and errno. Any
 * thread.
 */
int sigbus_guard_sigaction(int number, const struct sigaction *act, struct sigaction *old);

#endif
