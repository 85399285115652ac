/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When the main loop of the device process looks, pauses and sleeps, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vm/rest.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define T0 UINT64_C(1000000000)

static uint64_t pause_ns; /* of the last step */

static enum rest_kind next_step(struct rest *r, uint64_t now, const struct rest_look *look)
{
	return rest_next(r, now, look, &pause_ns);
}

/* Whether the loop goes on after a look, in a machine that rings no doorbells. */
static bool looks_again(struct rest *r, uint64_t now, bool work)
{
	const struct rest_look look = {.work = work};

	return next_step(r, now, &look) == REST_EVENTS;
}

/* Says whether a processor is spare, for the next millisecond. */
static void set_spare(struct rest *r, uint64_t now, bool spare)
{
	r->spare = (struct spare_processor){.loadavg = -1, .answered_at = now, .spare = spare};
}

/* --- The loop's state */

/* A sleep of that length, then work at once. Returns the time. */
static uint64_t wake_to_work(struct rest *r, uint64_t now, uint64_t slept)
{
	rest_woke(r, now, now + slept);
	assert_true(looks_again(r, now + slept, true));
	return now + slept;
}

/* How long the loop looks for work before it sleeps, with a look each microsecond. */
static uint64_t look_in_vain(struct rest *r, uint64_t *now)
{
	const uint64_t start = *now;

	while (looks_again(r, *now, false))
		*now += US;
	assert_int_equal(r->state, REST_ASLEEP);
	return *now - start;
}

static void idle_machine_is_not_polled(void **state)
{
	struct rest r = {0};

	(void)state;
	assert_false(looks_again(&r, T0, false));
	rest_woke(&r, T0, T0 + 1);
	assert_false(looks_again(&r, T0 + 1, false));
}

static void rare_work_is_followed_by_sleep(void **state)
{
	struct rest r = {0};
	uint64_t now = wake_to_work(&r, T0, 101 * US);

	(void)state;
	assert_int_equal(look_in_vain(&r, &now), 0);
}

static void quick_work_is_followed_by_a_busy_poll(void **state)
{
	struct rest r = {0};
	uint64_t now = wake_to_work(&r, T0, 50 * US);

	(void)state;
	assert_int_equal(look_in_vain(&r, &now), 50 * US);
}

/* 250 us after the first, then twice as long each time. */
static void busy_polls_in_vain_become_rare(void **state)
{
	struct rest r = {0};
	uint64_t now = T0, pause = 250 * US;

	(void)state;
	for (int i = 0; i < 20; i++) {
		uint64_t end;

		now = wake_to_work(&r, now, 50 * US);
		assert_int_equal(look_in_vain(&r, &now), 50 * US);
		end = now;
		now = wake_to_work(&r, now, 50 * US);
		assert_int_equal(look_in_vain(&r, &now), 0);
		now = end + pause;
		pause = pause < 128000 * US ? 2 * pause : pause;
		if (pause > 128000 * US)
			pause = 128000 * US;
	}
}

static void a_busy_poll_that_finds_work_resets_the_pause(void **state)
{
	struct rest r = {0};
	uint64_t now = wake_to_work(&r, T0, 50 * US);

	(void)state;
	assert_int_equal(look_in_vain(&r, &now), 50 * US);
	now = wake_to_work(&r, now + 1000 * US, 50 * US);
	assert_true(looks_again(&r, now, false));
	assert_true(looks_again(&r, now + 49 * US, true));
	now += 49 * US;
	assert_int_equal(r.state, REST_RUNNING);
	assert_int_equal(look_in_vain(&r, &now), 50 * US);
	now = wake_to_work(&r, now + 250 * US, 50 * US);
	assert_int_equal(look_in_vain(&r, &now), 50 * US);
}

/* --- Doorbells in memory */

static void test_looks_follow_work_closely(void **state)
{
	struct rest r = {0};

	(void)state;
	assert_int_equal(rest_between_looks(&r, T0, true, false), 20 * US);
	assert_int_equal(rest_between_looks(&r, T0 + MS, false, false), 20 * US);
	assert_int_equal(rest_between_looks(&r, T0 + 64 * MS, false, false), MS);
	assert_int_equal(rest_between_looks(&r, T0 + 640 * MS, false, false), 10 * MS);
	assert_int_equal(rest_between_looks(&r, T0 + 640 * MS + 1, true, false), 20 * US);
}

static void test_idle_machine_is_looked_at_rarely(void **state)
{
	struct rest r = {0};

	(void)state;
	assert_int_equal(rest_between_looks(&r, UINT64_MAX / 2, false, false), 50 * MS);
}

