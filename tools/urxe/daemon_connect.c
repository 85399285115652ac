/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/daemon_connect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "common/clock.h"
#include "common/command_line.h"
#include "common/install_paths.h"
#include "common/log.h"
#include "common/rundir.h"

/* Programs expect to get low descriptors, and shells use descriptors up to 9 or 99. */
#define CONNECTION_FD 200

#define START_SECONDS  10
#define POLL_NS        10000000
#define START_INTERVAL 30 /* attempts to connect between two starts; a start takes about 0.2 s */

/*
 * Moves the connection, which CMD inherits, to a high number if the limit (ulimit -n) permits.
 * Returns the new descriptor; -1 after an error, which is logged.
 */
static int keep_connection(int fd)
{
	int held = fcntl(fd, F_DUPFD, CONNECTION_FD);

	if (held < 0 && errno == EINVAL)
		held = fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
	if (held < 0)
		log_line("cannot keep the connection to urxed: %s", strerror(errno));
	close(fd);
	return held;
}

static void exec_daemon(const char *urxed, const char *run_dir,
			const struct daemon_start_options *o, int errors)
{
	const char *args[10] = {urxed, "--private", "--run-dir", run_dir};
	int n = 4;

	if (o->hca) {
		args[n++] = "--hca";
		args[n++] = o->hca;
	}
	if (o->device) {
		args[n++] = "--device";
		args[n++] = o->device;
	}
	dup2(errors, STDERR_FILENO);
	/* The daemon must not load liburxe.so, even if a program with it starts the daemon. */
	unsetenv("LD_PRELOAD");
	execv(urxed, (char **)args);
	log_line("cannot run %s: %s", urxed, strerror(errno));
	_exit(STATUS_FAILED);
}

static void copy_errors(int errors)
{
	char text[1024];
	ssize_t n;

	while ((n = read(errors, text, sizeof(text))) > 0)
		if (write(STDERR_FILENO, text, (size_t)n) < 0)
			return;
}

/*
 * Starts a daemon and waits until it serves or has failed. Returns its exit status. The daemon
 * writes its messages to `errors`.
 */
static int run_daemon(const char *run_dir, const struct daemon_start_options *o, int errors)
{
	char urxed[PATH_MAX];
	const struct sigaction by_default = {.sa_handler = SIG_DFL};
	struct sigaction inherited;
	int rc = install_path_urxed(urxed), status = STATUS_FAILED << 8;
	pid_t pid;

	if (rc) {
		log_line("the daemon %s cannot be read (%s): build or install urxe anew", urxed,
			 strerror(-rc));
		return STATUS_FAILED;
	}
	/* With SIG_IGN, which may be inherited, the kernel would keep no exit status. */
	sigaction(SIGCHLD, &by_default, &inherited);
	pid = fork();
	if (pid == 0)
		exec_daemon(urxed, run_dir, o, errors);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGCHLD, &inherited, NULL);
	if (pid < 0) {
		log_line("cannot start urxed: %s", strerror(errno));
		return STATUS_FAILED;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_FAILED;
}

/*
 * Starts a daemon, and returns its exit status. Prints what the daemon logged until it served or
 * failed, except with STATUS_BUSY: another daemon serves the run directory.
 */
static int start_daemon(const char *run_dir, const struct daemon_start_options *o)
{
	int errors[2], status;

	/* Messages beyond the pipe's size are lost: it is read only after the start. */
	if (pipe2(errors, O_CLOEXEC | O_NONBLOCK)) {
		log_line("cannot start urxed: %s", strerror(errno));
		return STATUS_FAILED;
	}
	status = run_daemon(run_dir, o, errors[1]);
	close(errors[1]);
	if (status != STATUS_BUSY)
		copy_errors(errors[0]);
	close(errors[0]);
	return status;
}

static int log_connect_error(const char *run_dir, int err)
{
	if (err == EPERM)
		log_line("the urxed in %s is neither root's nor yours: choose another --run-dir",
			 run_dir);
	else if (err == EACCES)
		log_line("%s does not admit this user: choose another --run-dir, or let root start "
			 "its urxed with --group NAME for the members of a group",
			 run_dir);
	else
		log_line("no answer from urxed in %s: %s", run_dir, strerror(err));
	return -1;
}

/*
 * Whether the daemon is of this version. If it is not, logs that, and closes fd. True also for a
 * daemon that does not answer at once: it may answer later.
 */
static bool check_version(int fd, const char *run_dir)
{
	if (vnic_attach_check_version(fd) != -EPROTO)
		return true;
	close(fd);
	log_line("the urxed in %s is of another version than this urxe: end it, or choose another "
		 "--run-dir",
		 run_dir);
	return false;
}

/*
 * Tries to connect until a daemon answers or START_SECONDS are over, and starts a daemon at the
 * first of each START_INTERVAL attempts. Several programs that begin at the same time may each
 * start one: one daemon gets the lock of the run directory, the others end with STATUS_BUSY, and
 * all programs connect to the first. A daemon that is about to end holds the lock, too; then a
 * later attempt starts another one. The function connects to a daemon that it has started, however
 * long the start took.
 */
int daemon_connect(const char *run_dir, const struct daemon_start_options *options)
{
	struct timespec pause = {0, POLL_NS};
	const uint64_t end = now_ns() + START_SECONDS * NS_PER_SEC;
	uint32_t attempts;
	int fd, status;

	for (attempts = 0;; attempts++) {
		fd = vnic_attach_connect(run_dir);
		if (fd >= 0)
			return check_version(fd, run_dir) ? keep_connection(fd) : -1;
		if (fd != -ENOENT && fd != -ECONNREFUSED && fd != -ENOTDIR)
			return log_connect_error(run_dir, -fd);
		status = attempts % START_INTERVAL ? STATUS_BUSY : start_daemon(run_dir, options);
		if (!status)
			continue;
		if (status != STATUS_BUSY)
			return -1;
		if (now_ns() > end)
			return log_connect_error(run_dir, -fd);
		nanosleep(&pause, NULL);
	}
}

static bool daemon_answers(const char *run_dir)
{
	int fd = vnic_attach_connect(run_dir);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int daemon_choose_run_dir(const char *given, char run_dir[RUNDIR_MAX], char error[RUNDIR_ERROR])
{
	char system[RUNDIR_MAX];
	int rc = rundir_path(given, run_dir, error);

	if (rc || !rundir_is_default(given) || daemon_answers(run_dir))
		return rc;
	rundir_system(system);
	if (daemon_answers(system))
		memcpy(run_dir, system, RUNDIR_MAX);
	return 0;
}
