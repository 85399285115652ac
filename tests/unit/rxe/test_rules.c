/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rules of requester and responder that only special sequences of packets exercise. */
#include <errno.h>

#include "by_hand.h"

struct loser {
	unsigned every; /* loses each packet whose number is a multiple of this */
	unsigned seen;
};

static bool lose_every(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct loser *loser = arg;

	(void)now, (void)data, (void)len;
	return ++loser->seen % loser->every;
}

/* Repetitions of one request do not count for the next one (IBA 9.9.2.1.2). */
static void test_retries_count_afresh(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct loser loser = {.every = 2};
	struct engine e;

	(void)state;
	conn.retry_cnt = 1;
	engine_open(&e, &conn);
	e.pair->link[1].filter = lose_every;
	e.pair->link[1].filter_arg = &loser;
	for (unsigned i = 0; i < 6; i++) {
		loser.seen = 1; /* the next answer is lost, the answer to the repetition is not */
		post_send(&e, 0,
			  &(struct post){.wr_id = i, .opcode = URXE_WR_RDMA_WRITE, .length = 9});
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
	}
	engine_close(&e);
}

/* The requester asks at once for each missing response, not only for the first one. */
static void test_each_missing_response_is_requested(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct loser loser = {.every = 9};
	struct engine e;

	(void)state;
	conn.path_mtu = URXE_MTU_256;
	engine_open(&e, &conn);
	e.pair->link[1].filter = lose_every;
	e.pair->link[1].filter_arg = &loser;
	rand_fill(&(struct rand){1}, e.b->mem, 5000);
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 5000});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	assert_memory_equal(e.a->mem, e.b->mem, 5000);
	assert_in_range(e.pair->link[1].dropped, 2, 9);
	assert_int_equal(events(e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&e);
}

/* READ data does not complete an atomic, even if the length would fit. */
static void test_read_response_does_not_complete_an_atomic(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_FETCH_ADD, .length = 8});
	assert_int_equal(answers(&e).opcode, 0x14);
	memset(payload, 0x77, 8);
	p = from_peer(&e, &conn, 0x10);
	p.psn = conn.psn[1];
	p.payload_len = 8;
	inject(&e, &p);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_RESPONSE), 1);
	assert_int_equal(e.b->mem[0], 0);
	expect_none(&e.b->send_cq);
	engine_close(&e);
}

static void answer_read(struct engine *e, const struct conn_attr *conn, uint32_t nth)
{
	struct urxe_packet p = from_peer(e, conn, 0x10);

	p.psn = (conn->psn[1] + nth) & 0xffffff;
	p.payload_len = 8;
	p.aeth.syndrome = 0x1f; /* no end-to-end flow control */
	inject(e, &p);
}

/*
 * A request with a fence waits for earlier READs and atomics, and for nothing else (IBA 10.8.3.3).
 */
static void test_fence_waits_for_reads_and_atomics_only(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
	post_send(&e, 1,
		  &(struct post){.opcode = URXE_WR_SEND, .length = 8, .flags = URXE_SEND_FENCE});
	assert_int_equal(answers(&e).n, 2);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 8});
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_SEND, .length = 8});
	assert_int_equal(answers(&e).n,
			 2); /* without a fence the request does not wait for the READ */
	post_send(&e, 1,
		  &(struct post){.opcode = URXE_WR_SEND, .length = 8, .flags = URXE_SEND_FENCE});
	expect_quiet(&e);
	answer_read(&e, &conn, 2);
	assert_int_equal(answers(&e).opcode, 0x04);
	engine_close(&e);
}

/*
 * The requester keeps no more READs outstanding than the peer can answer (IBA 9.7.3.2.2, initiator
 * depth).
 */
static void test_requester_obeys_the_peers_depth(void **state)
{
	(void)state;
	for (uint8_t depth = 1; depth <= 3; depth++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct engine e;

		conn.rd_atomic = depth;
		engine_open(&e, &conn);
		for (unsigned i = 0; i < 5; i++)
			post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 8});
		assert_int_equal(answers(&e).n, depth);
		answer_read(&e, &conn, 0);
		assert_int_equal(answers(&e).n, 1);
		engine_close(&e);
	}
}

