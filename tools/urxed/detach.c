/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"

/*
 * Logs the signal, because a process that a signal kills before it serves cannot log why it ended.
 */
static void log_killed(int number)
{
	log_line("killed by signal %d (%s)%s", number, strsignal(number),
		 number == SIGSYS ? ": the filter of a service or container forbids a system call"
				  : "");
}

/* In the parent: exits with 0 after one byte from the child, else with the child's status. */
static void wait_until_ready(int fd, pid_t child)
{
	int status = 1 << 8; /* as after exit(1), for the case that waitpid() fails */
	char byte;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		_exit(0);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	log_killed(WTERMSIG(status));
	_exit(1);
}

int detach_begin(void)
{
	int fds[2];
	pid_t pid;

	/* If the child kept the writing end of an inherited pipe, the pipe's reader would wait for
	 * ever. */
	close_range(STDERR_FILENO + 1, ~0u, 0);
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid) {
		close(fds[1]);
		wait_until_ready(fds[0], pid);
	}
	close(fds[0]);
	setsid();
	return fds[1];
}

int detach_ready(int ready_fd, const char *log_path)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
		       0600);

	if (null < 0 || log < 0 || chdir("/"))
		return -errno;
	dup2(null, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	log_has_times = true;
	close(null);
	close(log);
	if (write(ready_fd, "", 1) != 1)
		return -errno;
	close(ready_fd);
	return 0;
}
