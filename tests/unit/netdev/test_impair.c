/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <netdev/netdev.h>
#include <string.h>

#include "answering_port.h"
#include "mem_port.h"

#define DEPTH 8192

static struct netdev *open_impair(const struct netdev_impairment *impairment, struct netdev **far)
{
	struct netdev *ends[2], *port;

	assert_int_equal(netdev_mem_pair(DEPTH, ends), 0);
	assert_int_equal(netdev_impair_open(ends[0], impairment, NULL, &port), 0);
	*far = ends[1];
	return port;
}

static void close_both(struct netdev *port, struct netdev *far)
{
	netdev_close(port);
	netdev_close(far);
}

static uint32_t send_number(struct netdev *port, uint64_t now, uint32_t number)
{
	struct netdev_frame frame = {.data = (uint8_t *)&number, .len = sizeof(number)};

	return netdev_tx(port, now, &frame, 1);
}

static bool take_number(struct netdev *far, uint32_t *number)
{
	struct netdev_frame frame;

	if (!netdev_rx(far, 0, &frame, 1))
		return false;
	assert_int_equal(frame.len, sizeof(*number));
	memcpy(number, frame.data, sizeof(*number));
	return true;
}

static void expect_numbers(struct netdev *far, uint32_t from, uint32_t to)
{
	uint32_t number;

	for (; from < to; from++) {
		assert_true(take_number(far, &number));
		assert_int_equal(number, from);
	}
	assert_false(take_number(far, &number));
}

static void test_frames_pass_unchanged_without_impairment(void **state)
{
	struct netdev_impairment impairment = {.seed = 1};
	struct netdev_impair_counters counters, unused;
	struct netdev *far, *port = open_impair(&impairment, &far);
	struct netdev_frame frame;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(send_number(port, i, i), 1);
	expect_numbers(far, 0, 1000);
	assert_true(netdev_next_deadline(port) == UINT64_MAX);
	netdev_impair_counters(port, &counters, &unused);
	assert_int_equal(counters.passed, 1000);
	assert_int_equal(counters.dropped + counters.duplicated + counters.reordered +
				 counters.corrupted,
			 0);
	assert_int_equal(send_number(far, 0, 77), 1);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(frame.data[0], 77);
	close_both(port, far);
}

static void test_delay_shifts_frames(void **state)
{
	struct netdev_impairment impairment = {.delay_ns = 100};
	struct netdev *far, *port = open_impair(&impairment, &far);
	struct netdev_frame frame;

	(void)state;
	assert_int_equal(send_number(port, 1000, 0), 1);
	assert_int_equal(send_number(port, 1050, 1), 1);
	assert_int_equal(netdev_next_deadline(port), 1100);
	expect_numbers(far, 0, 0);
	assert_int_equal(netdev_rx(port, 1099, &frame, 0), 0);
	expect_numbers(far, 0, 0);
	assert_int_equal(netdev_rx(port, 1100, &frame, 0), 0);
	expect_numbers(far, 0, 1);
	assert_int_equal(netdev_next_deadline(port), 1150);
	assert_int_equal(send_number(port, 1150, 2), 1);
	expect_numbers(far, 1, 2);
	assert_int_equal(netdev_next_deadline(port), 1250);
	close_both(port, far);
}

static void test_probability_of_one_affects_every_frame(void **state)
{
	struct netdev_impairment all_lost = {.drop = 1, .duplicate = 1, .corrupt = 1};
	struct netdev_impairment all_twice = {.duplicate = 1};
	struct netdev *far, *port = open_impair(&all_lost, &far);
	struct netdev_impair_counters counters, unused;
	uint32_t number;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(send_number(port, i, i), 1);
	expect_numbers(far, 0, 0);
	netdev_impair_counters(port, &counters, &unused);
	assert_int_equal(counters.dropped, 100);
	assert_int_equal(counters.passed, 0);
	close_both(port, far);

	port = open_impair(&all_twice, &far);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(send_number(port, i, i), 1);
	for (uint32_t i = 0; i < 200; i++) {
		assert_true(take_number(far, &number));
		assert_int_equal(number, i / 2);
	}
	expect_numbers(far, 0, 0);
	close_both(port, far);
}

