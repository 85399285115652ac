/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Errors and their consequences: completions, flush order, retries, RNR. */
#include <errno.h>
#include <string.h>

#include "engine.h"

#define MS 1000000ull

static bool lose_all(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return false;
}

static void to_error(struct engine *e, unsigned side)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};

	assert_int_equal(urxe_qp_modify(e->end[side].qp, e->pair->now, &attr, URXE_QP_STATE), 0);
}

/* All outstanding requests complete with a flush error, in the order of posting (IBA 10.3.1.6). */
static void test_flush_keeps_the_order(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.sq_sig_all = false; /* a failed request completes even if it is unsignaled */
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 5; i++) {
		post_send(&e, 0, &(struct post){.wr_id = i, .opcode = URXE_WR_SEND, .length = 9});
		post_recv(&e.end[0], 100 + i, 0, 10);
	}
	to_error(&e, 0);
	for (unsigned i = 0; i < 5; i++) {
		expect_wc(&e.a->send_cq, i, URXE_WC_WR_FLUSH_ERR);
		expect_wc(&e.a->recv_cq, 100 + i, URXE_WC_WR_FLUSH_ERR);
	}
	/* A request posted to a QP in the error state completes at once. */
	post_send(&e, 0, &(struct post){.wr_id = 6, .opcode = URXE_WR_SEND});
	post_recv(&e.end[0], 106, 0, 10);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 6, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&e.a->recv_cq, 106, URXE_WC_WR_FLUSH_ERR);
	expect_none(&e.a->send_cq);
	expect_none(&e.a->recv_cq);
	assert_int_equal(e.pair->link[0].sent, 0);
	engine_close(&e);
}

/* Requests before the faulty one succeed, requests behind it are flushed. */
static void test_local_error_flushes_only_requests_behind_it(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 5; i++)
		post_send(&e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = URXE_WR_RDMA_WRITE,
					 .length = 5000,
					 .lkey = i == 2 ? 0xbad : 0});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 2, URXE_WC_LOC_PROT_ERR);
	expect_wc(&e.a->send_cq, 3, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&e.a->send_cq, 4, URXE_WC_WR_FLUSH_ERR);
	expect_none(&e.a->send_cq);
	engine_close(&e);
}

/* A request that fails waits for the one before it, which is sent many times: one error. */
static void test_a_waiting_local_error_counts_once(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	e.pair->link[0].filter = lose_all;
	for (unsigned i = 0; i < 2; i++)
		post_send(&e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = URXE_WR_RDMA_WRITE,
					 .length = 8,
					 .lkey = i ? 0xbad : 0});
	while (events(e.a, URXE_EVENT_TIMEOUT) < 3)
		assert_int_equal(pair_run(e.pair, pair_next(e.pair)), PAIR_TIME_UP);
	e.pair->link[0].filter = NULL;
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 1, URXE_WC_LOC_PROT_ERR);
	assert_int_equal(events(e.a, URXE_EVENT_LOCAL_ERROR), 1);
	engine_close(&e);
}

/*
 * The packet before the faulty request has no AckReq, because its successor was to follow. The
 * requester asks for its acknowledgement at once: the only timer would end the wrong request.
 */
static void test_local_error_asks_for_the_ack_before_it(void **state)
{
	(void)state;
	for (unsigned strict = 0; strict < 2; strict++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct engine e;

		conn.sq_sig_all = false;
		conn.retry_cnt = 0;
		e.pair = pair_create(&(struct pair_attr){.seed = 1, .go_back_n = {strict, strict}});
		e.a = e.pair->node[0];
		e.b = e.pair->node[1];
		conn_open(e.pair, &conn, e.end);
		post_recv(&e.end[1], 9, 0, 100);
		for (unsigned i = 0; i < 2; i++)
			post_send(&e, 0,
				  &(struct post){.wr_id = i,
						 .opcode = URXE_WR_SEND,
						 .length = 8,
						 .lkey = i ? 0xbad : 0});
		pair_settle(e.pair);
		expect_wc(&e.b->recv_cq, 9, URXE_WC_SUCCESS);
		expect_wc(&e.a->send_cq, 1, URXE_WC_LOC_PROT_ERR);
		expect_none(&e.a->send_cq);
		assert_int_equal(events(e.a, URXE_EVENT_RETRANSMIT), 1);
		assert_int_equal(events(e.a, URXE_EVENT_TIMEOUT), 0);
		engine_close(&e);
	}
}

