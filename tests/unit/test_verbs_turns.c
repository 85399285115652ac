/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs that are posted to in turn: which one is expected next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "handle.h"
#include "pair.h"
#include "qp.h"
#include "turns.h"

#define QPS 16

struct context {
	struct pair *pair;
	struct endpoint ends[2];
	struct handle_table handles;
	struct turns turns;
	struct qp *qps[QPS];
};

static struct rxe_queue_buf *ring;

static struct qp *make_qp(struct context *c)
{
	struct qp *qp = aligned_alloc(_Alignof(struct qp), sizeof(*qp));

	assert_non_null(qp);
	*qp = (struct qp){0};
	qp->object.type = OBJECT_QP;
	qp->qp = c->ends[0].qp;
	qp->sq.ring.buf = ring;
	assert_int_equal(handle_add(&c->handles, &qp->object), 0);
	return qp;
}

static int setup(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct context *c = calloc(1, sizeof(*c));

	ring = calloc(1, 4096);
	assert_non_null(c);
	assert_non_null(ring);
	c->pair = pair_create(&(struct pair_attr){.seed = 1});
	conn_open(c->pair, &conn, c->ends);
	for (int i = 0; i < QPS; i++)
		c->qps[i] = make_qp(c);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct context *c = *state;

	for (int i = 0; i < QPS; i++)
		free(c->qps[i]);
	handle_table_free(&c->handles);
	pair_destroy(c->pair);
	free(ring);
	free(c);
	return 0;
}

static void take(struct context *c, int i)
{
	turns_take(&c->turns, &c->handles, c->qps[i]);
}

static void expect_round(const struct context *c)
{
	for (int i = 0; i < QPS; i++)
		assert_int_equal(c->qps[i]->ahead, c->qps[(i + TURNS_AHEAD) % QPS]->object.handle);
}

static void expects_what_came_last_time(void **state)
{
	struct context *c = *state;

	for (int i = 0; i < QPS + TURNS_AHEAD; i++)
		take(c, i % QPS);
	expect_round(c);
}

static void takes_posts_in_a_row_for_one_turn(void **state)
{
	struct context *c = *state;

	for (int i = 0; i < QPS + TURNS_AHEAD; i++)
		for (int posts = 0; posts <= i % 3; posts++)
			take(c, i % QPS);
	expect_round(c);
}

static void follows_another_order(void **state)
{
	struct context *c = *state;

	for (int i = 0; i < 2 * QPS; i++)
		take(c, i % QPS);
	for (int i = 2 * QPS; i > 0; i--)
		take(c, i % QPS);
	assert_int_equal(c->qps[QPS - 1]->ahead, c->qps[QPS - 1 - TURNS_AHEAD]->object.handle);
}

/* A handle that was expected may name nothing by now, or something else, which is shorter. */
static void looks_at_nothing_that_has_gone(void **state)
{
	struct context *c = *state;
	struct object *other = malloc(sizeof(*other));

	assert_non_null(other);
	for (int i = 0; i < 2 * QPS; i++)
		take(c, i % QPS);
	for (int i = 4; i < 6; i++) {
		handle_remove(&c->handles, &c->qps[i]->object);
		free(c->qps[i]);
		c->qps[i] = NULL;
	}
	*other = (struct object){.type = OBJECT_PD};
	assert_int_equal(handle_add(&c->handles, other), 0);
	for (int i = 0; i < 4 * QPS; i++)
		if (c->qps[i % QPS])
			take(c, i % QPS);
	assert_int_equal(c->qps[3]->ahead, c->qps[5 + TURNS_AHEAD]->object.handle);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(expects_what_came_last_time, setup, teardown),
		cmocka_unit_test_setup_teardown(takes_posts_in_a_row_for_one_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(follows_another_order, setup, teardown),
		cmocka_unit_test_setup_teardown(looks_at_nothing_that_has_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
