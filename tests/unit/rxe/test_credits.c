/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * End-to-end flow control (IBA 9.7.7.2): the credits that a responder advertises, and how a
 * requester uses them.
 */
#include <string.h>

#include "engine.h"

#define SEND_FIRST   0x00
#define SEND_ONLY    0x04
#define WRITE_ONLY   0x0a
#define READ_REQUEST 0x0c
#define FETCH_ADD    0x14
#define ACK          0x11
#define ATOMIC_ACK   0x12
#define NO_CREDITS   0x1f
#define RNR_NAK      0x20
#define FRAME_ROOM   4300

struct world {
	struct engine e;
	struct conn_attr conn;
	uint32_t psn; /* PSN of the next packet that the test builds */
	uint32_t receives;
};

static const uint8_t payload[1024];

static void open_world(struct world *w, uint32_t max_recv_wr)
{
	*w = (struct world){.conn = conn_default(URXE_QPT_RC)};
	w->conn.cap.max_recv_wr = max_recv_wr;
	w->psn = w->conn.psn[0];
	engine_open(&w->e, &w->conn);
}

static void close_world(struct world *w)
{
	engine_close(&w->e);
}

static void receive(struct world *w, uint32_t n)
{
	while (n--)
		post_recv(&w->e.end[1], w->receives++, 0, 4096);
}

/* --- The responder. */

static struct urxe_packet packet(const struct world *w, unsigned from, uint8_t opcode)
{
	struct urxe_packet p = {
		.net = w->conn.net,
		.hop_limit = 64,
		.udp_sport = 0xc123,
		.sgid = craft_gid(w->conn.net, (uint8_t)(from + 1)),
		.dgid = craft_gid(w->conn.net, (uint8_t)(!from + 1)),
		.opcode = opcode,
		.pkey = 0xffff,
		.dest_qpn = w->e.end[!from].qpn,
	};

	memcpy(p.smac, w->e.end[from].node->mac, 6);
	memcpy(p.dmac, w->e.end[!from].node->mac, 6);
	return p;
}

static void inject(struct world *w, unsigned to, const struct urxe_packet *p)
{
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame = {data, craft_frame(data, p), sizeof(data)};

	urxe_input(w->e.pair->node[to]->dev, w->e.pair->now, &frame, 1);
}

/* Takes the next packet that the side sends; false: the side sends none. */
static bool take(struct world *w, unsigned side, struct urxe_packet *p)
{
	static uint8_t data[FRAME_ROOM];
	struct urxe_frame frame = {data, 0, sizeof(data)};

	if (!urxe_output(w->e.pair->node[side]->dev, w->e.pair->now, &frame, 1))
		return false;
	assert_int_equal(urxe_packet_parse(p, data, frame.len), URXE_DROP_NONE);
	return true;
}

/*
 * Sends node 1 a request with the opcode and the first `len` bytes; returns the syndrome of the
 * answer.
 */
static uint8_t ask(struct world *w, uint8_t opcode, uint32_t len)
{
	struct urxe_packet p = packet(w, 0, opcode);

	p.psn = w->psn++;
	p.ack_req = true;
	p.payload = payload;
	p.payload_len = len;
	p.reth.va = p.atomic.va = w->e.b->iova;
	p.reth.rkey = p.atomic.rkey = w->e.b->key;
	inject(w, 1, &p);
	assert_true(take(w, 1, &p));
	return p.aeth.syndrome;
}

/* Credit codes of IBA table 46. */
static const uint32_t codes[] = {
	0,    1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
	48,   64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

static void test_credit_codes_follow_receives(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, 32768);
	for (uint8_t code = 0; code < sizeof(codes) / sizeof(codes[0]); code++) {
		receive(&w, codes[code] - w.receives);
		assert_int_equal(ask(&w, WRITE_ONLY, 0), code);
		if (code < 4 || code == 30)
			continue;
		receive(&w, codes[code + 1] - w.receives - 1);
		assert_int_equal(ask(&w, WRITE_ONLY, 0), code);
	}
	close_world(&w);
}

static void test_every_response_carries_credits(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, 64);
	receive(&w, 13);
	assert_int_equal(ask(&w, READ_REQUEST, 0), 7); /* 12 */
	assert_int_equal(ask(&w, FETCH_ADD, 0), 7);
	close_world(&w);
}