/* The response of the READ before a message that fails after its first packet is under way: the
 * requester does not ask for it again. */
static void test_local_error_asks_for_no_response_again(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_seg segs[2];
	struct urxe_send_wr wr = {
		.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .segs = segs, .n_segs = 2};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	segs[0] = segs[1] = node_seg(e.a, 65536, 4096);
	segs[1].lkey = 0xbad;
	wr.remote_addr = e.b->iova + 65536;
	wr.rkey = e.b->key;
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 40000});
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 1, URXE_WC_LOC_PROT_ERR);
	assert_true(e.pair->link[0].sent > 1);
	assert_int_equal(events(e.a, URXE_EVENT_RETRANSMIT), 0);
	engine_close(&e);
}

/* A malformed request fails after the requests before it, and sends no packet, on each service. */
static void test_malformed_fails_in_order(void **state)
{
	const enum urxe_qp_type types[] = {URXE_QPT_RC, URXE_QPT_UC};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct conn_attr conn = conn_default(types[i]);
		struct engine e;

		conn.sq_sig_all = false; /* it completes like a signaled request */
		engine_open(&e, &conn);
		post_recv(&e.end[1], 9, 0, 100);
		post_send(&e, 0,
			  &(struct post){.wr_id = 1,
					 .opcode = URXE_WR_SEND,
					 .length = 100,
					 .flags = URXE_SEND_SIGNALED});
		assert_int_equal(urxe_post_malformed(e.end[0].qp, 2, URXE_WC_LOC_LEN_ERR), 0);
		post_send(&e, 0, &(struct post){.wr_id = 3, .opcode = URXE_WR_SEND, .length = 1});
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
		expect_wc(&e.a->send_cq, 2, URXE_WC_LOC_LEN_ERR);
		expect_wc(&e.a->send_cq, 3, URXE_WC_WR_FLUSH_ERR);
		expect_none(&e.a->send_cq);
		expect_wc(&e.b->recv_cq, 9, URXE_WC_SUCCESS);
		assert_int_equal(qp_state(&e.end[0]), i ? URXE_QPS_SQE : URXE_QPS_ERR);
		assert_int_equal(urxe_post_malformed(e.end[0].qp, 4, URXE_WC_LOC_LEN_ERR), 0);
		expect_wc(&e.a->send_cq, 4, URXE_WC_WR_FLUSH_ERR);
		engine_close(&e);
	}
}

static void test_malformed_needs_a_sending_state(void **state)
{
	const struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, e.pair->now, &reset, URXE_QP_STATE), 0);
	assert_int_equal(urxe_post_malformed(e.end[0].qp, 1, URXE_WC_LOC_LEN_ERR), -EINVAL);
	expect_none(&e.a->send_cq);
	engine_close(&e);
}

/* The same for an error at the peer: the peer executes the requests before the refused one. */
static void test_remote_error_flushes_only_requests_behind_it(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	memset(e.a->mem, 0x42, 100);
	post_recv(&e.end[1], 50, 0, 10);
	for (unsigned i = 0; i < 4; i++)
		post_send(&e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = URXE_WR_RDMA_WRITE,
					 .length = 100,
					 .remote = 1000 * (i + 1),
					 .rkey = i == 1 ? 0xbad : 0});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 1, URXE_WC_REM_ACCESS_ERR);
	expect_wc(&e.a->send_cq, 2, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&e.a->send_cq, 3, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&e.b->recv_cq, 50, URXE_WC_WR_FLUSH_ERR);
	assert_int_equal(e.b->mem[1000], 0x42);
	assert_int_equal(e.b->mem[2000] | e.b->mem[3000] | e.b->mem[4000], 0);
	engine_close(&e);
}

