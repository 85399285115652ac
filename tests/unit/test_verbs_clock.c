/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"

#define PAUSE_US 20000

static void it_stands_still(void **state)
{
	uint64_t at;

	(void)state;
	clock_stop();
	at = clock_now();
	usleep(PAUSE_US);
	assert_int_equal(clock_now(), at);
	clock_stop();
	assert_int_equal(clock_now(), at);
	clock_go();
}

/* What has passed outside meanwhile has not passed inside. */
static void it_goes_on_where_it_stood(void **state)
{
	uint64_t behind = atomic_load(&clock_state), at;

	(void)state;
	for (int i = 1; i <= 2; i++) {
		clock_stop();
		at = clock_now();
		usleep(PAUSE_US);
		clock_go();
		assert_true(clock_now() >= at);
		assert_true(atomic_load(&clock_state) >= behind + PAUSE_US * 1000u);
		behind = atomic_load(&clock_state);
	}
}

static void a_clock_that_goes_is_left_alone(void **state)
{
	uint64_t before = clock_now(), after;

	(void)state;
	clock_go();
	after = clock_now();
	assert_true(after >= before);
	assert_false(after & CLOCK_STOPPED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_stands_still),
		cmocka_unit_test(it_goes_on_where_it_stood),
		cmocka_unit_test(a_clock_that_goes_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