struct solicited {
	unsigned packets, solicited;
};

static bool count_solicited(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct solicited *count = arg;
	struct urxe_packet p;

	(void)now;
	assert_int_equal(urxe_packet_parse(&p, data, len), URXE_DROP_NONE);
	count->packets++;
	count->solicited += p.solicited;
	return true;
}

/* A message has the solicited bit in its last packet only (IBA 9.2.3). */
static void test_solicited_bit_is_in_the_last_packet_only(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct solicited count = {0};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	e.pair->link[0].filter = count_solicited;
	e.pair->link[0].filter_arg = &count;
	post_recv(&e.end[1], 0, 0, 3000);
	post_send(&e, 0,
		  &(struct post){
			  .opcode = URXE_WR_SEND, .length = 3000, .flags = URXE_SEND_SOLICITED});
	pair_settle(e.pair);
	assert_int_equal(count.packets, 3);
	assert_int_equal(count.solicited, 1);
	assert_true(expect_wc(&e.b->recv_cq, 0, 0).solicited);
	engine_close(&e);
}

/* The responder answers a repeated READ only if it has the key and the opcode of the original. */
static void test_repeated_read_needs_key_and_opcode_of_the_original(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct urxe_mr *mr;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	mr = node_reg(e.b, NODE_PD, NODE_ACCESS, 0, 4096);
	p = from_peer(&e, &conn, 0x0c);
	p.reth.length = 8;
	inject(&e, &p);
	assert_int_equal(answers(&e).opcode, 0x10);
	p.reth.rkey = urxe_mr_key(mr);
	inject(&e, &p);
	expect_quiet(&e);
	assert_int_equal(drops(e.b, URXE_DROP_DUPLICATE), 1);
	p = from_peer(&e, &conn, 0x14); /* an atomic with the PSN of the READ */
	inject(&e, &p);
	expect_quiet(&e);
	assert_int_equal(drops(e.b, URXE_DROP_DUPLICATE), 2);
	assert_int_equal(e.b->mem[0], 0);
	engine_close(&e);
}

/* The missing packet arrives before the NAK for it is sent: the NAK is never sent. */
static void test_filled_gap_cancels_the_nak(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	e.pair = pair_create(&(struct pair_attr){.seed = 1, .reorder_ns = 1});
	e.a = e.pair->node[0];
	e.b = e.pair->node[1];
	conn_open(e.pair, &conn, e.end);
	p = from_peer(&e, &conn, 0x0a);
	p.ack_req = true;
	p.psn++;
	inject(&e, &p);
	p.psn--;
	inject(&e, &p);
	assert_int_equal(answers(&e).syndrome >> 5, 0);
	expect_quiet(&e);
	engine_close(&e);
}

/* The event comes with the first packet only (IBA 11.6.3.2). */
static void test_established_event_comes_once(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	engine_start_anew(&e, &conn, 1);
	p = from_peer(&e, &conn, 0x0a);
	for (unsigned i = 0; i < 3; i++) {
		inject(&e, &p);
		p.psn++;
	}
	assert_int_equal(e.b->async[URXE_ASYNC_COMM_EST], 1);
	engine_close(&e);
}

/* A message that continues although its length is complete (IBA 9.7.4.1.6). */
static void test_write_longer_than_its_reth_gets_nak(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	p = from_peer(&e, &conn, 0x06);
	p.reth.length = p.payload_len = PAYLOAD;
	inject(&e, &p);
	assert_int_equal(answers(&e).syndrome, 0x61);
	assert_int_equal(e.b->async[URXE_ASYNC_QP_ACCESS_ERR], 1);
	assert_int_equal(e.b->async[URXE_ASYNC_QP_REQ_ERR], 0);
	engine_close(&e);
}

/*
 * A request with a bad key behind a lost request waits for its turn: the requester repeats the
 * first one, which succeeds, and the second one fails.
 */
static void test_local_error_waits_for_lost_earlier_requests(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct loser loser = {.every = 100, .seen = 99};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	e.pair->link[0].filter = lose_every;
	e.pair->link[0].filter_arg = &loser;
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = 9});
	post_send(&e, 0,
		  &(struct post){
			  .wr_id = 2, .opcode = URXE_WR_RDMA_WRITE, .length = 9, .lkey = 0xbad});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 2, URXE_WC_LOC_PROT_ERR);
	assert_int_equal(e.pair->link[0].dropped, 1);
	engine_close(&e);
}

