/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "urxed/session/qpn_lease.h"

#define USER 1000
#define NOW  (2 * LEASE_QUIET_NS)

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct lease_table));
	return !*state;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void first_and_last_block_are_never_leased(void **state)
{
	struct lease_table *t = *state;
	uint32_t qpn, i;
	int me;

	for (i = 0; i < LEASE_BLOCKS - 2; i++) {
		assert_int_equal(lease_take(t, &me, USER, NOW, &qpn), 0);
		assert_int_equal(qpn % LEASE_QPNS, 0);
		assert_in_range(qpn, LEASE_QPNS, 0xffefff);
	}
	assert_int_equal(lease_take(t, &me, USER, NOW, &qpn), -ENOSPC);
	assert_null(lease_owner(t, 0));
	assert_null(lease_owner(t, 1));
	assert_null(lease_owner(t, 0xffffff));
	assert_ptr_equal(lease_owner(t, LEASE_QPNS), &me);
	assert_ptr_equal(lease_owner(t, 0xffefff), &me);
}

static void owner_is_found_by_every_qpn_of_its_block(void **state)
{
	struct lease_table *t = *state;
	uint32_t a, b, i;
	int one, two;

	assert_int_equal(lease_take(t, &one, USER, NOW, &a), 0);
	assert_int_equal(lease_take(t, &two, USER, NOW, &b), 0);
	assert_int_not_equal(a, b);
	for (i = 0; i < LEASE_QPNS; i++) {
		assert_ptr_equal(lease_owner(t, a + i), &one);
		assert_ptr_equal(lease_owner(t, b + i), &two);
	}
	assert_null(lease_owner(t, a + 2 * LEASE_QPNS));
}

static void dropped_block_is_leased_last(void **state)
{
	struct lease_table *t = *state;
	uint32_t first, qpn, i;
	int one, two;

	assert_int_equal(lease_take(t, &one, USER, NOW, &first), 0);
	lease_drop(t, &one);
	assert_null(lease_owner(t, first));
	for (i = 0; i < LEASE_BLOCKS - 3; i++) {
		assert_int_equal(lease_take(t, &two, USER, NOW, &qpn), 0);
		assert_int_not_equal(qpn, first);
	}
	assert_int_equal(lease_take(t, &two, USER, NOW, &qpn), 0);
	assert_int_equal(qpn, first);
}

