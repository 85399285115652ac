/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The port for QEMU's -netdev stream: on a connected UNIX socket, a big-endian length of 4 bytes
 * precedes each frame. The port has one peer at a time, and accepts the next after that one's end.
 */
#include "qemu/qemu.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "error_text.h"

#define HEADER 4

/* QEMU's own limit (net/net.h, NET_BUFSIZE). A greater length means that the stream is not QEMU's.
 */
#define LENGTH_MAX (4096 + 65536)

/* Bytes per recv. */
#define IN_SIZE (256u << 10)

/*
 * Send buffer of a peer's socket, for frames that come while QEMU does not run, as the transmit
 * ring of a NIC: some hundred frames. Linux doubles the number, and limits it to net.core.wmem_max.
 */
#define OUT_SIZE (1 << 20)

/* Interval between attempts to connect. */
#define CONNECT_NS 1000000000ull
/* Pause after accept failed, for example without free descriptors. */
#define ACCEPT_NS 100000000ull

struct stream_port {
	struct qemu_port qemu;
	int epoll_fd;
	int peer;                  /* -1 = none */
	struct sockaddr_un remote; /* to connect to; AF_UNSPEC: the port listens */
	uint64_t retry_at;         /* when to connect or accept again; UINT64_MAX = on an event */
	uint8_t *in;
	uint32_t head, tail; /* the received bytes in `in` that are no frames yet */
	uint32_t skip;       /* bytes to skip, of a frame that is too long */
	uint8_t *out;        /* the rest of a frame that the socket accepted partly */
	uint32_t out_head, out_tail;
};

static struct stream_port *to_stream(struct netdev *port)
{
	return (struct stream_port *)port;
}

static int watch_socket(struct stream_port *port, int op, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	return epoll_ctl(port->epoll_fd, op, fd, &event) ? -errno : 0;
}

/* --- The peer */

static void drop_peer(struct stream_port *port, uint64_t now)
{
	close(port->peer);
	port->peer = -1;
	port->head = port->tail = port->skip = 0;
	port->out_head = port->out_tail = 0;
	if (port->remote.sun_family)
		port->retry_at = now + CONNECT_NS;
}

static void lengthen_queue(int fd)
{
	const int size = OUT_SIZE;

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static bool add_peer(struct stream_port *port, int fd)
{
	if (watch_socket(port, EPOLL_CTL_ADD, fd, EPOLLIN)) {
		close(fd);
		return false;
	}
	port->peer = fd;
	port->qemu.counters[NETDEV_PEERS]++;
	return true;
}

/* Whether the peer has ended, and the port has not read all of its frames yet. Until the port has,
 * it accepts no other peer. */
static bool last_frames_wait(const struct stream_port *port)
{
	struct pollfd peer = {.fd = port->peer};

	return poll(&peer, 1, 0) == 1 && peer.revents & POLLHUP;
}

/*
 * Takes a waiting connection. While the port has a peer, closes the new connection at once, so that
 * its user sees an error. After the peer's end, leaves it waiting until the peer's last frames are
 * read.
 */
static void accept_peer(struct stream_port *port, uint64_t now)
{
	int fd;

	if (last_frames_wait(port))
		return;
	fd = accept4(port->qemu.socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0 && port->peer >= 0) {
		close(fd);
		port->qemu.counters[NETDEV_PEERS_REFUSED]++;
	} else if (fd >= 0) {
		lengthen_queue(fd);
		add_peer(port, fd);
	} else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
		watch_socket(port, EPOLL_CTL_MOD, port->qemu.socket, 0);
		port->retry_at = now + ACCEPT_NS;
	}
}

static int connect_peer(struct stream_port *port)
{
	int fd = qemu_connect(&port->remote);

	if (fd < 0)
		return fd;
	lengthen_queue(fd);
	return add_peer(port, fd) ? 0 : -ENOMEM;
}

static void retry_peer(struct stream_port *port, uint64_t now)
{
	port->retry_at = UINT64_MAX;
	if (port->qemu.socket >= 0)
		watch_socket(port, EPOLL_CTL_MOD, port->qemu.socket, EPOLLIN);
	else if (connect_peer(port))
		port->retry_at = now + CONNECT_NS;
}

/* --- Receiving */

static void receive_bytes(struct stream_port *port, uint64_t now)
{
	ssize_t got;

	if (port->head)
		memmove(port->in, port->in + port->head, port->tail - port->head);
	port->tail -= port->head;
	port->head = 0;
	got = recv(port->peer, port->in + port->tail, IN_SIZE - port->tail, MSG_DONTWAIT);
	if (got > 0)
		port->tail += (uint32_t)got;
	else if (!got || (errno != EAGAIN && errno != EINTR))
		drop_peer(port, now);
}

/* Skips bytes of a frame that is too long. False: all received bytes are skipped. */
static bool skip_bytes(struct stream_port *port)
{
	uint32_t have = port->tail - port->head;
	uint32_t n = port->skip < have ? port->skip : have;

	port->head += n;
	port->skip -= n;
	return !port->skip;
}