/* A message longer than the receive request: an error on both sides (IBA 9.7.4.1.6, table 59). */
static void test_too_long_message_fails_on_both_sides(void **state)
{
	static const uint32_t room[] = {0, 1, 1023, 1024, 2999};

	(void)state;
	for (size_t i = 0; i < sizeof(room) / sizeof(room[0]); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct engine e;

		engine_open(&e, &conn);
		memset(e.a->mem, 0x11, 3000);
		post_recv(&e.end[1], 1, 100, room[i]);
		post_recv(&e.end[1], 2, 5000, 5000);
		post_send(&e, 0,
			  &(struct post){.wr_id = 3, .opcode = URXE_WR_SEND, .length = 3000});
		pair_settle(e.pair);
		expect_wc(&e.b->recv_cq, 1, URXE_WC_LOC_LEN_ERR);
		expect_wc(&e.b->recv_cq, 2, URXE_WC_WR_FLUSH_ERR);
		expect_wc(&e.a->send_cq, 3, URXE_WC_REM_INV_REQ_ERR);
		assert_int_equal(e.b->async[URXE_ASYNC_QP_REQ_ERR], 0); /* the completion tells */
		assert_int_equal(e.b->mem[100 + room[i]], 0);
		assert_int_equal(e.b->mem[5000], 0);
		engine_close(&e);
	}
}

/*
 * The peer is silent: the requester repeats retry_cnt times, one timeout apart, then completes the
 * request with an error.
 */
static void test_silent_peer_exhausts_retries(void **state)
{
	(void)state;
	for (uint8_t retries = 0; retries <= 7; retries++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		uint64_t least = (retries + 1) * (4096ull << conn.timeout);
		struct engine e;

		conn.retry_cnt = retries;
		engine_open(&e, &conn);
		e.pair->link[0].filter = lose_all;
		post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_SEND, .length = 10});
		post_send(&e, 0, &(struct post){.wr_id = 2, .opcode = URXE_WR_SEND, .length = 10});
		assert_int_equal(pair_run(e.pair, least - 1), PAIR_TIME_UP);
		expect_none(&e.a->send_cq);
		pair_settle(e.pair);
		/* IBA 9.7.6.1.3: the timer may run up to four times its nominal value. */
		assert_in_range(e.pair->now, least, 4 * least);
		expect_wc(&e.a->send_cq, 1, URXE_WC_RETRY_EXC_ERR);
		expect_wc(&e.a->send_cq, 2, URXE_WC_WR_FLUSH_ERR);
		assert_int_equal(qp_state(&e.end[0]), URXE_QPS_ERR);
		assert_int_equal(events(e.a, URXE_EVENT_TIMEOUT), retries + 1);
		assert_int_equal(e.pair->link[0].sent, 2 * (retries + 1));
		engine_close(&e);
	}
}

/* Timeout 0 stands for infinity (IBA 11.2.5.2): the requester repeats nothing and sets no timer. */
static void test_timeout_zero_never_repeats(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.timeout = 0;
	engine_open(&e, &conn);
	e.pair->link[0].filter = lose_all;
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_SEND, .length = 10});
	pair_settle(e.pair);
	expect_none(&e.a->send_cq);
	assert_int_equal(qp_state(&e.end[0]), URXE_QPS_RTS);
	engine_close(&e);
}

struct lose_nth {
	unsigned n, seen;
};

static bool lose_nth(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct lose_nth *lose = arg;

	(void)now, (void)data, (void)len;
	return lose->seen++ != lose->n;
}

/*
 * One packet of ten is lost, each one in turn: the requester repairs every loss, with the help of a
 * NAK if a later packet arrives.
 */
