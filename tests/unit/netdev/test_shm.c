/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The port in shared memory, with an honest peer and with a hostile one: the functions of the
 * peer's side check nothing, so that a test can write any ring entry and position with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netdev/shm.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MTU       1500
#define FRAME_MAX (MTU + 18)
#define PIPE_SIZE 65536

static struct {
	struct netdev *port;
	struct netdev_shm_fds fds;
	struct netdev_shm_peer *peer;
	uint8_t *buffers;
	size_t size; /* of the buffers */
} lab;

/* --- Helpers */

static void attach_peer(void)
{
	assert_int_equal(netdev_shm_connect(lab.port, &lab.fds), 0);
	assert_int_equal(netdev_shm_attach(&lab.fds, &lab.peer), 0);
	lab.buffers = netdev_shm_buffers(lab.peer, &lab.size);
	netdev_shm_set_ready(lab.peer);
}

static void end_peer(void)
{
	netdev_shm_detach(lab.peer);
	netdev_shm_disconnect(lab.port);
}

static int setup(void **state)
{
	(void)state;
	assert_int_equal(netdev_shm_create(MTU, &lab.port), 0);
	attach_peer();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	end_peer();
	netdev_close(lab.port);
	return 0;
}

static uint64_t counter(enum netdev_counter which)
{
	uint64_t counters[NETDEV_COUNTER_COUNT];

	netdev_counters(lab.port, counters);
	return counters[which];
}

static void peer_sends(const uint8_t *data, uint32_t len)
{
	const struct netdev_frame frame = {data, len, len, 0};

	netdev_shm_send(lab.peer, &frame, 1);
}

static void peer_sends_text(const char *text)
{
	memcpy(lab.buffers, text, strlen(text));
	peer_sends(lab.buffers, (uint32_t)strlen(text));
}

static uint32_t port_sends(const char *text)
{
	const struct netdev_frame frame = {(const uint8_t *)text, (uint32_t)strlen(text), 0, 0};

	return netdev_tx(lab.port, 0, &frame, 1);
}

static void expect_frame(const char *text)
{
	struct netdev_frame frame;

	assert_int_equal(netdev_rx(lab.port, 0, &frame, 1), 1);
	assert_int_equal(frame.len, strlen(text));
	assert_int_equal(frame.wire_len, strlen(text));
	assert_memory_equal(frame.data, text, strlen(text));
}

static void expect_nothing(uint64_t now)
{
	struct netdev_frame frame;

	assert_int_equal(netdev_rx(lab.port, now, &frame, 1), 0);
}

static bool is_readable(int fd)
{
	struct pollfd poll_fd = {fd, POLLIN, 0};

	return poll(&poll_fd, 1, 0) == 1;
}

/* --- An honest peer */

static void test_frames_pass_in_both_directions(void **state)
{
	struct netdev_frame frame;

	(void)state;
	peer_sends_text("to the port");
	expect_frame("to the port");
	expect_nothing(0);
	assert_int_equal(port_sends("to the peer"), 1);
	assert_int_equal(netdev_shm_receive(lab.peer, &frame, 1), 1);
	assert_int_equal(frame.len, 11);
	assert_memory_equal(frame.data, "to the peer", 11);
	netdev_shm_release(lab.peer, 1);
	assert_int_equal(netdev_shm_receive(lab.peer, &frame, 1), 0);
	assert_int_equal(counter(NETDEV_RX_FRAMES), 1);
	assert_int_equal(counter(NETDEV_TX_BYTES), 11);
}

static void test_full_rings_refuse(void **state)
{
	struct netdev_frame frame;

	(void)state;
	for (uint32_t i = 0; i < NETDEV_SHM_DEPTH; i++) {
		assert_int_equal(port_sends("x"), 1);
		peer_sends_text("y");
	}
	assert_int_equal(port_sends("x"), 0);
	assert_int_equal(counter(NETDEV_TX_REFUSED), 1);
	assert_int_equal(netdev_shm_room(lab.peer), 0);
	expect_frame("y");
	assert_int_equal(netdev_shm_room(lab.peer), 1);
	assert_int_equal(netdev_shm_released(lab.peer), 1);
	assert_int_equal(netdev_shm_receive(lab.peer, &frame, 1), 1);
	netdev_shm_release(lab.peer, 1);
	assert_int_equal(port_sends("x"), 1);
}

static void test_progress_counts_received_and_waiting_frames(void **state)
{
	uint32_t waiting;

	(void)state;
	assert_int_equal(netdev_shm_progress(lab.port, &waiting), 0);
	assert_int_equal(waiting, 0);
	port_sends("one");
	port_sends("two");
	netdev_shm_release(lab.peer, 1);
	assert_int_equal(netdev_shm_progress(lab.port, &waiting), 1);
	assert_int_equal(waiting, 1);
}