enum parsed { PARSED_FRAME, PARSED_DROP, PARSED_PARTIAL, PARSED_BROKEN };

/* Parses the first of the received bytes. */
static enum parsed parse_frame(struct stream_port *port, struct netdev_frame *frame)
{
	uint32_t have, length;

	if (!skip_bytes(port))
		return PARSED_PARTIAL;
	have = port->tail - port->head;
	if (have < HEADER)
		return PARSED_PARTIAL;
	memcpy(&length, port->in + port->head, HEADER);
	length = be32toh(length);
	if (length > LENGTH_MAX)
		return PARSED_BROKEN;
	if (!length || length > port->qemu.frame_max) {
		port->qemu.counters[length ? NETDEV_RX_TOO_LONG : NETDEV_RX_BAD]++;
		port->head += HEADER;
		port->skip = length;
		return PARSED_DROP;
	}
	if (have < HEADER + length)
		return PARSED_PARTIAL;
	*frame = (struct netdev_frame){port->in + port->head + HEADER, length, length, 0};
	port->head += HEADER + length;
	port->qemu.counters[NETDEV_RX_FRAMES]++;
	port->qemu.counters[NETDEV_RX_BYTES] += length;
	return PARSED_FRAME;
}

static uint32_t parse_frames(struct stream_port *port, uint64_t now, struct netdev_frame *frames,
			     uint32_t n)
{
	enum parsed result = PARSED_FRAME;
	uint32_t count = 0;

	while (count < n && result <= PARSED_DROP) {
		result = parse_frame(port, &frames[count]);
		count += result == PARSED_FRAME;
	}
	/* Frames before the malformed data are returned first: drop_peer() reuses their memory. */
	if (result == PARSED_BROKEN && !count) {
		port->qemu.counters[NETDEV_PEERS_BROKEN]++;
		drop_peer(port, now);
	}
	return count;
}

/* --- Sending */

/*
 * Sends the rest of a frame that the socket accepted partly, if there is one. False: bytes are
 * left, as the socket is full (EPOLLOUT comes when it accepts more) or broken (recv reports it).
 */
static bool send_rest(struct stream_port *port)
{
	ssize_t sent;

	if (port->out_head == port->out_tail)
		return true;
	sent = send(port->peer, port->out + port->out_head, port->out_tail - port->out_head,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
	/* recv reports a permanent error. */
	if (sent > 0)
		port->out_head += (uint32_t)sent;
	if (port->out_head < port->out_tail)
		return false;
	watch_socket(port, EPOLL_CTL_MOD, port->peer, EPOLLIN);
	return true;
}

static void store_rest(struct stream_port *port, const struct iovec part[2], size_t taken)
{
	port->out_head = port->out_tail = 0;
	for (uint32_t i = 0; i < 2; i++) {
		size_t gone = taken < part[i].iov_len ? taken : part[i].iov_len;

		memcpy(port->out + port->out_tail, (const uint8_t *)part[i].iov_base + gone,
		       part[i].iov_len - gone);
		port->out_tail += (uint32_t)(part[i].iov_len - gone);
		taken -= gone;
	}
	watch_socket(port, EPOLL_CTL_MOD, port->peer, EPOLLIN | EPOLLOUT);
}

/* Counts the frames of which the socket has accepted `bytes` bytes, and returns their number. A
 * partly accepted frame counts as sent, and its rest is stored. */
static uint32_t count_sent(struct stream_port *port, const struct iovec *parts, uint32_t n,
			   size_t bytes)
{
	uint32_t i;

	for (i = 0; i < n && bytes; i++) {
		size_t length = parts[2 * i].iov_len + parts[2 * i + 1].iov_len;

		if (bytes < length)
			store_rest(port, &parts[2 * i], bytes);
		bytes -= bytes < length ? bytes : length;
		port->qemu.counters[NETDEV_TX_FRAMES]++;
		port->qemu.counters[NETDEV_TX_BYTES] += length - HEADER;
	}
	return i;
}

/* Sends up to QEMU_BURST frames; returns how many the socket accepted, or -1 after an error. */
static int send_stream_burst(struct stream_port *port, const struct netdev_frame *frames,
			     uint32_t n)
{
	struct iovec parts[2 * QEMU_BURST];
	uint32_t headers[QEMU_BURST], i;
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2 * n};
	ssize_t sent;

	for (i = 0; i < n; i++) {
		headers[i] = htobe32(frames[i].len);
		parts[2 * i] = (struct iovec){&headers[i], HEADER};
		parts[2 * i + 1] = (struct iovec){(void *)(uintptr_t)frames[i].data, frames[i].len};
	}
	sent = sendmsg(port->peer, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	return (int)count_sent(port, parts, n, (size_t)sent);
}

static uint32_t stream_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
			  uint32_t n)
{
	struct stream_port *port = to_stream(netdev);
	bool has_peer = port->peer >= 0;
	uint32_t done = 0;

	(void)now;
	while (done < n && has_peer && send_rest(port)) {
		uint32_t count = qemu_count_fitting(&port->qemu, frames + done, n - done);
		int sent;

		if (!count) {
			port->qemu.counters[NETDEV_TX_TOO_LONG]++;
			done++;
			continue;
		}
		sent = send_stream_burst(port, frames + done, count);
		/* recv reports the peer's end, after its last frames. */
		has_peer = sent >= 0;
		done += has_peer ? (uint32_t)sent : 0;
		if (sent < (int)count)
			break;
	}
	if (!has_peer) {
		port->qemu.counters[NETDEV_TX_NO_PEER] += n - done;
		return n;
	}
	port->qemu.counters[NETDEV_TX_REFUSED] += n - done;
	return done;
}

