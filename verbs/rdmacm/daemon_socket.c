/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/daemon_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

#include "engine/clock.h"
#include "process/high_fd.h"
#include "process/log.h"
#include "process/run_dir.h"
#include "process/settings.h"
#include "rdmacm/rdmacm_reconnect.h"

/*
 * The most replies that the daemon can owe a file: one to any command, such as that of
 * confirm_claim, and one to a CM_ATTACH_THAW that followed (rdmacm_daemon_try).
 */
#define DUE_MAX 2

/* --- Waiting */

static int poll_timeout(uint64_t deadline)
{
	uint64_t now = clock_monotonic(), ms;

	if (deadline <= now)
		return 0;
	ms = (deadline - now + 999999) / 1000000;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static bool await_packet(int socket, uint64_t deadline)
{
	struct pollfd fd = {.fd = socket, .events = POLLIN};
	int n;

	/* Without a limit, the caller's receive itself waits. */
	if (deadline == UINT64_MAX)
		return true;
	do
		n = poll(&fd, 1, poll_timeout(deadline));
	while (n < 0 ? errno == EINTR : !n && clock_monotonic() < deadline);
	return n;
}

/* --- Connecting */

/* Only root's daemon or this user's daemon gets the process's commands. Calls no geteuid() of libc,
 * because fakeroot and the like replace that function. */
static bool is_trusted(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	       (cred.uid == 0 || cred.uid == syscall(SYS_geteuid));
}

/* Limits how long connect(2) waits while the daemon's queue of connections is full: to `deadline`
 * (clock_monotonic()); UINT64_MAX: no limit. 0 or a negative errno value. */
static int limit_sending(int fd, uint64_t deadline)
{
	int ms = deadline == UINT64_MAX ? 0 : poll_timeout(deadline);
	struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	/* A timeout of 0 would mean no limit. */
	if (deadline != UINT64_MAX && !ms)
		limit.tv_usec = 1;
	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ? -errno : 0;
}

static int connect_once(int fd, const struct sockaddr_un *address, uint64_t deadline)
{
	int rc = limit_sending(fd, deadline);

	if (rc)
		return rc;
	return connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
}

/* Connects until `deadline`. 0, or a negative errno value; -ETIMEDOUT: the time is over. A signal
 * ends a connect(2) with a limit, also if its handler has SA_RESTART (signal(7)). */
static int connect_to(int fd, const struct sockaddr_un *address, uint64_t deadline)
{
	int rc;

	do
		rc = connect_once(fd, address, deadline);
	while (rc == -EINTR && clock_monotonic() < deadline);
	if (rc)
		return rc == -EAGAIN || rc == -EINTR ? -ETIMEDOUT : rc;
	return limit_sending(fd, UINT64_MAX);
}

/* Whether this is a forked child (perhaps forked by a signal handler): the daemon's packets are for
 * its parent. */
static bool in_forked_child(const struct rdmacm_file *file)
{
	return file->pid != getpid();
}

/* Makes the socket for the next connection; -1 and errno: an error. If no descriptor is free,
 * closes file->reserve and uses its number. Without a reserve, another thread could have taken the
 * number of the last socket since its close. */
static int make_socket(struct rdmacm_file *file)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 && errno == EMFILE && file->reserve >= 0) {
		rdmacm_close_fd(&file->reserve);
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	}
	return high_fd(fd);
}

/* Ends the socket's connection, and keeps the socket as file->reserve, for its number. Closes it if
 * the file has a reserve. In a forked child only closes it: the connection is the parent's. */
static void keep_reserve(struct rdmacm_file *file, int fd)
{
	if (file->reserve >= 0 || in_forked_child(file)) {
		close(fd);
		return;
	}
	shutdown(fd, SHUT_RDWR);
	file->reserve = fd;
}

/* Returns a socket that is connected to the daemon, or a negative errno value. -ENODEV: no daemon
 * runs; that is the error of open(2) where the kernel's module is not loaded. -EPERM: the daemon is
 * neither root's nor this user's. -ETIMEDOUT: no connection until `deadline`. */
static int connect_socket(struct rdmacm_file *file, uint64_t deadline)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CM_ATTACH_SOCKET_NAME,
		     run_dir_path()) >= (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = make_socket(file);
	if (fd < 0)
		return -errno;
	rc = connect_to(fd, &address, deadline);
	if (!rc && !is_trusted(fd))
		rc = -EPERM;
	if (!rc)
		return fd;
	keep_reserve(file, fd);
	return rc == -ENOENT || rc == -ECONNREFUSED ? -ENODEV : rc;
}

