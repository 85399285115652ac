/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interposed libc functions that set a signal's action. Once a device was opened, this library
 * handles SIGSEGV and SIGBUS first (memory/sigbus_guard.h), and passes all other faults to the
 * action that the program has set.
 */
#include <errno.h>
#include <signal.h>

#include "interpose/interpose.h"
#include "memory/sigbus_guard.h"

/* Removed from X/Open in 2008, and from headers. */
sighandler_t bsd_signal(int number, sighandler_t handler);

HOOKED(int, sigaction)(int number, const struct sigaction *act, struct sigaction *old)
{
	if (sigbus_guard_covers(number))
		return sigbus_guard_sigaction(number, act, old);
	return REAL(sigaction)(number, act, old);
}
HOOK(int, sigaction, (int number, const struct sigaction *act, struct sigaction *old), true,
     (number, act, old))

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

/* The older calls, with the flags that glibc gives them. */
#define SIGNAL(name, flags)                                          \
	HOOKED(sighandler_t, name)(int number, sighandler_t handler) \
	{                                                            \
		if (sigbus_guard_covers(number))                     \
			return set_handler(number, handler, flags);  \
		return REAL(name)(number, handler);                  \
	}                                                            \
	HOOK(sighandler_t, name, (int number, sighandler_t handler), true, (number, handler))

/* BSD: the handler stays installed, and system calls restart. System V: neither. */
#define BSD  SA_RESTART
#define SYSV (int)(SA_RESETHAND | SA_NODEFER)

SIGNAL(signal, BSD)
SIGNAL(bsd_signal, BSD)
SIGNAL(ssignal, BSD)
SIGNAL(sysv_signal, SYSV)
SIGNAL(__sysv_signal, SYSV)