static void test_every_single_loss_is_repaired(void **state)
{
	(void)state;
	for (unsigned direction = 0; direction < 2; direction++)
		for (unsigned n = 0; n < 12; n++) {
			struct conn_attr conn = conn_default(URXE_QPT_RC);
			struct lose_nth lose = {.n = n};
			struct engine e;

			engine_open(&e, &conn);
			e.pair->link[direction].filter = lose_nth;
			e.pair->link[direction].filter_arg = &lose;
			rand_fill(&(struct rand){n}, e.a->mem, 10000);
			post_recv(&e.end[1], 1, 0, 10000);
			post_send(&e, 0, &(struct post){.opcode = URXE_WR_SEND, .length = 10000});
			pair_settle(e.pair);
			expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
			assert_int_equal(expect_wc(&e.b->recv_cq, 1, 0).byte_len, 10000);
			assert_memory_equal(e.a->mem, e.b->mem, 10000);
			if (direction == 0 &&
			    n < 9) { /* not the last packet: a later packet reveals the gap */
				assert_int_equal(events(e.b, URXE_EVENT_NAK_SEQ_SENT), 1);
				assert_int_equal(events(e.a, URXE_EVENT_NAK_SEQ_RCVD), 1);
				assert_int_equal(events(e.a, URXE_EVENT_TIMEOUT), 0);
				assert_int_equal(events(e.b, URXE_EVENT_REORDERED), 9 - n);
				assert_int_equal(events(e.a, URXE_EVENT_RETRANSMIT), 1);
			}
			engine_close(&e);
		}
}

/* A response packet of a READ is lost: the requester asks again from that packet on. */
static void test_lost_read_response_is_requested_again(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 10; n++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct lose_nth lose = {.n = n};
		struct engine e;

		engine_open(&e, &conn);
		e.pair->link[1].filter = lose_nth;
		e.pair->link[1].filter_arg = &lose;
		rand_fill(&(struct rand){n}, e.b->mem, 10000);
		post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 10000});
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
		assert_memory_equal(e.a->mem, e.b->mem, 10000);
		assert_int_equal(events(e.a, URXE_EVENT_IMPLIED_NAK), n < 9);
		assert_int_equal(events(e.a, URXE_EVENT_RETRANSMIT), 1);
		assert_int_equal(events(e.a, URXE_EVENT_PROBE), n == 9);
		assert_int_equal(events(e.a, URXE_EVENT_TIMEOUT), 0);
		engine_close(&e);
	}
}

/*
 * The answer to an atomic is lost: the repetition returns the first result, and the atomic is
 * executed once.
 */
static void test_lost_atomic_response_executes_once(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct lose_nth lose = {.n = 0};
	struct engine e;
	uint64_t word = 5;

	(void)state;
	engine_open(&e, &conn);
	memcpy(e.b->mem, &word, 8);
	e.pair->link[1].filter = lose_nth;
	e.pair->link[1].filter_arg = &lose;
	post_send(&e, 0,
		  &(struct post){.opcode = URXE_WR_FETCH_ADD, .length = 8, .compare_add = 3});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	memcpy(&word, e.a->mem, 8);
	assert_true(word == 5);
	memcpy(&word, e.b->mem, 8);
	assert_true(word == 8);
	assert_int_equal(events(e.b, URXE_EVENT_DUP_REQUEST), 1);
	engine_close(&e);
}

/* --- Receiver not ready. */