static int send_hello(const struct rdmacm_file *file)
{
	const struct cm_attach_hello hello = {
		.version = CM_ATTACH_VERSION, .token = file->token, .fetched = file->fetched};

	return send(file->socket, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello)
		       ? 0
		       : -ECONNRESET;
}

/*
 * Waits for a packet, and receives it with its descriptors. Returns its bytes, or -1. A claim
 * (file->token is not 0) closes the spare descriptors (rdmacm_reconnect.h) only when the packet is
 * there: before, other threads could take their numbers.
 */
static ssize_t receive_with_fds(const struct rdmacm_file *file, struct msghdr *msg)
{
	sigset_t signals;
	uint8_t byte;
	ssize_t n;

	do
		n = recv(file->socket, &byte, sizeof(byte), MSG_PEEK);
	while (n < 0 && errno == EINTR);
	if (n <= 0 || in_forked_child(file))
		return -1;
	rdmacm_lock_files(&signals);
	if (file->token)
		rdmacm_reconnect_close_spares();
	n = recvmsg(file->socket, msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	rdmacm_unlock_files(&signals);
	return n;
}

/* Receives the welcome, and sets fds to its descriptors; a descriptor that did not come is -1. 0,
 * the error by which the daemon refuses the file (w->status), or another negative errno value. */
static int receive_welcome(const struct rdmacm_file *file, struct cm_attach_welcome *w,
			   int fds[CM_ATTACH_FDS], uint64_t deadline)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(CM_ATTACH_FDS * sizeof(int))];
	} control;
	struct iovec iov = {w, sizeof(*w)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = CMSG_LEN(CM_ATTACH_FDS * sizeof(int))};
	struct cmsghdr *c;

	memset(fds, -1, CM_ATTACH_FDS * sizeof(int));
	if (!await_packet(file->socket, deadline))
		return -ETIMEDOUT;
	if (receive_with_fds(file, &msg) != sizeof(*w))
		return -ECONNRESET;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	for (int i = 0; i < CM_ATTACH_FDS; i++)
		fds[i] = high_fd(fds[i]);
	if (w->status)
		return w->status;
	if (fds[CM_ATTACH_FDS - 1] >= 0)
		return 0;
	return msg.msg_flags & MSG_CTRUNC ? -EMFILE : -ECONNRESET;
}

/* --- The event socket */

/* Closes the descriptors of the event socket. Neither ends the connection nor changes the epoll
 * set: a forked child shares both with its parent. */
static void close_events(struct rdmacm_file *file)
{
	rdmacm_close_fd(&file->event_reader);
	rdmacm_close_fd(&file->event_writer);
}

/*
 * Gives the socket of another daemon the number of the earlier daemon's socket, at which threads
 * may wait: these threads see the end of that socket, look again, and find the new one. Closes
 * `reader`. 0 or a negative errno value.
 */
static int replace_reader(struct rdmacm_file *file, int reader)
{
	int rc;

	(void)epoll_ctl(file->event_set, EPOLL_CTL_DEL, file->event_reader, NULL);
	shutdown(file->event_reader, SHUT_RDWR);
	rc = dup3(reader, file->event_reader, O_CLOEXEC) < 0 ? -errno : 0;
	close(reader);
	return rc;
}

/* Makes the welcome's sockets the event socket of the file and of its epoll set. Takes the
 * descriptors, also on failure. 0 or a negative errno value. */
static int open_events(struct rdmacm_file *file, const int fds[CM_ATTACH_FDS])
{
	struct epoll_event ev = {.events = EPOLLIN};
	int rc = 0;

	rdmacm_close_fd(&file->event_writer);
	file->n_to_skip = 0;
	file->event_writer = fds[CM_ATTACH_EVENT_WRITER];
	if (file->event_reader < 0)
		file->event_reader = fds[CM_ATTACH_EVENTS];
	else
		rc = replace_reader(file, fds[CM_ATTACH_EVENTS]);
	if (!rc && epoll_ctl(file->event_set, EPOLL_CTL_ADD, file->event_reader, &ev))
		rc = -errno;
	return rc;
}

