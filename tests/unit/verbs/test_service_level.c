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
		for (int ipv4 = 0; ipv4 <= 1; ipv4++)
			assert_int_equal(sl_priority(sl_of_datagram(priority, ipv4)), priority);
}

/* But level 10, which is the packet type of IPv4 with priority 0. */
static void lower_bits_of_other_service_levels_count(void **state)
{
	(void)state;
	for (uint8_t sl = SL_MAX + 1; sl < 16; sl++)
		if (sl != SL_IPV4)
			assert_int_equal(sl_priority(sl), sl - 8);
	assert_int_equal(sl_priority(SL_IPV4), 0);
	assert_int_equal(sl_priority(0x8 << SL_PRIORITY_SHIFT | SL_IPV4), 0);
	assert_int_equal(sl_priority(0xff), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(service_level_tells_ucx_of_ipv4),
		cmocka_unit_test(service_level_keeps_the_priority),
		cmocka_unit_test(lower_bits_of_other_service_levels_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
