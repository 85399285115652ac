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

/* One object for the daemon, because many of its files close sockets of programs. */
static struct {
	struct helper helper;
	int epoll_fd;     /* has the helper's socket */
	uint64_t started; /* when the helper was started */
	uint64_t count;
	struct log_ratelimit log;
	/* Sockets that the helper had no room for. */
	struct fd_guard_kept {
		struct fd_guard_request request;
		int socket;
	} * kept;
	uint32_t n_kept;
	bool closed_unsent; /* the helper had no room for FD_GUARD_CLOSED */
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

/* Passes a copy of a descriptor to the helper; starts another helper if it has ended. 0; -EAGAIN:
 * the last start was less than RESTART_NS ago, or the queue is full; or another errno value. */
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

	/* Without memory the socket stays open for ever, which delays no process. */
	if (!more)
		return;
	guard.kept = more;
	guard.kept[guard.n_kept++] = (struct fd_guard_kept){*request, socket};
}

/* Tells the helper that this process has closed its copies of all sockets that the helper has. */
static void send_closed(void)
{
	const struct fd_guard_request request = {.job = FD_GUARD_CLOSED};
	int rc = -EPIPE;

	if (guard.helper.socket >= 0)
		rc = unix_packet_send(guard.helper.socket, &request, sizeof(request), NULL, 0);
	/* A helper that has ended had no job left. */
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
		/* The helper's queue has a copy. */
		close(last->socket);
		send_closed();
		guard.n_kept--;
	}
}

/* The user of the process at the other end. */
static uint32_t peer_user(int socket)
{
	struct ucred peer;

	unix_packet_peer(socket, &peer);
	return peer.uid;
}

/* Makes the helper close the socket, so that this call never waits. */
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

	/* No connection comes after this. */
	shutdown(socket, SHUT_RDWR);
	while ((fd = accept4(socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0 ||
	       errno == EINTR || errno == ECONNABORTED)
		if (fd >= 0)
			fd_guard_close(fd);
	/* EINVAL or EAGAIN: no connection is left. */
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
	/* No process has the other end yet, so the queue of this one is empty. */
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

/*
 * False: the daemon had no numbers for all descriptors. The kernel installs as many as it can; this
 * function closes those.
 */
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