/* The message in progress keeps its receive request until the MSN covers the message. */
static void test_message_in_progress_keeps_its_credit(void **state)
{
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_world(&w, 64);
	receive(&w, 3);
	assert_int_equal(ask(&w, SEND_FIRST, 1024), 3);
	assert_int_equal(ask(&w, SEND_FIRST + 2, 4), 2); /* the last packet */
	p = packet(&w, 0, SEND_FIRST + 4);
	p.psn = w.psn++;
	inject(&w, 1, &p);
	p.psn = w.psn++;
	inject(&w, 1, &p);
	assert_int_equal(ask(&w, WRITE_ONLY, 0), 0);
	close_world(&w);
}

static void queue_more(struct node_queue *queue)
{
	struct world *w = queue->arg;

	while (w->receives < 50)
		receive(w, 1);
}

/*
 * Receive requests that the application has queued count, although the engine has not taken them
 * yet.
 */
static void test_queued_receives_count_as_credits(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, 64);
	receive(&w, 2);
	w.e.end[1].queue.arg = &w;
	w.e.end[1].queue.refill = queue_more;
	assert_int_equal(ask(&w, WRITE_ONLY, 0), 11); /* 48 */
	close_world(&w);
}

static void expect_credits(struct world *w, uint8_t code)
{
	struct urxe_packet p;

	assert_true(take(w, 1, &p));
	assert_int_equal(p.opcode, ACK);
	assert_int_equal(p.psn, (w->psn - 1) & 0xffffff);
	assert_int_equal(p.aeth.syndrome, code);
	assert_false(take(w, 1, &p));
}

/* The responder has said that it has no receive request: it tells of the next ones, once. */
static void test_starved_peer_hears_of_receives(void **state)
{
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_world(&w, 64);
	assert_int_equal(ask(&w, WRITE_ONLY, 0), 0);
	assert_false(take(&w, 1, &p));
	receive(&w, 3);
	expect_credits(&w, 3);
	receive(&w, 1);
	assert_false(take(&w, 1, &p));
	/* By an RNR NAK. */
	for (uint32_t i = 0; i < 4; i++)
		ask(&w, SEND_ONLY, 8);
	receive(&w, 1);
	expect_credits(&w, 1);
	ask(&w, SEND_ONLY, 8);
	assert_int_equal(ask(&w, SEND_ONLY, 8) & 0xe0, RNR_NAK);
	w.psn--;
	receive(&w, 2);
	expect_credits(&w, 2);
	assert_int_equal(ask(&w, SEND_ONLY, 8), 1);
	close_world(&w);
}

/* No packet leaves a queue pair in the error state (IBA 10.3.1.7). */
static void test_qp_in_error_advertises_no_credits(void **state)
{
	struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_world(&w, 64);
	assert_int_equal(ask(&w, WRITE_ONLY, 0), 0);
	assert_int_equal(urxe_qp_modify(w.e.end[1].qp, 0, &attr, URXE_QP_STATE), 0);
	receive(&w, 1);
	assert_false(take(&w, 1, &p));
	close_world(&w);
}

/* The answer to a request takes receives from the application's queue, and has their credits. */
static void test_refilled_receives_need_no_ack(void **state)
{
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_world(&w, 64);
	assert_int_equal(ask(&w, WRITE_ONLY, 0), 0);
	w.e.end[1].queue.arg = &w;
	w.e.end[1].queue.refill = queue_more;
	assert_int_equal(ask(&w, WRITE_ONLY, 0), 11); /* 48 */
	assert_false(take(&w, 1, &p));
	close_world(&w);
}

static void test_srq_promises_nothing(void **state)
{
	const struct urxe_rq_attr attr = {.max_wr = 64, .max_sge = 1, .pd = NODE_PD};
	struct world w = {.conn = conn_default(URXE_QPT_RC)};

	(void)state;
	w.psn = w.conn.psn[0];
	w.e.pair = pair_create(&(struct pair_attr){.seed = 1});
	w.e.a = w.e.pair->node[0];
	w.e.b = w.e.pair->node[1];
	assert_int_equal(urxe_srq_create(w.e.b->dev, &attr, &w.conn.srq[1]), 0);
	conn_open(w.e.pair, &w.conn, w.e.end);
	receive(&w, 5);
	assert_int_equal(ask(&w, WRITE_ONLY, 0), NO_CREDITS);
	close_world(&w);
}