/* IBA table 45, in units of 10 us; code 0 is the longest. */
static const uint32_t rnr_10us[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
				      16,    24,   32,   48,    64,    96,    128,   192,
				      256,   384,  512,  768,   1024,  1536,  2048,  3072,
				      4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

/*
 * The requester waits at least as long as the RNR NAK says before each repetition; after rnr_retry
 * repetitions it fails.
 */
static void test_rnr_retries_are_exhausted(void **state)
{
	(void)state;
	for (uint8_t code = 0; code < 32; code++)
		for (uint8_t retries = 0; retries < 7; retries += 3) {
			struct conn_attr conn = conn_default(URXE_QPT_RC);
			uint64_t least = (uint64_t)retries * rnr_10us[code] * 10000;
			struct engine e;

			conn.min_rnr_timer = code;
			conn.rnr_retry = retries;
			engine_open(&e, &conn);
			post_send(&e, 0, &(struct post){.wr_id = 7, .opcode = URXE_WR_SEND});
			if (retries) {
				pair_run(e.pair, least - 1);
				expect_none(&e.a->send_cq);
			}
			pair_run(e.pair, 2 * least + MS / 10);
			expect_wc(&e.a->send_cq, 7, URXE_WC_RNR_RETRY_EXC_ERR);
			assert_int_equal(events(e.b, URXE_EVENT_NAK_RNR_SENT), retries + 1);
			assert_int_equal(events(e.a, URXE_EVENT_NAK_RNR_RCVD), retries + 1);
			assert_int_equal(events(e.a, URXE_EVENT_TIMEOUT), 0);
			engine_close(&e);
		}
}

/*
 * rnr_retry 7 stands for infinity; the message is delivered once, when a receive request is posted.
 */
static void test_rnr_retry_seven_never_gives_up(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.retry_cnt = 0; /* an RNR NAK does not count against retry_cnt */
	engine_open(&e, &conn);
	memset(e.a->mem, 0x5a, 3000);
	for (unsigned i = 0; i < 3; i++)
		post_send(&e, 0,
			  &(struct post){.wr_id = i, .opcode = URXE_WR_SEND, .length = 3000});
	assert_int_equal(pair_run(e.pair, 100 * MS), PAIR_TIME_UP);
	expect_none(&e.a->send_cq);
	assert_in_range(events(e.b, URXE_EVENT_NAK_RNR_SENT), 100, 10000);
	for (unsigned i = 0; i < 3; i++)
		post_recv(&e.end[1], i, i * 3000, 3000);
	pair_settle(e.pair);
	for (unsigned i = 0; i < 3; i++) {
		expect_wc(&e.b->recv_cq, i, URXE_WC_SUCCESS);
		expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
		assert_memory_equal(e.b->mem + i * 3000, e.a->mem, 3000);
	}
	expect_none(&e.b->recv_cq);
	engine_close(&e);
}

/*
 * The same with a peer that suddenly answers much faster: the requester does not take its NAKs for
 * late copies of an earlier NAK.
 */
static void test_quick_rnr_naks_are_no_old_copies(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.timeout = 14;  /* 67 ms: longer than any round trip here */
	conn.retry_cnt = 1; /* the requester may take the first NAK for a copy */
	engine_open(&e, &conn);
	e.pair->link[0].delay_ns = e.pair->link[1].delay_ns = 2 * MS;
	for (unsigned i = 0; i < 10; i++) {
		post_recv(&e.end[1], i, 0, 10);
		post_send(&e, 0, &(struct post){.wr_id = i, .opcode = URXE_WR_SEND, .length = 10});
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
	}
	e.pair->link[0].delay_ns = e.pair->link[1].delay_ns = 10000;
	post_send(&e, 0, &(struct post){.wr_id = 10, .opcode = URXE_WR_SEND, .length = 10});
	assert_int_equal(pair_run(e.pair, e.pair->now + 2000 * MS), PAIR_TIME_UP);
	expect_none(&e.a->send_cq);
	assert_in_range(events(e.a, URXE_EVENT_NAK_RNR_RCVD), 100, 100000);
	post_recv(&e.end[1], 10, 0, 10);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 10, URXE_WC_SUCCESS);
	engine_close(&e);
}

