/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each thread of the process handles SIGSYS, also those of the library. A sandbox needs that, whose
 * filter of system calls traps calls of all threads (SECCOMP_RET_TRAP): the kernel kills a process
 * that blocks the signal. libpsx of libcap sends SIGSYS to all threads and waits for them. But in a
 * program that blocks SIGSYS no thread takes it.
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

static void end_child(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		err(1, "no child");
	if (status)
		errx(1, "a child's status is %#x", (unsigned int)status);
}

static void open_all(void)
{
	loop_open();
	if (open("/dev/infiniband/rdma_cm", O_RDWR) < 0)
		err(1, "rdma_cm");
}

/* In a child of its own. */
static void wait_for_blocked_signal(void)
{
	sigset_t signals;
	int number;
	pid_t child;

	sigemptyset(&signals);
	sigaddset(&signals, SIGSYS);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	open_all();
	kill(getpid(), SIGSYS);
	child = fork();
	if (!child)
		_exit(0);
	end_child(child);
	if (sigwait(&signals, &number))
		errx(1, "SIGSYS is not pending");
}

static void trap_sigaction(int number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		err(1, "seccomp");
}

static void check_trapped_sigaction(void)
{
	const int before = handled;

	trap_sigaction(SIGSEGV);
	(void)signal(SIGSEGV, SIG_DFL);
	if (handled == before)
		errx(1, "the system call is not trapped");
}

int main(void)
{
	const struct sigaction act = {.sa_handler = handle, .sa_flags = SA_RESTART};
	pid_t child;
	int threads;

	alarm(SECONDS);
	child = fork();
	if (!child) {
		wait_for_blocked_signal();
		_exit(0);
	}
	end_child(child);
	open_all();
	if (sigaction(SIGSYS, &act, NULL))
		err(1, "sigaction");
	threads = signal_threads();
	if (threads < 3)
		errx(1, "%d threads, not those of the program, the device and rdma_cm", threads);
	while (handled < threads)
		usleep(1000);
	check_trapped_sigaction();
	return 0;
}