/* Exactly one bit differs. */
static void test_corrupt_flips_one_bit(void **state)
{
	struct netdev_impairment impairment = {.seed = 3, .corrupt = 1};
	struct netdev *far, *port = open_impair(&impairment, &far);
	uint32_t seen = 0, number = 0;

	(void)state;
	for (uint32_t i = 0; i < 2000; i++) {
		assert_int_equal(send_number(port, i, 0), 1);
		assert_true(take_number(far, &number));
		assert_int_equal(__builtin_popcount(number), 1);
		seen |= number;
	}
	assert_int_equal(seen, UINT32_MAX);
	/* An empty frame has no bit to flip. */
	assert_int_equal(netdev_tx(port, 0, &(struct netdev_frame){0}, 1), 1);
	close_both(port, far);
}

/* Each reordered frame comes within reorder_ns of its time; the rest keep their order. */
static void test_reordered_frames_arrive_in_time(void **state)
{
	struct netdev_impairment impairment = {.seed = 4, .reorder = 0.1, .reorder_ns = 50};
	struct netdev *far, *port = open_impair(&impairment, &far);
	struct netdev_impair_counters counters, unused;
	bool seen[2000] = {false};
	uint32_t number, late = 0, in_order = 0;

	(void)state;
	for (uint32_t now = 0; now < 2100; now++) {
		struct netdev_frame frame;

		if (now < 2000)
			assert_int_equal(send_number(port, now, now), 1);
		netdev_rx(port, now, &frame, 0);
		while (take_number(far, &number)) {
			assert_in_range(now - number, 0, impairment.reorder_ns);
			assert_false(seen[number]);
			seen[number] = true;
			late += number < in_order;
			if (number == now)
				in_order = number;
		}
	}
	for (uint32_t i = 0; i < 2000; i++)
		assert_true(seen[i]);
	netdev_impair_counters(port, &counters, &unused);
	assert_in_range(counters.reordered, 140, 260);
	assert_in_range(late, counters.reordered / 2, counters.reordered);
	assert_int_equal(counters.passed, 2000);
	close_both(port, far);
}

/* 20,000 frames at 10 %: 2,000 expected, standard deviation 42. */
static void test_rates_match_probabilities(void **state)
{
	struct netdev_impairment impairment = {
		.seed = 5, .drop = 0.1, .duplicate = 0.1, .corrupt = 0.1, .delay_ns = 7};
	struct netdev *far, *port = open_impair(&impairment, &far);
	struct netdev_impair_counters counters, unused;
	uint32_t number;
	uint64_t got = 0;

	(void)state;
	for (uint32_t i = 0; i < 20000; i++) {
		assert_int_equal(send_number(port, i, i), 1);
		while (take_number(far, &number))
			got++;
	}
	netdev_rx(port, 30000, &(struct netdev_frame){0}, 0);
	while (take_number(far, &number))
		got++;
	netdev_impair_counters(port, &counters, &unused);
	assert_in_range(counters.dropped, 1790, 2210);
	assert_in_range(counters.duplicated, 1600, 2000);
	assert_in_range(counters.corrupted, 1600, 2000);
	assert_int_equal(counters.passed, 20000 - counters.dropped + counters.duplicated);
	assert_int_equal(got, counters.passed);
	close_both(port, far);
}

static uint64_t transcript(uint64_t seed)
{
	struct netdev_impairment impairment = {.seed = seed,
					       .drop = 0.05,
					       .duplicate = 0.05,
					       .reorder = 0.1,
					       .corrupt = 0.05,
					       .reorder_ns = 40,
					       .delay_ns = 10};
	struct netdev *far, *port = open_impair(&impairment, &far);
	uint64_t hash = 14695981039346656037u;
	uint32_t number;

	for (uint32_t now = 0; now < 1000; now++) {
		assert_int_equal(send_number(port, now, now), 1);
		while (take_number(far, &number))
			hash = ((hash ^ now) * 1099511628211u ^ number) * 1099511628211u;
		hash = (hash ^ netdev_next_deadline(port)) * 1099511628211u;
	}
	close_both(port, far);
	return hash;
}

static void test_same_seed_gives_same_result(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		assert_true(transcript(seed) == transcript(seed));
		assert_true(transcript(seed) != transcript(seed + 1));
	}
}

/* A full port below loses no frame, and the queue is bounded. */
static void test_full_port_below_loses_no_frame(void **state)
{
	struct netdev_impairment impairment = {.seed = 6};
	struct netdev *ends[2], *port;
	uint32_t sent = 0, number;

	(void)state;
	assert_int_equal(netdev_mem_pair(4, ends), 0);
	assert_int_equal(netdev_impair_open(ends[0], &impairment, NULL, &port), 0);
	while (sent < 10000 && send_number(port, 0, sent))
		sent++;
	assert_in_range(sent, 4000, 4104);
	/* The caller sleeps between attempts. */
	assert_in_range(netdev_next_deadline(port), 1, 1000000);
	for (uint32_t i = 0; i < sent; i++) {
		netdev_rx(port, 0, &(struct netdev_frame){0}, 0);
		assert_true(take_number(ends[1], &number));
		assert_int_equal(number, i);
	}
	assert_false(take_number(ends[1], &number));
	close_both(port, ends[1]);
}

