/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "mem_port.h"
#include "urxed/uplink/fault_option.h"

static void all_keys_are_parsed(void **state)
{
	struct uplink_impair f;
	char error[FAULT_OPTION_ERROR];

	(void)state;
	assert_int_equal(
		fault_option_parse("drop=1%,duplicate=0.25,reorder=0,corrupt=100%,delay=50us,"
				   "reorder-time=2ms,seed=18446744073709551615",
				   &f, error),
		0);
	assert_true(f.asked && f.both_ways);
	assert_true(f.tx.drop == 0.01);
	assert_true(f.tx.duplicate == 0.25);
	assert_true(f.tx.reorder == 0);
	assert_true(f.tx.corrupt == 1);
	assert_int_equal(f.tx.delay_ns, 50000);
	assert_int_equal(f.tx.reorder_ns, 2000000);
	assert_true(f.tx.seed == UINT64_MAX);
	assert_true(f.rx.drop == 0.01);
	assert_int_equal(f.rx.delay_ns, 50000);
	assert_true(f.rx.seed != f.tx.seed);
}

static void way_selects_directions(void **state)
{
	struct uplink_impair f;
	char error[FAULT_OPTION_ERROR];

	(void)state;
	assert_int_equal(fault_option_parse("way=out,drop=0.5", &f, error), 0);
	assert_false(f.both_ways);
	assert_int_equal(fault_option_parse("drop=0.5,way=both", &f, error), 0);
	assert_true(f.both_ways);
}

/* netdev_impair_open must accept what fault_option_parse accepts: reordering needs a time. */
static void reorder_without_time_gets_a_default(void **state)
{
	struct netdev *ends[2], *port;
	struct uplink_impair f;
	char error[FAULT_OPTION_ERROR];

	(void)state;
	assert_int_equal(fault_option_parse("reorder=1%", &f, error), 0);
	assert_int_equal(netdev_mem_pair(1, ends), 0);
	assert_int_equal(netdev_impair_open(ends[0], &f.tx, &f.rx, &port), 0);
	netdev_close(port);
	netdev_close(ends[1]);
}

static void invalid_texts_are_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "KEY=VALUE"},
		{"drop", "'drop' is not of the form"},
		{"drop=1%,", "'' is not of the form"},
		{"drop=1%,,seed=1", "'' is not of the form"},
		{"=1", "unknown fault ''"},
		{"lose=1%", "unknown fault 'lose'"},
		{"drop=", "drop is a fraction"},
		{"drop=101%", "not '101%'"},
		{"drop=-1", "not '-1'"},
		{"drop=nan", "not 'nan'"},
		{"corrupt=1%%", "not '1%%'"},
		{"delay=2h", "delay is a time"},
		{"delay=3601s", "delay is a time"},
		{"reorder-time=0", "reorder-time is a time from 1 ns"},
		{"seed=x", "seed is a whole number"},
		{"seed=18446744073709551616", "seed is a whole number"},
		{"way=in", "way is both or out"},
		{"drop=0.00000000000000000000000000000000000000000000000000000000000000000001",
		 "not of the form"},
	};
	struct uplink_impair f;
	char error[FAULT_OPTION_ERROR];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(fault_option_parse(bad[i].text, &f, error), -EINVAL);
		if (!strstr(error, bad[i].says))
			fail_msg("'%s': %s", bad[i].text, error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_keys_are_parsed),
		cmocka_unit_test(way_selects_directions),
		cmocka_unit_test(reorder_without_time_gets_a_default),
		cmocka_unit_test(invalid_texts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
