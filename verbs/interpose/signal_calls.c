/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interposed libc functions that set a signal's action. Once a device was opened, this library
 * handles SIGSEGV and SIGBUS first (memory/sigbus_guard.h), and passes all other faults to the
 * action that the program has set.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

#include "interpose/interpose.h"
#include "memory/sigbus_guard.h"

/* glibc's headers mark sigset, sigignore and siginterrupt as deprecated. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* POSIX removed bsd_signal in 2008, so libc's headers no longer declare it. */
sighandler_t bsd_signal(int number, sighandler_t handler);
/* libc's second name for sigaction, in no header. */
int __sigaction(int number, const struct sigaction *act, struct sigaction *old);

#define SIGACTION(name)                                                                         \
	HOOKED(int, name)(int number, const struct sigaction *act, struct sigaction *old)       \
	{                                                                                       \
		if (sigbus_guard_covers(number))                                                \
			return sigbus_guard_sigaction(number, act, old);                        \
		return REAL(name)(number, act, old);                                            \
	}                                                                                       \
	HOOK(int, name, (int number, const struct sigaction *act, struct sigaction *old), true, \
	     (number, act, old))

SIGACTION(sigaction)
SIGACTION(__sigaction)

static sighandler_t set_handler(int number, sighandler_t handler, int flags)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	sigemptyset(&act.sa_mask);
	if (!(flags & SA_NODEFER))
		sigaddset(&act.sa_mask, number);
	return sigbus_guard_sigaction(number, &act, &old) ? SIG_ERR : old.sa_handler;
}

/* Bit n: the last siginterrupt(3) call for the signal n had the flag 1. Then handlers that
 * signal(3) sets interrupt system calls. */
static atomic_uint interrupting;

static int restart_flag(int number)
{
	return atomic_load(&interrupting) & 1u << number ? 0 : SA_RESTART;
}

HOOKED(int, siginterrupt)(int number, int interrupt)
{
	struct sigaction act;

	if (!sigbus_guard_covers(number))
		return REAL(siginterrupt)(number, interrupt);
	if (interrupt)
		atomic_fetch_or(&interrupting, 1u << number);
	else
		atomic_fetch_and(&interrupting, ~(1u << number));
	if (sigbus_guard_sigaction(number, NULL, &act))
		return -1;
	act.sa_flags = (act.sa_flags & ~SA_RESTART) | restart_flag(number);
	return sigbus_guard_sigaction(number, &act, NULL);
}
HOOK(int, siginterrupt, (int number, int interrupt), true, (number, interrupt))

/* Defines the calls that set only a handler, with the flags that glibc gives the action. */
#define SIGNAL(name, flags)                                          \
	HOOKED(sighandler_t, name)(int number, sighandler_t handler) \
	{                                                            \
		if (sigbus_guard_covers(number))                     \
			return set_handler(number, handler, flags);  \
		return REAL(name)(number, handler);                  \
	}                                                            \
	HOOK(sighandler_t, name, (int number, sighandler_t handler), true, (number, handler))

/* BSD: the handler stays installed, and system calls restart. System V: neither. */
#define BSD  restart_flag(number)
#define SYSV (int)(SA_RESETHAND | SA_NODEFER)

SIGNAL(signal, BSD)
SIGNAL(bsd_signal, BSD)
SIGNAL(ssignal, BSD)
SIGNAL(sysv_signal, SYSV)
SIGNAL(__sysv_signal, SYSV)

/* --- System V's calls, which also change the mask of the calling thread. */

/* Blocks or unblocks the signal (`how`). Returns whether it was blocked before. */
static bool change_mask(int how, int number)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(how, &set, &old);
	return sigismember(&old, number);
}

HOOKED(sighandler_t, sigset)(int number, sighandler_t handler)
{
	const struct sigaction act = {.sa_handler = handler};
	bool hold = handler == SIG_HOLD;
	struct sigaction old;
	bool blocked;

	if (!sigbus_guard_covers(number))
		return REAL(sigset)(number, handler);
	if (sigbus_guard_sigaction(number, hold ? NULL : &act, &old))
		return SIG_ERR;
	blocked = change_mask(hold ? SIG_BLOCK : SIG_UNBLOCK, number);
	return blocked ? SIG_HOLD : old.sa_handler;
}
HOOK(sighandler_t, sigset, (int number, sighandler_t handler), true, (number, handler))

HOOKED(int, sigignore)(int number)
{
	const struct sigaction act = {.sa_handler = SIG_IGN};

	if (!sigbus_guard_covers(number))
		return REAL(sigignore)(number);
	return sigbus_guard_sigaction(number, &act, NULL);
}
HOOK(int, sigignore, (int number), true, (number))
