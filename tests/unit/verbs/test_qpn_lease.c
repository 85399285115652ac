/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The QPNs that the daemon has leased to a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "session/qpn_lease.h"

#define N(i) ((i)*VNIC_LEASE_QPNS) /* the first number of block i */

/* Addresses in the place of queue pairs; the table does not read them. */
static char things[LEASES_QPS];

static struct qp *thing(uint32_t i)
{
	return (struct qp *)&things[i];
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct leases));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	leases_clear(*state);
	free(*state);
	return 0;
}

static void add(struct leases *l, uint32_t qpn)
{
	struct lease_block *block = calloc(1, sizeof(*block));

	assert_non_null(block);
	block->qpn_first = qpn;
	leases_add(l, block);
}

/* Takes n numbers for the objects from `first` on. */
static void take(struct leases *l, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++) {
		uint32_t qpn = leases_find_free(l);

		assert_int_not_equal(qpn, 0);
		leases_assign(l, qpn, thing(i));
	}
}

static void numbers_of_an_hca_need_no_lease(void **state)
{
	struct leases *l = *state;
	uint32_t at = 0;

	add(l, N(7));
	take(l, 0, 1);
	assert_int_equal(leases_reserve(l, 0xfffffe), 0);
	assert_int_equal(leases_reserve(l, 17), 0);
	leases_assign(l, 0xfffffe, thing(1));
	leases_assign(l, 17, thing(2));
	assert_int_equal(l->used, 1);
	assert_int_equal(l->unleased, 2);
	assert_ptr_equal(leases_next(l, &at), thing(0));
	assert_ptr_equal(leases_next(l, &at), thing(2));
	assert_ptr_equal(leases_next(l, &at), thing(1));
	assert_null(leases_next(l, &at));
	/* The daemon leases a block in which the HCA has chosen a number. */
	add(l, 0);
	assert_int_equal(l->used, 2);
	assert_int_equal(l->unleased, 1);
	leases_assign(l, 17, NULL);
	leases_assign(l, 0xfffffe, NULL);
	assert_int_equal(l->used, 1);
}

/* An HCA gives ever new numbers to the few queue pairs of a program that connects again and again.
 */
static void blocks_of_an_hca_end_with_their_last_number(void **state)
{
	struct leases *l = *state;
	uint32_t at = 0;

	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(leases_reserve(l, N(i) + 1), 0);
		leases_assign(l, N(i) + 1, thing(1));
		assert_int_equal(leases_reserve(l, N(i) + 2), 0);
		leases_assign(l, N(i) + 2, thing(2));
		leases_assign(l, N(i) + 1, NULL);
		assert_ptr_equal(leases_find(l, N(i) + 2), thing(2));
		leases_assign(l, N(i) + 2, NULL);
		assert_null(l->by_qpn[i]);
		assert_null(leases_find(l, N(i) + 2));
	}
	/* The creation of the queue pair has failed. */
	assert_int_equal(leases_reserve(l, N(3) + 1), 0);
	leases_assign(l, N(3) + 1, NULL);
	assert_null(l->by_qpn[3]);
	/* A leased block stays, also if it was the HCA's before. */
	assert_int_equal(leases_reserve(l, N(7) + 1), 0);
	leases_assign(l, N(7) + 1, thing(1));
	add(l, N(7));
	leases_assign(l, N(7) + 1, NULL);
	assert_int_equal(leases_find_free(l), N(7));
	assert_null(leases_next(l, &at));
}

/* The number that a queue pair had is freed while a thread looks at all of them. */
static void a_block_may_end_during_an_iteration(void **state)
{
	struct leases *l = *state;
	uint32_t at = 0;

	add(l, N(7));
	take(l, 0, 1);
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(leases_reserve(l, N(i) + 5), 0);
		leases_assign(l, N(i) + 5, thing(i));
	}
	for (uint32_t i = 0; i < 4; i++) {
		assert_ptr_equal(leases_next(l, &at), thing(i));
		leases_assign(l, i ? N(i) + 5 : N(7), NULL);
	}
	assert_null(leases_next(l, &at));
}

static void table_without_blocks_is_full(void **state)
{
	struct leases *l = *state;
	uint32_t at = 0;

	assert_true(leases_full(l));
	assert_int_equal(leases_find_free(l), 0);
	assert_null(leases_next(l, &at));
}

static void every_number_is_taken_once(void **state)
{
	struct leases *l = *state;
	uint32_t at = 0;

	/* Blocks lie anywhere. */
	for (uint32_t i = 0; i < VNIC_LEASES_MAX; i++)
		add(l, N(4094 - 7 * i));
	for (uint32_t i = 0; i < LEASES_QPS; i++) {
		uint32_t qpn = N(4094 - 7 * (i / VNIC_LEASE_QPNS)) + i % VNIC_LEASE_QPNS;

		assert_int_equal(leases_find_free(l), qpn);
		leases_assign(l, qpn, thing(i));
	}
	assert_true(leases_full(l));
	assert_int_equal(leases_find_free(l), 0);
	for (uint32_t i = 0; i < LEASES_QPS; i++)
		assert_ptr_equal(leases_next(l, &at), thing(i));
	assert_null(leases_next(l, &at));
	leases_assign(l, N(4094) + 3, NULL);
	assert_int_equal(leases_find_free(l), N(4094) + 3);
}

/* Packets to the last owner of a QPN may still arrive, so the table reuses the oldest number. */
static void freed_qpn_is_reused_last(void **state)
{
	struct leases *l = *state;

	add(l, N(9));
	take(l, 0, 10);
	leases_assign(l, N(9) + 4, NULL);
	take(l, 10, VNIC_LEASE_QPNS - 10);
	assert_int_equal(leases_find_free(l), N(9) + 4);
	leases_assign(l, N(9) + 4, thing(4));
	assert_true(leases_full(l));
}

static void another_block_adds_free_qpns(void **state)
{
	struct leases *l = *state;
	uint32_t at = VNIC_LEASE_QPNS - 1;

	add(l, N(9));
	take(l, 0, VNIC_LEASE_QPNS);
	add(l, N(2));
	assert_false(leases_full(l));
	take(l, VNIC_LEASE_QPNS, VNIC_LEASE_QPNS);
	assert_ptr_equal(leases_next(l, &at), thing(VNIC_LEASE_QPNS - 1));
	assert_ptr_equal(leases_next(l, &at), thing(VNIC_LEASE_QPNS));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(table_without_blocks_is_full),
		TEST(every_number_is_taken_once),
		TEST(freed_qpn_is_reused_last),
		TEST(another_block_adds_free_qpns),
		TEST(numbers_of_an_hca_need_no_lease),
		TEST(blocks_of_an_hca_end_with_their_last_number),
		TEST(a_block_may_end_during_an_iteration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
