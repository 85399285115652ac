/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each socket goes to a worker process of its own, which ends after its job: closing the socket, or
 * a descriptor from its queue, may block the worker for any time. This process never has the last
 * copy of a socket when it closes it, and receives nothing from it. A user with WORKERS_PER_USER
 * blocked workers gets no further one: the sockets wait in `jobs`.
 */
#include "urxed/privilege/fd_guard_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vnic/attach.h>
#include <vnic/inbox.h>

#include "urxed/privilege/helper.h"

#define WORKERS          256
#define WORKERS_PER_USER 8
#define JOBS             512
/* How long a program may take to send the descriptors of its inbox. */
#define SEND_MS  5000
#define RETRY_MS 100

struct job {
	struct fd_guard_request request;
	int socket;
};

struct worker {
	pid_t pid;
	uint32_t user;
};

static struct {
	struct job jobs[JOBS]; /* in their order */
	uint32_t n_jobs;
	struct worker workers[WORKERS];
	uint32_t n_workers;
	int signal_fd; /* readable when a worker has ended */
} process;

union control {
	struct cmsghdr header;
	uint8_t room[CMSG_SPACE(VNIC_INBOX_FDS * sizeof(int))];
};

/* Returns the length as recvmsg(2); sets *n to the number of descriptors received, at most max. */
static ssize_t receive_fds(int socket, void *message, size_t len, int *fds, uint32_t max,
			   uint32_t *n)
{
	struct iovec iov = {message, len};
	union control control;
	struct msghdr header = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = CMSG_LEN(max * sizeof(int))};
	ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(&header);

	*n = 0;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		*n = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), *n * sizeof(int));
	}
	return got;
}

static void send_fds(int socket, const void *message, size_t len, const int *fds, uint32_t n)
{
	struct iovec iov = {(void *)message, len};
	union control control = {.header = {CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	const struct msghdr header = {.msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = &control,
				      .msg_controllen = CMSG_SPACE(n * sizeof(int))};

	memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
	(void)sendmsg(socket, &header, MSG_NOSIGNAL);
}

/* --- The worker */

/* Passes the descriptors on to the daemon if the daemon can map and close them without a wait. */
static int check_inbox(const struct job *job)
{
	const struct fd_guard_result result = {.token = job->request.token};
	struct pollfd pfd = {.fd = job->socket, .events = POLLIN};
	struct vnic_attach_inbox message;
	int fds[VNIC_INBOX_FDS], rc;
	uint32_t n;

	if (poll(&pfd, 1, SEND_MS) <= 0)
		return -ETIMEDOUT;
	if (receive_fds(job->socket, &message, sizeof(message), fds, VNIC_INBOX_FDS, &n) !=
		    sizeof(message) ||
	    n != VNIC_INBOX_FDS)
		return -EPROTO;
	rc = vnic_inbox_check(fds);
	if (!rc)
		send_fds(HELPER_SOCKET, &result, sizeof(result), fds, n);
	return rc;
}

/* `master` is a socket to the master process. Exits: that closes everything. */
static _Noreturn void run_worker(const struct job *job, int master)
{
	struct vnic_attach_inbox answer = {.type = VNIC_ATTACH_INBOX};
	char byte = 0;
	int low = job->socket < master ? job->socket : master;
	int high = job->socket < master ? master : job->socket;

	/* Other programs' sockets: the master has copies, so that this closes no last one. */
	if (low > HELPER_SOCKET + 1)
		close_range(HELPER_SOCKET + 1, (unsigned int)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned int)low + 1, (unsigned int)high - 1, 0);
	close_range((unsigned int)high + 1, ~0u, 0);
	/* The end of this socket says that the master has closed its copy of the job's socket. */
	if (write(master, &byte, 1) == 1)
		(void)!read(master, &byte, 1);
	if (job->request.job == FD_GUARD_CHECK) {
		answer.status = check_inbox(job);
		(void)send(job->socket, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	_exit(0);
}

/* --- The master process */

static uint32_t count_workers(uint32_t user)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < process.n_workers; i++)
		n += process.workers[i].user == user;
	return n;
}

static bool can_start(const struct job *job)
{
	return process.n_workers < WORKERS && count_workers(job->request.user) < WORKERS_PER_USER;
}

/* False: no memory or no process; the job stays. */
static bool start_worker(const struct job *job)
{
	int ends[2];
	bool started;
	char byte;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	pid = fork();
	if (!pid)
		run_worker(job, ends[1]);
	close(ends[1]);
	/* A worker that ended before has no copy of the socket, so the job is tried again. */
	started = pid > 0 && read(ends[0], &byte, 1) == 1;
	if (started) {
		close(job->socket);
		process.workers[process.n_workers++] = (struct worker){pid, job->request.user};
	}
	close(ends[0]);
	return started;
}

static void start_workers(void)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < process.n_jobs; i++) {
		struct job job = process.jobs[i];

		if (!can_start(&job) || !start_worker(&job))
			process.jobs[left++] = job;
	}
	process.n_jobs = left;
}

static void reap_workers(void)
{
	struct signalfd_siginfo info;
	pid_t pid;

	(void)!read(process.signal_fd, &info, sizeof(info));
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (uint32_t i = 0; i < process.n_workers; i++)
			if (process.workers[i].pid == pid)
				process.workers[i] = process.workers[--process.n_workers];
}

/* False: the daemon has ended. */
static bool receive_job(void)
{
	struct job *job = &process.jobs[process.n_jobs];
	uint32_t n;
	ssize_t got = receive_fds(HELPER_SOCKET, &job->request, sizeof(job->request), &job->socket,
				  1, &n);

	if (got == sizeof(job->request) && n == 1)
		process.n_jobs++;
	return got > 0 || (got < 0 && errno == EINTR);
}

void fd_guard_process(void)
{
	struct pollfd fds[2] = {{.fd = HELPER_SOCKET}, {.events = POLLIN}};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	process.signal_fd = fds[1].fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	for (;;) {
		/* Without room the daemon has to keep its sockets. */
		fds[0].events = process.n_jobs < JOBS ? POLLIN : 0;
		/* A job whose worker could not be forked is tried again. */
		if (poll(fds, 2, process.n_jobs ? RETRY_MS : -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents)
			reap_workers();
		if (fds[0].revents && process.n_jobs < JOBS && !receive_job())
			return;
		start_workers();
	}
}
