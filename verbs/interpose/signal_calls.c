/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interposed libc functions that set a signal's action. Once a device was opened, SIGSEGV and
 * SIGBUS are ours first (memory/sigbus_guard.h), and what the program sets is kept for what is not
 * ours.
 */
#include <errno.h>
#include <signal.h>

#include "interpose/interpose.h"
#include "memory/sigbus_guard.h"

/* X/Open's of before 2008, which headers declare no more. */
sighandler_t bsd_signal(int number, sighandler_t handler);

HOOKED(int, sigaction)(int number, const struct sigaction *act, struct sigaction *old)
{
	if (fault_concerns(number))
		return fault_action(number, act, old);
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
	return fault_action(number, &act, &old) ? SIG_ERR : old.sa_handler;
}

/* The older calls, with the flags that glibc gives them. */
#define SIGNAL(name, flags)                                          \
	HOOKED(sighandler_t, name)(int number, sighandler_t handler) \
	{                                                            \
		if (fault_concerns(number))                          \
			return set_handler(number, handler, flags);  \
		return REAL(name)(number, handler);                  \
	}                                                            \
	HOOK(sighandler_t, name, (int number, sighandler_t handler), true, (number, handler))

/* BSD's: the handler stays, and system calls go on. System V's: neither. */
#define BSD  SA_RESTART
#define SYSV (int)(SA_RESETHAND | SA_NODEFER)

SIGNAL(signal, BSD)
SIGNAL(bsd_signal, BSD)
SIGNAL(ssignal, BSD)
SIGNAL(sysv_signal, SYSV)
SIGNAL(__sysv_signal, SYSV)