static void test_positions_wrap(void **state)
{
	struct netdev_frame frame;

	(void)state;
	for (uint32_t i = 0; i < 5 * NETDEV_SHM_DEPTH + 3; i++) {
		peer_sends_text("round and round");
		expect_frame("round and round");
		assert_int_equal(port_sends("and back"), 1);
		assert_int_equal(netdev_shm_receive(lab.peer, &frame, 1), 1);
		assert_memory_equal(frame.data, "and back", 8);
		netdev_shm_release(lab.peer, 1);
	}
}

static void test_frame_above_the_mtu_is_not_sent(void **state)
{
	static uint8_t sent[FRAME_MAX + 1];
	const struct netdev_frame fits = {sent, FRAME_MAX, 0, 0},
				  long_one = {sent, FRAME_MAX + 1, 0, 0};
	struct netdev_frame frame;

	(void)state;
	memset(sent, 7, sizeof(sent));
	assert_int_equal(netdev_tx(lab.port, 0, &fits, 1), 1);
	assert_int_equal(netdev_tx(lab.port, 0, &long_one, 1), 1);
	assert_int_equal(counter(NETDEV_TX_TOO_LONG), 1);
	assert_int_equal(netdev_shm_receive(lab.peer, &frame, 1), 1);
	assert_int_equal(frame.len, FRAME_MAX);
	assert_memory_equal(frame.data, sent, FRAME_MAX);
	netdev_shm_release(lab.peer, 1);
	assert_int_equal(netdev_shm_receive(lab.peer, &frame, 1), 0);
}

/* --- Sleeping */

static void test_a_frame_wakes_the_port(void **state)
{
	(void)state;
	expect_nothing(0);
	netdev_wait_fd(lab.port);
	expect_nothing(0);
	assert_false(is_readable(netdev_wait_fd(lab.port)));
	peer_sends_text("wake up");
	assert_true(is_readable(netdev_wait_fd(lab.port)));
	expect_frame("wake up");
	expect_nothing(1);
	assert_false(is_readable(netdev_wait_fd(lab.port)));
	assert_int_equal(netdev_next_deadline(lab.port), UINT64_MAX);
}

static void test_a_frame_wakes_the_peer(void **state)
{
	(void)state;
	port_sends("nobody sleeps");
	assert_false(is_readable(lab.fds.kick));
	assert_true(netdev_shm_arm(lab.peer));
	netdev_shm_release(lab.peer, 1);
	assert_false(netdev_shm_arm(lab.peer));
	port_sends("wake up");
	assert_true(is_readable(lab.fds.kick));
	assert_true(netdev_shm_reset(lab.peer));
	assert_false(is_readable(lab.fds.kick));
}

#define ROUNDS  20000
#define FOREVER 60000 /* ms; what a lost wake-up costs a test that fails */

/* Sends back each frame; sleeps meanwhile. */
static void *run_peer(void *unused)
{
	struct netdev_frame frame;
	uint32_t rounds = 0;

	while (rounds < ROUNDS) {
		struct pollfd kick = {lab.fds.kick, POLLIN, 0};

		if (netdev_shm_receive(lab.peer, &frame, 1)) {
			memcpy(lab.buffers, frame.data, frame.len);
			netdev_shm_release(lab.peer, 1);
			peer_sends(lab.buffers, frame.len);
			rounds++;
		} else if (!netdev_shm_arm(lab.peer)) {
			if (poll(&kick, 1, FOREVER) != 1)
				break;
			netdev_shm_reset(lab.peer);
		}
	}
	return unused;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void test_no_wakeup_is_lost(void **state)
{
	struct pollfd wait = {netdev_wait_fd(lab.port), POLLIN, 0};
	struct netdev_frame frame;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, run_peer, NULL), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		assert_int_equal(port_sends("ping"), 1);
		while (!netdev_rx(lab.port, now_ns(), &frame, 1))
			assert_int_equal(poll(&wait, 1, FOREVER), 1);
	}
	pthread_join(thread, NULL);
}

/* --- Start and end of peers */

static void test_a_peer_that_is_not_ready_gets_nothing(void **state)
{
	(void)state;
	end_peer();
	assert_int_equal(netdev_shm_state(lab.port), NETDEV_SHM_ABSENT);
	assert_false(netdev_is_up(lab.port));
	assert_int_equal(port_sends("lost"), 1);
	expect_nothing(0);
	assert_int_equal(netdev_shm_connect(lab.port, &lab.fds), 0);
	assert_int_equal(netdev_shm_attach(&lab.fds, &lab.peer), 0);
	assert_int_equal(netdev_shm_state(lab.port), NETDEV_SHM_STARTING);
	assert_false(netdev_is_up(lab.port));
	assert_int_equal(port_sends("lost"), 1);
	assert_int_equal(counter(NETDEV_TX_NO_PEER), 2);
	netdev_shm_set_ready(lab.peer);
	assert_int_equal(netdev_shm_state(lab.port), NETDEV_SHM_READY);
	assert_true(netdev_is_up(lab.port));
	netdev_shm_set_link(lab.peer, false);
	assert_false(netdev_is_up(lab.port));
	netdev_shm_set_link(lab.peer, true);
	assert_true(netdev_is_up(lab.port));
}

