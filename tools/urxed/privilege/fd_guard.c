/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/fd_guard.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/peer_socket.h>

#include "common/clock.h"
#include "common/epoll_readable.h"
#include "common/log.h"
#include "common/unix_packet.h"
#include "urxed/privilege/fd_guard_process.h"
#include "urxed/privilege/helper.h"

/* Least time between two starts of the helper. */
#define RESTART_NS NS_PER_SEC

/* One static object, because many of the daemon's files close sockets of programs. */
static struct {
	struct helper helper;
	int epoll_fd;     /* the set watches the helper's socket */
	uint64_t started; /* time of the helper's last start, ns */
	uint64_t count;
	struct log_ratelimit log;
	/*
	 * Sockets of which the helper has no copy yet, because its queue was full or it had ended.
	 */
	struct fd_guard_kept {
		struct fd_guard_request request;
		int socket;
	} * kept;
	uint32_t n_kept;
	bool closed_unsent; /* FD_GUARD_CLOSED is still to be sent: the helper's queue was full */
} guard = {.helper.socket = -1, .epoll_fd = -1};

/* --- The helper's life */

static int start_helper(void)
{
	int rc;

	if (guard.epoll_fd < 0)
		guard.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (guard.epoll_fd < 0)
		return -errno;
	guard.started = now_ns();
	rc = helper_start(&guard.helper, "urxed-fds", 0, fd_guard_process);
	if (rc)
		return rc;
	return epoll_add_readable(guard.epoll_fd, guard.helper.socket);
}

int fd_guard_start(void)
{
	return guard.helper.socket < 0 ? start_helper() : 0;
}

static int restart_helper(void)
{
	int rc;

	if (guard.started && now_ns() - guard.started < RESTART_NS)
		return -EAGAIN;
	rc = start_helper();
	if (rc)
		log_ratelimited(&guard.log, now_ns(),
				"cannot start the process that closes descriptors: %s",
				strerror(-rc));
	return rc;
}

static void end_helper(void)
{
	if (guard.helper.socket >= 0)
		log_line("the process that closes descriptors of programs has ended");
	helper_stop(&guard.helper);
}

static int send_request(const struct fd_guard_request *request, int fd)
{
	if (guard.helper.socket < 0 || helper_ended(&guard.helper))
		return -EPIPE;
	return unix_packet_send(guard.helper.socket, request, sizeof(*request), &fd, 1);
}

/*
 * Passes a copy of a descriptor to the helper; starts another helper if the helper has ended.
 * Returns 0; -EAGAIN: the last start was less than RESTART_NS ago, or the helper's queue is full;
 * or another negative errno value.
 */
static int ask_helper(const struct fd_guard_request *request, int fd)
{
	int rc = send_request(request, fd);

	if (rc != -EPIPE && rc != -ECONNRESET)
		return rc;
	end_helper();
	rc = restart_helper();
	return rc ? rc : send_request(request, fd);
}

/* --- Closing */

static void keep_socket(const struct fd_guard_request *request, int socket)
{
	struct fd_guard_kept *more = realloc(guard.kept, (guard.n_kept + 1) * sizeof(*guard.kept));

	/* Without memory, leaves the socket open for ever: that costs a descriptor, but delays no
	 * process. */
	if (!more)
		return;
	guard.kept = more;
	guard.kept[guard.n_kept++] = (struct fd_guard_kept){*request, socket};
}

/* Tells the helper that the daemon has closed its own copies of all sockets that it passed to the
 * helper. */
static void send_closed(void)
{
	const struct fd_guard_request request = {.job = FD_GUARD_CLOSED};
	int rc = -EPIPE;

	if (guard.helper.socket >= 0)
		rc = unix_packet_send(guard.helper.socket, &request, sizeof(request), NULL, 0);
	/* A helper that has ended cannot use the message, and its successor starts without jobs. */
	guard.closed_unsent = rc && rc != -EPIPE && rc != -ECONNRESET;
}

static void pass_kept(void)
{
	if (guard.closed_unsent)
		send_closed();
	while (guard.n_kept) {
		const struct fd_guard_kept *last = &guard.kept[guard.n_kept - 1];

		if (ask_helper(&last->request, last->socket))
			return;
		/* The message in the helper's queue holds a copy, so this close cannot wait. */
		close(last->socket);
		send_closed();
		guard.n_kept--;
	}
}

/* Returns the uid of the process at the other end of the socket. */
static uint32_t peer_user(int socket)
{
	struct ucred peer;

	unix_packet_peer(socket, &peer);
	return peer.uid;
}

/* Passes the socket to the helper, which closes it, so that the daemon never waits. */
static void pass_socket(int socket)
{
	const struct fd_guard_request request = {.job = FD_GUARD_CLOSE, .user = peer_user(socket)};

	pass_kept();
	if (guard.n_kept || ask_helper(&request, socket)) {
		keep_socket(&request, socket);
		return;
	}
	close(socket);
	send_closed();
}

void fd_guard_close(int socket)
{
	if (vnic_peer_shut(socket)) {
		close(socket);
		return;
	}
	guard.count++;
	log_ratelimited(&guard.log, now_ns(),
			"a process of user %u has sent descriptors, which urxed does not accept",
			peer_user(socket));
	pass_socket(socket);
}

void fd_guard_close_listener(int socket)
{
	int fd;

	/* After shutdown(2) the kernel accepts no further connection. */
	shutdown(socket, SHUT_RDWR);
	while ((fd = accept4(socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0 ||
	       errno == EINTR || errno == ECONNABORTED)
		if (fd >= 0)
			fd_guard_close(fd);
	/* EINVAL or EAGAIN: the backlog is empty, so close(2) cannot wait. */
	if (errno == EINVAL || errno == EAGAIN)
		close(socket);
	else
		pass_socket(socket);
}

void fd_guard_stop(void)
{
	pass_kept();
	helper_stop(&guard.helper);
	if (guard.epoll_fd >= 0)
		close(guard.epoll_fd);
	guard.epoll_fd = -1;
	guard.started = 0;
}

/* --- Inboxes */

int fd_guard_check_inbox(uint64_t token, uid_t user)
{
	const struct fd_guard_request request = {
		.job = FD_GUARD_CHECK, .user = user, .token = token};
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	rc = ask_helper(&request, ends[1]);
	/*
	 * No program has ends[0] yet, so the queue of ends[1] is empty, and close(2) cannot wait.
	 */
	close(ends[1]);
	if (!rc)
		return ends[0];
	close(ends[0]);
	return rc;
}

int fd_guard_fd(void)
{
	return guard.epoll_fd;
}

/* Returns false if the daemon had no free descriptor numbers for all descriptors of the message.
 * The kernel then installs as many as it can, and this function closes those. */
static bool has_all(const int fds[VNIC_INBOX_FDS])
{
	if (fds[VNIC_INBOX_FDS - 1] >= 0)
		return true;
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	log_ratelimited(&guard.log, now_ns(),
			"no descriptors are left for the inbox of a program: frames to it take the "
			"switch");
	return false;
}

bool fd_guard_next_inbox(uint64_t *token, int fds[VNIC_INBOX_FDS])
{
	struct fd_guard_result result;
	int got;

	pass_kept();
	if (guard.helper.socket < 0)
		return false;
	got = unix_packet_recv_fds(guard.helper.socket, &result, sizeof(result), fds,
				   VNIC_INBOX_FDS);
	if (got == 0) {
		end_helper();
		(void)restart_helper();
	}
	if (got != sizeof(result) || !has_all(fds))
		return false;
	*token = result.token;
	return true;
}

uint64_t fd_guard_count(void)
{
	return guard.count;
}
