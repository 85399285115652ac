/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/close_alarm.h"

#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

/* The timer repeats, because its first signal may come just before close(2) begins to wait. */
#define EVERY_US 10000

static void ignore_signal(int number)
{
	(void)number;
}

static void set_timer(suseconds_t us)
{
	const struct itimerval timer = {{.tv_usec = us}, {.tv_usec = us}};

	setitimer(ITIMER_REAL, &timer, NULL);
}

void close_alarm_begin(void)
{
	const struct sigaction action = {.sa_handler = ignore_signal};

	sigaction(SIGALRM, &action, NULL);
	set_timer(EVERY_US);
}

void close_alarm_end(void)
{
	set_timer(0);
}
