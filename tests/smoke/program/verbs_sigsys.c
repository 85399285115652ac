/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each thread of the process handles SIGSYS, also those of the library. A sandbox needs that, whose
 * filter of system calls traps calls of all threads (SECCOMP_RET_TRAP): the kernel kills a process
 * that blocks the signal. libpsx of libcap sends SIGSYS to all threads and waits for them.
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop.h"

/* Ends a program that waits for a thread that blocks the signal. */
#define SECONDS 60

static atomic_int handled;

static void handle(int number)
{
	(void)number;
	handled++;
}

/* Returns the number of threads. */
static int signal_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int n = 0;

	while (tasks && (task = readdir(tasks))) {
		if (task->d_name[0] == '.')
			continue;
		if (tgkill(getpid(), atoi(task->d_name), SIGSYS))
			err(1, "tgkill");
		n++;
	}
	closedir(tasks);
	return n;
}

int main(void)
{
	const struct sigaction act = {.sa_handler = handle, .sa_flags = SA_RESTART};
	int threads;

	alarm(SECONDS);
	loop_open();
	if (sigaction(SIGSYS, &act, NULL) || open("/dev/infiniband/rdma_cm", O_RDWR) < 0)
		err(1, "cannot prepare the threads");
	threads = signal_threads();
	if (threads < 3)
		errx(1, "%d threads, not those of the program, the device and rdma_cm", threads);
	while (handled < threads)
		usleep(1000);
	return 0;
}
