/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A path that this host has cut (urxe_ops.path_cut): its timeouts use up no retry. */
#include "engine.h"

#define RETRIES 3

static bool lose(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)now;
	(void)data;
	(void)len;
	return !*(const bool *)arg;
}

static uint64_t timeouts(const struct engine *e)
{
	return urxe_qp_counters(e->end[0].qp)->event[URXE_EVENT_TIMEOUT];
}

static void post_write(struct engine *e, struct conn_attr *conn, bool *down)
{
	*conn = conn_default(URXE_QPT_RC);
	conn->retry_cnt = RETRIES;
	engine_open(e, conn);
	e->pair->link[0].filter = lose;
	e->pair->link[0].filter_arg = down;
	post_send(e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = 8});
}

static void run_until_timeouts(struct engine *e, uint64_t n)
{
	while (timeouts(e) < n)
		assert_true(pair_run(e->pair, pair_next(e->pair) + 1) != PAIR_STUCK);
}

static void a_request_survives_any_number_of_timeouts_of_a_cut_path(void **state)
{
	struct conn_attr conn;
	struct engine e;
	bool down = true;

	(void)state;
	post_write(&e, &conn, &down);
	e.a->path_cut = true;
	run_until_timeouts(&e, 4 * RETRIES);
	expect_none(&e.a->send_cq);
	/* The daemon has returned: the next try succeeds. */
	e.a->path_cut = down = false;
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	engine_close(&e);
}

static void a_cut_leaves_all_retries_for_later(void **state)
{
	struct conn_attr conn;
	struct engine e;
	bool down = true;

	(void)state;
	post_write(&e, &conn, &down);
	e.a->path_cut = true;
	run_until_timeouts(&e, 2 * RETRIES);
	e.a->path_cut = false;
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_RETRY_EXC_ERR);
	/* The timeout after the last retry is the error. */
	assert_int_equal(timeouts(&e), 2 * RETRIES + RETRIES + 1);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_survives_any_number_of_timeouts_of_a_cut_path),
		cmocka_unit_test(a_cut_leaves_all_retries_for_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
