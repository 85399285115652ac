/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waits until another thread sleeps in a system call, according to /proc. */
#ifndef URXE_TEST_ASLEEP_H
#define URXE_TEST_ASLEEP_H

#include <dirent.h>
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * The state of a thread, a letter of proc(5), and how often it has gone to sleep so far. It may
 * belong to another process. 0: it has ended.
 */
static inline char proc_state(pid_t tid, unsigned long *times)
{
	char path[64], line[256], state = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	status = fopen(path, "re");
	*times = 0;
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "State: %c", &state) != 1 &&
		    sscanf(line, "voluntary_ctxt_switches: %lu", times) == 1)
			break;
	if (status)
		fclose(status);
	return status ? state : 0;
}

/* Whether the thread sleeps. A thread that has ended counts as asleep. */
static inline bool asleep(pid_t tid, unsigned long *times)
{
	char state = proc_state(tid, times);

	return !state || state == 'S' || state == 'Z';
}

/*
 * Whether two looks find the thread in the same sleep: a sleep for a lock ends before the second
 * look.
 */
static inline bool asleep_stays(pid_t tid)
{
	unsigned long before, now;
	bool slept = asleep(tid, &before);

	usleep(2000);
	return asleep(tid, &now) && slept && now == before;
}

/* Returns when the thread stays asleep. It may not, if it sleeps for short times only. */
static inline void asleep_await(pid_t tid)
{
	while (!asleep_stays(tid))
		;
}

/*
 * Returns when the thread waits for a page or a lock of the kernel, or sleeps, for some time. Ends
 * the program if the thread has ended.
 */
static inline void blocked_await(pid_t tid)
{
	unsigned long before = 0, now;
	char state;

	do {
		state = proc_state(tid, &before);
		if (!state || state == 'Z')
			errx(1, "thread %d has ended instead of waiting", (int)tid);
		usleep(20000);
	} while ((state != 'S' && state != 'D') || proc_state(tid, &now) != state || now != before);
}

/* The same for every thread of the process except the caller. */
static inline void asleep_await_others(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;

	while (tasks && (task = readdir(tasks)))
		if (task->d_name[0] != '.' && atoi(task->d_name) != gettid())
			asleep_await(atoi(task->d_name));
	if (tasks)
		closedir(tasks);
}

#endif