/* Impairs received frames only. */
static void test_received_frames_are_impaired(void **state)
{
	struct netdev_impairment none = {.seed = 7};
	struct netdev_impairment bad = {
		.seed = 8, .drop = 0.1, .duplicate = 0.1, .corrupt = 0.1, .delay_ns = 5};
	struct netdev_impair_counters tx, rx;
	struct netdev *ends[2], *port;
	struct netdev_frame frames[64];
	uint64_t got = 0, whole = 0, now;

	(void)state;
	assert_int_equal(netdev_mem_pair(DEPTH, ends), 0);
	assert_int_equal(netdev_impair_open(ends[0], &none, &bad, &port), 0);
	for (now = 0; now < 20005; now++) {
		if (now < 20000) {
			assert_int_equal(send_number(port, now, (uint32_t)now), 1);
			expect_numbers(ends[1], (uint32_t)now, (uint32_t)now + 1);
			assert_int_equal(send_number(ends[1], now, (uint32_t)now), 1);
		}
		for (uint32_t n = netdev_rx(port, now, frames, 64); n--; got++) {
			uint32_t number;

			memcpy(&number, frames[n].data, sizeof(number));
			whole += number == now - 5;
		}
	}
	assert_true(netdev_next_deadline(port) == UINT64_MAX);
	netdev_impair_counters(port, &tx, &rx);
	assert_int_equal(tx.passed, 20000);
	assert_int_equal(tx.dropped + tx.duplicated + tx.corrupted, 0);
	assert_in_range(rx.dropped, 1790, 2210);
	assert_in_range(rx.duplicated, 1600, 2000);
	assert_in_range(rx.corrupted, 1600, 2000);
	assert_int_equal(rx.passed, 20000 - rx.dropped + rx.duplicated);
	assert_int_equal(got, rx.passed);
	assert_int_equal(whole, rx.passed - rx.corrupted);
	close_both(port, ends[1]);
}

/* After a burst that is dropped entirely, netdev_rx receives the next one. */
static void test_burst_dropped_whole_does_not_end_receiving(void **state)
{
	struct netdev_impairment none = {0}, bad = {.seed = 9, .drop = 0.9};
	struct netdev_impair_counters tx, rx;
	struct netdev *ends[2], *port;
	struct netdev_frame frame;
	uint32_t got = 0;

	(void)state;
	assert_int_equal(netdev_mem_pair(DEPTH, ends), 0);
	assert_int_equal(netdev_impair_open(ends[0], &none, &bad, &port), 0);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(send_number(ends[1], 0, i), 1);
	while (netdev_rx(port, 0, &frame, 1))
		got++;
	netdev_impair_counters(port, &tx, &rx);
	assert_int_equal(got, rx.passed);
	assert_int_equal(rx.passed + rx.dropped, 5000);
	assert_in_range(got, 400, 600);
	close_both(port, ends[1]);
}

/* Endless bursts that are all dropped end the call. */
static void test_dropped_bursts_end_the_call(void **state)
{
	struct netdev_impairment none = {0}, bad = {.drop = 1};
	struct netdev_impair_counters tx, rx;
	struct netdev *ends[2], *port;
	struct netdev_frame frame;

	(void)state;
	assert_int_equal(netdev_mem_pair(DEPTH, ends), 0);
	assert_int_equal(netdev_impair_open(ends[0], &none, &bad, &port), 0);
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(send_number(ends[1], 0, i), 1);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	netdev_impair_counters(port, &tx, &rx);
	assert_in_range(rx.dropped, 1, DEPTH / 2);
	close_both(port, ends[1]);
}

/* With a full queue, further frames wait in the port below, and none is lost. */
static void test_full_queue_loses_no_received_frame(void **state)
{
	struct netdev_impairment none = {0}, late = {.delay_ns = 10};
	struct netdev *ends[2], *port;
	struct netdev_frame frame;
	uint32_t number;

	(void)state;
	assert_int_equal(netdev_mem_pair(DEPTH, ends), 0);
	assert_int_equal(netdev_impair_open(ends[0], &none, &late, &port), 0);
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(send_number(ends[1], 0, i), 1);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	assert_int_equal(netdev_next_deadline(port), 10);
	for (uint32_t i = 0; i < DEPTH; i++) {
		uint64_t now = i < DEPTH / 2 ? 10 : 20 + i;

		while (!netdev_rx(port, now, &frame, 1))
			assert_true(now++ < 3 * DEPTH);
		memcpy(&number, frame.data, sizeof(number));
		assert_int_equal(number, i);
	}
	close_both(port, ends[1]);
}

