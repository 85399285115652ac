/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "signals.h"

#include <pthread.h>
#include <stdatomic.h>

#include "real.h"

static atomic_bool handled; /* any signal was to be, at some time */

/* What the thread had before they were to wait. */
static __thread struct {
	sigset_t mask;
	int cancel;
	bool held; /* signals, too */
} before;

void signals_action(const struct sigaction *act)
{
	if (act && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN)
		handled = true;
}

void signals_hold(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
	sigset_t most;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.cancel);
	before.held = handled;
	if (!before.held)
		return;
	sigfillset(&most);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&most, faults[i]);
	pthread_sigmask(SIG_BLOCK, &most, &before.mask);
}

/* Whether it waits, and for us. */
static bool waits(const sigset_t *pending, int number)
{
	return sigismember(pending, number) == 1 && !sigismember(&before.mask, number);
}

/* signal(7): a handler without SA_RESTART does. */
static bool interrupts(int number)
{
	struct sigaction act;

	return !REAL(sigaction)(number, NULL, &act) && act.sa_handler != SIG_DFL &&
	       act.sa_handler != SIG_IGN && !(act.sa_flags & SA_RESTART);
}

static bool any_waits(bool that_interrupts)
{
	sigset_t pending;

	if (!before.held || sigpending(&pending))
		return false;
	for (int number = 1; number <= SIGRTMAX; number++)
		if (waits(&pending, number) && (!that_interrupts || interrupts(number)))
			return true;
	return false;
}

bool signals_wait(void)
{
	return any_waits(false);
}

bool signals_let(void)
{
	bool interrupted = any_waits(true);

	/* Handlers last: they may leave by longjmp, or wait themselves. */
	pthread_setcancelstate(before.cancel, NULL);
	if (before.held)
		pthread_sigmask(SIG_SETMASK, &before.mask, NULL);
	return interrupted;
}
