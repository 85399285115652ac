/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The port for QEMU's -netdev dgram: one frame per datagram, on UNIX sockets. The specification
 * names the peer's path, or the first sender becomes the peer, until no socket is at its path any
 * more. The port checks the path when it sends, and when another sender's datagram comes: a virtual
 * machine that returns from another host has a new path, and urxed may have sent it nothing
 * meanwhile.
 */
#include "qemu/qemu.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "unix_path.h"

struct dgram_port {
	struct qemu_port qemu;
	bool fixed;              /* the specification named the peer */
	bool asked;              /* has_peer_ended() has looked at the path in this burst */
	struct sockaddr_un peer; /* AF_UNSPEC: unknown */
	struct sockaddr_un from[QEMU_BURST];
	uint8_t *buffers; /* QEMU_BURST of frame_max bytes */
};

static struct dgram_port *to_dgram(struct netdev *port)
{
	return (struct dgram_port *)port;
}

/* --- Receiving */

/* Whether no socket is at the peer's path any more. False for a peer that the specification names.
 * Only the first call in each burst looks, so that another sender costs few system calls; the later
 * ones return false. */
static bool has_peer_ended(struct dgram_port *port)
{
	if (port->fixed || port->asked)
		return false;
	port->asked = true;
	return unix_path_is_abandoned(&port->peer, SOCK_DGRAM);
}

/* Whether the sender of a datagram is the peer. If the port has no peer, or the peer has ended, the
 * sender becomes the peer. A sender without a path cannot receive frames, so it is no peer. */
static bool is_peer(struct dgram_port *port, struct sockaddr_un *from, socklen_t length)
{
	if (length <= offsetof(struct sockaddr_un, sun_path) || !from->sun_path[0])
		return false;
	/* Linux terminates a path with a zero byte only where one fits. */
	from->sun_path[sizeof(from->sun_path) - 1] = '\0';
	if (port->peer.sun_family && strcmp(port->peer.sun_path, from->sun_path) &&
	    has_peer_ended(port))
		port->peer.sun_family = 0;
	if (!port->peer.sun_family) {
		port->peer = *from;
		port->qemu.counters[NETDEV_PEERS]++;
	}
	return !strcmp(port->peer.sun_path, from->sun_path);
}

static bool count_datagram(struct dgram_port *port, struct mmsghdr *message)
{
	enum netdev_counter counter;

	if (message->msg_hdr.msg_flags & MSG_TRUNC)
		counter = NETDEV_RX_TOO_LONG;
	else if (!message->msg_len)
		counter = NETDEV_RX_BAD;
	else if (!is_peer(port, message->msg_hdr.msg_name, message->msg_hdr.msg_namelen))
		counter = NETDEV_RX_NOT_PEER;
	else
		counter = NETDEV_RX_FRAMES;
	port->qemu.counters[counter]++;
	if (counter != NETDEV_RX_FRAMES)
		return false;
	port->qemu.counters[NETDEV_RX_BYTES] += message->msg_len;
	return true;
}

/* Returns the number of received datagrams; adds that of valid frames to *count. */
static int receive_burst(struct dgram_port *port, struct netdev_frame *frames, uint32_t n,
			 uint32_t *count)
{
	struct mmsghdr messages[QEMU_BURST];
	struct iovec parts[QEMU_BURST];
	int i, got;

	n = n < QEMU_BURST ? n : QEMU_BURST;
	for (i = 0; i < (int)n; i++) {
		parts[i] = (struct iovec){port->buffers + (size_t)i * port->qemu.frame_max,
					  port->qemu.frame_max};
		messages[i].msg_hdr = (struct msghdr){.msg_name = &port->from[i],
						      .msg_namelen = sizeof(port->from[i]),
						      .msg_iov = &parts[i],
						      .msg_iovlen = 1};
	}
	port->asked = false;
	got = recvmmsg(port->qemu.socket, messages, n, MSG_DONTWAIT, NULL);
	for (i = 0; i < got; i++)
		if (count_datagram(port, &messages[i]))
			frames[(*count)++] = (struct netdev_frame){
				parts[i].iov_base, messages[i].msg_len, messages[i].msg_len, 0};
	return got;
}