/* A request at any time after work is found before another 1/64 of that time has passed. */
static void test_requests_are_late_by_a_share_of_the_pause(void **state)
{
	struct rest r = {0};
	uint64_t now = T0, next = now + rest_between_looks(&r, now, true, false), looks = 0;

	(void)state;
	while (next - T0 < 4000 * MS) {
		assert_true(next - now <= 20 * US || (next - now) * 64 <= next - T0);
		now = next;
		next += rest_between_looks(&r, now, false, false);
		looks++;
	}
	assert_true(looks < 1000);
}

static void test_spare_processor_looks_without_pause(void **state)
{
	struct rest r = {0};

	(void)state;
	assert_int_equal(rest_between_looks(&r, T0, true, true), 0);
	assert_int_equal(rest_between_looks(&r, T0 + 199 * US, false, true), 0);
	assert_int_equal(rest_between_looks(&r, T0 + 199 * US, false, false), 20 * US);
	assert_int_equal(rest_between_looks(&r, T0 + 200 * US, false, true), 20 * US);
	assert_int_equal(rest_between_looks(&r, T0 + 640 * MS, false, true), 10 * MS);
	assert_int_equal(rest_between_looks(&r, T0 + 640 * MS + 1, true, true), 0);
}

static enum rest_kind look_at_memory(struct rest *r, uint64_t now, bool spare, bool rdma_work)
{
	const struct rest_look look = {.work = rdma_work, .rdma_work = rdma_work, .mapped = true};

	set_spare(r, now, spare);
	return next_step(r, now, &look);
}

static void test_loop_pauses_between_looks(void **state)
{
	struct rest r = {0};

	(void)state;
	assert_int_equal(look_at_memory(&r, T0, false, true), REST_PAUSE);
	assert_int_equal(pause_ns, 20 * US);
	assert_int_equal(look_at_memory(&r, T0 + 12 * MS, false, false), REST_PAUSE);
	assert_int_equal(look_at_memory(&r, T0 + 64 * MS, false, false), REST_DOORBELL);
	assert_int_equal(pause_ns, MS);
}

static void test_looks_without_pause_look_rarely_for_events(void **state)
{
	struct rest r = {0};
	uint32_t events = 0;

	(void)state;
	look_at_memory(&r, T0, true, true);
	for (uint64_t i = 1; i <= 80; i++)
		events += look_at_memory(&r, T0 + i * US, true, false) != REST_LOOK;
	assert_int_equal(events, 10);
}

static void test_other_work_is_followed_by_a_look_for_events(void **state)
{
	const struct rest_look look = {.work = true, .mapped = true};
	struct rest r = {0};

	(void)state;
	assert_int_equal(next_step(&r, T0, &look), REST_EVENTS);
}

/* --- Trapped doorbells */

static bool yields(const struct rest_doorbells *doorbells, uint64_t now)
{
	const struct rest_look look = {.doorbells = doorbells};
	struct rest r = {0};

	set_spare(&r, now, true);
	return next_step(&r, now, &look) == REST_YIELD;
}

static void test_nothing_is_expected_before_doorbells(void **state)
{
	const struct rest_doorbells doorbells = {0};

	(void)state;
	assert_false(yields(&doorbells, 1));
	assert_false(yields(&doorbells, T0));
}

/* The first doorbell of a process that has just started: its clock may be small. */
static void test_a_single_doorbell_is_followed_by_sleep(void **state)
{
	struct rest_doorbells doorbells = {0};

	(void)state;
	rest_rung(&doorbells, REST_DOORBELL_NS / 2);
	assert_false(yields(&doorbells, REST_DOORBELL_NS / 2 + 1));
}

static void test_rare_doorbells_are_followed_by_sleep(void **state)
{
	struct rest_doorbells doorbells = {0};

	(void)state;
	for (uint64_t now = T0; now < T0 + 10 * REST_DOORBELL_NS; now += REST_DOORBELL_NS) {
		rest_rung(&doorbells, now);
		assert_false(yields(&doorbells, now + 1));
	}
}

static void test_quick_doorbells_let_expect_another_one(void **state)
{
	struct rest_doorbells doorbells = {0};
	uint64_t now = T0;

	(void)state;
	rest_rung(&doorbells, now);
	for (int i = 0; i < 3; i++) {
		now += REST_DOORBELL_NS - 1;
		rest_rung(&doorbells, now);
		assert_true(yields(&doorbells, now));
		assert_true(yields(&doorbells, now + REST_DOORBELL_NS - 1));
		assert_false(yields(&doorbells, now + REST_DOORBELL_NS));
	}
}

static void test_a_pause_ends_the_expectation(void **state)
{
	struct rest_doorbells doorbells = {0};

	(void)state;
	rest_rung(&doorbells, T0);
	rest_rung(&doorbells, T0 + 1);
	rest_rung(&doorbells, T0 + 1 + REST_DOORBELL_NS);
	assert_false(yields(&doorbells, T0 + 2 + REST_DOORBELL_NS));
}

