/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The master process gives each socket to a forked worker, which ends after its one job: to close
 * the socket, or a descriptor from its queue, may block the worker for any time. The master never
 * closes the last copy of a socket, and receives nothing from these sockets. If WORKERS_PER_USER
 * workers of a user are blocked, the user's further sockets wait in a queue of that user. The
 * master's descriptor limit has room for all sockets that wait, and the kernel limits the
 * descriptors that a user has in queues.
 *
 * The daemon may have threads when it forks the master, so the memory comes from mmap(2): a thread
 * may hold the lock of malloc(3).
 */
#include "urxed/privilege/fd_guard_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>
#include <vnic/inbox.h>

#include "common/unix_packet.h"
#include "urxed/privilege/helper.h"
#include "urxed/session/quota.h"

#define WORKERS          256
#define WORKERS_PER_USER 8
/* Descriptors of the master that belong to no job. */
#define OTHER_FDS 16
#define JOBS_MAX  (1u << 20)
#define NO_JOB    UINT32_MAX
/* Time that a program has to send the descriptors of its inbox. */
#define SEND_MS  5000
#define RETRY_MS 100

struct job {
	struct fd_guard_request request;
	int socket;
	uint64_t number; /* jobs are numbered in the order of arrival */
	uint32_t next; /* index of the next job of the user, or of the next unused one; or NO_JOB */
};

/* A user for whom jobs wait or workers run. */
struct user {
	uint32_t id;
	uint32_t first, last; /* indices of the jobs that wait; NO_JOB = none waits */
	uint32_t n_workers;
};

struct worker {
	pid_t pid;
	uint32_t user;
};

static struct {
	struct job *jobs;
	uint32_t room;   /* number of jobs that fit */
	uint32_t fresh;  /* jobs from this index on were never used: their pages cost no memory */
	uint32_t unused; /* index of the first job that was used and is free again; or NO_JOB */
	uint32_t n_jobs;
	uint64_t arrived;   /* number of jobs that have arrived so far */
	uint64_t closed;    /* number of the first job that came after the last FD_GUARD_CLOSED */
	struct user *users; /* in any order; room for one user per job and worker */
	uint32_t n_users;
	struct worker workers[WORKERS];
	uint32_t n_workers;
	int signal_fd; /* readable when a worker has ended */
} process;

/* --- The worker */

/*
 * Receives an inbox's descriptors, and passes them to the daemon if the daemon can map and close
 * them without waiting. Returns 0 or a negative errno value, which the worker sends to the program.
 */
static int check_inbox(const struct job *job)
{
	const struct fd_guard_result result = {.token = job->request.token};
	struct pollfd pfd = {.fd = job->socket, .events = POLLIN};
	struct vnic_attach_inbox message;
	int fds[VNIC_INBOX_FDS], rc;

	if (poll(&pfd, 1, SEND_MS) <= 0)
		return -ETIMEDOUT;
	if (unix_packet_recv_fds(job->socket, &message, sizeof(message), fds, VNIC_INBOX_FDS) !=
		    sizeof(message) ||
	    fds[VNIC_INBOX_FDS - 1] < 0)
		return -EPROTO;
	rc = vnic_inbox_check(fds);
	if (!rc)
		(void)unix_packet_send(HELPER_SOCKET, &result, sizeof(result), fds, VNIC_INBOX_FDS);
	return rc;
}

/* Does the job and exits; the exit closes the job's socket and the descriptors in its queue.
 * `master` is a socket to the master process. */
static _Noreturn void run_worker(const struct job *job, int master)
{
	struct vnic_attach_inbox answer = {.type = VNIC_ATTACH_INBOX};
	char byte = 0;
	int low = job->socket < master ? job->socket : master;
	int high = job->socket < master ? master : job->socket;

	/* Closes other programs' sockets. The master still has copies, so none of these closes can
	 * block. */
	if (low > HELPER_SOCKET + 1)
		close_range(HELPER_SOCKET + 1, (unsigned int)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned int)low + 1, (unsigned int)high - 1, 0);
	close_range((unsigned int)high + 1, ~0u, 0);
	/* The write says that this worker holds its copy of the job's socket. The read ends when
	 * the master has closed the master's copy. */
	if (write(master, &byte, 1) == 1)
		(void)!read(master, &byte, 1);
	if (job->request.job == FD_GUARD_CHECK) {
		answer.status = check_inbox(job);
		(void)send(job->socket, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	_exit(0);
}

/* --- The master process */

static void *map_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static bool make_fd_room(void)
{
	struct rlimit limit;
	uint32_t room;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur <= OTHER_FDS)
		return false;
	room = limit.rlim_cur > JOBS_MAX ? JOBS_MAX : (uint32_t)limit.rlim_cur - OTHER_FDS;
	process.jobs = map_memory(room * sizeof(struct job));
	process.users = map_memory((room + WORKERS) * sizeof(struct user));
	if (!process.jobs || !process.users)
		return false;
	process.room = room;
	process.unused = NO_JOB;
	return true;
}

static bool has_room(void)
{
	return process.unused != NO_JOB || process.fresh < process.room;
}

