/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames that the kernel leaves in the transmit ring of an af_packet port, because the link is slow
 * or down. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cable.h"

#define ROCE_V1 0x8915
#define PAYLOAD 1500
#define FRAMES  10

#define NS_PER_SEC 1000000000ull

/* More ends of the link than fill the ring with frames that the port took between them. */
#define FLAPS 3
/* Time for a call that must not wait, s. */
#define PATIENCE_S 20
/* Far fewer frames than a full ring has. At 1 Mb/s the link carries them in half a second. */
#define FEW_FRAMES 40

static const char *skip_reason;

static int setup(void **state)
{
	(void)state;
	if (geteuid() || unshare(CLONE_NEWNET) || cable_shell("ip link set lo up 2>/dev/null"))
		skip_reason = "needs root, network namespaces and ip(8)";
	return 0;
}

static struct netdev *open_port(void)
{
	if (skip_reason)
		cable_skip(skip_reason);
	return cable_open("af_packet:pa");
}

static void set_link(const char *state)
{
	assert_int_equal(cable_shell("ip link set pa %s", state), 0);
}

static uint32_t send_one(struct netdev *port, uint64_t now)
{
	uint8_t frame[14 + PAYLOAD];
	uint32_t length =
		cable_frame(frame, (uint8_t[6]){2, 1}, (uint8_t[6]){2}, ROCE_V1, PAYLOAD, 0);

	return netdev_tx(port, now, &(struct netdev_frame){frame, length}, 1);
}

/* A port of a daemon refuses frames that find no room, and never waits: the daemon has one thread.
 * Here SIGALRM ends a wait. */
static void test_a_link_that_goes_down_again_and_again_stops_nobody(void **state)
{
	struct netdev *port = open_port();
	struct netdev_frame got;

	(void)state;
	if (cable_shell("tc qdisc add dev pa root tbf rate 8kbit burst 1600 limit 10000000")) {
		netdev_close(port);
		cable_remove();
		cable_skip("needs tc(8) and the queueing discipline tbf");
	}
	alarm(PATIENCE_S);
	for (int i = 0; i < FLAPS; i++) {
		while (send_one(port, 0))
			;
		set_link("down");
		assert_int_equal(netdev_rx(port, 0, &got, 1), 0);
		set_link("up");
	}
	while (send_one(port, 0))
		;
	alarm(0);
	netdev_close(port);
	cable_remove();
}

static uint32_t take_frames(int far)
{
	uint8_t frame[14 + PAYLOAD];
	uint32_t n = 0;

	while (recv(far, frame, sizeof(frame), MSG_DONTWAIT) > 0)
		n += frame[12] == ROCE_V1 >> 8 && frame[13] == (ROCE_V1 & 0xff);
	return n;
}

/* urxed drops all frames of an uplink that takes none for 10 ms. */
static void test_a_full_ring_takes_frames_before_it_is_empty(void **state)
{
	struct netdev *port = open_port();
	int far = cable_socket("pb");
	uint32_t sent = 0; /* since the ring has taken a frame */

	(void)state;
	if (cable_shell("tc qdisc add dev pa root tbf rate 1mbit burst 1600 limit 10000000")) {
		close(far);
		netdev_close(port);
		cable_remove();
		cable_skip("needs tc(8) and the queueing discipline tbf");
	}
	while (send_one(port, 0))
		;
	take_frames(far);
	for (int taken = 0; taken < FRAMES;) {
		sent += take_frames(far);
		if (send_one(port, 0)) {
			taken++;
			sent = 0;
			continue;
		}
		assert_in_range(sent, 0, FEW_FRAMES);
	}
	close(far);
	netdev_close(port);
	cable_remove();
}

static void expect_frames(int far, uint32_t n)
{
	struct pollfd wait = {.fd = far, .events = POLLIN};

	for (uint32_t got = 0; got < n; got += take_frames(far))
		assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
}

static void test_frames_wait_for_the_link(void **state)
{
	struct netdev *port = open_port();
	int far = cable_socket("pb");
	struct netdev_frame got;
	uint64_t now = 0;

	(void)state;
	set_link("down");
	for (int i = 0; i < FRAMES; i++)
		assert_int_equal(send_one(port, now), 1);
	assert_int_equal(netdev_rx(port, now, &got, 1), 0);
	/* A link that stays down hardly wakes the daemon. */
	assert_true(netdev_next_deadline(port) >= now + NS_PER_SEC);
	set_link("up");
	/* Turns of the daemon before that make no system call to send. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(netdev_rx(port, now, &got, 1), 0);
	assert_int_equal(take_frames(far), 0);
	netdev_link_returned(port);
	assert_true(netdev_next_deadline(port) <= now);
	netdev_rx(port, now, &got, 1);
	while (netdev_next_deadline(port) != UINT64_MAX) {
		now = netdev_next_deadline(port);
		assert_true(now < NS_PER_SEC);
		netdev_rx(port, now, &got, 1);
	}
	expect_frames(far, FRAMES);
	close(far);
	netdev_close(port);
	cable_remove();
}

/* The link ends and returns before the port makes a call to send. */
static void test_frames_do_not_wait_after_a_short_end_of_the_link(void **state)
{
	struct netdev *port = open_port();
	int far = cable_socket("pb");
	struct netdev_frame got;
	uint64_t now = 0;

	(void)state;
	set_link("down");
	for (int i = 0; i < FRAMES; i++)
		assert_int_equal(send_one(port, now), 1);
	set_link("up");
	netdev_link_returned(port);
	while (netdev_next_deadline(port) != UINT64_MAX) {
		netdev_rx(port, now, &got, 1);
		now = netdev_next_deadline(port);
		assert_true(now < NS_PER_SEC || now == UINT64_MAX);
	}
	expect_frames(far, FRAMES);
	close(far);
	netdev_close(port);
	cable_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_link_that_goes_down_again_and_again_stops_nobody),
		cmocka_unit_test(test_a_full_ring_takes_frames_before_it_is_empty),
		cmocka_unit_test(test_frames_wait_for_the_link),
		cmocka_unit_test(test_frames_do_not_wait_after_a_short_end_of_the_link),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