static uint32_t dgram_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames,
			 uint32_t n)
{
	uint32_t count = 0, rounds = QEMU_ROUNDS;

	(void)now;
	while (!count && n && rounds-- && receive_burst(to_dgram(netdev), frames, n, &count) > 0)
		;
	return count;
}

/* --- Sending */

/* Sends up to QEMU_BURST frames; returns how many were sent or dropped. */
static uint32_t send_dgram_burst(struct dgram_port *port, const struct netdev_frame *frames,
				 uint32_t n)
{
	struct mmsghdr messages[QEMU_BURST];
	struct iovec parts[QEMU_BURST];
	int i, sent;

	for (i = 0; i < (int)n; i++) {
		parts[i] = (struct iovec){(void *)(uintptr_t)frames[i].data, frames[i].len};
		messages[i].msg_hdr = (struct msghdr){.msg_name = &port->peer,
						      .msg_namelen = sizeof(port->peer),
						      .msg_iov = &parts[i],
						      .msg_iovlen = 1};
	}
	sent = sendmmsg(port->qemu.socket, messages, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (i = 0; i < sent; i++)
		port->qemu.counters[NETDEV_TX_BYTES] += frames[i].len;
	if (sent > 0)
		port->qemu.counters[NETDEV_TX_FRAMES] += (uint32_t)sent;
	if (sent >= 0)
		return (uint32_t)sent;
	if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)
		return 0;
	/* No socket is at the path: the next sender becomes the peer. */
	if (!port->fixed)
		port->peer.sun_family = 0;
	port->qemu.counters[NETDEV_TX_NO_PEER] += n;
	return n;
}

static uint32_t dgram_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
			 uint32_t n)
{
	struct dgram_port *port = to_dgram(netdev);
	uint32_t done = 0;

	(void)now;
	while (done < n && port->peer.sun_family) {
		uint32_t count = qemu_count_fitting(&port->qemu, frames + done, n - done);
		uint32_t sent;

		if (!count) {
			port->qemu.counters[NETDEV_TX_TOO_LONG]++;
			done++;
			continue;
		}
		sent = send_dgram_burst(port, frames + done, count);
		done += sent;
		if (sent < count)
			break;
	}
	if (!port->peer.sun_family) {
		port->qemu.counters[NETDEV_TX_NO_PEER] += n - done;
		return n;
	}
	port->qemu.counters[NETDEV_TX_REFUSED] += n - done;
	return done;
}

/* --- Opening and closing */

static int dgram_wait_fd(struct netdev *netdev)
{
	return to_dgram(netdev)->qemu.socket;
}

static void dgram_close(struct netdev *netdev)
{
	struct dgram_port *port = to_dgram(netdev);

	qemu_unbind(&port->qemu);
	free(port->buffers);
	free(port);
}

static bool dgram_is_up(struct netdev *netdev)
{
	const struct sockaddr_un *peer = &to_dgram(netdev)->peer;

	return peer->sun_family && !unix_path_is_abandoned(peer, SOCK_DGRAM);
}

static const struct netdev_ops dgram_ops = {
	.rx = dgram_rx,
	.tx = dgram_tx,
	.wait_fd = dgram_wait_fd,
	.is_up = dgram_is_up,
	.mtu = qemu_mtu,
	.counters = qemu_counters,
	.close = dgram_close,
};

int qemu_dgram_open(const struct qemu_spec *spec, struct netdev **port, char *error,
		    uint32_t error_size)
{
	struct dgram_port *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return -ENOMEM;
	new->qemu.netdev.ops = &dgram_ops;
	new->qemu.socket = -1;
	qemu_set_mtu(&new->qemu, spec->mtu);
	new->fixed = spec->remote.sun_family;
	new->peer = spec->remote;
	new->buffers = malloc((size_t)QEMU_BURST * new->qemu.frame_max);
	err = new->buffers ? qemu_bind(&new->qemu, &spec->path, SOCK_DGRAM, error, error_size)
			   : -ENOMEM;
	if (err)
		dgram_close(&new->qemu.netdev);
	else
		*port = &new->qemu.netdev;
	return err;
}