/* Returns the index that append_job will use for the next job. The caller has called has_room. */
static uint32_t next_job(void)
{
	return process.unused != NO_JOB ? process.unused : process.fresh;
}

static struct user *find_user(uint32_t id)
{
	for (uint32_t i = 0; i < process.n_users; i++)
		if (process.users[i].id == id)
			return &process.users[i];
	return NULL;
}

static struct user *find_or_add_user(uint32_t id)
{
	struct user *user = find_user(id);

	if (!user) {
		user = &process.users[process.n_users++];
		*user = (struct user){.id = id, .first = NO_JOB, .last = NO_JOB};
	}
	return user;
}

/* Appends the job at index next_job() to its user's queue. */
static void append_job(void)
{
	const uint32_t index = next_job();
	struct job *job = &process.jobs[index];
	struct user *user = find_or_add_user(job->request.user);

	if (process.unused != NO_JOB)
		process.unused = job->next;
	else
		process.fresh++;
	job->number = process.arrived++;
	job->next = NO_JOB;
	if (user->first == NO_JOB)
		user->first = index;
	else
		process.jobs[user->last].next = index;
	user->last = index;
	process.n_jobs++;
}

static void remove_first_job(struct user *user)
{
	const uint32_t index = user->first;
	struct job *job = &process.jobs[index];

	user->first = job->next;
	job->next = process.unused;
	process.unused = index;
	process.n_jobs--;
}

/* Whether the first job of the user may begin. */
static bool can_start(const struct user *user)
{
	const struct job *job = &process.jobs[user->first];

	/* Until the daemon has closed its copy of the socket, the worker must not close: the
	 * daemon's copy would be the last one, and the daemon's close would wait. */
	if (job->request.job == FD_GUARD_CLOSE && job->number >= process.closed)
		return false;
	return user->n_workers < WORKERS_PER_USER && process.n_workers < WORKERS &&
	       quota_allows(user->id, user->n_workers, process.n_workers, WORKERS);
}

/*
 * Forks a worker for the job, waits until the worker holds its copy of the job's socket, and closes
 * the master's copy. Returns false if fork(2) or socketpair(2) failed, or if the worker ended
 * before it held the socket; the job stays in the queue, and the master tries again later.
 */
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
	/* If read returns 0, the worker ended before it held a copy of the socket. */
	started = pid > 0 && read(ends[0], &byte, 1) == 1;
	if (started) {
		close(job->socket);
		process.workers[process.n_workers++] = (struct worker){pid, job->request.user};
	}
	close(ends[0]);
	return started;
}

static void start_workers_of(struct user *user)
{
	while (user->first != NO_JOB && can_start(user) &&
	       start_worker(&process.jobs[user->first])) {
		user->n_workers++;
		remove_first_job(user);
	}
}

static void start_workers(void)
{
	for (uint32_t i = process.n_users; i-- > 0;) {
		struct user *user = &process.users[i];

		start_workers_of(user);
		if (user->first == NO_JOB && !user->n_workers)
			*user = process.users[--process.n_users];
	}
}

static void remove_worker(uint32_t index)
{
	struct user *user = find_user(process.workers[index].user);

	if (user)
		user->n_workers--;
	process.workers[index] = process.workers[--process.n_workers];
}

static void reap_workers(void)
{
	struct signalfd_siginfo info;
	pid_t pid;

	(void)!read(process.signal_fd, &info, sizeof(info));
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (uint32_t i = 0; i < process.n_workers; i++)
			if (process.workers[i].pid == pid)
				remove_worker(i);
}

/* Receives a job from the daemon and appends it to its user's queue, or handles FD_GUARD_CLOSED.
 * Returns 0; -EPIPE if the daemon has ended; or another negative errno value, after which the
 * caller tries again later. */
static int receive_job(void)
{
	struct job *job = &process.jobs[next_job()];
	int got = unix_packet_recv_fds(HELPER_SOCKET, &job->request, sizeof(job->request),
				       &job->socket, 1);

	if (got == sizeof(job->request) && job->request.job == FD_GUARD_CLOSED) {
		process.closed = process.arrived;
	} else if (got == sizeof(job->request) && job->socket >= 0) {
		append_job();
		return 0;
	}
	if (job->socket >= 0) /* of a packet of another length */
		close(job->socket);
	if (!got || got == -ECONNRESET)
		return -EPIPE;
	return got < 0 ? got : 0;
}

void fd_guard_process(void)
{
	struct pollfd fds[2] = {{.fd = HELPER_SOCKET}, {.events = POLLIN}};
	sigset_t set;
	int rc = 0; /* a negative errno value: the last receive_job failed */

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	process.signal_fd = fds[1].fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (!make_fd_room())
		return;
	for (;;) {
		/*
		 * While there is no room for jobs, the daemon keeps its sockets (fd_guard.c: kept).
		 */
		fds[0].events = has_room() && !rc ? POLLIN : 0;
		/* Wakes after RETRY_MS to try again jobs for which fork(2) failed, or the socket
		 * after a failure. */
		if (poll(fds, 2, process.n_jobs || rc ? RETRY_MS : -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents)
			reap_workers();
		rc = fds[0].revents && has_room() ? receive_job() : 0;
		if (rc == -EPIPE)
			return;
		start_workers();
	}
}
