/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Retransmission by the requester (docs/recovery.md), on a network that loses chosen frames. */
#include "lossy.h"

#include <sys/mman.h>

#include "move.h"

/* Each separate gap costs one packet. */
static void test_separate_gaps_cost_one_packet_each(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3 | 1 << 9 | 1 << 17, 0);
	expect_again(&l, 3);
	assert_int_equal(drops(l.e.b, URXE_DROP_OUT_OF_SEQUENCE), 0);
	assert_int_equal(events(l.e.b, URXE_EVENT_DUP_REQUEST), 0);
	engine_close(&l.e);
}

/*
 * The requester repairs a burst of losses with one packet, then two, four, and so on: not one for
 * each round trip.
 */
static void test_burst_repair_doubles(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3,
		 0); /* shows the requester that the peer keeps early packets */
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 0x7f << 8, 0);
	expect_again(&l, 1 + 7);
	assert_int_equal(events(l.e.a, URXE_EVENT_NAK_SEQ_RCVD), 1 + 3);
	engine_close(&l.e);
}

/* Packets sent again after 60 packets, of which `lost` did not arrive. */
static uint64_t count_again(struct lossy *l, uint64_t lost)
{
	uint64_t before = events(l->e.a, URXE_EVENT_RETRANSMIT);

	transfer(l, URXE_WR_RDMA_WRITE, 60, lost, 0);
	return events(l->e.a, URXE_EVENT_RETRANSMIT) - before;
}

/* Two adjacent losses do not show that the peer drops packets behind a gap. */
static void test_adjacent_losses_leave_the_peer_unknown(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	assert_true(count_again(&l, 3 << 3) <= 3);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(count_again(&l, 1 << 9), 1);
	engine_close(&l.e);
}

/*
 * A burst of losses looks as if the peer dropped packets behind a gap. The requester corrects that
 * after a while, although it sends everything again before the peer answers.
 */
static void test_keeping_peer_is_recognized_after_a_burst(void **state)
{
	struct lossy l;

	(void)state;
	for (unsigned known = 0; known < 2; known++) {
		open_lossy(&l, false, false);
		if (known)
			count_again(&l, 1 << 3);
		assert_true(count_again(&l, UINT64_C(0xfffff) << 3) > 50);
		for (unsigned i = 0; i < 64; i++)
			count_again(&l, 1 << 9);
		assert_int_equal(count_again(&l, 1 << 9), 1);
		engine_close(&l.e);
	}
}

/* The second NAK shows that the peer keeps nothing: then the requester repeats everything. */
static void test_strict_peer_gets_everything_again(void **state)
{
	uint64_t naks;
	struct lossy l;

	(void)state;
	open_lossy(&l, false, true);
	measure(&l);
	transfer(&l, URXE_WR_RDMA_WRITE, 400, 1 << 3, 0);
	naks = events(l.e.a, URXE_EVENT_NAK_SEQ_RCVD);
	assert_true(naks <= 2);
	transfer(&l, URXE_WR_RDMA_WRITE, 400, 1 << 9, 0);
	assert_int_equal(events(l.e.a, URXE_EVENT_NAK_SEQ_RCVD), naks + 1);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&l.e);
}

/* A strict requester starts again at the gap, although its peer has kept the rest. */
static void test_strict_requester_goes_back(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, true, true);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3, 0);
	expect_again(&l, 57);
	engine_close(&l.e);
}

/* Of a READ, the requester asks only for the missing responses. */
static void test_only_missing_read_responses_are_requested(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_READ, 40, 0, 3 << 20);
	expect_again(&l, 1);
	assert_int_equal(l.losses[1].seen, 40 + 2);
	engine_close(&l.e);
}

/* arg: the PSN of the last READ request. */
static bool never_back(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	uint64_t *begin = arg;
	struct urxe_packet p;

	(void)now;
	assert_int_equal(urxe_packet_parse(&p, data, len), URXE_DROP_NONE);
	assert_int_equal(p.opcode, 0x0c);
	assert_true(p.reth.va >= *begin);
	*begin = p.reth.va;
	return true;
}

/*
 * Linux' rxe does not answer a repeated READ that begins before the previous one: with two gaps,
 * the requester may have to ask for the first one again.
 */