/* The region is deregistered while a READ of it is being answered: a NAK replaces the rest. */
static void test_deregistration_during_read_responses_gives_nak(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint8_t data[4300];
	struct urxe_frame frame = {data, 0, sizeof(data)};
	struct answers got;
	struct urxe_packet p;
	struct urxe_mr *mr;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	mr = node_reg(e.b, NODE_PD, NODE_ACCESS, 0, 3 * PAYLOAD);
	p = from_peer(&e, &conn, 0x0c);
	p.reth.rkey = urxe_mr_key(mr);
	p.reth.length = 3 * PAYLOAD;
	inject(&e, &p);
	assert_int_equal(urxe_output(e.b->dev, e.pair->now, &frame, 1), 1);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	got = answers(&e);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.syndrome, 0x62);
	assert_int_equal(got.psn, conn.psn[0] + 1);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	assert_int_equal(e.b->async[URXE_ASYNC_QP_ACCESS_ERR], 1);
	engine_close(&e);
}

/* One request may go before a pending acknowledgement, but only one. */
static void test_one_request_precedes_a_pending_ack(void **state)
{
	static const uint8_t expected[] = {0x04, 0x11, 0x04}; /* SEND_ONLY, ACKNOWLEDGE */
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint8_t data[3][4300];
	struct urxe_frame frames[3];
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	p = from_peer(&e, &conn, 0x0a);
	p.ack_req = true;
	inject(&e, &p);
	for (int i = 0; i < 2; i++)
		post_send(&e, 1, &(struct post){.opcode = URXE_WR_SEND, .length = 8});
	for (int i = 0; i < 3; i++)
		frames[i] = (struct urxe_frame){data[i], 0, sizeof(data[i])};
	assert_int_equal(urxe_output(e.b->dev, e.pair->now, frames, 3), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(urxe_packet_parse(&p, data[i], frames[i].len), URXE_DROP_NONE);
		assert_int_equal(p.opcode, expected[i]);
	}
	engine_close(&e);
}

/* Node a requests another READ of 16 packets, the nth one. */
static void inject_long_read(struct engine *e, const struct conn_attr *conn, uint32_t nth)
{
	struct urxe_packet p = from_peer(e, conn, 0x0c);

	p.psn = (conn->psn[0] + 16 * nth) & 0xffffff;
	p.reth.length = 16 * PAYLOAD;
	inject(e, &p);
}

struct sent {
	uint32_t requests;
	uint32_t responses; /* to READs */
};

/* Counts the next frames of node b, at most `max`, which is at most 16. */
static struct sent count_sent(struct engine *e, uint32_t max)
{
	static uint8_t data[16][4300];
	struct urxe_frame frames[16];
	struct sent sent = {0};
	uint32_t n;

	for (unsigned i = 0; i < 16; i++)
		frames[i] = (struct urxe_frame){data[i], 0, sizeof(data[i])};
	n = urxe_output(e->b->dev, e->pair->now, frames, max);
	for (uint32_t i = 0; i < n; i++) {
		struct urxe_packet p;

		assert_int_equal(urxe_packet_parse(&p, data[i], frames[i].len), URXE_DROP_NONE);
		sent.requests += p.opcode < 0x0d;
		sent.responses += p.opcode >= 0x0d && p.opcode <= 0x10;
	}
	return sent;
}

/* Requests leave although the peer always keeps READs outstanding, and so do the responses, also if
 * one frame and 16 are asked for by turns. */
