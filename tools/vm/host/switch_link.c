/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/switch_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/epoll_readable.h"
#include "common/log.h"
#include "common/unix_packet.h"
#include "urxed/uplink/vm_port_protocol.h"

#define RETRY_NS (100 * NS_PER_MS)
/* Pause after a daemon has not answered: each wait for an answer delays the guest's accesses to
 * registers. */
#define RETRY_SILENT_NS (10 * NS_PER_SEC)
#define ANSWER_MS       2000 /* without an answer in this time the daemon counts as absent */
#define FRAME_MAX       (VM_PORT_MTU + 14u + 4u)
#define LINE            64u /* buffers begin on cache lines */

static void forget(struct switch_link *link)
{
	link->socket = -1;
	link->fds = (struct netdev_shm_fds){-1, -1, -1};
	link->peer = NULL;
	link->staged = link->sent = 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void disconnect(struct switch_link *link)
{
	/* close(2) alone would not end the watch if the daemon has a copy of the pipe's end. */
	epoll_remove(link->epoll_fd, link->fds.kick);
	epoll_remove(link->epoll_fd, link->socket);
	if (link->peer)
		netdev_shm_detach(link->peer);
	close_fd(link->fds.memory);
	close_fd(link->fds.wake);
	close_fd(link->fds.kick);
	close_fd(link->socket);
	forget(link);
}

/* --- Connecting */

static int connect_socket(struct switch_link *link)
{
	struct sockaddr_un address;
	int rc = unix_packet_address(&address, link->run_dir, VM_PORT_SOCKET_NAME);

	if (rc)
		return rc;
	link->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (link->socket < 0 ||
	    connect(link->socket, (const struct sockaddr *)&address, sizeof(address)))
		return -errno;
	return unix_packet_peer_is_trusted(link->socket) ? 0 : -EPERM;
}

/*
 * Receives a reply with n descriptors. Returns the daemon's error, if the reply has one;
 * -ETIMEDOUT: no reply for ANSWER_MS; -ECONNREFUSED: the daemon has closed the connection; -EPROTO:
 * a malformed reply.
 */
static int receive_reply(struct switch_link *link, int *fds, uint32_t n)
{
	struct pollfd ready = {link->socket, POLLIN, 0};
	struct unix_packet_extras extras;
	struct vm_port_reply reply;
	int len;

	if (poll(&ready, 1, ANSWER_MS) != 1)
		return -ETIMEDOUT;
	len = unix_packet_recv(link->socket, &reply, sizeof(reply), &extras);
	if (len == sizeof(reply) && reply.version == VM_PORT_VERSION && !reply.status &&
	    extras.fds[n - 1] >= 0) {
		memcpy(fds, extras.fds, n * sizeof(*fds));
		link->mtu = reply.mtu;
		return 0;
	}
	unix_packet_close_fds(&extras);
	if (len == sizeof(reply) && reply.status)
		return reply.status;
	return len <= 0 && len != -EPROTO ? -ECONNREFUSED : -EPROTO;
}

static int ask_for_port(struct switch_link *link)
{
	struct vm_port_request request = {.version = VM_PORT_VERSION};
	int fds[3] = {-1, -1, -1}, rc;

	snprintf(request.name, sizeof(request.name), "%s", link->name);
	memcpy(request.mac, link->mac, sizeof(request.mac));
	/* Ignores an error: a daemon that refuses the user answers without a request. */
	unix_packet_send(link->socket, &request, sizeof(request), NULL, 0);
	rc = receive_reply(link, fds, 2) ?: receive_reply(link, fds + 2, 1);
	link->fds = (struct netdev_shm_fds){fds[0], fds[1], fds[2]};
	return rc ?: netdev_shm_attach(&link->fds, &link->peer);
}

static int lay_out_buffers(struct switch_link *link)
{
	size_t size;

	link->buffers = netdev_shm_buffers(link->peer, &size);
	link->stride = (FRAME_MAX + LINE - 1) / LINE * LINE;
	return (size_t)link->stride * NETDEV_SHM_DEPTH <= size ? 0 : -EPROTO;
}

static int join(struct switch_link *link)
{
	int rc = connect_socket(link) ?: ask_for_port(link) ?: lay_out_buffers(link);

	if (!rc)
		rc = epoll_add_readable(link->epoll_fd, link->socket)
			     ?: epoll_add_readable(link->epoll_fd, link->fds.kick);

	if (rc)
		disconnect(link);
	else
		netdev_shm_set_ready(link->peer);
	return rc;
}

void switch_link_clear(struct switch_link *link)
{
	*link = (struct switch_link){.epoll_fd = -1};
	forget(link);
}

static int init_link(struct switch_link *link, const char *run_dir, const char *name,
		     const uint8_t mac[6])
{
	switch_link_clear(link);
	link->run_dir = run_dir;
	link->name = name;
	memcpy(link->mac, mac, sizeof(link->mac));
	link->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return link->epoll_fd < 0 ? -errno : 0;
}

int switch_link_open(struct switch_link *link, const char *run_dir, const char *name,
		     const uint8_t mac[6])
{
	return init_link(link, run_dir, name, mac) ?: join(link);
}

int switch_link_open_away(struct switch_link *link, const char *run_dir, const char *name,
			  const uint8_t mac[6], uint32_t mtu)
{
	const int rc = init_link(link, run_dir, name, mac);

	link->away = true;
	link->mtu = mtu;
	return rc;
}

int switch_link_adopt(struct switch_link *link, const char *run_dir, const char *name,
		      const uint8_t mac[6], struct switch_link_handover *h)
{
	int rc = init_link(link, run_dir, name, mac);

	link->mtu = h->mtu;
	link->sent = h->sent;
	link->away = !h->joined;
	if (rc || !h->joined)
		return rc;
	link->socket = h->socket;
	link->fds = h->fds;
	h->socket = -1;
	h->fds = (struct netdev_shm_fds){-1, -1, -1};
	rc = netdev_shm_attach(&link->fds, &link->peer) ?: lay_out_buffers(link)
							?: epoll_add_readable(link->epoll_fd, link->socket)
							?: epoll_add_readable(link->epoll_fd, link->fds.kick);
	if (rc)
		disconnect(link);
	return rc;
}

struct switch_link_handover switch_link_hand_over(struct switch_link *link)
{
	if (link->peer)
		switch_link_flush(link);
	return (struct switch_link_handover){.joined = link->peer,
					     .mtu = link->mtu,
					     .sent = link->sent,
					     .socket = link->socket,
					     .fds = link->fds};
}

void switch_link_leave(struct switch_link *link)
{
	link->away = true;
	if (link->peer)
		switch_link_flush(link);
	disconnect(link);
}

void switch_link_close(struct switch_link *link)
{
	disconnect(link);
	close_fd(link->epoll_fd);
}

/* Stores the result of an attempt to get a port. Logs a refusal, once, but not a missing daemon. */
static void note_error(struct switch_link *link, int error)
{
	const bool away = !error || error == -ENOENT || error == -ECONNREFUSED;

	if (!away && error != link->error)
		log_line("urxed in %s gives no port: %s; trying again", link->run_dir,
			 strerror(-error));
	link->error = error;
}

static void try_join(struct switch_link *link, uint64_t now)
{
	const struct daemon_file file = daemon_file_look(link->run_dir);

	note_error(link, join(link));
	if (link->error == -ETIMEDOUT)
		link->pause = (struct daemon_pause){now + RETRY_SILENT_NS, file};
}

uint64_t switch_link_tick(struct switch_link *link, uint64_t now, bool *joined)
{
	*joined = false;
	if (link->peer || link->away)
		return UINT64_MAX;
	if (now < link->retry_at)
		return link->retry_at;
	link->retry_at = now + RETRY_NS;
	if (!daemon_pause_lasts(&link->pause, link->run_dir, now))
		try_join(link, now);
	*joined = link->peer;
	return link->peer ? UINT64_MAX : link->retry_at;
}

int switch_link_return(struct switch_link *link)
{
	link->away = false;
	if (link->peer)
		return 0;
	try_join(link, now_ns());
	return link->error;
}

bool switch_link_event(struct switch_link *link)
{
	char byte;
	ssize_t n;

	if (!link->peer)
		return true;
	n = recv(link->socket, &byte, sizeof(byte), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && netdev_shm_reset(link->peer))
		return true;
	disconnect(link);
	return false;
}

/* --- Frames */

uint32_t switch_link_room(const struct switch_link *link)
{
	/* Without a daemon frames are dropped. */
	return link->peer ? netdev_shm_room(link->peer) - link->staged : UINT32_MAX;
}

uint8_t *switch_link_buffer(const struct switch_link *link, uint32_t number)
{
	const size_t slot = (link->sent + number) % NETDEV_SHM_DEPTH;

	return link->peer ? link->buffers + slot * link->stride : NULL;
}

void switch_link_send(struct switch_link *link, const uint8_t *data, uint32_t len)
{
	uint8_t *buffer = switch_link_buffer(link, 0);

	if (!buffer || len > FRAME_MAX) {
		link->dropped++;
		return;
	}
	if (data != buffer)
		memcpy(buffer, data, len);
	link->frames[link->staged++] = (struct netdev_frame){buffer, len, len, 0};
	link->sent++;
	if (link->staged == SWITCH_LINK_BURST)
		switch_link_flush(link);
}

void switch_link_flush(struct switch_link *link)
{
	if (link->staged)
		netdev_shm_send(link->peer, link->frames, link->staged);
	link->staged = 0;
}

uint32_t switch_link_receive(struct switch_link *link, struct netdev_frame *frames, uint32_t n)
{
	return link->peer ? netdev_shm_receive(link->peer, frames, n) : 0;
}

void switch_link_release(struct switch_link *link, uint32_t n)
{
	if (link->peer)
		netdev_shm_release(link->peer, n);
}

bool switch_link_arm(struct switch_link *link)
{
	return link->peer && netdev_shm_arm(link->peer);
}