static void test_earlier_read_gap_is_requested_again(void **state)
{
	(void)state;
	for (unsigned n = 22; n < 60; n++) {
		uint64_t begin = 0;
		struct lossy l;

		open_lossy(&l, false, false);
		l.e.pair->link[0].filter = never_back;
		l.e.pair->link[0].filter_arg = &begin;
		transfer(&l, URXE_WR_RDMA_READ, 40, 0, 1 << 3 | 3 << 20 | UINT64_C(1) << n);
		engine_close(&l.e);
	}
}

/* A response is missing while the next packet waits for its rate. */
static void test_missing_response_is_requested_despite_a_rate_limit(void **state)
{
	struct urxe_qp_attr limit = {.rate_limit = 1000}; /* kb/s */
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	assert_int_equal(urxe_qp_modify(l.e.end[0].qp, l.e.pair->now, &limit, URXE_QP_RATE_LIMIT),
			 0);
	l.losses[1].lost = 1 << 3;
	post_send(&l.e, 0, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 40 * 1024});
	post_send(&l.e, 0,
		  &(struct post){.wr_id = 1,
				 .opcode = URXE_WR_RDMA_WRITE,
				 .offset = 65536,
				 .remote = 65536,
				 .length = 8 * 1024});
	pair_settle(l.e.pair);
	expect_wc(&l.e.a->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&l.e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_IMPLIED_NAK), 1);
	engine_close(&l.e);
}

/*
 * A READ without any response is repeated unchanged, since the requests behind it have PSNs after
 * its range.
 */
static void test_lost_read_request_is_repeated_unchanged(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	measure(&l);
	transfer(&l, URXE_WR_RDMA_READ, 100, 1, 1 << 5 | 1 << 9);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	assert_int_equal(drops(l.e.b, URXE_DROP_DUPLICATE), 0);
	engine_close(&l.e);
}

/* A strict requester needs no timeout, either, if a NAK or the repaired packet is lost. */
static void test_lost_repair_needs_no_timeout(void **state)
{
	(void)state;
	for (unsigned strict = 0; strict < 2; strict++)
		for (unsigned back = 0; back < 2; back++) {
			struct lossy l;

			open_lossy(&l, strict, false);
			measure(&l);
			/* 60 packets, one of which is lost; the frame behind them is the repair. */
			transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3 | (uint64_t)!back << 60, back);
			assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
			engine_close(&l.e);
		}
}

/* The last packet or its acknowledgement is lost: the requester notices after a few round trips. */
static void test_lost_tail_is_noticed_early(void **state)
{
	(void)state;
	for (unsigned back = 0; back < 2; back++) {
		struct lossy l;

		open_lossy(&l, false, false);
		measure(&l);
		if (back)
			transfer(&l, URXE_WR_RDMA_WRITE, 10, 0, 1);
		else
			transfer(&l, URXE_WR_RDMA_WRITE, 10, 3 << 8, 0);
		assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
		assert_true(events(l.e.a, URXE_EVENT_PROBE) >= 1);
		assert_true(events(l.e.a, URXE_EVENT_RETRANSMIT) <= 3);
		engine_close(&l.e);
	}
}

/*
 * A NAK caused a repair, but the peer had kept nothing of what followed. The response to an atomic
 * does not show that, so probes have to send the rest.
 */
static void test_probes_repeat_requests_behind_a_repair(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, true);
	measure(&l);
	l.losses[0] = (struct losses){.lost = 1};
	for (unsigned i = 0; i < 4; i++)
		post_send(&l.e, 0,
			  &(struct post){.wr_id = i, .opcode = URXE_WR_FETCH_ADD, .length = 8});
	pair_settle(l.e.pair);
	for (unsigned i = 0; i < 4; i++)
		expect_wc(&l.e.a->send_cq, i, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_NAK_SEQ_RCVD), 1);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&l.e);
}

static void open_with_long_probe(struct lossy *l)
{
	*l = (struct lossy){0};
	l->e.pair = pair_create(&(struct pair_attr){.seed = 1, .probe_ns = LONG_PROBE});
	connect_lossy(l, PATIENT);
	measure(l);
}

