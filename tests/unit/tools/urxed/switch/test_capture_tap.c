/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Captures in progress: which users may start how many, and which frames they get. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/server.h>

#include "craft.h"
#include "lan.h"
#include "urxed/switch/capture_tap.h"

#define DAEMON_USER 1234

static struct lan *w;
static struct sessions sessions;
static struct capture_taps taps;
static uint32_t asked; /* processes that were asked for a recording */

int __wrap_vnic_server_record(struct vnic_server_client *client, int ring);
int __wrap_vnic_server_record(struct vnic_server_client *client, int ring)
{
	(void)client;
	asked += ring >= 0;
	return 0;
}

static int setup(void **state)
{
	static const char *const spec = "mem", *const address = "10.0.0.1/24";
	const struct lan_attr attr = {.n_processes = 1,
				      .n_stations = 1,
				      .first_vm = 1,
				      .specs = &spec,
				      .depth = 8,
				      .addresses = &address,
				      .n_addresses = 1};

	(void)state;
	w = lan_open(&attr);
	sessions = (struct sessions){.sw = &w->sw};
	capture_taps_init(&taps, &sessions);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	capture_taps_end_all(&taps);
	lan_close(w);
	return 0;
}

/* Starts a capture on a new socket; returns the socket or a negative errno value. */
static int start(void)
{
	int ends[2], fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	fd = capture_taps_start(&taps, ends[0], "", false);
	close(ends[1]);
	if (fd >= 0) {
		close(fd);
		return ends[0];
	}
	close(ends[0]);
	return fd;
}

static int start_as(uid_t user, uid_t daemon)
{
	int ends[2], fd;

	assert_int_equal(seteuid(user), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(seteuid(daemon), 0);
	fd = capture_taps_start(&taps, ends[0], "", false);
	assert_int_equal(seteuid(0), 0);
	close(fd >= 0 ? fd : ends[0]);
	close(ends[1]);
	return fd < 0 ? fd : 0;
}

static void captures_are_limited(void **state)
{
	int most = geteuid() ? CAPTURE_TAPS_PER_USER : CAPTURE_TAPS, first = start(), i;

	(void)state;
	assert_true(first >= 0);
	for (i = 1; i < most; i++)
		assert_true(start() >= 0);
	assert_int_equal(start(), -EBUSY);
	assert_true(capture_taps_end(&taps, first));
	assert_true(start() >= 0);
}

/* The daemon's own user leaves captures to root, and root to the daemon's user. */
static void users_have_half_each(void **state)
{
	int i;

	(void)state;
	if (geteuid())
		skip();
	for (i = 0; i < CAPTURE_TAPS_PER_USER; i++)
		assert_int_equal(start_as(DAEMON_USER, DAEMON_USER), 0);
	assert_int_equal(start_as(DAEMON_USER, DAEMON_USER), -EBUSY);
	for (i = 0; i < CAPTURE_TAPS_PER_USER; i++)
		assert_int_equal(start_as(0, DAEMON_USER), 0);
	assert_int_equal(start_as(0, DAEMON_USER), -EBUSY);
}

/* Processes attach while urxe capture is stopped: it learns how many it has missed. */
static void processes_beyond_a_full_socket_are_counted(void **state)
{
	struct session s = {.port.dev = (struct vnic_device *)(void *)w};
	const uint32_t n = 1000;
	const int bytes = 32768; /* whatever net.core.wmem_default is */
	struct capture_reader reader;
	int ends[2], fd;

	(void)state;
	strcpy(s.port.name, "program-1");
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	fd = capture_taps_start(&taps, ends[0], "", true);
	assert_int_equal(capture_reader_open(&reader, fd), 0);
	close(fd);
	assert_false(capture_reader_is_listed(&reader));
	capture_taps_record(&taps, ends[0]);
	assert_true(capture_reader_is_listed(&reader));
	for (uint32_t i = 0; i < n; i++)
		sessions.attached(sessions.attached_ctx, &s);
	assert_in_range(asked, 1, n - 1);
	assert_int_equal(capture_reader_unrecorded(&reader), n - asked);
	capture_reader_close(&reader);
	assert_true(capture_taps_end(&taps, ends[0]));
	close(ends[0]);
	close(ends[1]);
}

/* Sends the first `len` bytes of a packet to the process; returns how many frames are captured. */
static uint32_t capture_packet(struct capture_reader *reader, uint32_t len)
{
	struct urxe_packet p = lan_datagram(lan_macs[0], w->qpn[0], 5);
	const struct capture_record *record;
	const uint8_t *frame;
	uint8_t f[LAN_LEN];
	uint32_t n = 0;

	memcpy(p.smac, (const uint8_t[]){4, 0, 0, 0, 0, 9}, 6);
	p.sgid = craft_gid(URXE_NET_IPV4, 2);
	p.dgid = craft_gid(URXE_NET_IPV4, 1);
	lan_frame(f, &p, 0);
	lan_send(w, 0, f, len);
	switch_run(&w->sw, w->now);
	for (; capture_reader_next(reader, &record, &frame) == 1; n++) {
		assert_int_equal(record->len, len);
		assert_string_equal(record->reason, "socket_copy");
	}
	return n;
}

/* The process gets a UDP GSO run whole, by its own socket; urxed's ring holds the start of it. */
static void cut_copies_of_runs_are_lost(void **state)
{
	struct capture_reader reader;
	int ends[2], fd;

	(void)state;
	w->processes[0].sockets = 1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	fd = capture_taps_start(&taps, ends[0], "", false);
	assert_int_equal(capture_reader_open(&reader, fd), 0);
	close(fd);
	assert_int_equal(capture_packet(&reader, LAN_LEN), 1);
	assert_int_equal(capture_reader_lost(&reader), 0);
	assert_int_equal(capture_packet(&reader, LAN_LEN - 1), 0);
	assert_int_equal(capture_reader_lost(&reader), 1);
	assert_true(capture_taps_end(&taps, ends[0]));
	capture_reader_close(&reader);
	close(ends[0]);
	close(ends[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(captures_are_limited),
		TEST(users_have_half_each),
		TEST(processes_beyond_a_full_socket_are_counted),
		TEST(cut_copies_of_runs_are_lost),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
