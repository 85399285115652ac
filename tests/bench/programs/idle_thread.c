/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A library for LD_PRELOAD that starts a second, sleeping thread; measure.py uses it. */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static __attribute__((constructor)) void start(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&thread, NULL, sleep_on, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