static void test_requests_and_read_responses_take_turns(void **state)
{
	const struct urxe_qp_attr limit = {.rate_limit = 1000000}; /* kb/s */

	(void)state;
	for (unsigned paced = 0; paced < 2; paced++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct sent sent = {0};
		struct engine e;
		uint32_t reads = 0;
		const uint32_t most = paced ? 2 : 16;
		bool single = true;

		engine_open(&e, &conn);
		if (paced)
			assert_int_equal(urxe_qp_modify(e.end[1].qp, 0, &limit, URXE_QP_RATE_LIMIT),
					 0);
		for (unsigned i = 0; i < 4; i++)
			post_send(&e, 1,
				  &(struct post){.opcode = URXE_WR_SEND, .length = 16 * PAYLOAD});
		while (sent.requests < 40) {
			struct sent now;

			while (16 * reads < sent.responses + 32)
				inject_long_read(&e, &conn, reads++);
			now = count_sent(&e, single ? 1 : 16);
			single = !single;
			sent.requests += now.requests;
			sent.responses += now.responses;
			assert_true(sent.requests <= sent.responses + most);
			assert_true(sent.responses <= sent.requests + most);
			e.pair->now += 5000;
		}
		engine_close(&e);
	}
}

/* The same between two packets of a WRITE: the first bytes stay, and no more are written. */
static void test_deregistration_during_a_write_gives_nak(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct urxe_mr *mr;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	mr = node_reg(e.b, NODE_PD, NODE_ACCESS, 0, 2 * PAYLOAD);
	memset(payload, 0x5a, PAYLOAD);
	p = from_peer(&e, &conn, 0x06);
	p.reth.rkey = urxe_mr_key(mr);
	p.reth.length = 2 * PAYLOAD;
	p.payload_len = PAYLOAD;
	inject(&e, &p);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	p.opcode = 0x08;
	p.psn++;
	inject(&e, &p);
	assert_int_equal(answers(&e).syndrome, 0x62);
	assert_int_equal(e.b->mem[PAYLOAD - 1], 0x5a);
	assert_int_equal(e.b->mem[PAYLOAD], 0);
	engine_close(&e);
}

/* The CQ is full: the message cannot complete, so the responder does not acknowledge it. */
static void test_write_immediate_into_a_full_cq_gets_nak(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	e.b->recv_cq.depth = 0;
	post_recv(&e.end[1], 1, 0, 10);
	p = from_peer(&e, &conn, 0x0b);
	p.ack_req = true;
	inject(&e, &p);
	assert_int_equal(answers(&e).syndrome, 0x63);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	assert_int_equal(e.b->async[URXE_ASYNC_CQ_ERR], 1);
	engine_close(&e);
}

/* With a depth of 0, neither end of a connection can READ. */
static void test_depth_zero_permits_no_read(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	conn.rd_atomic = 0;
	engine_open(&e, &conn);
	assert_int_equal(try_post(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 8}),
			 -EINVAL);
	assert_int_equal(try_post(&e, 0, &(struct post){.opcode = URXE_WR_FETCH_ADD, .length = 8}),
			 -EINVAL);
	p = from_peer(&e, &conn, 0x0c);
	p.reth.length = 8;
	inject(&e, &p);
	assert_int_equal(answers(&e).syndrome, 0x61);
	engine_close(&e);
}

static void inject_response(struct engine *e, const struct conn_attr *conn, uint8_t opcode,
			    uint32_t nth, uint8_t content, uint32_t length)
{
	struct urxe_packet p = from_peer(e, conn, opcode);

	memset(payload, content, length);
	p.psn = (conn->psn[1] + nth) & 0xffffff;
	p.payload_len = length;
	inject(e, &p);
}

/* Of two responses with one PSN the first one counts, even while earlier responses are missing. */
static void test_first_of_two_equal_responses_counts(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 2 * PAYLOAD});
	assert_int_equal(answers(&e).opcode, 0x0c);
	inject_response(&e, &conn, 0x0f, 1, 0x11, PAYLOAD);
	inject_response(&e, &conn, 0x0f, 1, 0x22, PAYLOAD);
	assert_int_equal(drops(e.b, URXE_DROP_STALE_ACK), 1);
	inject_response(&e, &conn, 0x0d, 0, 0x33, PAYLOAD);
	expect_wc(&e.b->send_cq, 0, URXE_WC_SUCCESS);
	assert_int_equal(e.b->mem[0], 0x33);
	assert_int_equal(e.b->mem[PAYLOAD], 0x11);
	engine_close(&e);
}