/* All requests of a burst are lost. After the answer to the first probe, further ones come soon. */
static void lose_burst(uint32_t opcode, unsigned requests, uint32_t length)
{
	struct lossy l;

	open_with_long_probe(&l);
	l.losses[0].all = true;
	for (unsigned i = 0; i < requests; i++)
		post_send(&l.e, 0, &(struct post){.wr_id = i, .opcode = opcode, .length = length});
	pair_run(l.e.pair, l.e.pair->now + LONG_PROBE / 2);
	l.losses[0].all = false;
	pair_run(l.e.pair, l.e.pair->now + LONG_PROBE);
	for (unsigned i = 0; i < requests; i++)
		expect_wc(&l.e.a->send_cq, i, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	assert_int_equal(events(l.e.b, URXE_EVENT_DUP_REQUEST), 0);
	engine_close(&l.e);
}

static void test_probes_hurry_after_an_answer(void **state)
{
	(void)state;
	lose_burst(URXE_WR_RDMA_WRITE, 1, 60 * PACKET_LEN);
	lose_burst(URXE_WR_RDMA_WRITE, 40, 64);
	lose_burst(URXE_WR_RDMA_READ, 4, 64);
	lose_burst(URXE_WR_RDMA_READ, 3, 10 * PACKET_LEN);
}

/*
 * The path has become longer than the probe's time, and each packet gets its own ACK. A probe was
 * wrong: the answers to the next packets show that, before it repeats them.
 */
static void test_late_answers_cause_no_series(void **state)
{
	enum { OUTSTANDING = 60, REQUESTS = 10 * OUTSTANDING };
	const struct post post = {.opcode = URXE_WR_RDMA_WRITE, .length = 8};
	struct lossy l;

	(void)state;
	open_with_long_probe(&l);
	l.e.pair->link[0].delay_ns = l.e.pair->link[1].delay_ns = LONG_PROBE;
	for (unsigned i = 0; i < OUTSTANDING; i++) {
		post_send(&l.e, 0, &post);
		pair_run(l.e.pair, l.e.pair->now + 100000);
	}
	for (unsigned i = 0; i < REQUESTS; i++) {
		while (l.e.a->send_cq.head == l.e.a->send_cq.tail)
			pair_run(l.e.pair, pair_next(l.e.pair));
		expect_wc(&l.e.a->send_cq, 0, URXE_WC_SUCCESS);
		if (i < REQUESTS - OUTSTANDING)
			post_send(&l.e, 0, &post);
	}
	assert_true(events(l.e.a, URXE_EVENT_PROBE) >= 1);
	expect_again(&l, events(l.e.a, URXE_EVENT_PROBE));
	engine_close(&l.e);
}

/*
 * Before the requester knows a round-trip time, the first probe waits for a part of a long timeout.
 */
static void test_first_probe_waits_for_part_of_the_timeout(void **state)
{
	struct lossy l;

	(void)state;
	for (unsigned probes = 0; probes < 2; probes++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);

		open_lossy(&l, false, false);
		if (probes) {
			conn.timeout = 14; /* 201 ms; conn_default has 3 ms */
			conn_open(l.e.pair, &conn, l.e.end);
		}
		transfer(&l, URXE_WR_RDMA_WRITE, 4, 0xf, 0);
		assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), !probes);
		assert_true(!events(l.e.a, URXE_EVENT_PROBE) == !probes);
		engine_close(&l.e);
	}
}

/* The peer is silent: the timeouts of the retry count, six probes before each, then the error. */
static void test_silent_peer_gets_probes_then_timeouts(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	measure(&l);
	l.losses[0].all = true;
	post_send(&l.e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
	pair_settle(l.e.pair);
	expect_wc(&l.e.a->send_cq, 0, URXE_WC_RETRY_EXC_ERR);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT),
			 conn_default(URXE_QPT_RC).retry_cnt + 1);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE),
			 6 * (conn_default(URXE_QPT_RC).retry_cnt + 1));
	engine_close(&l.e);
}

/* Of eight packets: the first one, and then six probes and the answers to three NAKs. */
#define GAP_LOSSES (1 | 0x1ff << 8)

/* The requester has one retry. */
static void open_with_one_retry(struct lossy *l)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	open_lossy(l, false, false);
	conn.path_mtu = URXE_MTU_1024;
	conn.retry_cnt = 1;
	conn.timeout = 14; /* 201 ms */
	conn_open(l->e.pair, &conn, l->e.end);
	measure(l);
}

static void expect_naks_of_a_gap(const struct lossy *l)
{
	assert_true(events(l->e.a, URXE_EVENT_NAK_SEQ_RCVD) >= 3);
	assert_int_equal(events(l->e.a, URXE_EVENT_TIMEOUT), 0);
}

/* Each repetition of the oldest packet is lost. The peer's NAKs for one gap use up one retry. */
static void test_naks_of_a_gap_use_one_retry(void **state)
{
	struct lossy l;

	(void)state;
	open_with_one_retry(&l);
	transfer(&l, URXE_WR_RDMA_WRITE, 8, GAP_LOSSES, 0);
	expect_naks_of_a_gap(&l);
	engine_close(&l.e);
}