/* --- The requester. */

/* Node 1 answers node 0's packets. */
static void answer(struct world *w, uint32_t psn, uint8_t syndrome)
{
	struct urxe_packet p = packet(w, 1, ACK);

	p.psn = psn & 0xffffff;
	p.aeth.syndrome = syndrome;
	inject(w, 0, &p);
}

static void post(struct world *w, uint32_t opcode, uint32_t length)
{
	post_send(&w->e, 0, &(struct post){.opcode = opcode, .length = length});
}

/* Node 0 sends n packets now; the last packet requests an acknowledgement. */
static void expect_packets(struct world *w, unsigned n)
{
	struct urxe_packet p;

	for (unsigned i = 0; i < n; i++) {
		assert_true(take(w, 0, &p));
		assert_int_equal(p.psn, w->psn++ & 0xffffff);
	}
	if (n)
		assert_true(p.ack_req);
	assert_false(take(w, 0, &p));
}

/* A requester that has got `code` credits and has nothing outstanding. */
static void open_requester(struct world *w, uint8_t code)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.sq_sig_all = false;
	*w = (struct world){.conn = conn, .psn = conn.psn[0]};
	engine_open(&w->e, &w->conn);
	post(w, URXE_WR_SEND, 8);
	expect_packets(w, 1);
	answer(w, w->psn - 1, code);
}

static void test_requester_obeys_credits(void **state)
{
	struct world w;

	(void)state;
	open_requester(&w, 4);
	for (int i = 0; i < 20; i++)
		post(&w, URXE_WR_SEND, 8);
	expect_packets(&w, 4);
	answer(&w, w.psn - 2,
	       5); /* 6 credits from the third packet on: three more than the requester knew of */
	expect_packets(&w, 5);
	answer(&w, w.psn - 1, NO_CREDITS);
	expect_packets(&w, 11);
	close_world(&w);
}

/* Before the first answer the requester knows no limit and sends everything. */
static void test_sends_are_unlimited_before_the_first_answer(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, 64);
	for (int i = 0; i < 20; i++)
		post(&w, URXE_WR_SEND, 8);
	expect_packets(&w, 20);
	close_world(&w);
}

/*
 * The first answer sets a limit behind which the requester has already sent packets. The newest one
 * has no AckReq, because its successor was to follow: so the successor follows, and has AckReq.
 */
static void test_first_credits_stop_behind_an_ack_request(void **state)
{
	static const struct {
		uint32_t length;
		unsigned sent;
		uint8_t code;
	} rows[] = {
		{8, 8, 4},    /* ends with a whole message */
		{3000, 7, 1}, /* ends in a message of three packets */
	};
	struct urxe_packet p;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w = {.conn = conn_default(URXE_QPT_RC), .psn = 29};

		w.conn.sq_sig_all = false;
		w.conn.psn[0] = w.psn;
		engine_open(&w.e, &w.conn);
		for (int k = 0; k < 20; k++)
			post(&w, URXE_WR_SEND, rows[i].length);
		for (unsigned k = 0; k < rows[i].sent; k++, w.psn++)
			assert_true(take(&w, 0, &p));
		assert_false(p.ack_req);
		answer(&w, 31, rows[i].code); /* the only packet with AckReq */
		expect_packets(&w, 1);
		close_world(&w);
	}
}

/* Without credits the requester sends one packet, and the answer to that packet decides. */
static void test_requester_probes_without_credits(void **state)
{
	struct world w;

	(void)state;
	open_requester(&w, 0);
	post(&w, URXE_WR_SEND, 8);
	post(&w, URXE_WR_SEND, 8);
	expect_packets(&w, 1);
	answer(&w, w.psn - 1, 0x21); /* RNR NAK, 10 us */
	expect_packets(&w, 0);
	w.e.pair->now += 10000;
	w.psn--;
	expect_packets(&w, 1);
	answer(&w, w.psn - 1, 0);
	expect_packets(&w, 1);
	close_world(&w);
}