static void test_bad_arguments_are_refused(void **state)
{
	const struct netdev_impairment bad[] = {
		{.drop = -0.1},           {.drop = 1.1},
		{.duplicate = NAN},       {.corrupt = INFINITY},
		{.reorder = 0.5},         {.reorder = 2, .reorder_ns = 1},
		{.delay_ns = UINT64_MAX}, {.reorder_ns = UINT64_MAX},
	};
	const struct netdev_impairment none = {.seed = 1};
	struct netdev *ends[2], *port = NULL;

	(void)state;
	assert_int_equal(netdev_mem_pair(1, ends), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(netdev_impair_open(ends[0], &bad[i], NULL, &port), -EINVAL);
		assert_int_equal(netdev_impair_open(ends[0], &none, &bad[i], &port), -EINVAL);
	}
	assert_null(port);
	close_both(ends[0], ends[1]);
}

static void test_device_is_that_of_the_port_below(void **state)
{
	const uint8_t station[6] = {2, [5] = 7}, group[6] = {1, [5] = 8};
	const struct netdev_impairment none = {0};
	uint64_t counters[NETDEV_COUNTER_COUNT];
	struct netdev *port;
	uint8_t mac[6];

	(void)state;
	assert_int_equal(netdev_impair_open(answering_port(), &none, NULL, &port), 0);
	assert_int_equal(netdev_wait_fd(port), ANSWERING_WAIT_FD);
	assert_true(netdev_mac(port, mac));
	assert_int_equal(mac[5], ANSWERING_MAC_BYTE);
	assert_int_equal(netdev_mtu(port), ANSWERING_MTU);
	assert_int_equal(netdev_page_size(port), ANSWERING_PAGE_SIZE);
	assert_false(netdev_is_up(port));
	netdev_counters(port, counters);
	assert_int_equal(counters[NETDEV_RX_FRAMES], ANSWERING_RECEIVED);
	assert_int_equal(counters[NETDEV_TX_FRAMES], 0);
	assert_int_equal(netdev_set_promiscuous(port, true), -EPERM);
	assert_int_equal(netdev_set_promiscuous(port, false), -EBUSY);
	assert_int_equal(netdev_set_allmulticast(port), -EIO);
	assert_int_equal(netdev_add_mac(port, station), -7);
	assert_int_equal(netdev_add_group(port, group), -8);
	assert_int_equal(netdev_add_vlan(port, 9), -9);
	netdev_close(port);
}

/* Packets that another socket receives would not be impaired. */
static void test_impaired_port_leaves_no_packets_to_other_sockets(void **state)
{
	const struct netdev_impairment none = {0};
	const uint16_t block = 1;
	struct netdev *port;

	(void)state;
	assert_int_equal(netdev_impair_open(answering_port(), &none, NULL, &port), 0);
	assert_false(netdev_can_exclude_qpns(port));
	assert_int_equal(netdev_exclude_qpns(port, &block, 1), -ENOTSUP);
	assert_int_equal(netdev_admit_qpns(port, &block, 1), -ENOTSUP);
	netdev_close(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_pass_unchanged_without_impairment),
		cmocka_unit_test(test_delay_shifts_frames),
		cmocka_unit_test(test_probability_of_one_affects_every_frame),
		cmocka_unit_test(test_corrupt_flips_one_bit),
		cmocka_unit_test(test_reordered_frames_arrive_in_time),
		cmocka_unit_test(test_rates_match_probabilities),
		cmocka_unit_test(test_same_seed_gives_same_result),
		cmocka_unit_test(test_full_port_below_loses_no_frame),
		cmocka_unit_test(test_received_frames_are_impaired),
		cmocka_unit_test(test_burst_dropped_whole_does_not_end_receiving),
		cmocka_unit_test(test_dropped_bursts_end_the_call),
		cmocka_unit_test(test_full_queue_loses_no_received_frame),
		cmocka_unit_test(test_bad_arguments_are_refused),
		cmocka_unit_test(test_device_is_that_of_the_port_below),
		cmocka_unit_test(test_impaired_port_leaves_no_packets_to_other_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
