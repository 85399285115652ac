/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netdev/netdev.h>
#include <string.h>

static struct netdev_frame text(const char *s)
{
	return (struct netdev_frame){.data = (const uint8_t *)s, .len = strlen(s)};
}

static void send_text(struct netdev *port, const char *s, uint32_t taken)
{
	struct netdev_frame frame = text(s);

	assert_int_equal(netdev_tx(port, 0, &frame, 1), taken);
}

static void expect_text(struct netdev *port, const char *s)
{
	struct netdev_frame frame;

	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(frame.len, strlen(s));
	assert_int_equal(frame.wire_len, strlen(s));
	assert_int_equal(frame.time, 0);
	assert_memory_equal(frame.data, s, strlen(s));
}

static void test_frames_pass_in_both_directions(void **state)
{
	struct netdev_frame none;
	struct netdev *ends[2];

	(void)state;
	assert_int_equal(netdev_mem_pair(4, ends), 0);
	send_text(ends[0], "there", 1);
	send_text(ends[1], "back", 1);
	send_text(ends[0], "again", 1);
	expect_text(ends[1], "there");
	expect_text(ends[1], "again");
	expect_text(ends[0], "back");
	assert_int_equal(netdev_rx(ends[0], 0, &none, 1), 0);
	assert_int_equal(netdev_rx(ends[1], 0, &none, 1), 0);
	netdev_close(ends[0]);
	netdev_close(ends[1]);
}

/* Three is not a power of two: the ring must hold three frames and no more. */
static void test_ring_holds_exactly_its_capacity(void **state)
{
	struct netdev_frame frames[4] = {text("a"), text("bb"), text("ccc"), text("dddd")};
	struct netdev *ends[2];

	(void)state;
	assert_int_equal(netdev_mem_pair(3, ends), 0);
	assert_int_equal(netdev_tx(ends[0], 0, frames, 4), 3);
	assert_int_equal(netdev_tx(ends[0], 0, frames, 4), 0);
	expect_text(ends[1], "a");
	/* The receiver may still read the frame, so its slot is not free. */
	send_text(ends[0], "e", 0);
	expect_text(ends[1], "bb");
	send_text(ends[0], "e", 1);
	expect_text(ends[1], "ccc");
	expect_text(ends[1], "e");
	netdev_close(ends[1]);
	netdev_close(ends[0]);
}

static void test_frames_survive_many_laps(void **state)
{
	uint8_t sent[9018];
	struct netdev *ends[2];

	(void)state;
	assert_int_equal(netdev_mem_pair(5, ends), 0);
	for (uint32_t i = 0; i < 20000; i++) {
		struct netdev_frame frame = {sent, i % sizeof(sent), 0, 0}, got;

		memset(sent, i, frame.len);
		assert_int_equal(netdev_tx(ends[i & 1], 0, &frame, 1), 1);
		assert_int_equal(netdev_rx(ends[~i & 1], 0, &got, 1), 1);
		assert_int_equal(got.len, frame.len);
		if (got.len)
			assert_memory_equal(got.data, sent, got.len);
	}
	netdev_close(ends[0]);
	netdev_close(ends[1]);
}

static void test_closed_peer_leaves_its_frames(void **state)
{
	struct netdev *ends[2];

	(void)state;
	assert_int_equal(netdev_mem_pair(2, ends), 0);
	send_text(ends[0], "last words", 1);
	netdev_close(ends[0]);
	expect_text(ends[1], "last words");
	send_text(ends[1], "a", 1);
	send_text(ends[1], "b", 1);
	send_text(ends[1], "c", 0);
	netdev_close(ends[1]);
}

static void test_answers_of_a_plain_port(void **state)
{
	struct netdev *ends[2];

	(void)state;
	assert_int_equal(netdev_mem_pair(0, ends), -EINVAL);
	assert_int_equal(netdev_mem_pair(NETDEV_MEM_DEPTH_MAX + 1, ends), -EINVAL);
	assert_int_equal(netdev_mem_pair(1, ends), 0);
	assert_int_equal(netdev_wait_fd(ends[0]), -1);
	assert_true(netdev_next_deadline(ends[0]) == UINT64_MAX);
	netdev_close(ends[0]);
	netdev_close(ends[1]);
	netdev_close(NULL);
}

#define MS 1000000ull

static void test_idle_grows_with_quiet(void **state)
{
	uint64_t before = 0;

	(void)state;
	for (uint64_t quiet = 0; quiet < 10 * MS; quiet += 1000) {
		uint64_t idle = netdev_poll_interval_ns(quiet);

		assert_in_range(idle, 10000, MS);
		assert_true(idle >= before);
		assert_true(idle == 10000 || idle <= quiet / 4);
		before = idle;
	}
	assert_int_equal(netdev_poll_interval_ns(1000 * MS - 1), MS);
}

static void test_idle_grows_on_after_a_second(void **state)
{
	uint64_t before = MS;

	(void)state;
	for (uint64_t quiet = 1000 * MS; quiet < 10000 * MS; quiet += MS) {
		uint64_t idle = netdev_poll_interval_ns(quiet);

		assert_in_range(idle, before, 50 * MS);
		assert_true(idle <= quiet / 50);
		before = idle;
	}
	assert_int_equal(before, 50 * MS);
	assert_int_equal(netdev_poll_interval_ns(UINT64_MAX), 50 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_pass_in_both_directions),
		cmocka_unit_test(test_ring_holds_exactly_its_capacity),
		cmocka_unit_test(test_frames_survive_many_laps),
		cmocka_unit_test(test_closed_peer_leaves_its_frames),
		cmocka_unit_test(test_answers_of_a_plain_port),
		cmocka_unit_test(test_idle_grows_with_quiet),
		cmocka_unit_test(test_idle_grows_on_after_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
