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
	uint64_t frames = 0;

	(void)state;
	assert_true(frame_count_parse("  eth0: 100 7 0 1 0 0 0 2   200 5000000000 0 0 0 0 0 0\n",
				      "eth0", &frames));
	assert_true(frames == 5000000007);
	assert_true(frame_count_parse("eth0:1234567890123 7 0 0 0 0 0 0 9 8 0 0 0 0 0 0", "eth0",
				      &frames));
	assert_int_equal(frames, 15);
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
	uint64_t frames;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(frame_count_parse(lines[i], "eth0", &frames));
}

static void reads_the_kernels_file(void **state)
{
	(void)state;
	assert_int_equal(frame_count_read("no such name"), 0);
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