static void save_or_move(struct engine *e, bool move)
{
	uint8_t *stream;
	size_t length;

	if (move) {
		move_node(e->pair, 0, (struct endpoint *[]){&e->end[0]}, 1);
		return;
	}
	move_save(e->a, e->pair->now, &stream, &length);
	urxe_state_free(stream);
}

/* The same if the requester is saved and goes on, or moves, again and again meanwhile. */
static void test_saves_within_a_gap_use_no_retry(void **state)
{
	(void)state;
	for (unsigned move = 0; move < 2; move++) {
		struct lossy l;

		open_with_one_retry(&l);
		l.losses[0] = (struct losses){.lost = GAP_LOSSES};
		post_send(&l.e, 0,
			  &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8 * PACKET_LEN});
		while (l.e.a->send_cq.head == l.e.a->send_cq.tail) {
			pair_run(l.e.pair, pair_next(l.e.pair));
			save_or_move(&l.e, move);
		}
		expect_wc(&l.e.a->send_cq, 0, URXE_WC_SUCCESS);
		expect_naks_of_a_gap(&l);
		engine_close(&l.e);
	}
}

static void announce(struct engine *e, const uint8_t mac[6], uint32_t len)
{
	announce_to(e->a, e->pair->now, mac, len);
}

/* Packets to a machine that migrates are lost. After its announcement they come again at once. */
static void test_announced_peer_gets_a_probe(void **state)
{
	uint64_t returned;
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	measure(&l);
	l.losses[0].all = true;
	post_send(&l.e, 0,
		  &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 40 << 10});
	while (events(l.e.a, URXE_EVENT_PROBE) < 4)
		pair_run(l.e.pair, pair_next(l.e.pair));
	l.losses[0] = (struct losses){0};
	returned = l.e.pair->now;
	announce(&l.e, (const uint8_t[]){2, 0, 0, 0, 0, 0x99}, 60); /* another station's */
	announce(&l.e, l.e.b->mac, 13);                             /* truncated */
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), 4);
	announce(&l.e, l.e.b->mac, 60);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), 5);
	/* All 40 packets come again, without a further probe. */
	pair_run(l.e.pair, returned + 1000000);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_SUCCESS);
	/* Nothing is outstanding. */
	announce(&l.e, l.e.b->mac, 60);
	pair_settle(l.e.pair);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), 5);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&l.e);
}

/* The peer announces itself after a timeout, before the first probe of the next series. A strict
 * requester sends no probes. */
static void announce_after_timeout(bool strict)
{
	uint64_t probes;
	struct lossy l;

	open_lossy(&l, strict, false);
	measure(&l);
	l.losses[0].all = true;
	post_send(&l.e, 0, &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 64});
	while (!events(l.e.a, URXE_EVENT_TIMEOUT))
		pair_run(l.e.pair, pair_next(l.e.pair));
	pair_run(l.e.pair, l.e.pair->now + 5000);
	probes = events(l.e.a, URXE_EVENT_PROBE);
	l.losses[0].all = false;
	announce(&l.e, l.e.b->mac, 60);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), probes + !strict);
	pair_settle(l.e.pair);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 1 + strict);
	engine_close(&l.e);
}

static void test_announced_peer_gets_a_probe_after_a_timeout(void **state)
{
	(void)state;
	announce_after_timeout(false);
	announce_after_timeout(true);
}

/* The peer's absence was shorter than a probe's time. Its requests come again after a short silence
 * all the same, unless they are answered. */
static void announce_before_probe(uint8_t state, uint64_t silence, bool lost)
{
	const struct urxe_qp_attr attr = {.state = state};
	struct lossy l;

	open_with_long_probe(&l);
	l.losses[0].all = lost;
	post_send(&l.e, 0,
		  &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 40 << 10});
	pair_run(l.e.pair, l.e.pair->now + silence);
	l.losses[0].all = false;
	assert_int_equal(urxe_qp_modify(l.e.end[0].qp, l.e.pair->now, &attr, URXE_QP_STATE), 0);
	announce(&l.e, l.e.b->mac, 60);
	announce(&l.e, l.e.b->mac, 60);
	pair_run(l.e.pair, l.e.pair->now + 1000000);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_SUCCESS);
	expect_again(&l, lost ? 40 : 0);
	engine_close(&l.e);
}

