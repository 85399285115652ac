/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interposed libc functions that set a signal's action. Once a device was opened, SIGSEGV and
 * SIGBUS are ours first (fault.h), and what the program sets is kept for what is not ours.
 */
#include <signal.h>

#include "fault.h"
#include "real.h"

int sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
	if (!fault_takes(number))
		return REAL(sigaction)(number, act, old);
	fault_action(number, act, old);
	return 0;
}

/* BSD's, as glibc's: the handler stays, and system calls go on. */
sighandler_t signal(int number, sighandler_t handler)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

	if (!fault_takes(number))
		return REAL(signal)(number, handler);
	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, number);
	fault_action(number, &act, &old);
	return old.sa_handler;
}
