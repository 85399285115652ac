/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "thread_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

/* A part of /proc/PID/task/TID/stat (proc(5)). Times in clock ticks. */
struct task_stat {
	char state;
	uint64_t user, system; /* CPU time */
	uint64_t start;        /* start time, after the boot */
};

/* Returns the number of bytes read; -1: an error. */
static ssize_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, text, size);
		close(fd);
	}
	return n;
}

/*
 * Reads a text of /proc, and ends it with a NUL. False: an error, or an empty text. Disables
 * cancellation, because open(2) and read(2) are cancellation points, where a thread must not end:
 * it has locks of its process.
 */
static bool read_text(const char *path, char *text, size_t size)
{
	ssize_t n;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	n = read_file(path, text, size - 1);
	pthread_setcancelstate(cancel, NULL);
	if (n <= 0)
		return false;
	text[n] = 0;
	return true;
}

static bool read_stat(const char *path, struct task_stat *stat)
{
	char text[1024], *end;

	if (!read_text(path, text, sizeof(text)))
		return false;
	/* The program's name, in brackets, may have any character. */
	end = strrchr(text, ')');
	/* Fields 3, 14, 15 and 22 of proc(5). */
	return end && sscanf(end + 1,
			     " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64
			     " %*s %*s %*s %*s %*s %*s %" SCNu64,
			     &stat->state, &stat->user, &stat->system, &stat->start) == 4;
}

static bool read_process_stat(int32_t pid, struct task_stat *stat)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return read_stat(path, stat);
}

bool process_started_at(int32_t pid, uint64_t *start)
{
	struct task_stat stat;

	if (!read_process_stat(pid, &stat))
		return false;
	*start = stat.start;
	return true;
}

/* Whether the thread sleeps, and not in a system call that copies between processes. False: not, or
 * /proc does not tell. */
static bool is_elsewhere(int32_t pid, int32_t tid)
{
	char path[48], text[256];
	long number;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	/* The text is "running", or begins with the number of the system call; -1: in none. */
	if (!read_text(path, text, sizeof(text)) || sscanf(text, "%ld", &number) != 1)
		return false;
	return number != SYS_process_vm_writev && number != SYS_process_vm_readv;
}

/*
 * Whether a thread can be in __refrigerator within a system call: before Linux 6.1, a page fault in
 * a file on NFS could sleep there. After the freeze such a thread continues its system call.
 */
static bool freezes_within_calls(void)
{
	struct utsname name;
	unsigned int major, minor;

	return uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2 || major < 6 ||
	       (major == 6 && minor < 1);
}

/*
 * Whether the freezer of cgroups has stopped the thread on its way to user mode. Then "stat" has
 * state S or D, and "syscall" still names the system call that the thread has left. "wchan" names
 * the kernel function in which the thread sleeps, or is "0" if the kernel does not tell.
 */
static bool is_frozen(int32_t pid, int32_t tid)
{
	char path[48], function[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", pid, tid);
	if (!read_text(path, function, sizeof(function)))
		return false;
	/* cgroup v2. The compiler may inline do_freezer_trap in get_signal. */
	if (!strcmp(function, "get_signal") || !strcmp(function, "do_freezer_trap"))
		return true;
	/* cgroup v1 */
	return !strcmp(function, "__refrigerator") && !freezes_within_calls();
}

/*
 * Whether the process has no such thread, or the thread has ended so far that it has given back its
 * memory. Asks the kernel without /proc and without a descriptor: both may be missing.
 */
static bool has_ended(int32_t pid, int32_t tid)
{
	char byte;
	const struct iovec local = {&byte, 1}, remote = {NULL, 1};

	return (tgkill(pid, tid, 0) && errno == ESRCH) ||
	       (process_vm_readv(tid, &local, 1, &remote, 1, 0) < 0 && errno == ESRCH);
}

enum thread_state thread_state(int32_t pid, uint64_t start, int32_t tid, uint64_t *cpu_ticks)
{
	struct task_stat process, thread;
	char path[48];

	*cpu_ticks = 0;
	if (has_ended(pid, tid))
		return THREAD_GONE;
	if (!read_process_stat(pid, &process))
		return THREAD_BUSY;
	if (process.start != start)
		return THREAD_GONE;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (!read_stat(path, &thread))
		return THREAD_BUSY;
	if (strchr("ZX", thread.state))
		return THREAD_GONE;
	if (strchr("Tt", thread.state) || is_frozen(pid, tid))
		return THREAD_STOPPED;
	if (is_elsewhere(pid, tid))
		return THREAD_ELSEWHERE;
	*cpu_ticks = thread.user + thread.system;
	return THREAD_BUSY;
}
