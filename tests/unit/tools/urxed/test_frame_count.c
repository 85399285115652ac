/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames of an interface in /proc/net/dev, whose lines the kernel's dev_seq_printf_stats writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "urxed/kernel/frame_count.h"

static void counts_frames_of_both_directions(void **state)
{
	struct frame_count count;

	(void)state;
	assert_true(frame_count_parse("  eth0: 100 7 0 1 0 0 0 2   200 5000000000 0 0 0 0 0 0\n",
				      "eth0", &count));
	assert_int_equal(count.received, 7);
	assert_int_equal(count.sent, 5000000000);
	assert_true(frame_count_parse("eth0:1234567890123 7 0 0 0 0 0 0 9 8 0 0 0 0 0 0", "eth0",
				      &count));
	assert_int_equal(count.received, 7);
	assert_int_equal(count.sent, 8);
}

static void ignores_other_lines(void **state)
{
	static const char *const lines[] = {
		"Inter-|   Receive                     |  Transmit\n",
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes\n",
		"  eth01: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
		"  xeth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
		"  eth0: 1 2 3\n",
		"",
	};
	struct frame_count count;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(frame_count_parse(lines[i], "eth0", &count));
}

static void reads_the_kernels_file(void **state)
{
	(void)state;
	assert_int_equal(frame_count_read("no such name").received, 0);
	frame_count_read("lo");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_frames_of_both_directions),
		cmocka_unit_test(ignores_other_lines),
		cmocka_unit_test(reads_the_kernels_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