static void test_announcement_needs_no_probe(void **state)
{
	(void)state;
	announce_before_probe(URXE_QPS_RTS, LONG_PROBE / 2, true);
	announce_before_probe(URXE_QPS_RTS, 100000, true);
	announce_before_probe(URXE_QPS_RTS, 1000, false);
	announce_before_probe(URXE_QPS_SQD, LONG_PROBE / 2, true);
}

/* A strict requester leaves it to its timeout. */
static void test_strict_requester_ignores_announcements(void **state)
{
	struct lossy l;

	(void)state;
	open_with_timeout(&l, true, false, PATIENT);
	l.losses[0].all = true;
	post_send(&l.e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 64});
	pair_run(l.e.pair, l.e.pair->now + LONG_PROBE);
	announce(&l.e, l.e.b->mac, 60);
	pair_run(l.e.pair, l.e.pair->now + LONG_PROBE);
	expect_again(&l, 0);
	engine_close(&l.e);
}

/* Announcements of a station that stays silent prolong nothing: the retries run out. With a rate
 * limit, too, where each repetition starts the ACK timeout anew. */
static void announce_silent_peer(uint32_t rate_limit)
{
	const struct urxe_qp_attr limit = {.rate_limit = rate_limit}; /* kb/s; 0: none */
	const uint64_t end = 60000000000;                             /* ns */
	struct lossy l;

	open_lossy(&l, false, false);
	measure(&l);
	assert_int_equal(urxe_qp_modify(l.e.end[0].qp, l.e.pair->now, &limit, URXE_QP_RATE_LIMIT),
			 0);
	l.losses[0].all = true;
	post_send(&l.e, 0, &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 64});
	while (pair_run(l.e.pair, l.e.pair->now + 1000000) != PAIR_IDLE && l.e.pair->now < end)
		announce(&l.e, l.e.b->mac, 60);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_RETRY_EXC_ERR);
	engine_close(&l.e);
}

static void test_announcements_save_no_silent_peer(void **state)
{
	(void)state;
	announce_silent_peer(0);
	announce_silent_peer(100000);
}

/* By the clocks of two threads, a round trip may end before it began: that causes no probe. */
static void test_answer_before_its_request_causes_no_probe(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	const struct post post = {.opcode = URXE_WR_RDMA_WRITE, .length = 8};
	const uint64_t now = 1000000000;
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame = {.data = data, .room = sizeof(data)};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 0, &post);
	assert_int_equal(urxe_output(e.a->dev, now, &frame, 1), 1);
	urxe_input(e.b->dev, now, &frame, 1);
	assert_int_equal(urxe_output(e.b->dev, now, &frame, 1), 1);
	urxe_input(e.a->dev, now - 1000, &frame, 1);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	post_send(&e, 0, &post);
	assert_int_equal(urxe_output(e.a->dev, now, &frame, 1), 1);
	assert_true(urxe_next_deadline(e.a->dev) > now);
	engine_close(&e);
}

/* The caller sets the minimum silence before a probe. */
static void test_probe_time_has_a_set_minimum(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct lossy l = {0};
	uint64_t sent;

	(void)state;
	l.e.pair = pair_create(&(struct pair_attr){.seed = 1, .probe_ns = 700000});
	l.e.a = l.e.pair->node[0];
	l.e.b = l.e.pair->node[1];
	conn_open(l.e.pair, &conn, l.e.end);
	l.e.pair->link[0].filter = passes;
	l.e.pair->link[0].filter_arg = &l.losses[0];
	measure(&l);
	sent = l.e.pair->now;
	l.losses[0].all = true;
	post_send(&l.e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
	pair_run(l.e.pair, sent + 699999);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), 0);
	pair_run(l.e.pair, sent + 700001);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), 1);
	engine_close(&l.e);
}

/*
 * Within a host more packets are outstanding than the responder keeps behind a gap. It asks for
 * those that it has dropped, so the requester needs no timer.
 */
static void test_packets_dropped_behind_a_gap_need_no_timer(void **state)
{
	struct lossy l = {0};

	(void)state;
	l.e.pair =
		pair_create(&(struct pair_attr){.seed = 1, .mem_size = 4 << 20, .same_mac = true});
	connect_lossy(&l, 0);
	transfer(&l, URXE_WR_RDMA_WRITE, 400, 1, 0);
	assert_true(drops(l.e.b, URXE_DROP_OUT_OF_SEQUENCE) > 0);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), 0);
	engine_close(&l.e);
}

