/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "close_alarm.h"

#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

#define EVERY_US 1000

static void ignore_signal(int number)
{
	(void)number;
}

static void set_timer(suseconds_t us)
{
	const struct itimerval timer = {{.tv_usec = us}, {.tv_usec = us}};

	setitimer(ITIMER_REAL, &timer, NULL);
}

void vnic_close_alarm_begin(void)
{
	const struct sigaction action = {.sa_handler = ignore_signal};

	sigaction(SIGALRM, &action, NULL);
	set_timer(EVERY_US);
}

void vnic_close_alarm_end(void)
{
	set_timer(0);
}
