/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/init_process.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/command_line.h"
#include "common/log.h"

static int exit_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Reaps processes that have ended until none is left or `child` was among them. True: it was, and
 * *status is its exit status. */
static bool reap(pid_t child, int *status)
{
	pid_t pid;
	int ended_status;

	while ((pid = waitpid(-1, &ended_status, WNOHANG)) > 0)
		if (pid == child) {
			*status = exit_status(ended_status);
			return true;
		}
	return false;
}

/*
 * Whether to forward the signal to the child. A terminal sends its signals to the whole process
 * group, so the child gets them without this process. Only a hang-up goes to the session leader
 * alone, and is forwarded.
 */
static bool is_forwarded(const siginfo_t *info)
{
	return info->si_signo != SIGCHLD &&
	       (info->si_code != SI_KERNEL || info->si_signo == SIGHUP);
}

static int supervise(pid_t child)
{
	siginfo_t info;
	sigset_t all;
	int status = 0;

	sigfillset(&all);
	while (!reap(child, &status))
		if (sigwaitinfo(&all, &info) > 0 && is_forwarded(&info))
			kill(child, info.si_signo);
	return status;
}

int init_process_fork(void)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};
	struct sigaction inherited;
	sigset_t all, old;
	pid_t child;

	/* Blocked signals wait until sigwaitinfo(2) takes them. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	/* With SIG_IGN, which may be inherited, the kernel would keep no exit status. */
	sigaction(SIGCHLD, &by_default, &inherited);
	child = fork();
	if (child > 0)
		return supervise(child);
	if (child < 0)
		log_line("cannot start a process: %s", strerror(errno));
	sigaction(SIGCHLD, &inherited, NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return child ? STATUS_FAILED : -1;
}