static void test_the_next_peer_begins_anew(void **state)
{
	const int wait_fd = netdev_wait_fd(lab.port);
	uint64_t counters[NETDEV_COUNTER_COUNT] = {[NETDEV_PEERS] = 3};

	(void)state;
	peer_sends_text("lost");
	port_sends("lost too");
	netdev_shm_set_counters(lab.peer, counters);
	assert_int_equal(netdev_shm_connect(lab.port, &lab.fds), -EISCONN);
	assert_int_equal(counter(NETDEV_RESTARTS), 0);
	end_peer();
	attach_peer();
	assert_int_equal(netdev_wait_fd(lab.port), wait_fd);
	assert_int_equal(counter(NETDEV_RESTARTS), 1);
	netdev_shm_set_counters(lab.peer, counters);
	assert_int_equal(counter(NETDEV_PEERS), 6);
	expect_nothing(0);
	peer_sends_text("found");
	assert_true(is_readable(wait_fd));
	expect_frame("found");
}

/* The peer learns of the end of the port's process, whatever it does at that time. */
static void test_the_end_of_the_port_is_seen(void **state)
{
	struct netdev_shm_fds copies;

	(void)state;
	netdev_shm_detach(lab.peer);
	copies = (struct netdev_shm_fds){dup(lab.fds.memory), dup(lab.fds.wake), dup(lab.fds.kick)};
	assert_int_equal(netdev_shm_attach(&copies, &lab.peer), 0);
	assert_true(netdev_shm_reset(lab.peer));
	netdev_shm_disconnect(lab.port);
	assert_true(is_readable(copies.kick));
	assert_false(netdev_shm_reset(lab.peer));
	close(copies.memory);
	close(copies.wake);
	close(copies.kick);
}

/* --- A hostile peer */

static void expect_bad(const uint8_t *data, uint32_t len, enum netdev_counter reason)
{
	const uint64_t before = counter(reason);

	peer_sends(data, len);
	peer_sends_text("good");
	expect_frame("good");
	assert_int_equal(counter(reason), before + 1);
}

static void test_entries_outside_the_buffers_are_dropped(void **state)
{
	const uint8_t *end = lab.buffers + lab.size;

	(void)state;
	expect_bad(lab.buffers - 1, 64, NETDEV_RX_BAD);
	expect_bad(end - 63, 64, NETDEV_RX_BAD);
	expect_bad(end, 1, NETDEV_RX_BAD);
	expect_bad(lab.buffers - (1u << 20), 64, NETDEV_RX_BAD);
	expect_bad(end + (1u << 30), 64, NETDEV_RX_BAD);
	expect_bad(lab.buffers, 0, NETDEV_RX_BAD);
	expect_bad(lab.buffers, FRAME_MAX + 1, NETDEV_RX_TOO_LONG);
	expect_bad(end - 4, UINT32_MAX, NETDEV_RX_TOO_LONG);
	peer_sends(end - 64, 64);
	assert_int_equal(netdev_rx(lab.port, 0, &(struct netdev_frame){0}, 1), 1);
}

/* A whole ring of bad entries is an empty one. */
static void test_ring_of_bad_entries_is_emptied(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NETDEV_SHM_DEPTH; i++)
		peer_sends(lab.buffers, 0);
	expect_nothing(0);
	assert_int_equal(netdev_shm_room(lab.peer), NETDEV_SHM_DEPTH);
	assert_int_equal(counter(NETDEV_RX_BAD), NETDEV_SHM_DEPTH);
}

static void test_a_received_frame_does_not_change(void **state)
{
	struct netdev_frame frame;

	(void)state;
	peer_sends_text("checked");
	assert_int_equal(netdev_rx(lab.port, 0, &frame, 1), 1);
	memcpy(lab.buffers, "altered", 7);
	assert_memory_equal(frame.data, "checked", 7);
}

static void expect_broken(void)
{
	assert_int_equal(netdev_shm_state(lab.port), NETDEV_SHM_BROKEN);
	assert_false(netdev_is_up(lab.port));
	assert_int_equal(counter(NETDEV_PEERS_BROKEN), 1);
	expect_nothing(0);
	assert_int_equal(port_sends("dropped"), 1);
	assert_int_equal(counter(NETDEV_PEERS_BROKEN), 1);
}