/* Requests complete in order: a bad response to the second request waits for the first one. */
static void test_bad_response_waits_for_earlier_requests(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 2; i++)
		post_send(&e, 1,
			  &(struct post){.wr_id = i, .opcode = URXE_WR_RDMA_READ, .length = 8});
	assert_int_equal(answers(&e).n, 2);
	inject_response(&e, &conn, 0x10, 1, 0x22, 4);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_RESPONSE), 1);
	expect_none(&e.b->send_cq);
	inject_response(&e, &conn, 0x10, 0, 0x11, 8);
	expect_wc(&e.b->send_cq, 0, URXE_WC_SUCCESS);
	expect_none(&e.b->send_cq);
	inject_response(&e, &conn, 0x10, 1, 0x22, 4);
	expect_wc(&e.b->send_cq, 1, URXE_WC_BAD_RESP_ERR);
	engine_close(&e);
}

/* A late older acknowledgement changes nothing, even while a READ waits for data. */
static void test_late_ack_is_ignored(void **state)
{
	static const uint32_t opcodes[] = {URXE_WR_RDMA_WRITE, URXE_WR_RDMA_READ,
					   URXE_WR_RDMA_WRITE, URXE_WR_RDMA_WRITE};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 4; i++)
		post_send(&e, 1, &(struct post){.wr_id = i, .opcode = opcodes[i], .length = 8});
	assert_int_equal(answers(&e).n, 4);
	p = from_peer(&e, &conn, 0x11);
	p.psn = conn.psn[1] + 3;
	inject(&e, &p);
	p.psn--;
	inject(&e, &p);
	expect_wc(&e.b->send_cq, 0, URXE_WC_SUCCESS);
	expect_none(&e.b->send_cq);
	inject_response(&e, &conn, 0x10, 1, 0x11, 8);
	for (unsigned i = 1; i < 4; i++)
		expect_wc(&e.b->send_cq, i, URXE_WC_SUCCESS);
	engine_close(&e);
}

/* The data of a READ is no answer to a WRITE. */
static void test_read_response_does_not_complete_a_write(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
	assert_int_equal(answers(&e).n, 1);
	inject_response(&e, &conn, 0x10, 0, 0x11, 8);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_RESPONSE), 1);
	expect_none(&e.b->send_cq);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_RTS);
	engine_close(&e);
}

/*
 * A retransmission reads the memory again; if the memory is deregistered, the request fails (IBA
 * 9.9.2.1).
 */
static void test_retransmission_from_a_deregistered_mr_fails(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct loser loser = {.every = 1};
	struct urxe_mr *mr;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	e.pair->link[0].filter = lose_every;
	e.pair->link[0].filter_arg = &loser;
	mr = node_reg(e.a, NODE_PD, NODE_ACCESS, 0, 100);
	post_send(&e, 0,
		  &(struct post){
			  .opcode = URXE_WR_RDMA_WRITE, .length = 100, .lkey = urxe_mr_key(mr)});
	pair_step(e.pair);
	assert_int_equal(e.pair->link[0].dropped, 1);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_LOC_PROT_ERR);
	assert_int_equal(e.pair->link[0].sent, 1);
	engine_close(&e);
}

/*
 * The region of a request is deregistered before its retransmission, but the request had arrived:
 * the acknowledgement completes it, and the requests behind it are sent.
 */
static void test_late_ack_completes_a_request_without_region(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct loser loser = {.every = 1};
	struct urxe_mr *mr;
	struct engine e;

	(void)state;
	conn.sq_sig_all = true;
	engine_open(&e, &conn);
	e.pair->link[1].filter = lose_every;
	e.pair->link[1].filter_arg = &loser;
	mr = node_reg(e.a, NODE_PD, NODE_ACCESS, 0, 100);
	for (unsigned i = 0; i < 3; i++)
		post_send(&e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = URXE_WR_RDMA_WRITE,
					 .length = 100,
					 .lkey = i == 1 ? urxe_mr_key(mr) : 0});
	pair_run(e.pair, 100000);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	while (!events(e.a, URXE_EVENT_TIMEOUT))
		assert_int_equal(pair_run(e.pair, pair_next(e.pair)), PAIR_TIME_UP);
	e.pair->link[1].filter = NULL;
	post_send(&e, 0, &(struct post){.wr_id = 3, .opcode = URXE_WR_RDMA_WRITE, .length = 100});
	pair_settle(e.pair);
	assert_int_equal(events(e.a, URXE_EVENT_LOCAL_ERROR), 0);
	for (unsigned i = 0; i < 4; i++)
		expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
	engine_close(&e);
}

