/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers with units. Suite sanitize runs this, too: no number may be cast before its range is
 * known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/quantity.h"

static void assert_value(const char *text, const struct quantity_unit *units, uint64_t expected)
{
	uint64_t value;

	assert_true(quantity_read(text, units, &value));
	assert_int_equal(value, expected);
}

static void numbers_with_units_are_read(void **state)
{
	(void)state;
	assert_value("0", quantity_count, 0);
	assert_value("18446744073709551615", quantity_count, UINT64_MAX);
	assert_value("64K", quantity_bytes, 65536);
	assert_value("1.5G", quantity_bytes, UINT64_C(3) << 29);
	assert_value("20us", quantity_time, 20000);
	assert_value("2.5k", quantity_rate, 2500);
	/* These decimals have no exact value as a double. */
	assert_value("4.1ms", quantity_time, 4100000);
	assert_value("1.07s", quantity_time, 1070000000);
	assert_value("2.01k", quantity_rate, 2010);
	assert_value("9007199254740993K", quantity_rate, UINT64_C(9007199254740993000));
	assert_value("10000000000G", quantity_rate, UINT64_C(10000000000) * 1000000000);
}

static void numbers_out_of_range_are_refused(void **state)
{
	static const char *const wrong[] = {"18446744073709551616",
					    "4000000000000000000000000000K",
					    "20000000000G",
					    "18446744073709551615.5",
					    "4e68",
					    "-1",
					    "",
					    "K",
					    "1.5",
					    "1.0001k",
					    "1.00000000000k",
					    "1.2.3k",
					    "18446744073709551.616k",
					    "1KK",
					    "nan",
					    "inf"};
	char long_number[401];
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(quantity_read(wrong[i], quantity_rate, &value));
	/* Infinite as a double. */
	memset(long_number, '9', sizeof(long_number) - 1);
	long_number[sizeof(long_number) - 2] = 'G';
	long_number[sizeof(long_number) - 1] = '\0';
	assert_false(quantity_read(long_number, quantity_rate, &value));
}

static void fractions_are_read(void **state)
{
	double value;

	(void)state;
	assert_true(quantity_fraction("1.5%", &value));
	assert_true(value > 0.0149 && value < 0.0151);
	assert_true(quantity_fraction("1", &value) && value == 1);
	assert_false(quantity_fraction("101%", &value));
	assert_false(quantity_fraction("0x1", &value));
	assert_false(quantity_fraction("nan", &value));
	assert_false(quantity_fraction("1e999", &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_with_units_are_read),
		cmocka_unit_test(numbers_out_of_range_are_refused),
		cmocka_unit_test(fractions_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
