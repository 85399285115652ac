/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which polls of empty CQs wait for a completion, and how long, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vm/poll_hold.h"

#define T0   UINT64_C(1000000000)
#define SPIN POLL_HOLD_SPIN_NS
#define HOLD POLL_HOLD_NS

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
	for (uint64_t now = T0 + SPIN; now < T0 + 10 * SPIN; now += HOLD + SPIN) {
		poll_hold_polled(&hold, now, 5);
		assert_true(poll_hold_waits(&hold, now, 5));
		assert_true(poll_hold_waits(&hold, now + HOLD - 1, 5));
		assert_false(poll_hold_waits(&hold, now + HOLD, 5));
		assert_false(poll_hold_waits(&hold, now + HOLD, 5));
	}
}

/* A program that does something else in between. */
static void rare_polls_do_not_wait(void **state)
{
	struct poll_hold hold = {0};

	(void)state;
	for (uint64_t now = T0; now < T0 + 10 * SPIN; now += SPIN + 1) {
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
		cmocka_unit_test(first_poll_has_its_reply_at_once),
		cmocka_unit_test(repeated_poll_has_its_reply_held),
		cmocka_unit_test(rare_polls_do_not_wait),
		cmocka_unit_test(completion_ends_the_wait),
		cmocka_unit_test(other_doorbell_ends_the_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