/* The number of packets sent before the first acknowledgement. */
static uint64_t window(struct lossy *l)
{
	uint64_t before = events(l->e.a, URXE_EVENT_TX_PACKETS);
	uint64_t again = events(l->e.a, URXE_EVENT_RETRANSMIT);

	l->losses[1] = (struct losses){.all = true};
	post_send(&l->e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 1 << 20});
	pair_run(l->e.pair, l->e.pair->now + 1000000);
	before = events(l->e.a, URXE_EVENT_TX_PACKETS) - before -
		 (events(l->e.a, URXE_EVENT_RETRANSMIT) - again);
	l->losses[1].all = false;
	pair_settle(l->e.pair);
	expect_wc(&l->e.a->send_cq, 0, URXE_WC_SUCCESS);
	return before;
}

/* A loss shrinks the window, and each window without a loss lets it grow. */
static void test_loss_shrinks_the_window(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	assert_int_equal(window(&l), 256);
	engine_close(&l.e);

	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3, 0);
	assert_int_equal(window(&l), 224);
	engine_close(&l.e);

	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3, 0);
	transfer(&l, URXE_WR_RDMA_WRITE, 1000, 0, 0);
	assert_int_equal(window(&l), 256);
	engine_close(&l.e);
}

/*
 * After an RNR NAK the requester repeats only the refused message, if the peer is known to keep
 * early packets.
 */
static void test_rnr_repeats_the_refused_message_only(void **state)
{
	uint64_t again;
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3, 0);
	again = events(l.e.a, URXE_EVENT_RETRANSMIT);
	post_send(&l.e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_SEND, .length = 64});
	post_send(&l.e, 0,
		  &(struct post){.wr_id = 2, .opcode = URXE_WR_RDMA_WRITE, .length = 9000});
	pair_run(l.e.pair, l.e.pair->now + 50000);
	post_recv(&l.e.end[1], 7, 1 << 20, 64);
	pair_settle(l.e.pair);
	expect_wc(&l.e.a->send_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&l.e.a->send_cq, 2, URXE_WC_SUCCESS);
	assert_true(events(l.e.a, URXE_EVENT_NAK_RNR_RCVD) > 0);
	assert_int_equal(events(l.e.a, URXE_EVENT_RETRANSMIT) - again,
			 events(l.e.a, URXE_EVENT_NAK_RNR_RCVD));
	engine_close(&l.e);
}

/*
 * A response is lost, and the peer refuses or lacks the request behind it. Without a local ACK
 * timeout only answers of the peer cause repetitions, and this NAK may be its last answer.
 */
static void lose_response_before_nak(bool strict_peer, uint64_t lost, bool late_receives)
{
	struct lossy l;

	open_with_timeout(&l, false, strict_peer, 0);
	l.losses[0].lost = lost;
	l.losses[1].lost = 1;
	for (unsigned i = 0; i < 2 && !late_receives; i++)
		post_recv(&l.e.end[1], i, 1 << 20, 64);
	for (unsigned i = 0; i < 3; i++)
		post_send(&l.e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = i ? URXE_WR_SEND : URXE_WR_RDMA_READ,
					 .length = 64});
	pair_run(l.e.pair, l.e.pair->now + 1000000);
	for (unsigned i = 0; i < 2 && late_receives; i++)
		post_recv(&l.e.end[1], i, 1 << 20, 64);
	pair_settle(l.e.pair);
	for (unsigned i = 0; i < 3; i++)
		expect_wc(&l.e.a->send_cq, i, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.b, URXE_EVENT_NAK_RNR_SENT) > 0, late_receives);
	engine_close(&l.e);
}

static void test_nak_behind_a_lost_response_counts(void **state)
{
	(void)state;
	lose_response_before_nak(false, 0, true);
	lose_response_before_nak(true, 0, true);
	lose_response_before_nak(false, 1 << 1, false);
	lose_response_before_nak(true, 1 << 1, false);
}

/* Gives node b's requester an answer of node a, 1 us later. */
static void answer(struct engine *e, const struct conn_attr *conn, uint8_t opcode, uint32_t nth,
		   uint8_t syndrome, uint32_t length)
{
	struct urxe_packet p = from_peer(e, conn, opcode);

	p.psn = (conn->psn[1] + nth) & 0xffffff;
	p.aeth.syndrome = syndrome;
	p.payload_len = length;
	e->pair->now += 1000;
	inject(e, &p);
}

