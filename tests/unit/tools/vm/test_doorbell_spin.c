/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When the device process expects another doorbell soon, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vm/doorbell_spin.h"

#define T0 UINT64_C(1000000000)

static void test_nothing_is_expected_before_doorbells(void **state)
{
	const struct doorbell_spin spin = {0};

	(void)state;
	assert_false(doorbell_spin_expects(&spin, 1));
	assert_false(doorbell_spin_expects(&spin, T0));
}

/* The first doorbell of a process that has just started: its clock may be small. */
static void test_a_single_doorbell_is_followed_by_sleep(void **state)
{
	struct doorbell_spin spin = {0};

	(void)state;
	doorbell_spin_rung(&spin, DOORBELL_SPIN_NS / 2);
	assert_false(doorbell_spin_expects(&spin, DOORBELL_SPIN_NS / 2 + 1));
}

static void test_rare_doorbells_are_followed_by_sleep(void **state)
{
	struct doorbell_spin spin = {0};

	(void)state;
	for (uint64_t now = T0; now < T0 + 10 * DOORBELL_SPIN_NS; now += DOORBELL_SPIN_NS) {
		doorbell_spin_rung(&spin, now);
		assert_false(doorbell_spin_expects(&spin, now + 1));
	}
}

static void test_quick_doorbells_let_expect_another_one(void **state)
{
	struct doorbell_spin spin = {0};
	uint64_t now = T0;

	(void)state;
	doorbell_spin_rung(&spin, now);
	for (int i = 0; i < 3; i++) {
		now += DOORBELL_SPIN_NS - 1;
		doorbell_spin_rung(&spin, now);
		assert_true(doorbell_spin_expects(&spin, now));
		assert_true(doorbell_spin_expects(&spin, now + DOORBELL_SPIN_NS - 1));
		assert_false(doorbell_spin_expects(&spin, now + DOORBELL_SPIN_NS));
	}
}

static void test_a_pause_ends_the_expectation(void **state)
{
	struct doorbell_spin spin = {0};

	(void)state;
	doorbell_spin_rung(&spin, T0);
	doorbell_spin_rung(&spin, T0 + 1);
	doorbell_spin_rung(&spin, T0 + 1 + DOORBELL_SPIN_NS);
	assert_false(doorbell_spin_expects(&spin, T0 + 2 + DOORBELL_SPIN_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_expected_before_doorbells),
		cmocka_unit_test(test_a_single_doorbell_is_followed_by_sleep),
		cmocka_unit_test(test_rare_doorbells_are_followed_by_sleep),
		cmocka_unit_test(test_quick_doorbells_let_expect_another_one),
		cmocka_unit_test(test_a_pause_ends_the_expectation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