static void test_an_impossible_head_breaks_the_port(void **state)
{
	static struct netdev_frame frames[NETDEV_SHM_DEPTH + 1];

	(void)state;
	for (uint32_t i = 0; i <= NETDEV_SHM_DEPTH; i++)
		frames[i] = (struct netdev_frame){lab.buffers, 64, 64, 0};
	netdev_shm_send(lab.peer, frames, NETDEV_SHM_DEPTH + 1);
	expect_nothing(0);
	expect_broken();
}

static void test_an_impossible_tail_breaks_the_port(void **state)
{
	(void)state;
	netdev_shm_release(lab.peer, 1);
	assert_int_equal(port_sends("dropped"), 1);
	expect_broken();
}

/* Wake-ups without frames must not keep the port's thread from sleeping. */
static void test_needless_wakeups_end(void **state)
{
	(void)state;
	netdev_wait_fd(lab.port);
	expect_nothing(0);
	for (uint64_t now = 1000000; now < 20000000; now += 1000000) {
		eventfd_write(lab.fds.wake, 1);
		assert_true(is_readable(netdev_wait_fd(lab.port)));
		expect_nothing(now);
		assert_false(is_readable(netdev_wait_fd(lab.port)));
	}
}

/* Nor those of a peer that is not ready. */
static void test_needless_wakeups_at_the_start_end(void **state)
{
	const int wait_fd = netdev_wait_fd(lab.port);

	(void)state;
	end_peer();
	assert_int_equal(netdev_shm_connect(lab.port, &lab.fds), 0);
	assert_int_equal(netdev_shm_attach(&lab.fds, &lab.peer), 0);
	for (uint64_t now = 1000000; now < 20000000; now += 1000000) {
		eventfd_write(lab.fds.wake, 1);
		assert_true(is_readable(wait_fd));
		expect_nothing(now);
		assert_false(is_readable(wait_fd));
	}
	netdev_shm_set_ready(lab.peer);
	assert_true(is_readable(wait_fd));
	peer_sends_text("found");
	expect_frame("found");
}

/* It makes the port wake it and never reads its pipe. */
static void test_a_full_pipe_does_not_block(void **state)
{
	(void)state;
	fcntl(lab.fds.kick, F_SETFL, 0);
	for (uint32_t i = 0; i < 2 * PIPE_SIZE; i++) {
		netdev_shm_arm(lab.peer);
		assert_int_equal(port_sends("x"), 1);
		netdev_shm_release(lab.peer, 1);
	}
}

static void test_the_memory_cannot_shrink(void **state)
{
	(void)state;
	assert_int_equal(ftruncate(lab.fds.memory, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fcntl(lab.fds.memory, F_ADD_SEALS, F_SEAL_WRITE), -1);
	/* Freed pages read as zeros. */
	peer_sends_text("freed");
	assert_int_equal(
		fallocate(lab.fds.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20),
		0);
	expect_nothing(0);
}

static void test_mtu_below_576_or_above_9000_is_refused(void **state)
{
	struct netdev *port;

	(void)state;
	assert_int_equal(netdev_shm_create(575, &port), -EINVAL);
	assert_int_equal(netdev_shm_create(9001, &port), -EINVAL);
	assert_int_equal(netdev_mtu(lab.port), MTU);
	assert_int_equal(netdev_shm_mtu(lab.peer), MTU);
	assert_false(netdev_mac(lab.port, (uint8_t[6]){0}));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_frames_pass_in_both_directions),
		TEST(test_full_rings_refuse),
		TEST(test_progress_counts_received_and_waiting_frames),
		TEST(test_positions_wrap),
		TEST(test_frame_above_the_mtu_is_not_sent),
		TEST(test_a_frame_wakes_the_port),
		TEST(test_a_frame_wakes_the_peer),
		TEST(test_no_wakeup_is_lost),
		TEST(test_a_peer_that_is_not_ready_gets_nothing),
		TEST(test_the_next_peer_begins_anew),
		TEST(test_the_end_of_the_port_is_seen),
		TEST(test_entries_outside_the_buffers_are_dropped),
		TEST(test_ring_of_bad_entries_is_emptied),
		TEST(test_a_received_frame_does_not_change),
		TEST(test_an_impossible_head_breaks_the_port),
		TEST(test_an_impossible_tail_breaks_the_port),
		TEST(test_needless_wakeups_end),
		TEST(test_needless_wakeups_at_the_start_end),
		TEST(test_a_full_pipe_does_not_block),
		TEST(test_the_memory_cannot_shrink),
		TEST(test_mtu_below_576_or_above_9000_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