static void inject_ack(struct engine *e, const struct conn_attr *conn, uint32_t nth,
		       uint8_t syndrome)
{
	struct urxe_packet p = from_peer(e, conn, 0x11);

	p.psn = (conn->psn[1] + nth) & 0xffffff;
	p.aeth.syndrome = syndrome;
	inject(e, &p);
}

/* Opens a connection whose node b posts a WRITE, with a strict or a paced requester. */
static void open_writer(struct engine *e, struct conn_attr *conn, bool strict, bool paced)
{
	const struct urxe_qp_attr limit = {.rate_limit = 100000}; /* kb/s */

	*conn = conn_default(URXE_QPT_RC);
	e->pair = pair_create(&(struct pair_attr){.seed = 1, .go_back_n = {false, strict}});
	e->a = e->pair->node[0];
	e->b = e->pair->node[1];
	conn_open(e->pair, conn, e->end);
	if (paced)
		assert_int_equal(urxe_qp_modify(e->end[1].qp, 0, &limit, URXE_QP_RATE_LIMIT), 0);
	post_send(e, 1, &(struct post){.wr_id = 3, .opcode = URXE_WR_RDMA_WRITE, .length = 8});
}

/*
 * A peer repeats its NAK without end, alone or with an RNR NAK before each. Four NAKs use up a
 * retry; a strict requester counts each NAK.
 */
static void test_endless_naks_end_in_an_error(void **state)
{
	(void)state;
	for (unsigned variant = 0; variant < 8; variant++) {
		bool strict = variant & 1, paced = variant & 2, with_rnr = variant & 4;
		struct conn_attr conn;
		struct urxe_wc wc;
		struct engine e;
		unsigned naks = 0;

		open_writer(&e, &conn, strict, paced);
		while (!node_poll(&e.b->send_cq, &wc)) {
			assert_true(naks < 100);
			for (unsigned i = !with_rnr; i < 2; i++) {
				e.pair->now += 20000;
				answers(&e);
				inject_ack(&e, &conn, 0, i ? 0x60 : 0x21);
			}
			naks++;
		}
		assert_int_equal(wc.status, URXE_WC_RETRY_EXC_ERR);
		assert_int_equal(naks, (strict ? 1 : 4) * conn.retry_cnt + 1);
		engine_close(&e);
	}
}

/*
 * A copy of the refused packet is accepted during the RNR wait, and the packets behind it are lost:
 * no repetition is due after the wait, but the timeout still runs.
 */
static void test_ack_during_an_rnr_wait_completes_the_request(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 7; i++) {
		post_send(&e, 1,
			  &(struct post){.wr_id = i, .opcode = URXE_WR_RDMA_WRITE, .length = 8});
		if (i != 3)
			continue;
		assert_int_equal(answers(&e).n, 4);
		inject_ack(&e, &conn, 0, 0x60);
		assert_int_equal(answers(&e).n, 1);
		inject_ack(&e, &conn, 3, 0x1f); /* the peer keeps packets behind a gap */
	}
	assert_int_equal(answers(&e).n, 3);
	inject_ack(&e, &conn, 4, 0x21);
	expect_quiet(&e);
	inject_ack(&e, &conn, 4, 0x1f);
	for (unsigned i = 0; i < 5; i++)
		expect_wc(&e.b->send_cq, i, URXE_WC_SUCCESS);
	expect_none(&e.b->send_cq);
	pair_settle(e.pair);
	assert_int_not_equal(events(e.b, URXE_EVENT_PROBE) + events(e.b, URXE_EVENT_TIMEOUT), 0);
	expect_wc(&e.b->send_cq, 5, URXE_WC_RETRY_EXC_ERR); /* node a has not noticed */
	expect_wc(&e.b->send_cq, 6, URXE_WC_WR_FLUSH_ERR);
	engine_close(&e);
}