static void drop_takes_all_blocks_of_one_owner_only(void **state)
{
	struct lease_table *t = *state;
	uint32_t a, b, c;
	int one, two;

	lease_take(t, &one, USER, NOW, &a);
	lease_take(t, &two, USER, NOW, &b);
	lease_take(t, &one, USER, NOW, &c);
	lease_drop(t, &one);
	assert_null(lease_owner(t, a));
	assert_null(lease_owner(t, c));
	assert_ptr_equal(lease_owner(t, b), &two);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void free_block_can_be_claimed(void **state)
{
	struct lease_table *t = *state;
	uint32_t qpn;
	int me, other;

	t->last = 5;
	assert_int_equal(lease_take_block(t, &me, 5 * LEASE_QPNS), 0);
	assert_ptr_equal(lease_owner(t, 5 * LEASE_QPNS), &me);
	assert_int_equal(lease_take_block(t, &other, 5 * LEASE_QPNS), -EBUSY);
	assert_int_equal(lease_take_block(t, &other, 0), -EBUSY);
	assert_int_equal(lease_take_block(t, &other, 0xfff000), -EBUSY);
	assert_int_equal(lease_take(t, &other, USER, NOW, &qpn), 0);
	assert_int_equal(qpn, 6 * LEASE_QPNS);
}

/* A claimable block is leased to no new process. */
static void claimable_block_is_not_leased(void **state)
{
	static const bool claimable[LEASE_BLOCKS] = {[6] = true, [7] = true};
	struct lease_table *t = *state;
	uint32_t qpn;
	int me, other;

	t->last = 5;
	t->claimable = claimable;
	assert_int_equal(lease_take(t, &me, USER, NOW, &qpn), 0);
	assert_int_equal(qpn, 8 * LEASE_QPNS);
	assert_int_equal(lease_take_block(t, &other, 6 * LEASE_QPNS), 0);
	assert_ptr_equal(lease_owner(t, 6 * LEASE_QPNS), &other);
}

/* A process that attaches again and again does not reach the block of another user's process. */
static void another_users_block_is_not_leased_soon(void **state)
{
	struct lease_table *t = *state;
	struct lease_past past[LEASE_BLOCKS] = {
		[6] = {.user = 1 + USER, .ended_at = NOW - 1},
		[7] = {.user = 2 + USER, .ended_at = NOW - LEASE_QUIET_NS + 1},
		[9] = {.user = 2 + USER, .ended_at = NOW - LEASE_QUIET_NS}};
	uint32_t qpn;
	int me;

	t->past = past;
	t->last = 5;
	assert_false(lease_is_quiet(t, 6, USER, NOW));
	assert_true(lease_is_quiet(t, 7, USER, NOW));
	assert_false(lease_is_quiet(t, 9, USER, NOW));
	for (uint32_t i = 0; i < LEASE_BLOCKS; i++) {
		assert_int_equal(lease_take(t, &me, USER, NOW, &qpn), 0);
		assert_int_not_equal(lease_block(qpn), 7);
		assert_true(i || lease_block(qpn) == 6);
		lease_drop(t, &me);
	}
}

/* Soon after boot, a lease that has not ended differs from one that has just ended. */
static void block_is_not_quiet_before_its_lease_ends(void **state)
{
	struct lease_table *t = *state;
	struct lease_past past[LEASE_BLOCKS] = {[7] = {.user = 2 + USER, .began_at = 1}};

	t->past = past;
	assert_false(lease_is_quiet(t, 7, USER, 2));
	past[7].ended_at = 2;
	assert_true(lease_is_quiet(t, 7, USER, 3));
}

/* When another user has had all free blocks, the oldest one is the safest one. */
static void the_longest_quiet_block_is_leased_without_another(void **state)
{
	struct lease_table *t = *state;
	struct lease_past past[LEASE_BLOCKS];
	uint32_t qpn;
	int me;

	for (uint32_t i = 0; i < LEASE_BLOCKS; i++)
		past[i] = (struct lease_past){.user = 2 + USER, .ended_at = NOW - i % 70};
	t->past = past;
	assert_int_equal(lease_take(t, &me, USER, NOW, &qpn), 0);
	assert_int_equal(lease_block(qpn), 69);
}

/* HCAs choose QPNs from the lower half, which therefore stays free as long as possible. */
static void the_lower_half_is_leased_last_beside_an_hca(void **state)
{
	struct lease_table *t = *state;
	uint32_t qpn, i;
	int me, other;

	lease_avoid_hca(t);
	for (i = 0; i < LEASE_BLOCKS; i++) {
		assert_int_equal(lease_take(t, &other, USER, NOW, &qpn), 0);
		assert_true(qpn >= 0x800000);
		lease_drop(t, &other);
	}
	for (i = 0; i < LEASE_BLOCKS / 2 - 1; i++) {
		assert_int_equal(lease_take(t, &me, USER, NOW, &qpn), 0);
		assert_true(qpn >= 0x800000);
	}
	assert_int_equal(lease_take(t, &me, USER, NOW, &qpn), 0);
	assert_true(qpn < 0x800000);
}

/* Peers of another user's processes may still send to the upper half. */
static void the_lower_half_is_leased_before_another_users_quiet_blocks(void **state)
{
	struct lease_table *t = *state;
	struct lease_past past[LEASE_BLOCKS] = {0};
	uint32_t qpn;
	int me;

	for (uint32_t i = LEASE_BLOCKS / 2; i < LEASE_BLOCKS; i++)
		past[i] = (struct lease_past){.user = 2 + USER, .ended_at = NOW - 1};
	t->past = past;
	lease_avoid_hca(t);
	assert_int_equal(lease_take(t, &me, USER, NOW, &qpn), 0);
	assert_true(qpn < 0x800000);
	assert_int_equal(lease_take(t, &me, USER + 1, NOW, &qpn), 0);
	assert_true(qpn >= 0x800000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(first_and_last_block_are_never_leased),
		TEST(owner_is_found_by_every_qpn_of_its_block),
		TEST(dropped_block_is_leased_last),
		TEST(drop_takes_all_blocks_of_one_owner_only),
		TEST(free_block_can_be_claimed),
		TEST(claimable_block_is_not_leased),
		TEST(the_lower_half_is_leased_last_beside_an_hca),
		TEST(the_lower_half_is_leased_before_another_users_quiet_blocks),
		TEST(another_users_block_is_not_leased_soon),
		TEST(block_is_not_quiet_before_its_lease_ends),
		TEST(the_longest_quiet_block_is_leased_without_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
