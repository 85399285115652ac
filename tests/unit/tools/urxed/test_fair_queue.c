/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "urxed/qp1/fair_queue.h"

static struct fair_queue q;

static int set_up(void **state)
{
	(void)state;
	fair_queue_init(&q);
	return 0;
}

static bool put(uint32_t party, bool favoured, uint32_t number)
{
	uint8_t key[FAIR_QUEUE_KEY] = {0};
	uint32_t item[2] = {party, number};

	memcpy(key, &party, sizeof(party));
	return fair_queue_put(&q, key, favoured, item, sizeof(item));
}

static void expect_item(uint32_t party, uint32_t number)
{
	uint32_t item[FAIR_QUEUE_ROOM / 4];

	assert_int_equal(fair_queue_take(&q, item), 8);
	assert_int_equal(item[0], party);
	assert_int_equal(item[1], number);
}

static void flows_take_turns(void **state)
{
	uint8_t key[FAIR_QUEUE_KEY] = {1};
	uint32_t item[FAIR_QUEUE_ROOM / 4];

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		assert_true(put(1, false, i));
	assert_true(put(2, false, 0));
	assert_true(put(3, true, 0));
	assert_true(put(3, true, 1));
	expect_item(3, 0);
	expect_item(3, 1);
	expect_item(1, 0);
	expect_item(2, 0);
	expect_item(1, 1);
	assert_int_equal(fair_queue_take_from(&q, key, item), 8);
	assert_int_equal(item[1], 2);
	assert_int_equal(fair_queue_take_from(&q, key, item), 0);
	assert_int_equal(fair_queue_take(&q, item), 0);
	assert_int_equal(q.n, 0);
}

/* The longest flow loses its oldest items. */
static void flooding_party_loses_its_own(void **state)
{
	uint32_t i;

	(void)state;
	assert_true(put(2, false, 0));
	for (i = 0; i < FAIR_QUEUE_ITEMS - 1; i++)
		assert_true(put(1, false, i));
	assert_false(put(1, false, i));
	assert_false(put(3, true, 0));
	assert_false(put(2, false, 1));
	assert_int_equal(q.n, FAIR_QUEUE_ITEMS);
	expect_item(3, 0);
	expect_item(2, 0);
	expect_item(1, 3);
	expect_item(2, 1);
	expect_item(1, 4);
}

/* Among flows of one item the oldest goes; favoured ones stay as long as others are there. */
static void many_parties_do_not_displace_favoured_ones(void **state)
{
	uint32_t i;

	(void)state;
	assert_true(put(7, true, 0));
	for (i = 0; i < 3 * FAIR_QUEUE_ITEMS; i++)
		put(1000 + i, false, i);
	assert_int_equal(q.n, FAIR_QUEUE_ITEMS);
	expect_item(7, 0);
	expect_item(1000 + 2 * FAIR_QUEUE_ITEMS + 1, 2 * FAIR_QUEUE_ITEMS + 1);
	/* Where all are favoured, another one is not taken. */
	for (i = 0; i < 2 * FAIR_QUEUE_ITEMS; i++)
		put(100000 + i, true, i);
	assert_false(put(1, false, 0));
	assert_int_equal(q.n, FAIR_QUEUE_ITEMS);
	for (i = FAIR_QUEUE_ITEMS; i < 2 * FAIR_QUEUE_ITEMS; i++)
		expect_item(100000 + i, i);
	assert_int_equal(q.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(flows_take_turns, set_up),
		cmocka_unit_test_setup(flooding_party_loses_its_own, set_up),
		cmocka_unit_test_setup(many_parties_do_not_displace_favoured_ones, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
