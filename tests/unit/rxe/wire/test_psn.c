/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rxe/psn.h>

static void test_psn_add_wraps(void **state)
{
	static const struct {
		uint32_t psn, n, sum;
	} rows[] = {
		{0, 0, 0},
		{0, 1, 1},
		{0xfffffe, 1, 0xffffff},
		{0xffffff, 1, 0},
		{0xffffff, 2, 1},
		{0x800000, 0x800000, 0},
		{0xffffff, 0xffffff, 0xfffffe},
		{5, 0x1000000, 5},
		{1, 0xffffffff, 0}, /* adding -1 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(urxe_psn_add(rows[i].psn, rows[i].n), rows[i].sum);
}

static void test_psn_diff_wraps(void **state)
{
	static const struct {
		uint32_t a, b;
		int32_t diff;
	} rows[] = {
		{0, 0, 0},
		{1, 0, 1},
		{0, 1, -1},
		{0, 0xffffff, 1},
		{0xffffff, 0, -1},
		{5, 0xfffffb, 10},
		{0xfffffb, 5, -10},
		/* The last PSN ahead of it, and the first one behind it. */
		{0x7fffff, 0, 0x7fffff},
		{0x800000, 0, -0x800000},
		{0x800001, 0, -0x7fffff},
		{0, 0x7fffff, -0x7fffff},
		{0, 0x800000, -0x800000},
		{0, 0x800001, 0x7fffff},
		{0x123456, 0x923457, 0x7fffff},
		{0x123456, 0x923456, -0x800000},
		/* Bits above bit 23 do not count. */
		{0xff000001, 0, 1},
		{0, 0xff000001, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(urxe_psn_diff(rows[i].a, rows[i].b), rows[i].diff);
}

/* For random distances: psn_diff returns the distance that psn_add has moved. */
static void test_add_and_diff_agree(void **state)
{
	static const uint32_t from[] = {0, 1, 0x7fffff, 0x800000, 0xffffff};

	(void)state;
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		for (uint32_t n = 0; n <= 0x7fffff; n += 0x1fff) {
			uint32_t to = urxe_psn_add(from[i], n);

			assert_int_equal(urxe_psn_diff(to, from[i]), (int32_t)n);
			assert_int_equal(urxe_psn_diff(from[i], to), -(int32_t)n);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_psn_add_wraps),
		cmocka_unit_test(test_psn_diff_wraps),
		cmocka_unit_test(test_add_and_diff_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
