/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/control.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/peer_socket.h>

#include "common/rundir.h"
#include "common/unix_packet.h"
#include "urxed/privilege/fd_guard.h"

#define BACKLOG 16
#define EVENTS  8

static int watch_control_fd(const struct control *c, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Another process may have to close the socket, and keep it: epoll would report it for ever. */
static void close_peer(const struct control *c, int fd)
{
	epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	fd_guard_close(fd);
}

int control_open(struct control *c, const char *run_dir, const struct control_ops *ops, void *ctx)
{
	uint32_t i;
	int rc;

	*c = (struct control){.ops = ops, .ctx = ctx};
	for (i = 0; i < CONTROL_PEERS; i++)
		c->peers[i] = -1;
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll_fd < 0)
		return -errno;
	rc = c->listen_fd = unix_packet_listen(run_dir, CONTROL_SOCKET_NAME, BACKLOG);
	if (rc >= 0)
		rc = watch_control_fd(c, c->listen_fd);
	if (rc < 0)
		control_close(c, run_dir);
	return rc;
}

void control_close(struct control *c, const char *run_dir)
{
	uint32_t i;

	if (c->epoll_fd < 0)
		return;
	for (i = 0; i < CONTROL_PEERS; i++)
		if (c->peers[i] >= 0)
			close_peer(c, c->peers[i]);
	if (c->listen_fd >= 0) {
		rundir_remove(run_dir, CONTROL_SOCKET_NAME);
		fd_guard_close_listener(c->listen_fd);
	}
	close(c->epoll_fd);
	c->epoll_fd = -1;
}

static void accept_connection(struct control *c)
{
	int fd = accept4(c->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int *slot = &c->peers[c->next % CONTROL_PEERS];

	if (fd < 0)
		return;
	if (!unix_packet_peer_is_trusted(fd) || watch_control_fd(c, fd)) {
		fd_guard_close(fd);
		return;
	}
	/* A client that connects and sends no request must not keep other clients out. */
	if (*slot >= 0)
		close_peer(c, *slot);
	*slot = fd;
	c->next++;
}

/*
 * The client receives the processes' answers on ends[0], which reports each sender's PID. It cannot
 * send on it, so the queue of ends[1] stays empty.
 */
static int make_answer_sockets(int ends[2])
{
	const int on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	shutdown(ends[1], SHUT_RD);
	return setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ? -errno : 0;
}

/* Sets fds[0] to the report and, with `ask`, fds[1] to the socket for answers. */
static int open_report_fds(struct control *c, bool ask, int fds[UNIX_PACKET_FDS])
{
	int ends[2] = {-1, -1}, rc = ask ? make_answer_sockets(ends) : 0;

	fds[1] = ends[0];
	fds[0] = rc ? rc : c->ops->show(c->ctx, ends[1]);
	if (ends[1] >= 0)
		close(ends[1]);
	return fds[0] < 0 ? fds[0] : 0;
}

static void forget_peer(struct control *c, int fd)
{
	uint32_t i;

	for (i = 0; i < CONTROL_PEERS; i++)
		if (c->peers[i] == fd)
			c->peers[i] = -1;
}

/* Sets fds to the descriptors of the reply. *keep: the connection stays open. */
static int handle_request(struct control *c, int fd, struct control_request *request, int len,
			  int fds[UNIX_PACKET_FDS], bool *keep)
{
	if (len != sizeof(*request) || request->version != CONTROL_VERSION)
		return -EPROTO;
	if (request->type == CONTROL_SHOW)
		return open_report_fds(c, request->ask, fds);
	if (request->type != CONTROL_CAPTURE || request->port[CONTROL_PORT - 1])
		return -EPROTO;
	fds[0] = c->ops->capture(c->ctx, fd, request->port);
	*keep = fds[0] >= 0;
	return *keep ? 0 : fds[0];
}

/* True: the connection stays open. */
static bool answer_peer(struct control *c, int fd)
{
	struct control_reply reply = {.version = CONTROL_VERSION};
	struct control_request request;
	int n = vnic_peer_recv(fd, &request, sizeof(request));
	int fds[UNIX_PACKET_FDS] = {-1, -1};
	bool keep = false;

	if (n <= 0 && n != -EPROTO)
		return false;
	reply.status = handle_request(c, fd, &request, n, fds, &keep);
	/* The first packet always fits the socket, so an error means that the peer is gone. */
	unix_packet_send(fd, &reply, sizeof(reply), fds,
			 reply.status ? 0
			 : fds[1] < 0 ? 1
				      : UNIX_PACKET_FDS);
	if (fds[0] >= 0)
		close(fds[0]);
	/* Processes may have answered already, by descriptors of any kind. */
	if (fds[1] >= 0)
		fd_guard_release(fds[1]);
	return keep;
}

void control_event(struct control *c)
{
	struct epoll_event events[EVENTS];
	int i, n = epoll_wait(c->epoll_fd, events, EVENTS, 0);
	bool connection = false;

	for (i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == c->listen_fd) {
			connection = true;
		} else if (!c->ops->capture_end(c->ctx, fd)) {
			bool keep = answer_peer(c, fd);

			forget_peer(c, fd);
			if (!keep)
				close_peer(c, fd);
		} else {
			close_peer(c, fd);
		}
	}
	/* Last: it may close a peer that is among these events. */
	if (connection)
		accept_connection(c);
}
