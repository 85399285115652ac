/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/control.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/peer_socket.h>

#include "common/epoll_readable.h"
#include "common/rundir.h"
#include "common/unix_packet.h"
#include "urxed/privilege/fd_guard.h"

#define BACKLOG 16
#define EVENTS  8

/* Takes a socket out of the epoll set and closes it. fd_guard's helper process may hold a copy for
 * some time, during which epoll would report the socket again and again. */
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
		c->peers[i].fd = -1;
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll_fd < 0)
		return -errno;
	rc = c->listen_fd = unix_packet_listen(run_dir, CONTROL_SOCKET_NAME, BACKLOG);
	if (rc >= 0)
		rc = epoll_add_readable(c->epoll_fd, c->listen_fd);
	c->pause = (struct accept_pause){.epoll_fd = c->epoll_fd,
					 .fd = c->listen_fd,
					 .watch = {.events = EPOLLIN, .data.fd = c->listen_fd}};
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
		if (c->peers[i].fd >= 0)
			close_peer(c, c->peers[i].fd);
	if (c->listen_fd >= 0) {
		rundir_remove(run_dir, CONTROL_SOCKET_NAME);
		fd_guard_close_listener(c->listen_fd);
	}
	close(c->epoll_fd);
	c->epoll_fd = -1;
}

/* Returns a free place; NULL: there is none. */
static struct control_peer *find_place(struct control *c)
{
	for (struct control_peer *p = c->peers; p < c->peers + CONTROL_PEERS; p++)
		if (p->fd < 0)
			return p;
	return NULL;
}

static void accept_connection(struct control *c, uint64_t now)
{
	struct control_peer *place = find_place(c);
	int fd;

	if (!place) { /* the first place that becomes free ends the pause */
		accept_pause_until(&c->pause, now + CONTROL_SILENT_NS);
		return;
	}
	fd = accept4(c->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		accept_pause_begin(&c->pause, now, errno);
		return;
	}
	if (!unix_packet_peer_is_trusted(fd) || epoll_add_readable(c->epoll_fd, fd)) {
		fd_guard_close(fd);
		return;
	}
	*place = (struct control_peer){fd, now};
}

static void forget_peer(struct control *c, int fd)
{
	uint32_t i;

	for (i = 0; i < CONTROL_PEERS; i++)
		if (c->peers[i].fd == fd)
			c->peers[i].fd = -1;
	accept_pause_end(&c->pause);
}

/* Executes a request. Returns the descriptor for the reply, or a negative errno value for the
 * reply's status. Sets *keep if the connection has to stay open for a capture. */
static int handle_request(struct control *c, int fd, struct control_request *request, int len,
			  bool *keep)
{
	int memory;

	if (len != sizeof(*request) || request->version != CONTROL_VERSION)
		return -EPROTO;
	if (request->type == CONTROL_SHOW)
		return c->ops->show(c->ctx, request->ask ? fd : -1);
	if (request->type != CONTROL_CAPTURE || request->port[CONTROL_PORT - 1])
		return -EPROTO;
	memory = c->ops->capture(c->ctx, fd, request->port, request->record);
	*keep = memory >= 0;
	return memory;
}

/*
 * Sends the reply with the descriptor `memory`, and closes `memory`. If `memory` is a negative
 * errno value, the reply has this status and no descriptor. Ignores a failure of the send, which
 * means that the peer is gone.
 */
static void send_reply(int fd, int memory)
{
	const struct control_reply reply = {.version = CONTROL_VERSION,
					    .status = memory < 0 ? memory : 0};

	unix_packet_send(fd, &reply, sizeof(reply), &memory, memory >= 0);
	if (memory >= 0)
		close(memory);
}

/* Receives and answers a request. Returns true if the connection has to stay open for a capture. */
static bool answer_peer(struct control *c, int fd)
{
	struct control_request request;
	int n = vnic_peer_recv(fd, &request, sizeof(request));
	bool keep = false;

	if (n <= 0 && n != -EPROTO)
		return false;
	send_reply(fd, handle_request(c, fd, &request, n, &keep));
	if (keep && request.record)
		c->ops->record(c->ctx, fd);
	return keep;
}

void control_event(struct control *c, uint64_t now)
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
	if (connection)
		accept_connection(c, now);
}

/* Whether nothing has come from the client that control_event would read. */
static bool is_silent(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Closes the clients that have been silent for too long. Returns when the next one will have been,
 * ns; UINT64_MAX = there is none. */
static uint64_t close_silent_peers(struct control *c, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (struct control_peer *p = c->peers; p < c->peers + CONTROL_PEERS; p++) {
		const uint64_t end = p->since + CONTROL_SILENT_NS;
		const int fd = p->fd;

		if (fd < 0)
			continue;
		if (now < end) {
			next = end < next ? end : next;
		} else if (is_silent(fd)) {
			forget_peer(c, fd);
			close_peer(c, fd);
		}
	}
	return next;
}

uint64_t control_tick(struct control *c, uint64_t now)
{
	const uint64_t silent = close_silent_peers(c, now),
		       pause = accept_pause_tick(&c->pause, now);

	return silent < pause ? silent : pause;
}