static void test_loop_sleeps_without_a_spare_processor(void **state)
{
	struct rest_doorbells doorbells = {0};
	const struct rest_look look = {.doorbells = &doorbells};
	struct rest r = {0};

	(void)state;
	rest_rung(&doorbells, T0);
	rest_rung(&doorbells, T0 + 1);
	set_spare(&r, T0 + 2, false);
	assert_int_equal(next_step(&r, T0 + 2, &look), REST_SLEEP);
}

/* --- Polls of empty CQs */

static void first_poll_has_its_reply_at_once(void **state)
{
	struct poll_hold hold = {0};

	(void)state;
	assert_false(poll_hold_waits(&hold, T0, 0));
	poll_hold_polled(&hold, T0, 5);
	assert_false(poll_hold_waits(&hold, T0, 5));
}

static void repeated_poll_has_its_reply_held(void **state)
{
	struct poll_hold hold = {0};

	(void)state;
	poll_hold_polled(&hold, T0, 5);
	for (uint64_t now = T0 + POLL_HOLD_SPIN_NS; now < T0 + 10 * POLL_HOLD_SPIN_NS;
	     now += POLL_HOLD_NS + POLL_HOLD_SPIN_NS) {
		poll_hold_polled(&hold, now, 5);
		assert_true(poll_hold_waits(&hold, now, 5));
		assert_true(poll_hold_waits(&hold, now + POLL_HOLD_NS - 1, 5));
		assert_false(poll_hold_waits(&hold, now + POLL_HOLD_NS, 5));
		assert_false(poll_hold_waits(&hold, now + POLL_HOLD_NS, 5));
	}
}

/* A program that does something else in between. */
static void rare_polls_do_not_wait(void **state)
{
	struct poll_hold hold = {0};

	(void)state;
	for (uint64_t now = T0; now < T0 + 10 * POLL_HOLD_SPIN_NS; now += POLL_HOLD_SPIN_NS + 1) {
		poll_hold_polled(&hold, now, 5);
		assert_false(poll_hold_waits(&hold, now, 5));
	}
}

static void completion_ends_the_wait(void **state)
{
	struct poll_hold hold = {0};

	(void)state;
	poll_hold_polled(&hold, T0, 5);
	poll_hold_polled(&hold, T0 + 1, 5);
	assert_true(poll_hold_waits(&hold, T0 + 2, 5));
	assert_false(poll_hold_waits(&hold, T0 + 3, 6));
	/* The guest may have polled before it saw the completion. */
	poll_hold_polled(&hold, T0 + 4, 7);
	assert_false(poll_hold_waits(&hold, T0 + 4, 7));
	poll_hold_polled(&hold, T0 + 5, 7);
	assert_true(poll_hold_waits(&hold, T0 + 5, 7));
}

static void other_doorbell_ends_the_series(void **state)
{
	struct poll_hold hold = {0};

	(void)state;
	poll_hold_polled(&hold, T0, 5);
	poll_hold_end_series(&hold);
	poll_hold_polled(&hold, T0 + 1, 5);
	assert_false(poll_hold_waits(&hold, T0 + 1, 5));
	poll_hold_polled(&hold, T0 + 2, 5);
	assert_true(poll_hold_waits(&hold, T0 + 2, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_machine_is_not_polled),
		cmocka_unit_test(rare_work_is_followed_by_sleep),
		cmocka_unit_test(quick_work_is_followed_by_a_busy_poll),
		cmocka_unit_test(busy_polls_in_vain_become_rare),
		cmocka_unit_test(a_busy_poll_that_finds_work_resets_the_pause),
		cmocka_unit_test(test_looks_follow_work_closely),
		cmocka_unit_test(test_idle_machine_is_looked_at_rarely),
		cmocka_unit_test(test_requests_are_late_by_a_share_of_the_pause),
		cmocka_unit_test(test_spare_processor_looks_without_pause),
		cmocka_unit_test(test_loop_pauses_between_looks),
		cmocka_unit_test(test_looks_without_pause_look_rarely_for_events),
		cmocka_unit_test(test_other_work_is_followed_by_a_look_for_events),
		cmocka_unit_test(test_nothing_is_expected_before_doorbells),
		cmocka_unit_test(test_a_single_doorbell_is_followed_by_sleep),
		cmocka_unit_test(test_rare_doorbells_are_followed_by_sleep),
		cmocka_unit_test(test_quick_doorbells_let_expect_another_one),
		cmocka_unit_test(test_a_pause_ends_the_expectation),
		cmocka_unit_test(test_loop_sleeps_without_a_spare_processor),
		cmocka_unit_test(first_poll_has_its_reply_at_once),
		cmocka_unit_test(repeated_poll_has_its_reply_held),
		cmocka_unit_test(rare_polls_do_not_wait),
		cmocka_unit_test(completion_ends_the_wait),
		cmocka_unit_test(other_doorbell_ends_the_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
