/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A responder with a rate limit answers a READ so slowly that the requester probes between two
 * responses, also after the requester has moved. Each response that arrives is sent once.
 */
#include "lossy.h"
#include "move.h"

#define RATE     1000    /* kb/s */
#define INTERVAL 9000000 /* ns; a little longer than a response needs at that rate */

static void open_slow(struct lossy *l, uint32_t probe_ns, bool go_back_n)
{
	const struct urxe_qp_attr limit = {.rate_limit = RATE};

	*l = (struct lossy){0};
	l->e.pair = pair_create(&(struct pair_attr){
		.seed = 1, .probe_ns = probe_ns, .go_back_n = {go_back_n, go_back_n}});
	connect_lossy(l, PATIENT);
	measure(l);
	assert_int_equal(urxe_qp_modify(l->e.end[1].qp, l->e.pair->now, &limit, URXE_QP_RATE_LIMIT),
			 0);
}

static void post_read(struct lossy *l, uint32_t n_packets)
{
	rand_fill(&(struct rand){n_packets}, l->e.b->mem, n_packets * PACKET_LEN);
	l->losses[1] = (struct losses){0};
	post_send(&l->e, 0,
		  &(struct post){.wr_id = 7,
				 .opcode = URXE_WR_RDMA_READ,
				 .length = n_packets * PACKET_LEN});
}

static void expect_read(struct lossy *l, uint32_t n_packets)
{
	pair_settle(l->e.pair);
	expect_wc(&l->e.a->send_cq, 7, URXE_WC_SUCCESS);
	assert_memory_equal(l->e.a->mem, l->e.b->mem, n_packets * PACKET_LEN);
	assert_int_equal(events(l->e.a, URXE_EVENT_TIMEOUT), 0);
	assert_int_equal(drops(l->e.a, URXE_DROP_STALE_ACK), 0);
}

static void test_probes_cause_no_duplicate_responses(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 8; n++) {
		struct lossy l;

		open_slow(&l, 0, false);
		post_read(&l, n);
		expect_read(&l, n);
		assert_true(events(l.e.a, URXE_EVENT_PROBE) >= n - 1);
		assert_int_equal(l.losses[1].seen, n);
		engine_close(&l.e);
	}
}

static void move_requester(struct lossy *l)
{
	struct endpoint *end = &l->e.end[0];

	move_node(l->e.pair, 0, &end, 1);
}

/* `lost` responses are lost while the requester moves, from response `from` on. */
static void move_during_read(uint32_t probe_ns, uint32_t from, uint32_t lost, uint32_t moves)
{
	enum { N = 8 };
	struct lossy l;

	open_slow(&l, probe_ns, false);
	post_read(&l, N);
	while (l.losses[1].seen < from)
		pair_run(l.e.pair, pair_next(l.e.pair));
	pair_run(l.e.pair, l.e.pair->now + 100000); /* response `from` - 1 has arrived */
	l.losses[1].all = true;
	pair_run(l.e.pair, l.e.pair->now + (uint64_t)lost * INTERVAL);
	l.losses[1].all = false;
	for (uint32_t i = 0; i < moves; i++) {
		move_requester(&l);
		announce_to(l.e.a, l.e.pair->now, l.e.a->mac, URXE_ANNOUNCEMENT_LEN);
		pair_run(l.e.pair, l.e.pair->now + 1000000);
	}
	expect_read(&l, N);
	assert_int_equal(l.losses[1].seen, N + lost);
	engine_close(&l.e);
}

static void test_moved_requester_gets_each_response_once(void **state)
{
	(void)state;
	for (uint32_t from = 1; from < 6; from++)
		for (uint32_t lost = 0; lost < 3; lost++)
			for (uint32_t moves = 1; moves < 4; moves++) {
				move_during_read(0, from, lost, moves);
				move_during_read(LONG_PROBE, from, lost, moves);
			}
}

/* The responder loses the region: its NAK ends the READ. */
static void end_region_of_read(struct lossy *l)
{
	urxe_mr_dereg(l->e.b->mr);
	l->e.b->mr = NULL;
	pair_settle(l->e.pair);
	expect_wc(&l->e.a->send_cq, 7, URXE_WC_REM_ACCESS_ERR);
	assert_int_equal(events(l->e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&l->e);
}

/* The requester lacks the rest of the response, so it learns that the region has gone. */
static void test_region_ends_during_a_probed_read(void **state)
{
	struct lossy l;

	(void)state;
	open_slow(&l, 0, false);
	post_read(&l, 2);
	pair_run(l.e.pair, l.e.pair->now + INTERVAL / 2);
	assert_true(events(l.e.b, URXE_EVENT_DUP_REQUEST) > 0);
	end_region_of_read(&l);
}

/* The requester asks again for a lost response and those behind it, of which most never left. */
static void test_region_ends_after_a_lost_response(void **state)
{
	struct lossy l;

	(void)state;
	open_slow(&l, 0, true);
	post_read(&l, 8);
	while (l.losses[1].seen < 1)
		pair_run(l.e.pair, pair_next(l.e.pair));
	pair_run(l.e.pair, l.e.pair->now + 100000);
	l.losses[1].all = true;
	pair_run(l.e.pair, l.e.pair->now + INTERVAL);
	l.losses[1].all = false;
	pair_run(l.e.pair, l.e.pair->now + INTERVAL + 1000000);
	assert_int_equal(l.losses[1].seen, 3);
	end_region_of_read(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probes_cause_no_duplicate_responses),
		cmocka_unit_test(test_moved_requester_gets_each_response_once),
		cmocka_unit_test(test_region_ends_during_a_probed_read),
		cmocka_unit_test(test_region_ends_after_a_lost_response),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
