/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When the main loop of the device process sleeps, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vm/loop_poll.h"

#define US UINT64_C(1000)
#define T0 UINT64_C(1000000000)

/* A sleep of that length, then work at once. Returns the time. */
static uint64_t wake_to_work(struct loop_poll *m, uint64_t now, uint64_t slept)
{
	loop_poll_woke(m, now, now + slept);
	assert_true(loop_poll_looked(m, now + slept, true));
	return now + slept;
}

/* How long the loop looks for work before it sleeps, with a look each microsecond. */
static uint64_t look_in_vain(struct loop_poll *m, uint64_t *now)
{
	const uint64_t start = *now;

	while (loop_poll_looked(m, *now, false))
		*now += US;
	assert_int_equal(m->state, LOOP_ASLEEP);
	return *now - start;
}

static void idle_machine_is_not_polled(void **state)
{
	struct loop_poll m = {0};

	(void)state;
	assert_false(loop_poll_looked(&m, T0, false));
	loop_poll_woke(&m, T0, T0 + 1);
	assert_false(loop_poll_looked(&m, T0 + 1, false));
}

static void rare_work_is_followed_by_sleep(void **state)
{
	struct loop_poll m = {0};
	uint64_t now = wake_to_work(&m, T0, 101 * US);

	(void)state;
	assert_int_equal(look_in_vain(&m, &now), 0);
}

static void quick_work_is_followed_by_a_busy_poll(void **state)
{
	struct loop_poll m = {0};
	uint64_t now = wake_to_work(&m, T0, 50 * US);

	(void)state;
	assert_int_equal(look_in_vain(&m, &now), 50 * US);
}

/* 250 us after the first, then twice as long each time. */
static void busy_polls_in_vain_become_rare(void **state)
{
	struct loop_poll m = {0};
	uint64_t now = T0, pause = 250 * US;

	(void)state;
	for (int i = 0; i < 20; i++) {
		uint64_t end;

		now = wake_to_work(&m, now, 50 * US);
		assert_int_equal(look_in_vain(&m, &now), 50 * US);
		end = now;
		now = wake_to_work(&m, now, 50 * US);
		assert_int_equal(look_in_vain(&m, &now), 0);
		now = end + pause;
		pause = pause < 128000 * US ? 2 * pause : pause;
		if (pause > 128000 * US)
			pause = 128000 * US;
	}
}

static void a_busy_poll_that_finds_work_resets_the_pause(void **state)
{
	struct loop_poll m = {0};
	uint64_t now = wake_to_work(&m, T0, 50 * US);

	(void)state;
	assert_int_equal(look_in_vain(&m, &now), 50 * US);
	now = wake_to_work(&m, now + 1000 * US, 50 * US);
	assert_true(loop_poll_looked(&m, now, false));
	assert_true(loop_poll_looked(&m, now + 49 * US, true));
	now += 49 * US;
	assert_int_equal(m.state, LOOP_RUNNING);
	assert_int_equal(look_in_vain(&m, &now), 50 * US);
	now = wake_to_work(&m, now + 250 * US, 50 * US);
	assert_int_equal(look_in_vain(&m, &now), 50 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_machine_is_not_polled),
		cmocka_unit_test(rare_work_is_followed_by_sleep),
		cmocka_unit_test(quick_work_is_followed_by_a_busy_poll),
		cmocka_unit_test(busy_polls_in_vain_become_rare),
		cmocka_unit_test(a_busy_poll_that_finds_work_resets_the_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