/*
 * Node b has executed a SEND when its own request fails: at the next output, because the request
 * has no valid region. The SEND is acknowledged, because node b's program has the message.
 */
static void test_failing_requester_acknowledges_executed_sends(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct answers got;
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_recv(&e.end[1], 7, 0, 100);
	post_send(&e, 1, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_READ, .length = 8});
	post_send(&e, 1,
		  &(struct post){.wr_id = 2,
				 .opcode = URXE_WR_SEND,
				 .flags = URXE_SEND_FENCE,
				 .length = 8,
				 .lkey = 0x666});
	assert_int_equal(answers(&e).opcode, 0x0c);
	p = from_peer(&e, &conn, 0x04);
	p.payload_len = 8;
	p.ack_req = true;
	inject(&e, &p);
	inject_response(&e, &conn, 0x10, 0, 0x11, 8);
	got = answers(&e);
	expect_wc(&e.b->recv_cq, 7, URXE_WC_SUCCESS);
	expect_wc(&e.b->send_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&e.b->send_cq, 2, URXE_WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.opcode, 0x11);
	assert_int_equal(got.syndrome & 0x60, 0);
	assert_int_equal(got.psn, conn.psn[0]);
	engine_close(&e);
}

/* The same with an atomic, a READ and a WRITE, and a NAK that ends node b's connection. */
static void test_refused_requester_answers_executed_requests(void **state)
{
	static const uint8_t opcodes[] = {0x14, 0x0c, 0x0a};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct answers got;
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
	assert_int_equal(answers(&e).opcode, 0x0a);
	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		p = from_peer(&e, &conn, opcodes[i]);
		p.psn += i;
		p.reth.length = p.payload_len = opcodes[i] == 0x14 ? 0 : 8;
		if (opcodes[i] == 0x0c)
			p.payload_len = 0;
		p.ack_req = true;
		inject(&e, &p);
	}
	inject_ack(&e, &conn, 0, 0x62);
	expect_wc(&e.b->send_cq, 0, URXE_WC_REM_ACCESS_ERR);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	got = answers(&e);
	assert_int_equal(got.n, 3);
	assert_int_equal(got.opcode, 0x11);
	assert_int_equal(got.psn, p.psn);
	expect_quiet(&e);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retries_count_afresh),
		cmocka_unit_test(test_each_missing_response_is_requested),
		cmocka_unit_test(test_read_response_does_not_complete_an_atomic),
		cmocka_unit_test(test_fence_waits_for_reads_and_atomics_only),
		cmocka_unit_test(test_requester_obeys_the_peers_depth),
		cmocka_unit_test(test_solicited_bit_is_in_the_last_packet_only),
		cmocka_unit_test(test_repeated_read_needs_key_and_opcode_of_the_original),
		cmocka_unit_test(test_filled_gap_cancels_the_nak),
		cmocka_unit_test(test_established_event_comes_once),
		cmocka_unit_test(test_write_longer_than_its_reth_gets_nak),
		cmocka_unit_test(test_local_error_waits_for_lost_earlier_requests),
		cmocka_unit_test(test_deregistration_during_read_responses_gives_nak),
		cmocka_unit_test(test_one_request_precedes_a_pending_ack),
		cmocka_unit_test(test_requests_and_read_responses_take_turns),
		cmocka_unit_test(test_deregistration_during_a_write_gives_nak),
		cmocka_unit_test(test_write_immediate_into_a_full_cq_gets_nak),
		cmocka_unit_test(test_depth_zero_permits_no_read),
		cmocka_unit_test(test_first_of_two_equal_responses_counts),
		cmocka_unit_test(test_bad_response_waits_for_earlier_requests),
		cmocka_unit_test(test_late_ack_is_ignored),
		cmocka_unit_test(test_read_response_does_not_complete_a_write),
		cmocka_unit_test(test_retransmission_from_a_deregistered_mr_fails),
		cmocka_unit_test(test_late_ack_completes_a_request_without_region),
		cmocka_unit_test(test_endless_naks_end_in_an_error),
		cmocka_unit_test(test_ack_during_an_rnr_wait_completes_the_request),
		cmocka_unit_test(test_failing_requester_acknowledges_executed_sends),
		cmocka_unit_test(test_refused_requester_answers_executed_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
