/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs that take their completions and then wait without polling, and how the engine thread
 * detects them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "poll/poll_detect.h"

#define LONG (POLL_DETECT_SHORT_NS + 1)
#define LOST (POLL_DETECT_LOST_NS + 1)

static uint64_t now = 1;

/*
 * Some times the program finds completions, then makes no call for `away`. `one_sided`: peers
 * change its memory meanwhile.
 */
static void go_away(struct poll_detect *detect, uint64_t away, unsigned int times, bool one_sided)
{
	while (times--) {
		poll_detect_begin(detect, now);
		now += away;
		if (one_sided)
			poll_detect_note_one_sided(detect);
		assert_int_equal(poll_detect_end(detect, now), away);
	}
}

static void be_away(struct poll_detect *detect, uint64_t away, unsigned int times)
{
	go_away(detect, away, times, true);
}

/* A program that computes between its polls comes back without a change of its memory. */
static void test_times_away_without_one_sided_requests_do_not_count(void **state)
{
	struct poll_detect detect = {0};

	(void)state;
	poll_detect_note_one_sided(&detect);
	go_away(&detect, LOST, 1000, false);
	assert_false(poll_detect_doubted(&detect));
	be_away(&detect, LOST, 2);
	assert_true(poll_detect_expected(&detect));
	go_away(&detect, LOST, POLL_DETECT_FORGET_LOST, false);
	assert_false(poll_detect_doubted(&detect));
}

static void test_short_times_away_do_not_count(void **state)
{
	struct poll_detect detect = {0};

	(void)state;
	be_away(&detect, POLL_DETECT_SHORT_NS, 1000);
	assert_false(poll_detect_expected(&detect));
}

/* A polling program loses its core now and then. */
static void test_rare_long_absences_are_not_expected(void **state)
{
	const uint64_t away[] = {LONG, LOST};
	struct poll_detect detect = {0};

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		be_away(&detect, away[i % 2], 1);
		assert_false(poll_detect_expected(&detect));
		be_away(&detect, 1, POLL_DETECT_DOUBT);
	}
}

/* Whether the program is expected back after two long times away, with `present` between them. */
static bool expected_after(uint64_t first, uint64_t present, uint64_t second)
{
	struct poll_detect detect = {0};

	be_away(&detect, first, 1);
	now += present;
	be_away(&detect, second, 1);
	return poll_detect_expected(&detect);
}

/*
 * The program is in calls most of the time, although few calls find completions: each takes long.
 */
static void test_program_mostly_in_calls_is_not_expected_away(void **state)
{
	const uint64_t away[] = {LONG, LOST};

	(void)state;
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++) {
			assert_true(expected_after(away[i], away[j] - 1, away[j]));
			assert_false(expected_after(away[i], away[j], away[j]));
		}
}

/* A second long time away that comes too late counts as the first one. */
static void test_late_time_away_counts_as_the_first(void **state)
{
	struct poll_detect detect = {0};

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		be_away(&detect, LONG, 1);
		now += LONG;
		be_away(&detect, 1, POLL_DETECT_DOUBT / 2);
	}
	be_away(&detect, 1, POLL_DETECT_DOUBT / 2);
	assert_false(poll_detect_doubted(&detect));
}

/* The clocks of two threads differ by microseconds. */
static void test_clock_difference_of_threads_is_no_absence(void **state)
{
	struct poll_detect detect = {0};

	(void)state;
	for (int i = 0; i < 2; i++) {
		poll_detect_begin(&detect, 1000);
		poll_detect_note_one_sided(&detect);
		assert_int_equal(poll_detect_end(&detect, 999), 0);
	}
	assert_false(poll_detect_doubted(&detect));
}

/*
 * One long time away is not enough: the detector decides when a second one has followed within
 * time.
 */
static void test_one_long_absence_is_doubted_until_forgotten(void **state)
{
	struct poll_detect detect = {0};

	(void)state;
	assert_false(poll_detect_doubted(&detect));
	be_away(&detect, LONG, 1);
	for (uint32_t i = 0; i < POLL_DETECT_DOUBT; i++) {
		assert_true(poll_detect_doubted(&detect));
		be_away(&detect, 1, 1);
	}
	assert_false(poll_detect_doubted(&detect));
}

/* Number of short times away until the detector forgets two long ones, the second of `away`. */
static uint32_t forgiven_after(uint64_t away)
{
	struct poll_detect detect = {0};
	uint32_t times = 0;

	be_away(&detect, LONG, 1);
	be_away(&detect, away, 1);
	for (; poll_detect_expected(&detect); times++)
		be_away(&detect, 1, 1);
	return times;
}

static void test_long_times_away_are_forgotten_late(void **state)
{
	(void)state;
	assert_int_equal(forgiven_after(LONG), POLL_DETECT_FORGET_LONG - POLL_DETECT_DOUBT);
	assert_int_equal(forgiven_after(LOST), POLL_DETECT_FORGET_LOST - POLL_DETECT_DOUBT);
}

/* Short times away do not cancel a long one that follows a lost core. */
static void test_short_absences_do_not_cancel_a_long_one(void **state)
{
	struct poll_detect detect = {0};

	(void)state;
	be_away(&detect, LOST, 2);
	be_away(&detect, LONG, 1);
	be_away(&detect, 1, POLL_DETECT_FORGET_LONG);
	assert_true(poll_detect_expected(&detect));
}

/* The time between two calls is no time away if the first call took no completions. */
static void test_calls_without_completions_do_not_count(void **state)
{
	struct poll_detect detect = {0};

	(void)state;
	assert_int_equal(poll_detect_end(&detect, 1), 0);
	poll_detect_begin(&detect, 1);
	poll_detect_end(&detect, 2);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(poll_detect_end(&detect, LOST * (i + 1)), 0);
	assert_false(poll_detect_expected(&detect));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_away_without_one_sided_requests_do_not_count),
		cmocka_unit_test(test_short_times_away_do_not_count),
		cmocka_unit_test(test_rare_long_absences_are_not_expected),
		cmocka_unit_test(test_program_mostly_in_calls_is_not_expected_away),
		cmocka_unit_test(test_late_time_away_counts_as_the_first),
		cmocka_unit_test(test_long_times_away_are_forgotten_late),
		cmocka_unit_test(test_short_absences_do_not_cancel_a_long_one),
		cmocka_unit_test(test_calls_without_completions_do_not_count),
		cmocka_unit_test(test_one_long_absence_is_doubted_until_forgotten),
		cmocka_unit_test(test_clock_difference_of_threads_is_no_absence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