/* A copy of the refused request was on its way, and the peer has executed that copy. */
static void test_ack_of_the_refused_request_ends_the_rnr_wait(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_SEND, .length = 100});
	assert_int_equal(answers(&e).n, 1);
	answer(&e, &conn, 0x11, 0, 0x34, 0); /* RNR NAK, 10 ms */
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_SEND, .length = 100});
	assert_int_equal(answers(&e).n, 0);
	answer(&e, &conn, 0x11, 0, 0x1f, 0);
	assert_int_equal(answers(&e).n, 1);
	engine_close(&e);
}

static void post_writes(struct engine *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		post_send(e, 1, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
}

/*
 * A peer drops packets behind a gap. Its ACK covers the repaired packets, and new ones that were
 * sent behind them: that does not show that it keeps early packets.
 */
static void test_ack_of_new_packets_shows_no_kept_ones(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	for (unsigned first = 0; first < 8; first += 4) {
		post_writes(&e, 4);
		assert_int_equal(answers(&e).n, 4);
		answer(&e, &conn, 0x11, first, 0x60, 0);
		assert_int_equal(answers(&e).n, 1);
		answer(&e, &conn, 0x11, first, 0x1f, 0);
		assert_int_equal(answers(&e).n, 3);
		answer(&e, &conn, 0x11, first + 3, 0x1f, 0);
	}
	post_writes(&e, 4);
	assert_int_equal(answers(&e).n, 4);
	answer(&e, &conn, 0x11, 8, 0x60, 0);
	assert_int_equal(answers(&e).n, 4);
	post_writes(&e, 2);
	assert_int_equal(answers(&e).n, 2);
	answer(&e, &conn, 0x11, 13, 0x1f, 0);
	post_writes(&e, 4);
	assert_int_equal(answers(&e).n, 4);
	answer(&e, &conn, 0x11, 14, 0x60, 0);
	assert_int_equal(answers(&e).n, 4);
	engine_close(&e);
}

/* The NAK overtakes the response: the repetition costs no retry, and copies of the NAK cause no
 * other. */
static void test_nak_before_a_late_response_repeats_once(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.retry_cnt = 0;
	engine_open(&e, &conn);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 100});
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_SEND, .length = 100});
	assert_int_equal(answers(&e).n, 2);
	answer(&e, &conn, 0x11, 1, 0x21, 0); /* RNR NAK, 10 us */
	assert_int_equal(answers(&e).n, 2);
	answer(&e, &conn, 0x11, 1, 0x21, 0);
	assert_int_equal(answers(&e).n, 0);
	answer(&e, &conn, 0x10, 0, 0x1f, 100);
	assert_int_equal(answers(&e).n, 0);
	answer(&e, &conn, 0x11, 1, 0x21, 0);
	assert_int_equal(answers(&e).n, 0);
	e.pair->now += 10000;
	assert_int_equal(answers(&e).n, 1);
	answer(&e, &conn, 0x11, 1, 0x1f, 0);
	expect_wc(&e.b->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&e.b->send_cq, 0, URXE_WC_SUCCESS);
	engine_close(&e);
}

/*
 * The NAK behind the lost response of a READ made the requester repeat a second READ, which the
 * peer had not executed. If the response of that READ is lost, too, the next answer of the peer has
 * to cause a repetition, as the first one did.
 */
static void lose_second_response(bool refused)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	conn.timeout = 0;
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 4; i++)
		post_send(&e, 1,
			  &(struct post){.wr_id = i,
					 .opcode = i % 2 ? URXE_WR_SEND : URXE_WR_RDMA_READ,
					 .length = 100});
	assert_int_equal(answers(&e).n, 4);
	answer(&e, &conn, 0x11, 1, 0x21, 0); /* RNR NAK, 10 us */
	assert_int_equal(answers(&e).n, 4);
	answer(&e, &conn, 0x10, 0, 0x1f, 100);
	answer(&e, &conn, 0x11, 1, 0x21, 0);
	e.pair->now += 10000;
	assert_int_equal(answers(&e).n, 3);
	answer(&e, &conn, 0x11, 1, 0x1f, 0);
	answer(&e, &conn, 0x11, 3, refused ? 0x21 : 0x1f, 0);
	e.pair->now += 10000; /* more than reorder_ns */
	assert_int_equal(answers(&e).n, refused ? 2 : 1);
	answer(&e, &conn, 0x10, 2, 0x1f, 100);
	if (refused)
		answer(&e, &conn, 0x11, 3, 0x1f, 0);
	for (unsigned i = 0; i < 4; i++)
		expect_wc(&e.b->send_cq, i, URXE_WC_SUCCESS);
	engine_close(&e);
}

