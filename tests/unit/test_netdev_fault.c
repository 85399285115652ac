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

#define DEPTH 8192

static struct netdev *open_fault(const struct netdev_fault *fault, struct netdev **far)
{
	struct netdev *ends[2], *port;

	assert_int_equal(netdev_mem_pair(DEPTH, ends), 0);
	assert_int_equal(netdev_fault_open(ends[0], fault, &port), 0);
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

static void test_without_faults(void **state)
{
	struct netdev_fault fault = {.seed = 1};
	struct netdev_fault_counters counters;
	struct netdev *far, *port = open_fault(&fault, &far);
	struct netdev_frame frame;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(send_number(port, i, i), 1);
	expect_numbers(far, 0, 1000);
	assert_true(netdev_next_deadline(port) == UINT64_MAX);
	netdev_fault_counters(port, &counters);
	assert_int_equal(counters.passed, 1000);
	assert_int_equal(counters.dropped + counters.duplicated + counters.reordered +
				 counters.corrupted,
			 0);
	assert_int_equal(send_number(far, 0, 77), 1);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(frame.data[0], 77);
	close_both(port, far);
}

static void test_delay(void **state)
{
	struct netdev_fault fault = {.delay_ns = 100};
	struct netdev *far, *port = open_fault(&fault, &far);
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

static void test_always(void **state)
{
	struct netdev_fault all_lost = {.drop = 1, .duplicate = 1, .corrupt = 1};
	struct netdev_fault all_twice = {.duplicate = 1};
	struct netdev *far, *port = open_fault(&all_lost, &far);
	struct netdev_fault_counters counters;
	uint32_t number;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(send_number(port, i, i), 1);
	expect_numbers(far, 0, 0);
	netdev_fault_counters(port, &counters);
	assert_int_equal(counters.dropped, 100);
	assert_int_equal(counters.passed, 0);
	close_both(port, far);

	port = open_fault(&all_twice, &far);
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
static void test_corrupt(void **state)
{
	struct netdev_fault fault = {.seed = 3, .corrupt = 1};
	struct netdev *far, *port = open_fault(&fault, &far);
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
static void test_reorder(void **state)
{
	struct netdev_fault fault = {.seed = 4, .reorder = 0.1, .reorder_ns = 50};
	struct netdev *far, *port = open_fault(&fault, &far);
	struct netdev_fault_counters counters;
	bool seen[2000] = {false};
	uint32_t number, late = 0, in_order = 0;

	(void)state;
	for (uint32_t now = 0; now < 2100; now++) {
		struct netdev_frame frame;

		if (now < 2000)
			assert_int_equal(send_number(port, now, now), 1);
		netdev_rx(port, now, &frame, 0);
		while (take_number(far, &number)) {
			assert_in_range(now - number, 0, fault.reorder_ns);
			assert_false(seen[number]);
			seen[number] = true;
			late += number < in_order;
			if (number == now)
				in_order = number;
		}
	}
	for (uint32_t i = 0; i < 2000; i++)
		assert_true(seen[i]);
	netdev_fault_counters(port, &counters);
	assert_in_range(counters.reordered, 140, 260);
	assert_in_range(late, counters.reordered / 2, counters.reordered);
	assert_int_equal(counters.passed, 2000);
	close_both(port, far);
}

/* 20,000 frames at 10 %: 2,000 expected, standard deviation 42. */
static void test_rates(void **state)
{
	struct netdev_fault fault = {
		.seed = 5, .drop = 0.1, .duplicate = 0.1, .corrupt = 0.1, .delay_ns = 7};
	struct netdev *far, *port = open_fault(&fault, &far);
	struct netdev_fault_counters counters;
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
	netdev_fault_counters(port, &counters);
	assert_in_range(counters.dropped, 1790, 2210);
	assert_in_range(counters.duplicated, 1600, 2000);
	assert_in_range(counters.corrupted, 1600, 2000);
	assert_int_equal(counters.passed, 20000 - counters.dropped + counters.duplicated);
	assert_int_equal(got, counters.passed);
	close_both(port, far);
}

static uint64_t transcript(uint64_t seed)
{
	struct netdev_fault fault = {.seed = seed,
				     .drop = 0.05,
				     .duplicate = 0.05,
				     .reorder = 0.1,
				     .corrupt = 0.05,
				     .reorder_ns = 40,
				     .delay_ns = 10};
	struct netdev *far, *port = open_fault(&fault, &far);
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

static void test_deterministic(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		assert_true(transcript(seed) == transcript(seed));
		assert_true(transcript(seed) != transcript(seed + 1));
	}
}

/* Nothing is lost where the port below is full, and the queue is bounded. */
static void test_backpressure(void **state)
{
	struct netdev_fault fault = {.seed = 6};
	struct netdev *ends[2], *port;
	uint32_t sent = 0, number;

	(void)state;
	assert_int_equal(netdev_mem_pair(4, ends), 0);
	assert_int_equal(netdev_fault_open(ends[0], &fault, &port), 0);
	while (sent < 10000 && send_number(port, 0, sent))
		sent++;
	assert_in_range(sent, 4000, 4104);
	for (uint32_t i = 0; i < sent; i++) {
		netdev_rx(port, 0, &(struct netdev_frame){0}, 0);
		assert_true(take_number(ends[1], &number));
		assert_int_equal(number, i);
	}
	assert_false(take_number(ends[1], &number));
	close_both(port, ends[1]);
}

static void test_bad_arguments(void **state)
{
	const struct netdev_fault bad[] = {
		{.drop = -0.1},           {.drop = 1.1},
		{.duplicate = NAN},       {.corrupt = INFINITY},
		{.reorder = 0.5},         {.reorder = 2, .reorder_ns = 1},
		{.delay_ns = UINT64_MAX}, {.reorder_ns = UINT64_MAX},
	};
	struct netdev *ends[2], *port = NULL;

	(void)state;
	assert_int_equal(netdev_mem_pair(1, ends), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(netdev_fault_open(ends[0], &bad[i], &port), -EINVAL);
	assert_null(port);
	close_both(ends[0], ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_faults), cmocka_unit_test(test_delay),
		cmocka_unit_test(test_always),         cmocka_unit_test(test_corrupt),
		cmocka_unit_test(test_reorder),        cmocka_unit_test(test_rates),
		cmocka_unit_test(test_deterministic),  cmocka_unit_test(test_backpressure),
		cmocka_unit_test(test_bad_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