/* --- Events */

/* Handles the events of the peer and of the listening socket. False: no events. */
static bool handle_events(struct stream_port *port, uint64_t now)
{
	struct epoll_event events[2];
	int i, n = epoll_wait(port->epoll_fd, events, 2, 0);

	/* The peer first: if it has ended, the next peer can be accepted. */
	for (i = 0; i < n; i++) {
		if (port->peer < 0 || events[i].data.fd != port->peer)
			continue;
		if (events[i].events & EPOLLOUT)
			send_rest(port);
		if (events[i].events & ~(uint32_t)EPOLLOUT)
			receive_bytes(port, now);
	}
	for (i = 0; i < n; i++)
		if (events[i].data.fd == port->qemu.socket)
			accept_peer(port, now);
	return n > 0;
}

static uint32_t stream_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames,
			  uint32_t n)
{
	struct stream_port *port = to_stream(netdev);
	uint32_t count = parse_frames(port, now, frames, n), rounds = QEMU_ROUNDS;

	if (now >= port->retry_at)
		retry_peer(port, now);
	while (!count && n && rounds-- && handle_events(port, now))
		count = parse_frames(port, now, frames, n);
	return count;
}

static uint64_t stream_next_deadline(struct netdev *netdev)
{
	return to_stream(netdev)->retry_at;
}

static int stream_wait_fd(struct netdev *netdev)
{
	return to_stream(netdev)->epoll_fd;
}

/* --- Opening and closing */

static void stream_close(struct netdev *netdev)
{
	struct stream_port *port = to_stream(netdev);

	if (port->peer >= 0)
		close(port->peer);
	qemu_unbind(&port->qemu);
	if (port->epoll_fd >= 0)
		close(port->epoll_fd);
	free(port->in);
	free(port->out);
	free(port);
}

static bool stream_is_up(struct netdev *netdev)
{
	return to_stream(netdev)->peer >= 0;
}

static const struct netdev_ops stream_ops = {
	.rx = stream_rx,
	.tx = stream_tx,
	.next_deadline = stream_next_deadline,
	.wait_fd = stream_wait_fd,
	.is_up = stream_is_up,
	.mtu = qemu_mtu,
	.counters = qemu_counters,
	.close = stream_close,
};

static int make_port(uint32_t mtu, struct stream_port **port)
{
	struct stream_port *new = calloc(1, sizeof(*new));
	int err = 0;

	if (!new)
		return -ENOMEM;
	new->qemu.netdev.ops = &stream_ops;
	new->qemu.socket = new->peer = -1;
	new->retry_at = UINT64_MAX;
	qemu_set_mtu(&new->qemu, mtu);
	new->in = malloc(IN_SIZE);
	new->out = malloc(HEADER + new->qemu.frame_max);
	new->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (new->epoll_fd < 0)
		err = -errno;
	else if (!new->in || !new->out)
		err = -ENOMEM;
	if (err)
		stream_close(&new->qemu.netdev);
	else
		*port = new;
	return err;
}

static int start_listening(struct stream_port *port, const struct qemu_spec *spec, char *error,
			   uint32_t error_size)
{
	int err = qemu_bind(&port->qemu, &spec->path, SOCK_STREAM, error, error_size);

	if (err)
		return err;
	err = listen(port->qemu.socket, 1)
		      ? -errno
		      : watch_socket(port, EPOLL_CTL_ADD, port->qemu.socket, EPOLLIN);
	return err ? error_text_set(error, error_size, err, "%s", strerror(-err)) : 0;
}

/* Connects to QEMU. If QEMU does not listen yet, the port tries again later; any other error is
 * returned. */
static int start_connecting(struct stream_port *port, const struct qemu_spec *spec, char *error,
			    uint32_t error_size)
{
	int err;

	port->remote = spec->path;
	err = connect_peer(port);
	if (!err)
		return 0;
	if (err != -ENOENT && err != -ECONNREFUSED && err != -EAGAIN)
		return error_text_set(error, error_size, err, "%s", strerror(-err));
	port->retry_at = 0;
	return 0;
}

int qemu_stream_open(const struct qemu_spec *spec, struct netdev **port, char *error,
		     uint32_t error_size)
{
	struct stream_port *new;
	int err = make_port(spec->mtu, &new);

	if (err)
		return error_text_set(error, error_size, err, "%s", strerror(-err));
	err = spec->connect ? start_connecting(new, spec, error, error_size)
			    : start_listening(new, spec, error, error_size);
	if (err)
		stream_close(&new->qemu.netdev);
	else
		*port = &new->qemu.netdev;
	return err;
}