static void test_next_lost_response_is_requested_after_a_nak(void **state)
{
	(void)state;
	lose_second_response(true);
	lose_second_response(false);
}

/* Sends everything that may be sent now; returns the number of packets. */
static uint32_t send_all(struct engine *e)
{
	uint32_t n, all = 0;

	while ((n = answers(e).n))
		all += n;
	return all;
}

/* The longest message has 2^23 packets: its end is not comparable with PSNs before its first. */
static void test_longest_message_is_repeated_behind_another_one(void **state)
{
	const uint32_t length = 1u << 31;
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_extent extent = {
		mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
		length};
	struct urxe_mr_attr attr = {
		.pd = NODE_PD, .length = length, .extents = &extent, .n_extents = 1};
	struct urxe_mr *mr;
	struct engine e;
	uint32_t n;

	(void)state;
	assert_ptr_not_equal(extent.addr, MAP_FAILED);
	conn.path_mtu = URXE_MTU_256;
	engine_open(&e, &conn);
	attr.iova = e.b->iova;
	assert_int_equal(urxe_mr_reg(e.b->dev, &attr, &mr), 0);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_SEND, .length = 100});
	post_send(&e, 1,
		  &(struct post){
			  .opcode = URXE_WR_RDMA_WRITE, .length = length, .lkey = urxe_mr_key(mr)});
	assert_true(send_all(&e) > 2);
	do {
		e.pair->now = urxe_next_deadline(e.b->dev);
		n = send_all(&e);
	} while (!events(e.b, URXE_EVENT_TIMEOUT));
	assert_true(n > 2);
	engine_close(&e);
	munmap(extent.addr, length);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_repair_needs_no_timeout),
		cmocka_unit_test(test_missing_response_is_requested_despite_a_rate_limit),
		cmocka_unit_test(test_probes_repeat_requests_behind_a_repair),
		cmocka_unit_test(test_probes_hurry_after_an_answer),
		cmocka_unit_test(test_late_answers_cause_no_series),
		cmocka_unit_test(test_first_probe_waits_for_part_of_the_timeout),
		cmocka_unit_test(test_probe_time_has_a_set_minimum),
		cmocka_unit_test(test_packets_dropped_behind_a_gap_need_no_timer),
		cmocka_unit_test(test_answer_before_its_request_causes_no_probe),
		cmocka_unit_test(test_separate_gaps_cost_one_packet_each),
		cmocka_unit_test(test_burst_repair_doubles),
		cmocka_unit_test(test_adjacent_losses_leave_the_peer_unknown),
		cmocka_unit_test(test_keeping_peer_is_recognized_after_a_burst),
		cmocka_unit_test(test_strict_peer_gets_everything_again),
		cmocka_unit_test(test_strict_requester_goes_back),
		cmocka_unit_test(test_only_missing_read_responses_are_requested),
		cmocka_unit_test(test_earlier_read_gap_is_requested_again),
		cmocka_unit_test(test_lost_read_request_is_repeated_unchanged),
		cmocka_unit_test(test_lost_tail_is_noticed_early),
		cmocka_unit_test(test_silent_peer_gets_probes_then_timeouts),
		cmocka_unit_test(test_naks_of_a_gap_use_one_retry),
		cmocka_unit_test(test_saves_within_a_gap_use_no_retry),
		cmocka_unit_test(test_announced_peer_gets_a_probe),
		cmocka_unit_test(test_announced_peer_gets_a_probe_after_a_timeout),
		cmocka_unit_test(test_announcement_needs_no_probe),
		cmocka_unit_test(test_strict_requester_ignores_announcements),
		cmocka_unit_test(test_announcements_save_no_silent_peer),
		cmocka_unit_test(test_loss_shrinks_the_window),
		cmocka_unit_test(test_rnr_repeats_the_refused_message_only),
		cmocka_unit_test(test_nak_behind_a_lost_response_counts),
		cmocka_unit_test(test_ack_of_new_packets_shows_no_kept_ones),
		cmocka_unit_test(test_nak_before_a_late_response_repeats_once),
		cmocka_unit_test(test_next_lost_response_is_requested_after_a_nak),
		cmocka_unit_test(test_ack_of_the_refused_request_ends_the_rnr_wait),
		cmocka_unit_test(test_longest_message_is_repeated_behind_another_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
