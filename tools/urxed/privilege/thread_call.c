/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/thread_call.h"

#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "urxed/session/process_info.h"

/* A signal that neither DPDK nor libc uses. A real-time signal will not do: the kernel refuses one
 * beyond RLIMIT_SIGPENDING, which counts the queued signals of all the user's processes. */
#define CALL_SIGNAL SIGURG

#define THREADS      256
#define WAIT_SECONDS 2
#define UNBLOCK_MS   1000

/* The function of the present call. One variable suffices, because only the daemon's start calls
 * thread_call_all. */
static int (*_Atomic current)(void);
static atomic_int result;
static sem_t called;

static void on_call(int number)
{
	const int err = errno;

	(void)number;
	result = current();
	sem_post(&called);
	errno = err;
}

/* Makes the thread call `current`, and waits until it has. Returns the result of `current`, 0 if
 * the thread has ended, or a negative errno value: -ETIMEDOUT after WAIT_SECONDS. */
static int call_thread(pid_t tid)
{
	struct timespec until;

	if (syscall(SYS_tgkill, getpid(), tid, CALL_SIGNAL))
		return errno == ESRCH ? 0 : -errno;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_SECONDS;
	while (sem_clockwait(&called, CLOCK_MONOTONIC, &until))
		if (errno != EINTR)
			return -errno;
	return result;
}

/*
 * Whether the thread blocks CALL_SIGNAL. Threads of a sanitizer or of a driver may do so for ever.
 */
static bool blocks_signal(pid_t tid)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	return process_status_mask(path, "SigBlk") >> (CALL_SIGNAL - 1) & 1;
}

/* Returns true if the thread still blocks CALL_SIGNAL after UNBLOCK_MS. Waits, because libc starts
 * a thread with all signals blocked and unblocks them soon. */
static bool stays_blocked(pid_t tid)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	for (int i = 0; i < UNBLOCK_MS; i++) {
		if (!blocks_signal(tid))
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static bool is_done(const pid_t *done, int n, pid_t tid)
{
	while (n--)
		if (done[n] == tid)
			return true;
	return false;
}

/* Makes all threads that are not among the `*n` in `done` call `current`. Returns whether there
 * were any. */
static bool call_new_threads(pid_t done[THREADS], int *n, int *rc)
{
	DIR *dir = opendir("/proc/self/task");
	const int before = *n;
	struct dirent *entry;

	if (!dir)
		*rc = -errno;
	while (dir && !*rc && (entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);

		if (tid <= 0 || is_done(done, *n, tid))
			continue;
		if (*n == THREADS)
			*rc = -EMFILE;
		else if (stays_blocked(tid))
			log_line("a thread blocks all signals, and keeps its privileges");
		else
			*rc = call_thread(tid);
		if (!*rc)
			done[(*n)++] = tid;
	}
	if (dir)
		closedir(dir);
	return *n > before;
}

int thread_call_all(int (*call)(void))
{
	/* SA_RESTART: DPDK's telemetry thread ends if its accept(2) is interrupted. */
	const struct sigaction action = {.sa_handler = on_call, .sa_flags = SA_RESTART};
	pid_t done[THREADS];
	struct sigaction old;
	int n = 0, rc = 0;

	current = call;
	if (sem_init(&called, 0, 0) || sigaction(CALL_SIGNAL, &action, &old))
		return -errno;
	/* Repeats while new threads appear: a new thread inherits its capabilities from its
	 * creator, which may not yet have made the call. */
	while (call_new_threads(done, &n, &rc) && !rc)
		;
	sigaction(CALL_SIGNAL, &old, NULL);
	sem_destroy(&called);
	return rc;
}