/* Repetitions of one request do not count for the next request. */
static void test_rnr_counts_afresh(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.rnr_retry = 2;
	conn.min_rnr_timer = 14; /* 1.28 ms */
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 5; i++) {
		post_send(&e, 0, &(struct post){.wr_id = i, .opcode = URXE_WR_SEND, .length = 10});
		pair_run(e.pair, e.pair->now + 2 * MS); /* refused twice */
		post_recv(&e.end[1], i, 0, 10);
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
	}
	assert_int_equal(events(e.a, URXE_EVENT_NAK_RNR_RCVD), 10);
	engine_close(&e);
}

/* A WRITE with immediate data waits for a receive request, too, and then writes its bytes. */
static void test_write_immediate_waits_for_a_receive(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	memset(e.a->mem, 0x66, 5000);
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE_IMM, .length = 5000});
	pair_run(e.pair, 10 * MS);
	expect_none(&e.b->recv_cq);
	post_recv(&e.end[1], 1, 0, 0);
	pair_settle(e.pair);
	expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	assert_memory_equal(e.b->mem, e.a->mem, 5000);
	engine_close(&e);
}

/* The engine calls refill for more receive requests before it sends an RNR NAK. */
static void refill_one(struct node_queue *queue)
{
	struct endpoint *end = queue->arg;

	if (queue->refills <= 2)
		post_recv(end, queue->refills, 0, 100);
}

static void test_refill_is_called_for_each_receive(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.rnr_retry = 0;
	engine_open(&e, &conn);
	e.end[1].queue.refill = refill_one;
	e.end[1].queue.arg = &e.end[1];
	for (unsigned i = 0; i < 3; i++)
		post_send(&e, 0, &(struct post){.wr_id = i, .opcode = URXE_WR_SEND, .length = 100});
	pair_settle(e.pair);
	expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&e.b->recv_cq, 2, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 2, URXE_WC_RNR_RETRY_EXC_ERR);
	engine_close(&e);
}

/*
 * A QP in the error state calls refill for the queued receive requests, too: refill must not call
 * itself.
 */
struct nesting {
	struct endpoint *end;
	unsigned depth, deepest, left;
};

static void refill_nested(struct node_queue *queue)
{
	struct nesting *nesting = queue->arg;

	if (!nesting->left)
		return;
	nesting->left--;
	if (++nesting->depth > nesting->deepest)
		nesting->deepest = nesting->depth;
	if (nesting->depth < 100)
		post_recv(nesting->end, 1, 0, 100);
	nesting->depth--;
}

static void test_refill_in_the_error_state_does_not_nest(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct nesting nesting = {.left = 1000};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	nesting.end = &e.end[0];
	e.end[0].queue.refill = refill_nested;
	e.end[0].queue.arg = &nesting;
	to_error(&e, 0);
	pair_settle(e.pair);
	assert_int_equal(nesting.deepest, 1);
	for (unsigned i = 0; i < 1000; i++)
		expect_wc(&e.a->recv_cq, 1, URXE_WC_WR_FLUSH_ERR);
	expect_none(&e.a->recv_cq);
	engine_close(&e);
}

/* --- UC and UD: after a failed send the receive side still works (IBA 9.9.2.4). */

static void test_local_error_of_uc_leads_to_sqe(void **state)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_RTS, .cur_state = URXE_QPS_SQE};
	struct conn_attr conn = conn_default(URXE_QPT_UC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_recv(&e.end[0], 9, 0, 100);
	post_send(&e, 0,
		  &(struct post){.wr_id = 1, .opcode = URXE_WR_SEND, .lkey = 0xbad, .length = 1});
	post_send(&e, 0, &(struct post){.wr_id = 2, .opcode = URXE_WR_SEND, .length = 1});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_LOC_PROT_ERR);
	expect_wc(&e.a->send_cq, 2, URXE_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(&e.end[0]), URXE_QPS_SQE);
	post_send(&e, 1, &(struct post){.wr_id = 3, .opcode = URXE_WR_SEND, .length = 100});
	pair_settle(e.pair);
	expect_wc(&e.a->recv_cq, 9, URXE_WC_SUCCESS);
	assert_int_equal(
		urxe_qp_modify(e.end[0].qp, e.pair->now, &attr, URXE_QP_STATE | URXE_QP_CUR_STATE),
		0);
	post_recv(&e.end[1], 4, 0, 100);
	post_send(&e, 0, &(struct post){.wr_id = 5, .opcode = URXE_WR_SEND, .length = 50});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 5, URXE_WC_SUCCESS);
	expect_wc(&e.b->recv_cq, 4, URXE_WC_SUCCESS);
	engine_close(&e);
}