/* Connects to the daemon: claims there the IDs of an earlier connection by file->token, or gets a
 * new token if that is 0. 0, or a negative errno value. */
static int greet_daemon(struct rdmacm_file *file, uint64_t deadline)
{
	int fds[CM_ATTACH_FDS] = {-1, -1}, rc = connect_socket(file, deadline);
	struct cm_attach_welcome w = {0};

	if (rc < 0)
		return rc;
	/* Set before the first wait: a child that a signal handler forks then closes the socket,
	 * which ends its wait. */
	file->socket = rc;
	rc = in_forked_child(file) ? -ECONNRESET : send_hello(file);
	if (!rc)
		rc = receive_welcome(file, &w, fds, deadline);
	if (!rc && in_forked_child(file))
		rc = -ECONNRESET;
	if (rc) {
		for (int i = 0; i < CM_ATTACH_FDS; i++)
			rdmacm_close_fd(&fds[i]);
	} else {
		rc = open_events(file, fds);
	}
	if (rc) {
		keep_reserve(file, file->socket);
		file->socket = -1;
	} else {
		rdmacm_close_fd(&file->reserve);
		file->token = w.token;
	}
	rdmacm_reconnect_keep_spares();
	return rc;
}

static void end_connection(struct rdmacm_file *file)
{
	if (file->socket < 0)
		return;
	rdmacm_reconnect_unwatch(file);
	keep_reserve(file, file->socket);
	file->socket = -1;
	file->n_due = 0;
}

int rdmacm_daemon_connect(struct rdmacm_file *file, uint64_t deadline)
{
	int rc;

	file->token = file->fetched = 0;
	file->lost_at = 0;
	file->daemon_gone = false;
	rc = greet_daemon(file, deadline);
	return rc ? rc : rdmacm_reconnect_add(file);
}

void rdmacm_daemon_disconnect(struct rdmacm_file *file)
{
	end_connection(file);
	rdmacm_close_fd(&file->reserve);
	rdmacm_reconnect_remove(file);
	close_events(file);
}

/* --- Commands */

/* Sends a command, and does not wait for the reply. again: an earlier daemon may have executed the
 * command before its end. False: the daemon has ended. */
static bool send_command(struct rdmacm_file *file, const struct rdmacm_request *request, bool again)
{
	struct cm_attach_command command = request->command;
	struct iovec iov[] = {{&command, sizeof(command)}, {(void *)request->in, command.in}};
	const struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	command.again = again;
	command.fetched = file->fetched;
	if (sendmsg(file->socket, &msg, MSG_NOSIGNAL) != (ssize_t)(sizeof(command) + command.in))
		return false;
	file->n_due++;
	return true;
}

/* --- Reconnecting */

/* Gives up the search for another daemon, for good. `rc`: why, -ETIME: none has come in time; else
 * the daemon refuses the file. Threads that wait for events see the end of their socket. */
static void give_up(struct rdmacm_file *file, int rc)
{
	log_warning("rdma_cm: %s",
		    rc == -ETIME ? "urxed ended and no other urxed has started in time"
				 : "the urxed that runs now does not know this process's IDs");
	file->daemon_gone = true;
	rdmacm_close_fd(&file->reserve);
	rdmacm_close_fd(&file->event_writer);
	pthread_cond_broadcast(&file->reconnected);
}

/* Tells the new daemon, by the first command, that the process has the welcome. Does not wait for
 * the reply, which receive_replies() drops later. */
static void confirm_claim(struct rdmacm_file *file)
{
	const struct rdmacm_request request = {.command = {.command = RDMA_USER_CM_CMD_GET_EVENT}};

	(void)send_command(file, &request, false);
}

bool rdmacm_daemon_is_reconnecting(const struct rdmacm_file *file)
{
	return file->opening % 2 && file->lost_at && file->socket < 0 && !file->daemon_gone;
}

void rdmacm_daemon_retry(struct rdmacm_file *file)
{
	int rc = -ETIME;

	if (!rdmacm_daemon_is_reconnecting(file))
		return;
	if (clock_monotonic() - file->lost_at < settings_reconnect_ns())
		rc = greet_daemon(file, UINT64_MAX);
	if (rc == -EPERM || rc == -EPROTO || rc == -ETIME) {
		give_up(file, rc);
		return;
	}
	if (rc)
		return;
	rdmacm_reconnect_watch(file);
	confirm_claim(file);
	log_info("rdma_cm: connected to another urxed");
	pthread_cond_broadcast(&file->reconnected);
}