/* A repeated ACK grants credits: the requester does not wait for the RNR timer. */
static void test_credits_end_the_rnr_wait(void **state)
{
	struct world w;

	(void)state;
	open_requester(&w, 0);
	post(&w, URXE_WR_SEND, 8);
	post(&w, URXE_WR_SEND, 8);
	post(&w, URXE_WR_SEND, 8);
	expect_packets(&w, 1);
	answer(&w, w.psn - 1, 0x21); /* RNR NAK */
	answer(&w, w.psn - 2, 0);
	expect_packets(&w, 0);
	answer(&w, w.psn - 2, 2);
	w.psn--;
	expect_packets(&w, 2);
	/* The end of the time has no effect. */
	w.e.pair->now += 10000;
	expect_packets(&w, 0);
	answer(&w, w.psn - 1, 0);
	expect_packets(&w, 1);
	close_world(&w);
}

/* Also before the first answer with credits. */
static void test_first_credits_end_the_rnr_wait(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, 64);
	for (int i = 0; i < 3; i++)
		post(&w, URXE_WR_SEND, 8);
	expect_packets(&w, 3);
	w.psn = w.conn.psn[0];
	answer(&w, w.psn, 0x21);
	answer(&w, w.psn - 1, NO_CREDITS);
	answer(&w, w.psn - 1, 0);
	expect_packets(&w, 0);
	answer(&w, w.psn - 1, 2);
	expect_packets(&w, 3);
	close_world(&w);
}

static void test_probe_without_credits_is_one_packet(void **state)
{
	struct world w;

	(void)state;
	open_requester(&w, 0);
	post(&w, URXE_WR_SEND, 5 * 1024);
	post(&w, URXE_WR_SEND, 8);
	expect_packets(&w, 1);
	answer(&w, w.psn - 1, 0); /* the message has its receive request now */
	expect_packets(&w, 4);
	answer(&w, w.psn - 1, 0);
	expect_packets(&w, 1);
	close_world(&w);
}

static void test_only_requests_with_receives_need_credits(void **state)
{
	static const struct {
		uint32_t opcode;
		bool held;
	} rows[] = {
		{URXE_WR_RDMA_WRITE, false}, {URXE_WR_RDMA_READ, false},
		{URXE_WR_FETCH_ADD, false},  {URXE_WR_RDMA_WRITE_IMM, true},
		{URXE_WR_SEND_IMM, true},
	};
	struct urxe_packet p;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;

		open_requester(&w, 0);
		post(&w, URXE_WR_SEND, 8);
		post(&w, URXE_WR_SEND, 8);
		expect_packets(&w, 1);
		answer(&w, w.psn - 1, 1);
		expect_packets(&w, 1); /* uses the credit */
		post(&w, rows[i].opcode, 8);
		assert_int_equal(take(&w, 0, &p), !rows[i].held);
		close_world(&w);
	}
}

/* A responder that has receive requests again advertises credits without a request. */
static void test_responder_advertises_new_credits(void **state)
{
	struct world w;

	(void)state;
	open_requester(&w, 0);
	for (int i = 0; i < 9; i++)
		post(&w, URXE_WR_SEND, 8);
	expect_packets(&w, 1);
	answer(&w, w.psn - 2, 5); /* 6 */
	expect_packets(&w, 5);
	answer(&w, w.psn - 7, 5);
	assert_int_equal(drops(w.e.a, URXE_DROP_STALE_ACK), 1); /* nothing new */
	expect_packets(&w, 0);
	answer(&w, w.psn - 7, 3); /* an older acknowledgement: the newer credits stay valid */
	answer(&w, w.psn - 6, 5);
	expect_packets(&w, 1);
	close_world(&w);
}

/* Responses to READs and atomics carry credits, too. */
static void test_atomic_response_carries_credits(void **state)
{
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_requester(&w, 0);
	post(&w, URXE_WR_FETCH_ADD, 8);
	for (int i = 0; i < 9; i++)
		post(&w, URXE_WR_SEND, 8);
	assert_true(take(&w, 0, &p));
	assert_false(take(&w, 0, &p));
	p = packet(&w, 1, ATOMIC_ACK);
	p.psn = w.psn++;
	p.aeth.syndrome = 4;
	inject(&w, 0, &p);
	expect_packets(&w, 4);
	close_world(&w);
}

