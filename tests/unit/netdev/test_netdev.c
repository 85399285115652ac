/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What netdev.c answers for a port without such a function, and how often it polls such ports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netdev/netdev.h>

#include "mem_port.h"

static void test_port_without_functions_has_no_fd_and_no_deadline(void **state)
{
	struct netdev *ends[2];

	(void)state;
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
		cmocka_unit_test(test_port_without_functions_has_no_fd_and_no_deadline),
		cmocka_unit_test(test_idle_grows_with_quiet),
		cmocka_unit_test(test_idle_grows_on_after_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