static bool draining(struct endpoint *end)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_qp_query(end->qp, &attr, &init);
	return attr.sq_draining;
}

/* SQD: no new request starts, and the event comes when all earlier requests are complete. */
static void test_sqd_drains_and_reports(void **state)
{
	struct urxe_qp_attr attr = {.state = URXE_QPS_SQD, .en_sqd_async_notify = true};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = 5000});
	pair_step(e.pair);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, e.pair->now, &attr,
					URXE_QP_STATE | URXE_QP_EN_SQD_ASYNC_NOTIFY),
			 0);
	assert_true(draining(&e.end[0]));
	post_send(&e, 0, &(struct post){.wr_id = 2, .opcode = URXE_WR_RDMA_WRITE, .length = 50});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	expect_none(&e.a->send_cq);
	assert_int_equal(e.a->async[URXE_ASYNC_SQ_DRAINED], 1);
	assert_false(draining(&e.end[0]));
	attr.state = URXE_QPS_RTS;
	assert_int_equal(urxe_qp_modify(e.end[0].qp, e.pair->now, &attr, URXE_QP_STATE), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 2, URXE_WC_SUCCESS);
	engine_close(&e);
}

/*
 * After RESET a QP is as new: both ends connect again, and nothing remains of the old connection.
 */
static void test_reset_forgets_the_connection(void **state)
{
	const struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_SEND, .length = 5000});
	post_recv(&e.end[0], 2, 0, 100);
	pair_step(e.pair);
	for (unsigned side = 0; side < 2; side++)
		assert_int_equal(urxe_qp_modify(e.end[side].qp, e.pair->now, &reset, URXE_QP_STATE),
				 0);
	pair_settle(e.pair);
	conn.psn[0] = 0xfffff0;
	for (unsigned side = 0; side < 2; side++)
		conn_bring_up(e.pair, &conn, side, &e.end[side], &e.end[!side]);
	post_recv(&e.end[1], 3, 0, 100);
	post_send(&e, 0, &(struct post){.wr_id = 4, .opcode = URXE_WR_SEND, .length = 100});
	pair_settle(e.pair);
	expect_wc(&e.b->recv_cq, 3, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 4, URXE_WC_SUCCESS);
	expect_none(&e.a->send_cq);
	expect_none(&e.a->recv_cq);
	engine_close(&e);
}

/* A QP destroyed during its work: no completion, no deadline, no crash. */
static void test_destroy_during_work_is_silent(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_recv(&e.end[1], 3, 0, 60000);
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_SEND, .length = 60000});
	post_send(&e, 1, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_READ, .length = 60000});
	pair_step(e.pair);
	urxe_qp_destroy(e.end[0].qp);
	pair_settle(e.pair);
	expect_none(&e.a->send_cq);
	expect_wc(&e.b->send_cq, 1, URXE_WC_RETRY_EXC_ERR);
	assert_int_not_equal(drops(e.a, URXE_DROP_BAD_QPN), 0);
	engine_close(&e);
}

/* A QP that returns to RTS before its queue is drained: the event never comes. */
static void test_leaving_sqd_early_cancels_the_event(void **state)
{
	struct urxe_qp_attr attr = {.state = URXE_QPS_SQD, .en_sqd_async_notify = true};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = 5000});
	pair_step(e.pair);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, e.pair->now, &attr,
					URXE_QP_STATE | URXE_QP_EN_SQD_ASYNC_NOTIFY),
			 0);
	attr.state = URXE_QPS_RTS;
	assert_int_equal(urxe_qp_modify(e.end[0].qp, e.pair->now, &attr, URXE_QP_STATE), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(e.a->async[URXE_ASYNC_SQ_DRAINED], 0);
	engine_close(&e);
}