void rdmacm_daemon_lost(struct rdmacm_file *file)
{
	end_connection(file);
	file->lost_at = clock_monotonic();
	rdmacm_daemon_retry(file);
}

void rdmacm_daemon_fork_child(struct rdmacm_file *file)
{
	rdmacm_close_fd(&file->socket);
	rdmacm_close_fd(&file->reserve);
	close_events(file);
	file->n_due = 0;
	file->daemon_gone = true;
}

/* --- Replies */

static int receive_reply(struct rdmacm_file *file, struct rdmacm_response *response)
{
	ssize_t n;

	do
		n = recv(file->socket, response, sizeof(*response), 0);
	while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(response->reply) ||
	    response->reply.out != n - (ssize_t)sizeof(response->reply))
		return -ECONNRESET;
	file->n_due--;
	return 0;
}

/*
 * Receives all replies that the daemon owes, since an earlier caller may not have waited for its
 * own. *response becomes the last one, which is the reply to the last command. 0; -ETIMEDOUT;
 * -ECONNRESET: the daemon has ended.
 */
static int receive_replies(struct rdmacm_file *file, struct rdmacm_response *response,
			   uint64_t deadline)
{
	int rc = 0;

	while (!rc && file->n_due)
		rc = await_packet(file->socket, deadline) ? receive_reply(file, response)
							  : -ETIMEDOUT;
	return rc;
}

bool rdmacm_daemon_notice_end(struct rdmacm_file *file)
{
	struct rdmacm_response late;
	uint8_t byte;
	int rc;

	if (file->socket < 0)
		return false;
	rc = receive_replies(file, &late, 0);
	if (rc)
		return rc == -ECONNRESET;
	/* The daemon owes no reply, so only the end of the connection can arrive. */
	return recv(file->socket, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) != -1;
}

/* --- Asking */

static void wait_for_retry(struct rdmacm_file *file)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += RECONNECT_INTERVAL_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&file->reconnected, &file->lock, &until);
}

/* While the file looks for another daemon, waits. 0: connected; -EIO, -EBADF as
 * rdmacm_daemon_ask(). */
static int await_daemon(struct rdmacm_file *file, const struct rdmacm_request *request)
{
	while (rdmacm_is_open(file, request) && rdmacm_daemon_is_reconnecting(file)) {
		wait_for_retry(file);
		if (rdmacm_is_open(file, request))
			rdmacm_daemon_retry(file);
	}
	if (!rdmacm_is_open(file, request))
		return -EBADF;
	return file->daemon_gone ? -EIO : 0;
}

/* Waits without limit, as a command to the kernel does. False: the daemon has ended. */
static bool exchange_packets(struct rdmacm_file *file, const struct rdmacm_request *request,
			     bool again, struct rdmacm_response *response)
{
	return send_command(file, request, again) && !receive_replies(file, response, UINT64_MAX);
}

int rdmacm_daemon_ask(struct rdmacm_file *file, const struct rdmacm_request *request,
		      struct rdmacm_response *response)
{
	bool again = false;
	int rc;

	while (!(rc = await_daemon(file, request)) &&
	       !exchange_packets(file, request, again, response)) {
		rdmacm_daemon_lost(file);
		again = true;
	}
	return rc;
}

int rdmacm_daemon_try(struct rdmacm_file *file, const struct rdmacm_request *request,
		      struct rdmacm_response *response, uint64_t deadline)
{
	int rc = 0;

	if (file->socket < 0)
		return -EAGAIN;
	/*
	 * A thaw is sent even if the daemon still owes the reply to an earlier command, as to the
	 * freezing that the thaw ends. Any other command is sent only after all replies. So only a
	 * thaw can wait behind another command, and the socket has room for it.
	 */
	if (request->command.command != CM_ATTACH_THAW || file->n_due == DUE_MAX)
		rc = receive_replies(file, response, deadline);
	if (!rc)
		rc = send_command(file, request, false) ? receive_replies(file, response, deadline)
							: -ECONNRESET;
	if (rc != -ECONNRESET)
		return rc;
	/*
	 * The reconnecting thread looks for another daemon. The caller may hold adapter_open_lock,
	 * which the engine thread needs before that daemon welcomes this process.
	 */
	shutdown(file->socket, SHUT_RDWR);
	return -EAGAIN;
}
