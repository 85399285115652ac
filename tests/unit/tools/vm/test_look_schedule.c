/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The pauses between looks at doorbells in memory, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vm/look_schedule.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define T0 UINT64_C(1000000000)

static void test_looks_follow_work_closely(void **state)
{
	struct look_schedule s = {0};

	(void)state;
	assert_int_equal(look_schedule_looked(&s, T0, true, false), 20 * US);
	assert_int_equal(look_schedule_looked(&s, T0 + MS, false, false), 20 * US);
	assert_int_equal(look_schedule_looked(&s, T0 + 64 * MS, false, false), MS);
	assert_int_equal(look_schedule_looked(&s, T0 + 640 * MS, false, false), 10 * MS);
	assert_int_equal(look_schedule_looked(&s, T0 + 640 * MS + 1, true, false), 20 * US);
}

static void test_idle_machine_is_looked_at_rarely(void **state)
{
	struct look_schedule s = {0};

	(void)state;
	assert_int_equal(look_schedule_looked(&s, UINT64_MAX / 2, false, false), 50 * MS);
}

/* A request at any time after work is found before another 1/64 of that time has passed. */
static void test_requests_are_late_by_a_share_of_the_pause(void **state)
{
	struct look_schedule s = {0};
	uint64_t now = T0, next = now + look_schedule_looked(&s, now, true, false), looks = 0;

	(void)state;
	while (next - T0 < 4000 * MS) {
		assert_true(next - now <= 20 * US || (next - now) * 64 <= next - T0);
		now = next;
		next += look_schedule_looked(&s, now, false, false);
		looks++;
	}
	assert_true(looks < 1000);
}

static void test_spare_processor_looks_without_pause(void **state)
{
	struct look_schedule s = {0};

	(void)state;
	assert_int_equal(look_schedule_looked(&s, T0, true, true), 0);
	assert_int_equal(look_schedule_looked(&s, T0 + 199 * US, false, true), 0);
	assert_int_equal(look_schedule_looked(&s, T0 + 199 * US, false, false), 20 * US);
	assert_int_equal(look_schedule_looked(&s, T0 + 200 * US, false, true), 20 * US);
	assert_int_equal(look_schedule_looked(&s, T0 + 640 * MS, false, true), 10 * MS);
	assert_int_equal(look_schedule_looked(&s, T0 + 640 * MS + 1, true, true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looks_follow_work_closely),
		cmocka_unit_test(test_idle_machine_is_looked_at_rarely),
		cmocka_unit_test(test_spare_processor_looks_without_pause),
		cmocka_unit_test(test_requests_are_late_by_a_share_of_the_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