/*
 * UC: an unmapped receive buffer moves the receiver's QP to the error state; a message longer than
 * the buffer is dropped.
 */
static void test_uc_unmapped_receive_buffer_fails_the_qp(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UC);
	struct urxe_seg nobodys = {.length = 64, .lkey = 0xdead};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_recv(&e.end[1], 1, 0, 16);
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_SEND, .length = 64});
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_SEND, .length = 16});
	pair_settle(e.pair);
	expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_REQUEST), 1);
	assert_int_equal(urxe_post_recv(e.end[1].rq, &(struct urxe_recv_wr){2, 1, &nobodys}), 0);
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_SEND, .length = 64});
	pair_settle(e.pair);
	expect_wc(&e.b->recv_cq, 2, URXE_WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	assert_int_equal(e.b->async[URXE_ASYNC_QP_FATAL], 0); /* the completion tells */
	engine_close(&e);
}

/*
 * A READ that does not fit the window waits for the requests before it; so the last of these
 * requests an acknowledgement.
 */
static void test_read_beyond_the_window_requests_an_ack(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.sq_sig_all = false;
	e.pair = pair_create(&(struct pair_attr){.seed = 1, .max_packets = 16});
	e.a = e.pair->node[0];
	conn_open(e.pair, &conn, e.end);
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 64});
	post_send(&e, 0,
		  &(struct post){.wr_id = 1,
				 .opcode = URXE_WR_RDMA_READ,
				 .flags = URXE_SEND_SIGNALED,
				 .length = 64 * 1024});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(events(e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flush_keeps_the_order),
		cmocka_unit_test(test_local_error_flushes_only_requests_behind_it),
		cmocka_unit_test(test_a_waiting_local_error_counts_once),
		cmocka_unit_test(test_local_error_asks_for_the_ack_before_it),
		cmocka_unit_test(test_local_error_asks_for_no_response_again),
		cmocka_unit_test(test_malformed_fails_in_order),
		cmocka_unit_test(test_malformed_needs_a_sending_state),
		cmocka_unit_test(test_remote_error_flushes_only_requests_behind_it),
		cmocka_unit_test(test_too_long_message_fails_on_both_sides),
		cmocka_unit_test(test_silent_peer_exhausts_retries),
		cmocka_unit_test(test_timeout_zero_never_repeats),
		cmocka_unit_test(test_every_single_loss_is_repaired),
		cmocka_unit_test(test_lost_read_response_is_requested_again),
		cmocka_unit_test(test_lost_atomic_response_executes_once),
		cmocka_unit_test(test_rnr_retries_are_exhausted),
		cmocka_unit_test(test_rnr_retry_seven_never_gives_up),
		cmocka_unit_test(test_quick_rnr_naks_are_no_old_copies),
		cmocka_unit_test(test_rnr_counts_afresh),
		cmocka_unit_test(test_write_immediate_waits_for_a_receive),
		cmocka_unit_test(test_refill_is_called_for_each_receive),
		cmocka_unit_test(test_refill_in_the_error_state_does_not_nest),
		cmocka_unit_test(test_local_error_of_uc_leads_to_sqe),
		cmocka_unit_test(test_sqd_drains_and_reports),
		cmocka_unit_test(test_reset_forgets_the_connection),
		cmocka_unit_test(test_destroy_during_work_is_silent),
		cmocka_unit_test(test_leaving_sqd_early_cancels_the_event),
		cmocka_unit_test(test_uc_unmapped_receive_buffer_fails_the_qp),
		cmocka_unit_test(test_read_beyond_the_window_requests_an_ack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
