/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/vhost/vhost_spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netdev/vhost.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/unix_packet.h"
#include "urxed/privilege/helper.h"
#include "urxed/vhost/vhost_main.h"

#define VHOST     "vhost:"
#define ANSWER_MS 1000
/* Lowest number for received descriptors: above the numbers that the new process gets
 * (vhost_main.h), so that no dup2 overwrites one of them. */
#define FD_FIRST 16
#define RUN_FDS  4 /* descriptors with RUN, in the order of struct vhost_spawner_fds */

/* Tasks of the helper. */
enum task { RUN = 1, KILL, REAP };

struct request {
	enum task task;
	uint32_t number;                   /* of a request with an answer */
	pid_t pid;                         /* for KILL and REAP */
	char text[NETDEV_VHOST_PATH + 16]; /* for RUN */
};

struct answer {
	uint32_t number; /* number of the request */
	int rc;          /* 0 or a negative errno value */
	pid_t pid;
	int status; /* for REAP, as of waitpid(2) */
};

static struct helper helper = {.socket = -1};
static uint32_t last_number; /* number of the last request */

/* --- The helper */

static void close_fds(const int fds[RUN_FDS])
{
	for (int i = 0; i < RUN_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Moves descriptors to numbers from FD_FIRST on. Returns 0 or a negative errno value. */
static int raise_fds(int fds[RUN_FDS])
{
	for (int i = 0; i < RUN_FDS; i++) {
		int copy = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_FIRST);

		if (copy < 0)
			return -errno;
		close(fds[i]);
		fds[i] = copy;
	}
	return 0;
}

/* Lists how the new process's descriptors change. The last action closes all others, because some
 * of DPDK's would stay open after exec. Returns 0 or a negative errno value. */
static int add_actions(posix_spawn_file_actions_t *actions, const struct vhost_spawner_fds *fds)
{
	return -(posix_spawn_file_actions_adddup2(actions, fds->kick, VHOST_FD_KICK)
			 ?: posix_spawn_file_actions_adddup2(actions, fds->log, STDOUT_FILENO)
			 ?: posix_spawn_file_actions_adddup2(actions, fds->log, STDERR_FILENO)
			 ?: posix_spawn_file_actions_adddup2(actions, fds->memory, VHOST_FD_MEMORY)
			 ?: posix_spawn_file_actions_adddup2(actions, fds->wake, VHOST_FD_WAKE)
			 ?: posix_spawn_file_actions_addclosefrom_np(actions, VHOST_FD_WAKE + 1));
}

/*
 * Starts urxed's program as a new process with the option of vhost_main. The program starts with no
 * signal blocked, unlike urxed, which blocks the signals that it reads from a signalfd. Returns 0
 * or a negative errno value.
 */
static int spawn_program(char *text, const posix_spawn_file_actions_t *actions, pid_t *pid)
{
	char *argv[] = {"urxed", VHOST_MAIN_OPTION, text, NULL};
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	/* Executes this very program, even if its file has been replaced since: both must be of one
	 * build. */
	rc = -posix_spawn(pid, "/proc/self/exe", actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	return rc;
}

static int run_process(struct request *request, int fds[RUN_FDS], pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int rc = raise_fds(fds);
	const struct vhost_spawner_fds given = {fds[0], fds[1], fds[2], fds[3]};

	if (rc)
		return rc;
	request->text[sizeof(request->text) - 1] = '\0';
	posix_spawn_file_actions_init(&actions);
	rc = add_actions(&actions, &given) ?: spawn_program(request->text, &actions, pid);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static void send_spawner_answer(const struct answer *a, int pid_fd)
{
	(void)unix_packet_send(HELPER_SOCKET, a, sizeof(*a), &pid_fd, pid_fd >= 0);
	if (pid_fd >= 0)
		close(pid_fd);
}

/* Kills and reaps a process whose pidfd the helper cannot give to the daemon. */
static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/*
 * Kills one process. Ignores PIDs that are not positive, with which kill(2) signals many processes.
 */
static void serve_kill(const struct request *request)
{
	if (request->pid > 0)
		kill(request->pid, SIGKILL);
}

static void serve_run(struct request *request, int fds[RUN_FDS])
{
	struct answer a = {.number = request->number};
	int pid_fd = -1;

	a.rc = run_process(request, fds, &a.pid);
	if (!a.rc) {
		pid_fd = pidfd_open(a.pid, 0);
		a.rc = pid_fd < 0 ? -errno : 0;
		if (a.rc)
			end_process(a.pid);
	}
	send_spawner_answer(&a, pid_fd);
}

static void serve_reap(const struct request *request)
{
	struct answer a = {.number = request->number, .pid = request->pid};

	/* waitpid returns -1 if the helper has reaped the process for an earlier request whose
	 * answer the daemon did not await. */
	if (request->pid > 0 && waitpid(request->pid, &a.status, WNOHANG) == 0)
		a.rc = -EAGAIN;
	send_spawner_answer(&a, -1);
}

static void serve_requests(void)
{
	struct request request;
	int fds[RUN_FDS];

	while (unix_packet_recv_fds(HELPER_SOCKET, &request, sizeof(request), fds, RUN_FDS) ==
	       sizeof(request)) {
		switch (request.task) {
		case RUN: serve_run(&request, fds); break;
		case KILL: serve_kill(&request); break;
		case REAP: serve_reap(&request); break;
		}
		close_fds(fds);
	}
}

/* --- The daemon */

static void stop_helper(void)
{
	log_line("the process that starts the processes of vhost: ports has ended: these ports "
		 "stay down until urxed is started again");
	helper_stop(&helper);
}

/* Ends the process that an answer reports too late: no port uses the process. */
static void discard_answer(const struct answer *a, int pid_fd)
{
	const struct request reap = {.task = REAP, .pid = a->pid};

	if (pid_fd < 0)
		return;
	close(pid_fd);
	vhost_spawner_kill(a->pid);
	/* If the process ends only after this request, it stays a zombie until the helper ends. */
	(void)unix_packet_send(helper.socket, &reap, sizeof(reap), NULL, 0);
}

/*
 * Receives the answer to the request, and sets *pid_fd to the descriptor that comes with it, or -1.
 * Returns the answer's rc, -EAGAIN if no answer has come within ANSWER_MS, or -EIO if the helper
 * has ended.
 */
static int await_answer(const struct request *request, struct answer *a, int *pid_fd)
{
	struct pollfd pfd = {.fd = helper.socket, .events = POLLIN};
	const uint64_t end = now_ns() + ANSWER_MS * NS_PER_MS;
	struct unix_packet_extras extras;
	uint64_t now;

	*pid_fd = -1;
	while ((now = now_ns()) < end && poll(&pfd, 1, (int)((end - now) / NS_PER_MS) + 1) >= 0) {
		int got = unix_packet_recv(helper.socket, a, sizeof(*a), &extras);

		if (got == -EAGAIN)
			continue;
		if (got != sizeof(*a)) {
			stop_helper();
			return -EIO;
		}
		if (a->number == request->number) {
			*pid_fd = extras.fds[0];
			return a->rc;
		}
		discard_answer(a, extras.fds[0]);
	}
	log_line("the process that starts the processes of vhost: ports does not answer within "
		 "%u ms",
		 ANSWER_MS);
	return -EAGAIN;
}

int vhost_spawner_start(const char *const *uplinks, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strncmp(uplinks[i], VHOST, strlen(VHOST)))
			return helper_start_unfiltered(&helper, "urxed-vhosts", serve_requests);
	return 0;
}

void vhost_spawner_stop(void)
{
	helper_stop(&helper);
}

bool vhost_spawner_ended(void)
{
	if (helper.socket >= 0 && helper_ended(&helper))
		stop_helper();
	return helper.socket < 0;
}

int vhost_spawner_run(const char *text, const struct vhost_spawner_fds *fds, pid_t *pid,
		      int *pid_fd)
{
	const int given[RUN_FDS] = {fds->kick, fds->log, fds->memory, fds->wake};
	struct request request = {.task = RUN, .number = ++last_number};
	struct answer a;
	int rc;

	if (helper.socket < 0)
		return -EPERM;
	snprintf(request.text, sizeof(request.text), "%s", text);
	rc = unix_packet_send(helper.socket, &request, sizeof(request), given, RUN_FDS);
	if (!rc)
		rc = await_answer(&request, &a, pid_fd);
	if (!rc)
		*pid = a.pid;
	return rc;
}

void vhost_spawner_kill(pid_t pid)
{
	const struct request request = {.task = KILL, .pid = pid};

	if (helper.socket >= 0)
		(void)unix_packet_send(helper.socket, &request, sizeof(request), NULL, 0);
}

/* Without the helper, the process's parent is init, which reaps it; the result is then true. */
bool vhost_spawner_reap(pid_t pid, int *status)
{
	const struct request request = {.task = REAP, .number = ++last_number, .pid = pid};
	struct answer a = {.status = VHOST_SPAWNER_UNKNOWN};
	int fd, rc = 0;

	if (helper.socket >= 0 &&
	    !unix_packet_send(helper.socket, &request, sizeof(request), NULL, 0))
		rc = await_answer(&request, &a, &fd);
	*status = rc ? VHOST_SPAWNER_UNKNOWN : a.status;
	return rc != -EAGAIN;
}
