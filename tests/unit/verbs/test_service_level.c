/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rxe/service_level.h>

/* UCX 1.13 reads the lower three bits: 2 stands for IPv4, and nothing else does. */
static void service_level_tells_ucx_of_ipv4(void **state)
{
	(void)state;
	for (uint8_t priority = 0; priority <= SL_MAX; priority++)
		assert_int_equal(sl_of_datagram(priority, true) & 7, 2);
	assert_int_equal(sl_of_datagram(0, false), 0);
}

static void service_level_keeps_the_priority(void **state)
{
	(void)state;
	for (uint8_t priority = 0; priority <= SL_MAX; priority++)
		for (int ipv4 = 0; ipv4 <= 1; ipv4++) {
			uint8_t back = 0xff;

			assert_true(sl_priority(sl_of_datagram(priority, ipv4), &back));
			assert_int_equal(back, priority);
		}
}

static void unknown_service_levels_are_refused(void **state)
{
	uint8_t priority;

	(void)state;
	assert_false(sl_priority(SL_MAX + 1, &priority));
	assert_false(sl_priority(SL_IPV4 + 1, &priority));
	assert_false(sl_priority((SL_MAX + 1) << SL_PRIORITY_SHIFT | SL_IPV4, &priority));
	assert_false(sl_priority(0xff, &priority));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(service_level_tells_ucx_of_ipv4),
		cmocka_unit_test(service_level_keeps_the_priority),
		cmocka_unit_test(unknown_service_levels_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