static void test_reset_forgets_credits(void **state)
{
	const struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	struct world w;

	(void)state;
	open_requester(&w, 0);
	assert_int_equal(urxe_qp_modify(w.e.end[0].qp, w.e.pair->now, &reset, URXE_QP_STATE), 0);
	conn_bring_up(w.e.pair, &w.conn, 0, &w.e.end[0], &w.e.end[1]);
	w.psn = w.conn.psn[0];
	post(&w, URXE_WR_SEND, 8);
	post(&w, URXE_WR_SEND, 8);
	expect_packets(&w, 2);
	close_world(&w);
}

/* --- Both. */

#define MESSAGES 40
#define DEPTH    4

static void give_back(struct node_queue *queue)
{
	struct world *w = queue->arg;
	struct urxe_wc wc;

	while (node_poll(&w->e.b->recv_cq, &wc))
		receive(w, 1);
}

/*
 * A receiver that posts receive requests fast enough never sends an RNR NAK, even with few receive
 * requests.
 */
static void test_fast_receiver_sends_no_rnr_nak(void **state)
{
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_world(&w, DEPTH);
	receive(&w, DEPTH);
	w.e.end[1].queue.arg = &w;
	w.e.end[1].queue.refill = give_back;
	post(&w, URXE_WR_SEND, 8); /* the answer brings the credits */
	pair_settle(w.e.pair);
	for (int i = 0; i < MESSAGES; i++)
		post(&w, i % 3 ? URXE_WR_SEND : URXE_WR_RDMA_WRITE_IMM, 3000);
	pair_settle(w.e.pair);
	assert_false(take(&w, 0, &p));
	for (int i = 0; i < MESSAGES + 1; i++)
		expect_wc(&w.e.a->send_cq, 0, URXE_WC_SUCCESS);
	assert_int_equal(events(w.e.b, URXE_EVENT_NAK_RNR_SENT), 0);
	close_world(&w);
}

/* A connection does not hang after a time without credits, even if no timeout is set. */
static void test_connection_does_not_hang_without_credits(void **state)
{
	struct world w = {.conn = conn_default(URXE_QPT_RC)};

	(void)state;
	w.conn.timeout = 0;
	w.conn.sq_sig_all = false;
	engine_open(&w.e, &w.conn);
	receive(&w, 1);
	post(&w, URXE_WR_SEND, 8);
	pair_settle(w.e.pair);
	for (int i = 0; i < MESSAGES; i++)
		post(&w, URXE_WR_SEND, 3000);
	for (int i = 0; i < MESSAGES; i++) {
		assert_int_equal(pair_run(w.e.pair, w.e.pair->now + 1000000), PAIR_TIME_UP);
		receive(&w, 1);
	}
	pair_settle(w.e.pair);
	assert_int_equal(urxe_sq_retired(w.e.end[0].qp), MESSAGES + 1);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_credit_codes_follow_receives),
		cmocka_unit_test(test_every_response_carries_credits),
		cmocka_unit_test(test_message_in_progress_keeps_its_credit),
		cmocka_unit_test(test_queued_receives_count_as_credits),
		cmocka_unit_test(test_starved_peer_hears_of_receives),
		cmocka_unit_test(test_qp_in_error_advertises_no_credits),
		cmocka_unit_test(test_refilled_receives_need_no_ack),
		cmocka_unit_test(test_srq_promises_nothing),
		cmocka_unit_test(test_requester_obeys_credits),
		cmocka_unit_test(test_sends_are_unlimited_before_the_first_answer),
		cmocka_unit_test(test_first_credits_stop_behind_an_ack_request),
		cmocka_unit_test(test_requester_probes_without_credits),
		cmocka_unit_test(test_credits_end_the_rnr_wait),
		cmocka_unit_test(test_first_credits_end_the_rnr_wait),
		cmocka_unit_test(test_probe_without_credits_is_one_packet),
		cmocka_unit_test(test_only_requests_with_receives_need_credits),
		cmocka_unit_test(test_responder_advertises_new_credits),
		cmocka_unit_test(test_atomic_response_carries_credits),
		cmocka_unit_test(test_reset_forgets_credits),
		cmocka_unit_test(test_fast_receiver_sends_no_rnr_nak),
		cmocka_unit_test(test_connection_does_not_hang_without_credits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
