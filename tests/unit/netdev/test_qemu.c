/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ports for QEMU; the test plays QEMU with plain sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdev/netdev.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MTU       1500
#define FRAME_MAX (MTU + 18)

static char directory[] = "/tmp/urxe-qemu-XXXXXX";

/* --- Helpers */

static struct netdev *open_port(const char *format, ...)
{
	char spec[256], error[256] = "";
	struct netdev *port = NULL;
	va_list args;

	va_start(args, format);
	vsnprintf(spec, sizeof(spec), format, args);
	va_end(args);
	if (netdev_qemu_open(spec, MTU, &port, error, sizeof(error)))
		fail_msg("%s", error);
	return port;
}

static struct sockaddr_un address(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", directory, name);
	return a;
}

static int call(const char *name)
{
	struct sockaddr_un a = address(name);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static int serve(const char *name, int type)
{
	struct sockaddr_un a = address(name);
	int fd = socket(AF_UNIX, type, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static uint64_t counter(struct netdev *port, enum netdev_counter which)
{
	uint64_t counters[NETDEV_COUNTER_COUNT];

	netdev_counters(port, counters);
	return counters[which];
}

static void fill(uint8_t *data, uint32_t length, uint32_t seed)
{
	for (uint32_t i = 0; i < length; i++)
		data[i] = (uint8_t)(i * 13 + seed + i / 251);
}

static void send_bytes(int fd, const void *data, size_t length)
{
	assert_int_equal(send(fd, data, length, MSG_NOSIGNAL), length);
}

/* Sends a frame as QEMU does on a stream. */
static void send_frame(int fd, uint32_t length, uint32_t seed)
{
	uint8_t bytes[4 + FRAME_MAX];
	uint32_t header = htonl(length);

	memcpy(bytes, &header, 4);
	fill(bytes + 4, length, seed);
	send_bytes(fd, bytes, 4 + length);
}

static void check(const struct netdev_frame *frame, uint32_t length, uint32_t seed)
{
	uint8_t expected[FRAME_MAX];

	fill(expected, length, seed);
	assert_int_equal(frame->len, length);
	assert_int_equal(frame->wire_len, length);
	assert_memory_equal(frame->data, expected, length);
}

static void expect(struct netdev *port, uint32_t length, uint32_t seed)
{
	struct netdev_frame frame;

	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	check(&frame, length, seed);
}

static void expect_nothing(struct netdev *port)
{
	struct netdev_frame frame;
	struct pollfd fd = {netdev_wait_fd(port), POLLIN, 0};

	assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
}

static void expect_awake(struct netdev *port)
{
	struct pollfd fd = {netdev_wait_fd(port), POLLIN, 0};

	assert_int_equal(poll(&fd, 1, 10000), 1);
}

static uint32_t send_through(struct netdev *port, uint32_t length, uint32_t seed)
{
	uint8_t data[FRAME_MAX + 100];

	fill(data, length, seed);
	return netdev_tx(port, 0, &(struct netdev_frame){data, length}, 1);
}

static void read_exactly(int fd, uint8_t *data, size_t length)
{
	assert_int_equal(recv(fd, data, length, MSG_WAITALL), length);
}

/* Receives as QEMU does. */
static void expect_at_qemu(int fd, uint32_t length, uint32_t seed)
{
	uint8_t got[FRAME_MAX], expected[FRAME_MAX];
	uint32_t header;

	read_exactly(fd, (uint8_t *)&header, 4);
	assert_int_equal(ntohl(header), length);
	read_exactly(fd, got, length);
	fill(expected, length, seed);
	assert_memory_equal(got, expected, length);
}

/* The port's end of a socket pair whose other end the test has. */
static int port_end;

static int take_port_end(const struct sockaddr_un *address)
{
	(void)address;
	return port_end;
}

static struct netdev *attach(int *qemu)
{
	const struct netdev_qemu_files files = {.connect = take_port_end};
	struct netdev *port;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	port_end = fds[0];
	netdev_qemu_set_files(&files);
	port = open_port("qemu:%s/nobody,connect", directory);
	netdev_qemu_set_files(NULL);
	*qemu = fds[1];
	return port;
}

static struct netdev *attach_with_short_queue(int *qemu)
{
	struct netdev *port = attach(qemu);
	int least = 1;

	setsockopt(port_end, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	return port;
}

static void close_both(struct netdev *port, int fd)
{
	netdev_close(port);
	close(fd);
}

/* --- A stream's bytes */

static void test_frames_pass_in_both_directions(void **state)
{
	int qemu;
	struct netdev *port = attach(&qemu);
	uint8_t mac[6];

	(void)state;
	assert_int_equal(netdev_mtu(port), MTU);
	assert_false(netdev_mac(port, mac));
	expect_nothing(port);
	for (uint32_t length = 1; length <= FRAME_MAX; length += length < 70 ? 1 : 181) {
		send_frame(qemu, length, length);
		expect_awake(port);
		expect(port, length, length);
		expect_nothing(port);
		assert_int_equal(send_through(port, length, length + 1), 1);
		expect_at_qemu(qemu, length, length + 1);
	}
	assert_int_equal(counter(port, NETDEV_RX_FRAMES), counter(port, NETDEV_TX_FRAMES));
	assert_int_equal(counter(port, NETDEV_RX_BYTES), counter(port, NETDEV_TX_BYTES));
	close_both(port, qemu);
}

/* The port returns a frame after its last byte, however the stream is split. */
static void test_frame_is_returned_after_its_last_byte(void **state)
{
	int qemu;
	struct netdev *port = attach(&qemu);
	uint8_t bytes[2 * (4 + 60)] = {0, 0, 0, 60};

	(void)state;
	bytes[64 + 3] = 60;
	fill(bytes + 4, 60, 1);
	fill(bytes + 64 + 4, 60, 2);
	for (uint32_t i = 0; i < sizeof(bytes); i++) {
		send_bytes(qemu, &bytes[i], 1);
		if (i == 63)
			expect(port, 60, 1);
		if (i == 127)
			expect(port, 60, 2);
		expect_nothing(port);
	}
	close_both(port, qemu);
}

/* The next call returns the frames that exceeded the caller's array. */
static void test_excess_frames_come_with_the_next_call(void **state)
{
	int qemu;
	struct netdev *port = attach(&qemu);
	struct netdev_frame frames[7];
	uint32_t got = 0;

	(void)state;
	for (uint32_t i = 0; i < 50; i++)
		send_frame(qemu, 1000 + i, i);
	for (uint32_t n; (n = netdev_rx(port, 0, frames, 7)); got += n)
		for (uint32_t i = 0; i < n; i++)
			check(&frames[i], 1000 + got + i, got + i);
	assert_int_equal(got, 50);
	expect_nothing(port);
	close_both(port, qemu);
}

static void test_hostile_lengths_are_dropped(void **state)
{
	int qemu;
	struct netdev *port = attach(&qemu);
	uint8_t long_frame[60000] = {0};
	uint32_t header = htonl(sizeof(long_frame));

	(void)state;
	send_bytes(qemu, "\0\0\0", 4);
	send_frame(qemu, 100, 1);
	expect(port, 100, 1);
	assert_int_equal(counter(port, NETDEV_RX_BAD), 1);

	send_bytes(qemu, &header, 4);
	for (uint32_t at = 0; at < sizeof(long_frame); at += 20000) {
		expect_nothing(port);
		send_bytes(qemu, long_frame + at, 20000);
	}
	send_frame(qemu, 100, 2);
	expect(port, 100, 2);
	assert_int_equal(counter(port, NETDEV_RX_TOO_LONG), 1);

	/* An impossible length disconnects the peer; whole frames before it are returned. */
	send_frame(qemu, 100, 3);
	header = htonl(65536 + 4096 + 1);
	send_bytes(qemu, &header, 4);
	expect(port, 100, 3);
	expect_nothing(port);
	assert_int_equal(counter(port, NETDEV_PEERS_BROKEN), 1);
	assert_int_equal(recv(qemu, &header, 4, 0), 0);
	close_both(port, qemu);
}

/* Frames that are all dropped do not keep the caller in one call. */
static void test_one_call_returns_despite_a_flood_of_bad_frames(void **state)
{
	int qemu;
	struct netdev *port = attach(&qemu);
	static uint8_t zeros[4096];
	struct netdev_frame frame;
	uint64_t dropped;

	(void)state;
	for (uint32_t calls = 0; calls < 100; calls++) {
		while (send(qemu, zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
			;
		assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	}
	dropped = counter(port, NETDEV_RX_BAD);
	assert_in_range(dropped, 100, UINT32_MAX);
	close_both(port, qemu);
}

#define MANY 3000

/* Sends frames until the port refuses. */
static uint32_t send_row(struct netdev *port, uint32_t from)
{
	static uint8_t data[40][FRAME_MAX];
	struct netdev_frame frames[40];
	uint32_t i;

	for (i = 0; i < 40 && from + i < MANY; i++) {
		frames[i] = (struct netdev_frame){data[i], 1 + (from + i) % FRAME_MAX};
		fill(data[i], frames[i].len, from + i);
	}
	return netdev_tx(port, 0, frames, i);
}

/* The rest of a partly sent frame follows once, before other frames. */
static void test_partial_write_is_continued(void **state)
{
	uint32_t sent = 0, got = 0;
	struct netdev *port;
	int qemu;

	(void)state;
	port = attach_with_short_queue(&qemu);
	while (got < MANY) {
		for (uint32_t n; sent < MANY && (n = send_row(port, sent)); sent += n)
			;
		expect_at_qemu(qemu, 1 + got % FRAME_MAX, got);
		got++;
	}
	assert_int_equal(counter(port, NETDEV_TX_FRAMES), MANY);
	assert_in_range(counter(port, NETDEV_TX_REFUSED), 1, UINT32_MAX);
	expect_nothing(port);
	close_both(port, qemu);
}

/*
 * A process that loses its core takes no frame for some milliseconds. Linux' default size of a
 * socket's buffer holds at most 240,000 bytes of frames.
 */
#define LEAST_BURST 300000

static void expect_room_for_burst(struct netdev *port)
{
	for (uint32_t sent = 0, n; counter(port, NETDEV_TX_BYTES) < LEAST_BURST; sent += n) {
		n = send_row(port, sent % (MANY - 40));
		if (!n)
			fail_msg("%" PRIu64 " bytes", counter(port, NETDEV_TX_BYTES));
	}
}

static void test_socket_holds_a_burst_for_a_stopped_peer(void **state)
{
	struct netdev *listening = open_port("qemu:%s/burst", directory), *connecting;
	int peer = call("burst"), server = serve("burst-qemu", SOCK_STREAM);

	(void)state;
	expect_awake(listening);
	expect_nothing(listening);
	expect_room_for_burst(listening);
	close_both(listening, peer);

	connecting = open_port("qemu:%s/burst-qemu,connect", directory);
	peer = accept(server, NULL, NULL);
	expect_nothing(connecting);
	expect_room_for_burst(connecting);
	close(server);
	close_both(connecting, peer);
}

/* The port's descriptor wakes its user when the rest of the last frame can be sent. */
static void test_fd_wakes_for_the_rest_of_a_frame(void **state)
{
	static uint8_t got[40 * (4 + FRAME_MAX)];
	uint32_t sent, bytes = 0, length = 0;
	int qemu;
	struct netdev *port;
	ssize_t n;

	(void)state;
	port = attach_with_short_queue(&qemu);
	sent = send_row(port, 1400);
	assert_in_range(sent, 1, 39);
	for (uint32_t i = 0; i < sent; i++)
		bytes += 4 + 1 + 1400 + i;
	while ((n = recv(qemu, got + length, sizeof(got) - length, MSG_DONTWAIT)) > 0)
		length += n;
	assert_in_range(length, 1, bytes - 1);
	expect_awake(port);
	expect_nothing(port);
	assert_int_equal(recv(qemu, got + length, bytes - length, MSG_DONTWAIT), bytes - length);
	for (uint32_t i = 0, at = 4; i < sent; at += 4 + 1 + 1400 + i++) {
		uint8_t expected[FRAME_MAX];

		fill(expected, 1 + 1400 + i, 1400 + i);
		assert_memory_equal(got + at, expected, 1 + 1400 + i);
	}
	close_both(port, qemu);
}

/* A peer that ends during a partly sent frame, and one whose end shows in send. */
static void test_frames_to_a_gone_peer_are_counted(void **state)
{
	struct netdev *port;
	int qemu;

	(void)state;
	port = attach_with_short_queue(&qemu);
	while (send_row(port, 1400))
		;
	close(qemu);
	expect_awake(port);
	expect_nothing(port);
	assert_int_equal(send_through(port, 60, 0), 1);
	assert_int_equal(counter(port, NETDEV_TX_NO_PEER), 1);
	netdev_close(port);

	port = attach(&qemu);
	close(qemu);
	assert_int_equal(send_row(port, 0), 40);
	assert_int_equal(counter(port, NETDEV_TX_NO_PEER), 40);
	netdev_close(port);
}

static void test_frame_above_the_mtu_is_not_sent(void **state)
{
	int qemu;
	struct netdev *port = attach(&qemu);

	(void)state;
	assert_int_equal(send_through(port, FRAME_MAX + 1, 0), 1);
	assert_int_equal(send_through(port, FRAME_MAX, 1), 1);
	expect_at_qemu(qemu, FRAME_MAX, 1);
	assert_int_equal(counter(port, NETDEV_TX_TOO_LONG), 1);
	close_both(port, qemu);
}

/* --- Peers */

static void test_listening_port_accepts_one_peer(void **state)
{
	struct netdev *port = open_port("qemu:%s/listen", directory);
	struct sockaddr_un a = address("listen");
	struct stat file;
	int qemu, second;
	char byte;

	(void)state;
	assert_int_equal(stat(a.sun_path, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
	assert_int_equal(send_through(port, 60, 0), 1);
	assert_int_equal(counter(port, NETDEV_TX_NO_PEER), 1);
	for (uint32_t visit = 0; visit < 3; visit++) {
		assert_false(netdev_is_up(port));
		qemu = call("listen");
		expect_awake(port);
		expect_nothing(port);
		assert_true(netdev_is_up(port));
		send_frame(qemu, 60, visit);
		expect(port, 60, visit);
		assert_int_equal(send_through(port, 70, visit), 1);
		expect_at_qemu(qemu, 70, visit);

		/* Half a frame, and a second VM, which is refused. */
		send_bytes(qemu, "\0\0\0\100half", 8);
		second = call("listen");
		expect_nothing(port);
		assert_int_equal(recv(second, &byte, 1, 0), 0);
		close(second);
		close(qemu);
		expect_awake(port);
		expect_nothing(port);
	}
	assert_int_equal(counter(port, NETDEV_PEERS), 3);
	assert_int_equal(counter(port, NETDEV_PEERS_REFUSED), 3);
	netdev_close(port);
	assert_int_equal(stat(a.sun_path, &file), -1);
}

/* The old VM ends and the new one connects before the port looks: the new one is accepted. */
static void test_next_peer_is_accepted_when_the_last_ended(void **state)
{
	struct netdev *port = open_port("qemu:%s/change", directory);
	int old = call("change"), new;

	(void)state;
	expect_nothing(port);
	new = call("change");
	close(old);
	send_frame(new, 60, 9);
	expect(port, 60, 9);
	assert_int_equal(counter(port, NETDEV_PEERS_REFUSED), 0);
	close_both(port, new);
}

/* So it is if the last frames of the old VM wait. */
static void test_next_peer_is_accepted_after_frames_of_the_last(void **state)
{
	struct netdev *port = open_port("qemu:%s/last", directory);
	int old = call("last"), new;

	(void)state;
	expect_nothing(port);
	send_frame(old, 60, 1);
	close(old);
	new = call("last");
	expect(port, 60, 1);
	send_frame(new, 60, 9);
	expect(port, 60, 9);
	assert_int_equal(counter(port, NETDEV_PEERS_REFUSED), 0);
	close_both(port, new);
}

/* The port sends before it has read: send reports the end first. */
static void test_last_frames_are_received_after_a_refused_frame(void **state)
{
	struct netdev *port;
	int qemu;

	(void)state;
	port = attach(&qemu);
	send_frame(qemu, 60, 1);
	send_frame(qemu, 60, 2);
	expect(port, 60, 1);
	send_frame(qemu, 60, 3);
	close(qemu);
	assert_int_equal(send_row(port, 0), 40);
	assert_int_equal(counter(port, NETDEV_TX_NO_PEER), 40);
	expect(port, 60, 2);
	expect(port, 60, 3);
	assert_true(netdev_is_up(port));
	expect_nothing(port);
	assert_false(netdev_is_up(port));
	netdev_close(port);
}

#define SECOND 1000000000ull

/* Without free descriptors, the port pauses before it accepts again. */
static void test_port_pauses_without_descriptors(void **state)
{
	struct netdev *port = open_port("qemu:%s/short", directory);
	int qemu = call("short"), held[1024], n = 0;
	struct netdev_frame frame;
	struct rlimit limit, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((held[n] = dup(qemu)) >= 0)
		n++;
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	expect_nothing(port);
	assert_int_equal(netdev_next_deadline(port), SECOND / 10);
	while (n)
		close(held[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	send_frame(qemu, 60, 1);
	assert_int_equal(netdev_rx(port, SECOND / 10, &frame, 1), 1);
	check(&frame, 60, 1);
	assert_true(netdev_next_deadline(port) == UINT64_MAX);
	close_both(port, qemu);
}

static void test_open_without_descriptors_returns_emfile(void **state)
{
	struct netdev *port;
	struct rlimit limit, none;
	char spec[256], error[256];
	int held[1024], n = 0;

	(void)state;
	snprintf(spec, sizeof(spec), "qemu:%s/none", directory);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	while ((held[n] = dup(STDERR_FILENO)) >= 0)
		n++;
	/* The port's epoll instance takes the last one. */
	close(held[--n]);
	assert_int_equal(netdev_qemu_open(spec, MTU, &port, error, sizeof(error)), -EMFILE);
	while (n)
		close(held[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void test_connecting_port_reconnects(void **state)
{
	struct netdev *port = open_port("qemu:%s/server,connect", directory);
	struct sockaddr_un a = address("server");
	struct netdev_frame frame;
	int server, qemu;
	uint64_t now = 5;

	(void)state;
	assert_int_equal(netdev_rx(port, now, &frame, 1), 0);
	assert_int_equal(netdev_next_deadline(port), now + SECOND);
	for (uint32_t visit = 0; visit < 3; visit++) {
		server = serve("server", SOCK_STREAM);
		now = netdev_next_deadline(port);
		assert_int_equal(netdev_rx(port, now, &frame, 1), 0);
		assert_true(netdev_next_deadline(port) == UINT64_MAX);
		qemu = accept(server, NULL, NULL);
		send_frame(qemu, 60, visit);
		expect_awake(port);
		expect(port, 60, visit);
		assert_int_equal(send_through(port, 70, visit), 1);
		expect_at_qemu(qemu, 70, visit);
		close(qemu);
		close(server);
		unlink(a.sun_path);
		assert_int_equal(netdev_rx(port, now, &frame, 1), 0);
		assert_int_equal(netdev_next_deadline(port), now + SECOND);
	}
	netdev_close(port);
}

/* --- Datagrams */

static void dgram(int fd, const char *to, uint32_t length, uint32_t seed)
{
	struct sockaddr_un a = address(to);
	uint8_t data[FRAME_MAX + 100];

	fill(data, length, seed);
	assert_int_equal(sendto(fd, data, length, 0, (struct sockaddr *)&a, sizeof(a)), length);
}

static void expect_dgram(int fd, uint32_t length, uint32_t seed)
{
	uint8_t got[FRAME_MAX + 1], expected[FRAME_MAX];

	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), length);
	fill(expected, length, seed);
	assert_memory_equal(got, expected, length);
}

static void test_datagrams_pass_in_both_directions(void **state)
{
	struct netdev *port = open_port("qemu:%s/dgram,dgram", directory);
	struct sockaddr_un a = address("vm");
	struct stat file;
	int qemu = serve("vm", SOCK_DGRAM), other = serve("other", SOCK_DGRAM), unnamed;

	(void)state;
	assert_int_equal(send_through(port, 60, 0), 1);
	assert_int_equal(counter(port, NETDEV_TX_NO_PEER), 1);
	assert_false(netdev_is_up(port));
	dgram(qemu, "dgram", 60, 1);
	expect_awake(port);
	expect(port, 60, 1);
	assert_true(netdev_is_up(port));
	assert_int_equal(send_through(port, FRAME_MAX, 2), 1);
	expect_dgram(qemu, FRAME_MAX, 2);

	assert_int_equal(send_through(port, FRAME_MAX + 1, 0), 1);
	assert_int_equal(counter(port, NETDEV_TX_TOO_LONG), 1);

	dgram(qemu, "dgram", 0, 0);
	dgram(qemu, "dgram", FRAME_MAX + 1, 0);
	dgram(other, "dgram", 60, 0);
	unnamed = socket(AF_UNIX, SOCK_DGRAM, 0);
	dgram(unnamed, "dgram", 60, 0);
	dgram(qemu, "dgram", FRAME_MAX, 3);
	expect(port, FRAME_MAX, 3);
	expect_nothing(port);
	assert_int_equal(counter(port, NETDEV_RX_BAD), 1);
	assert_int_equal(counter(port, NETDEV_RX_TOO_LONG), 1);
	assert_int_equal(counter(port, NETDEV_RX_NOT_PEER), 2);

	/* A frame to the ended peer fails; then another sender becomes the peer. */
	close(qemu);
	unlink(a.sun_path);
	assert_false(netdev_is_up(port));
	assert_int_equal(send_through(port, 60, 0), 1);
	assert_int_equal(counter(port, NETDEV_TX_NO_PEER), 2);
	dgram(other, "dgram", 60, 4);
	expect(port, 60, 4);
	assert_int_equal(counter(port, NETDEV_PEERS), 2);
	close(unnamed);
	close_both(port, other);
	a = address("dgram");
	assert_int_equal(stat(a.sun_path, &file), -1);
}

/* The port has sent nothing to the peer that has ended, so only the next sender's frame shows it.
 */
static void test_next_datagram_peer_needs_no_frame_to_the_last_one(void **state)
{
	struct netdev *port = open_port("qemu:%s/dgram,dgram", directory);
	int first = serve("first", SOCK_DGRAM), second = serve("second", SOCK_DGRAM);

	(void)state;
	dgram(first, "dgram", 60, 1);
	expect(port, 60, 1);
	dgram(second, "dgram", 60, 2);
	expect_nothing(port);
	assert_int_equal(counter(port, NETDEV_RX_NOT_PEER), 1);
	/* Killed: the file is still at the path. */
	close(first);
	dgram(second, "dgram", 60, 3);
	expect(port, 60, 3);
	unlink(address("second").sun_path);
	first = serve("third", SOCK_DGRAM);
	dgram(first, "dgram", 60, 4);
	expect(port, 60, 4);
	assert_int_equal(counter(port, NETDEV_PEERS), 3);
	assert_int_equal(counter(port, NETDEV_RX_NOT_PEER), 1);
	close(second);
	close_both(port, first);
}

/* A full queue refuses frames; none is lost or duplicated. */
static void test_full_datagram_queue_loses_no_frame(void **state)
{
	struct netdev *port = open_port("qemu:%s/full,dgram,remote=%s/peer", directory, directory);
	uint32_t sent = 0, got = 0;
	int qemu;

	(void)state;
	assert_int_equal(send_through(port, 60, 0), 1);
	assert_int_equal(counter(port, NETDEV_TX_NO_PEER), 1);
	qemu = serve("peer", SOCK_DGRAM);
	while (got < 500) {
		while (sent < 500 && send_through(port, 100 + sent, sent))
			sent++;
		assert_in_range(sent - got, 1, 499);
		expect_dgram(qemu, 100 + got, got);
		got++;
	}
	close_both(port, qemu);
}

/* --- Errors of open */

static void test_stale_socket_is_replaced(void **state)
{
	struct netdev *port, *second;
	char spec[128], error[256];

	(void)state;
	close(serve("stale", SOCK_STREAM));
	port = open_port("qemu:%s/stale", directory);
	snprintf(spec, sizeof(spec), "qemu:%s/stale", directory);
	assert_int_equal(netdev_qemu_open(spec, 0, &second, error, sizeof(error)), -EADDRINUSE);
	assert_non_null(strstr(error, "already"));
	/* A port whose path another one has taken leaves the file alone. */
	unlink(spec + 5);
	second = open_port("%s", spec);
	netdev_close(port);
	close(call("stale"));
	netdev_close(second);
}

static void test_relative_path_survives_chdir(void **state)
{
	struct netdev *port;

	(void)state;
	assert_int_equal(chdir(directory), 0);
	port = open_port("qemu:here");
	assert_int_equal(chdir("/"), 0);
	close(call("here"));
	netdev_close(port);
	assert_int_equal(access(address("here").sun_path, F_OK), -1);
}

static void test_mtu_option_is_limited(void **state)
{
	struct netdev *port = open_port("qemu:%s/mtu,mtu=1000", directory);
	char error[256];

	(void)state;
	assert_int_equal(netdev_mtu(port), 1000);
	netdev_close(port);
	port = open_port("qemu:%s/mtu,mtu=1500", directory);
	assert_int_equal(netdev_mtu(port), MTU);
	netdev_close(port);
	assert_int_equal(netdev_qemu_open("qemu:/tmp/x,mtu=1501", MTU, &port, error, sizeof(error)),
			 -EINVAL);
	assert_non_null(strstr(error, "from 576 to 1500"));
}

static void test_errors_name_the_cause(void **state)
{
	static const struct {
		const char *spec;
		int err;
		const char *says;
	} bad[] = {
		{"quemu:/tmp/x", -EINVAL, "does not start with qemu:"},
		{"qemu:", -EINVAL, "path of a socket is missing"},
		{"qemu:,dgram", -EINVAL, "path of a socket is missing"},
		{"qemu:/tmp/x,listen", -EINVAL, "unknown option 'listen'"},
		{"qemu:/tmp/x,", -EINVAL, "unknown option ''"},
		{"qemu:/tmp/x,dgram,connect", -EINVAL, "exclude each other"},
		{"qemu:/tmp/x,remote=/tmp/y", -EINVAL, "remote= needs dgram"},
		{"qemu:/tmp/x,dgram,remote=", -EINVAL, "unknown option 'remote='"},
		{"qemu:/tmp/x,mtu=575", -EINVAL, "from 576 to 9000"},
		{"qemu:/tmp/x,mtu=9001", -EINVAL, "from 576 to 9000"},
		{"qemu:/tmp/x,mtu=1500x", -EINVAL, "from 576 to 9000"},
		{"qemu:/nonexistent/x", -ENOENT, "No such file"},
		{"qemu:/nonexistent/x,dgram", -ENOENT, "No such file"},
		{"qemu:/etc/passwd", -EEXIST, "not a socket"},
		{"qemu:/etc/passwd/x,connect", -ENOTDIR, "Not a directory"},
	};
	struct netdev *port = NULL;
	char error[512], spec[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(netdev_qemu_open(bad[i].spec, 0, &port, error, sizeof(error)),
				 bad[i].err);
		assert_non_null(strstr(error, bad[i].says));
		assert_non_null(strstr(error, bad[i].spec));
		assert_null(strchr(error, '\n'));
	}
	snprintf(spec, sizeof(spec), "qemu:/%0120d", 1);
	assert_int_equal(netdev_qemu_open(spec, 0, &port, error, sizeof(error)), -ENAMETOOLONG);
	assert_non_null(strstr(error, "too long for a socket"));
	snprintf(spec, sizeof(spec), "qemu:/x,dgram,remote=/%0120d", 1);
	assert_int_equal(netdev_qemu_open(spec, 0, &port, error, sizeof(error)), -ENAMETOOLONG);
	assert_non_null(strstr(error, "remote="));
	assert_null(port);
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_pass_in_both_directions),
		cmocka_unit_test(test_frame_is_returned_after_its_last_byte),
		cmocka_unit_test(test_excess_frames_come_with_the_next_call),
		cmocka_unit_test(test_hostile_lengths_are_dropped),
		cmocka_unit_test(test_one_call_returns_despite_a_flood_of_bad_frames),
		cmocka_unit_test(test_partial_write_is_continued),
		cmocka_unit_test(test_socket_holds_a_burst_for_a_stopped_peer),
		cmocka_unit_test(test_fd_wakes_for_the_rest_of_a_frame),
		cmocka_unit_test(test_frames_to_a_gone_peer_are_counted),
		cmocka_unit_test(test_frame_above_the_mtu_is_not_sent),
		cmocka_unit_test(test_listening_port_accepts_one_peer),
		cmocka_unit_test(test_next_peer_is_accepted_when_the_last_ended),
		cmocka_unit_test(test_next_peer_is_accepted_after_frames_of_the_last),
		cmocka_unit_test(test_last_frames_are_received_after_a_refused_frame),
		cmocka_unit_test(test_port_pauses_without_descriptors),
		cmocka_unit_test(test_open_without_descriptors_returns_emfile),
		cmocka_unit_test(test_connecting_port_reconnects),
		cmocka_unit_test(test_datagrams_pass_in_both_directions),
		cmocka_unit_test(test_next_datagram_peer_needs_no_frame_to_the_last_one),
		cmocka_unit_test(test_full_datagram_queue_loses_no_frame),
		cmocka_unit_test(test_stale_socket_is_replaced),
		cmocka_unit_test(test_relative_path_survives_chdir),
		cmocka_unit_test(test_mtu_option_is_limited),
		cmocka_unit_test(test_errors_name_the_cause),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
