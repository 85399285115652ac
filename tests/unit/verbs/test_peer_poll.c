/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When a peer's engine thread counts as awake, and how often the requester wakes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "samehost/peer_poll.h"

#define US    1000u
#define MS    1000000u
#define START (1000u * MS)
#define STEP  (2 * US) /* time from one look to the next */

struct world {
	struct peer_poll poll;
	uint64_t now;
	uint32_t turns;
};

static bool look(struct world *w, uint64_t after, uint32_t turns)
{
	w->now += after;
	w->turns += turns;
	return peer_poll_look(&w->poll, w->turns, w->now);
}

/* Counts the wake-ups while the peer sleeps for that long. */
static uint32_t count_wakes(struct world *w, uint64_t ns)
{
	uint64_t end = w->now + ns;
	uint32_t wakes = 0;

	while (w->now < end) {
		assert_false(look(w, STEP, 0));
		wakes += peer_poll_wakes(&w->poll, w->now);
	}
	return wakes;
}

/* The peer's engine thread polls all the time. */
static void keep_awake(struct world *w, uint64_t ns)
{
	uint64_t end = w->now + ns;

	look(w, STEP, 1);
	while (w->now < end)
		assert_true(look(w, STEP, 1));
}

static void test_changing_counter_means_awake(void **state)
{
	struct world w = {.now = START};

	(void)state;
	assert_false(look(&w, 0, 7)); /* no earlier value to compare with */
	assert_false(look(&w, STEP, 0));
	assert_true(look(&w, STEP, 1));
	assert_true(look(&w, STEP, 0)); /* the engine thread may be busy */
	assert_true(look(&w, 40 * US, 0));
	assert_false(look(&w, 10 * US, 0));
	/* A change during a pause of the looks says nothing about the present. */
	assert_false(look(&w, 60 * US, 5));
	assert_true(look(&w, STEP, 1));
	w.turns = UINT32_MAX;
	look(&w, STEP, 0);
	assert_true(look(&w, STEP, 1)); /* 0 again */
}

static void test_time_that_goes_back_is_not_awake(void **state)
{
	struct world w = {.now = START};

	(void)state;
	look(&w, 0, 1);
	assert_true(look(&w, STEP, 1));
	w.now -= 10 * STEP;
	assert_false(look(&w, 0, 1));
}

static void test_rare_checks_count_as_asleep(void **state)
{
	struct world w = {.now = START};

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_false(look(&w, 60 * US, 0));
		assert_false(peer_poll_wakes(&w.poll, w.now));
	}
}

/* The wake-ups have no effect: each pause is twice the last, up to a maximum. */
static void test_useless_wake_ups_double_the_pause(void **state)
{
	struct world w = {.now = START};

	(void)state;
	assert_in_range(count_wakes(&w, 10 * MS), 5, 6);
	assert_in_range(count_wakes(&w, 90 * MS), 2, 4);
	assert_in_range(count_wakes(&w, 1280 * MS), 9, 11);
}

static void test_wake_ups_pause_after_activity(void **state)
{
	static const struct {
		uint64_t awake; /* time in which the peer polls, ns */
		uint64_t gap;   /* time after it without a check of the peer, ns */
		uint32_t turns; /* polls of the peer in the gap */
		uint32_t wakes; /* wake-ups within 1 ms after the gap */
	} rows[] = {
		/* The peer has no core for itself. */
		{1 * MS, STEP, 0, 0},
		{1 * MS, 3 * MS, 2, 0},
		/* The peer has a core for itself. */
		{1 * MS, 3 * MS, 400, 3},
		{400 * MS, STEP, 0, 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w = {.now = START};

		count_wakes(&w, 100 * MS);
		keep_awake(&w, rows[i].awake);
		look(&w, rows[i].gap, rows[i].turns);
		while (look(&w, STEP, 0))
			;
		assert_int_equal(count_wakes(&w, 1 * MS), rows[i].wakes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changing_counter_means_awake),
		cmocka_unit_test(test_time_that_goes_back_is_not_awake),
		cmocka_unit_test(test_rare_checks_count_as_asleep),
		cmocka_unit_test(test_useless_wake_ups_double_the_pause),
		cmocka_unit_test(test_wake_ups_pause_after_activity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
