/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The system call in which a thread of this process sleeps. */
#ifndef URXE_TEST_VERBS_SLEEPING_THREAD_H
#define URXE_TEST_VERBS_SLEEPING_THREAD_H

#include <stdio.h>

/* The system call in which the thread sleeps, and its fourth argument; -1: it runs. */
static inline long sleeps_with(int tid, unsigned long *fourth)
{
	char path[64];
	long number;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%ld %*s %*s %*s %lx", &number, fourth) != 2)
		number = -1;
	fclose(f);
	return number;
}

static inline long sleeps_in(int tid)
{
	unsigned long unused;

	return sleeps_with(tid, &unused);
}

#endif
