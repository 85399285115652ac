/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device that was absent, for example while its process was stopped, learns so by an announcement
 * of its own MAC address: what it requests and repeats then.
 */
#include "lossy.h"

static void returns(struct engine *e, struct node *node)
{
	announce_to(node, e->pair->now, node->mac, URXE_ANNOUNCEMENT_LEN);
}

#define SOON 5000000 /* ns; longer than the wait for a peer that knows of the absence */

/* A peer of another make repeats at once what was lost, without its timeout. */
static void test_returned_device_asks_for_lost_requests(void **state)
{
	struct lossy l;

	(void)state;
	open_with_timeout(&l, true, false, PATIENT);
	measure(&l);
	l.losses[0].all = true;
	post_send(&l.e, 0,
		  &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 40 << 10});
	pair_run(l.e.pair, l.e.pair->now + SOON);
	l.losses[0].all = false;
	returns(&l.e, l.e.b);
	pair_run(l.e.pair, l.e.pair->now + SOON);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	assert_int_equal(events(l.e.b, URXE_EVENT_NAK_SEQ_SENT), 1);
	engine_close(&l.e);
}

/* An ACK's or NAK's PSN, and the three bits of its syndrome that tell which it is. */
struct noted_answer {
	uint32_t psn;
	uint8_t type;
};

struct noted_answers {
	struct noted_answer first[2];
	unsigned n;
};

static bool note_answer(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct noted_answers *answers = arg;
	struct urxe_packet p;

	(void)now;
	assert_int_equal(urxe_packet_parse(&p, data, len), URXE_DROP_NONE);
	if (answers->n < 2)
		answers->first[answers->n] = (struct noted_answer){p.psn, p.aeth.syndrome >> 5};
	answers->n++;
	return true;
}

/* After a repetition of its own, Linux' rxe heeds no NAK before an ACK of something new. */
static void test_returned_device_acknowledges_before_it_asks(void **state)
{
	struct noted_answers answers = {0};
	struct lossy l;

	(void)state;
	open_with_timeout(&l, true, false, PATIENT);
	measure(&l);
	l.losses[0] = (struct losses){.lost = ~UINT64_C(0) << 3};
	post_send(&l.e, 0,
		  &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 40 << 10});
	pair_run(l.e.pair, l.e.pair->now + SOON);
	l.losses[0] = (struct losses){0};
	l.e.pair->link[1].filter = note_answer;
	l.e.pair->link[1].filter_arg = &answers;
	returns(&l.e, l.e.b);
	pair_run(l.e.pair, l.e.pair->now + SOON);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_SUCCESS);
	assert_int_equal(answers.first[0].type, 0);
	assert_int_equal(answers.first[1].type, 3);
	assert_int_equal(answers.first[1].psn, answers.first[0].psn + 1);
	engine_close(&l.e);
}

/* Three packets of a WRITE arrive. None of them asks for an ACK, or the last one (`asks`) does. */
static void inject_begun_write(struct lossy *l, const struct conn_attr *conn, bool asks)
{
	for (uint32_t i = 0; i < 3; i++) {
		struct urxe_packet p = from_peer(&l->e, conn, i ? 0x07 : 0x06);

		p.psn = (p.psn + i) & 0xffffff;
		p.reth.length = 40 * PACKET_LEN;
		p.payload_len = PACKET_LEN;
		p.ack_req = asks && i == 2;
		inject(&l->e, &p);
	}
	assert_int_equal(answers(&l->e).n, asks);
}

/*
 * Linux' rxe may have stopped behind the newest packet of a message, and goes on only if a packet
 * that it has sent is asked for, and was not acknowledged.
 */
static void test_returned_device_asks_for_the_newest_packet_of_a_message(void **state)
{
	(void)state;
	for (unsigned asks = 0; asks < 2; asks++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct noted_answers noted = {0};
		struct lossy l;

		open_with_timeout(&l, true, false, PATIENT);
		inject_begun_write(&l, &conn, asks);
		l.e.pair->link[1].filter = note_answer;
		l.e.pair->link[1].filter_arg = &noted;
		returns(&l.e, l.e.b);
		pair_run(l.e.pair, l.e.pair->now + SOON);
		assert_int_equal(noted.n, 2);
		assert_int_equal(noted.first[0].type, 0);
		assert_int_equal(noted.first[0].psn, conn.psn[0] + 1 + asks);
		assert_int_equal(noted.first[1].type, 3);
		assert_int_equal(noted.first[1].psn, conn.psn[0] + 2 + asks);
		engine_close(&l.e);
	}
}

/* --- The answer to a probe */

/* B knows a round trip. With `executes` it has executed a request of A. */
static void open_for_probe(struct lossy *l, bool executes)
{
	open_with_timeout(l, true, false, PATIENT);
	if (executes)
		measure(l);
	post_send(&l->e, 1, &(struct post){.wr_id = 8, .opcode = URXE_WR_RDMA_WRITE, .length = 64});
	pair_settle(l->e.pair);
	expect_wc(&l->e.b->send_cq, 8, URXE_WC_SUCCESS);
}

static void post_write(struct lossy *l, unsigned node)
{
	post_send(&l->e, node,
		  &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 64});
}

/* Only the answer to its probe shows B that packets were lost: B asks for those of the peer. */
static void test_answer_to_a_probe_asks_for_lost_requests(void **state)
{
	struct lossy l;

	(void)state;
	open_for_probe(&l, true);
	l.losses[0].all = l.losses[1].all = true;
	post_write(&l, 0);
	post_write(&l, 1);
	pair_run(l.e.pair, l.e.pair->now + 1000);
	l.losses[0].all = l.losses[1].all = false;
	pair_run(l.e.pair, l.e.pair->now + 2 * SOON);
	expect_wc(&l.e.b->send_cq, 7, URXE_WC_SUCCESS);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&l.e);
}

/* The peer has no requests, so B sends no NAK. */
static void test_answer_to_a_probe_asks_no_silent_peer(void **state)
{
	struct lossy l;

	(void)state;
	open_for_probe(&l, false);
	l.losses[1] = (struct losses){.lost = 1};
	post_write(&l, 1);
	pair_run(l.e.pair, l.e.pair->now + 2 * SOON);
	expect_wc(&l.e.b->send_cq, 7, URXE_WC_SUCCESS);
	assert_true(events(l.e.b, URXE_EVENT_PROBE) > 0);
	assert_int_equal(events(l.e.b, URXE_EVENT_NAK_SEQ_SENT), 0);
	engine_close(&l.e);
}

/* The peer is busy, and answers the original packet, 5 ms after the probe. Nothing was lost. */
static void test_late_answer_after_a_probe_asks_for_nothing(void **state)
{
	struct lossy l = {0};

	(void)state;
	l.e.pair = pair_create(&(struct pair_attr){
		.seed = 1, .mem_size = 4 << 20, .go_back_n = {true}, .probe_ns = LONG_PROBE});
	connect_lossy(&l, PATIENT);
	measure(&l);
	post_write(&l, 1);
	pair_settle(l.e.pair);
	expect_wc(&l.e.b->send_cq, 7, URXE_WC_SUCCESS);
	l.e.pair->link[0].delay_ns = LONG_PROBE + SOON;
	post_write(&l, 1);
	pair_run(l.e.pair, l.e.pair->now + 2 * LONG_PROBE);
	expect_wc(&l.e.b->send_cq, 7, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.b, URXE_EVENT_PROBE), 1);
	pair_run(l.e.pair, l.e.pair->now + 2 * LONG_PROBE);
	assert_int_equal(events(l.e.b, URXE_EVENT_NAK_SEQ_SENT), 0);
	engine_close(&l.e);
}

/* --- A device that was absent */

/* All NAKs of a gap are lost: the gap gets its NAK again. */
static void test_returned_device_asks_for_its_gap_again(void **state)
{
	struct lossy l;

	(void)state;
	open_with_timeout(&l, true, false, PATIENT);
	measure(&l);
	l.losses[0] = (struct losses){.lost = 1};
	l.losses[1].all = true;
	post_send(&l.e, 0,
		  &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 40 << 10});
	pair_run(l.e.pair, l.e.pair->now + 50000000); /* the NAK and its three repeats */
	assert_int_equal(events(l.e.b, URXE_EVENT_NAK_SEQ_SENT), 4);
	l.losses[1].all = false;
	returns(&l.e, l.e.b);
	pair_run(l.e.pair, l.e.pair->now + SOON);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&l.e);
}

/* The peer lacks only the last ACK: it gets the ACK again, and repeats nothing. */
static void test_returned_device_repeats_its_last_ack(void **state)
{
	struct lossy l;

	(void)state;
	open_with_timeout(&l, true, false, PATIENT);
	measure(&l);
	l.losses[1].all = true;
	post_send(&l.e, 0, &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 64});
	pair_run(l.e.pair, l.e.pair->now + SOON);
	l.losses[1].all = false;
	returns(&l.e, l.e.b);
	pair_run(l.e.pair, l.e.pair->now + SOON);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_SUCCESS);
	expect_again(&l, 0);
	engine_close(&l.e);
}

/* Response n of the device's newest request, and all later ones, are lost. */
static void lose_responses(uint32_t opcode, uint32_t length, unsigned n, uint64_t again)
{
	struct lossy l;

	open_with_timeout(&l, true, false, PATIENT);
	measure(&l);
	l.losses[1] = (struct losses){.lost = ~UINT64_C(0) << n};
	rand_fill(&(struct rand){n + length}, l.e.b->mem, length);
	post_send(&l.e, 0, &(struct post){.wr_id = 7, .opcode = opcode, .length = length});
	pair_run(l.e.pair, l.e.pair->now + SOON);
	l.losses[1] = (struct losses){0};
	returns(&l.e, l.e.b);
	pair_run(l.e.pair, l.e.pair->now + SOON);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_SUCCESS);
	if (opcode == URXE_WR_RDMA_READ)
		assert_memory_equal(l.e.a->mem, l.e.b->mem, length);
	expect_again(&l, again);
	engine_close(&l.e);
}

/* No ACK answers a READ or an atomic, and no NAK names it: the last response comes again. */
static void test_returned_device_repeats_its_last_response(void **state)
{
	(void)state;
	lose_responses(URXE_WR_FETCH_ADD, 8, 0, 0);
	lose_responses(URXE_WR_RDMA_READ, 64, 0, 0);
	lose_responses(URXE_WR_RDMA_READ, 4 * PACKET_LEN - 1, 3, 0);
	lose_responses(URXE_WR_RDMA_READ, 4 * PACKET_LEN - 1, 1, 1);
	lose_responses(URXE_WR_RDMA_READ, 4 * PACKET_LEN, 0, 1);
}

/* The response that comes again has the opcode that it had. */
static bool expect_last(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	unsigned *responses = arg;
	struct urxe_packet p;

	(void)now;
	assert_int_equal(urxe_packet_parse(&p, data, len), URXE_DROP_NONE);
	if (p.opcode == 0x11) /* an ACK or NAK */
		return true;
	assert_int_equal(p.opcode, 0x0f);
	++*responses;
	return true;
}

static void test_repeated_last_response_keeps_its_opcode(void **state)
{
	unsigned responses = 0;
	struct lossy l;

	(void)state;
	open_with_timeout(&l, true, false, PATIENT);
	transfer(&l, URXE_WR_RDMA_READ, 4, 0, 0);
	l.e.pair->link[1].filter = expect_last;
	l.e.pair->link[1].filter_arg = &responses;
	returns(&l.e, l.e.b);
	pair_settle(l.e.pair);
	assert_int_equal(responses, 2); /* with each of the two NAKs */
	expect_again(&l, 0);
	engine_close(&l.e);
}

/* The device's own requests, whose answers are lost, go out again without a probe's wait. */
static void lose_answers(uint8_t state)
{
	const struct urxe_qp_attr attr = {.state = state};
	uint64_t returned;
	struct lossy l = {0};

	l.e.pair = pair_create(&(struct pair_attr){.seed = 1, .probe_ns = 10000000});
	connect_lossy(&l, PATIENT);
	measure(&l);
	l.losses[1].all = true;
	for (unsigned i = 0; i < 3; i++)
		post_send(&l.e, 0,
			  &(struct post){.wr_id = i, .opcode = URXE_WR_RDMA_READ, .length = 64});
	returned = l.e.pair->now + 1000000; /* the responses are lost, and no probe is due yet */
	pair_run(l.e.pair, returned);
	l.losses[1].all = false;
	assert_int_equal(urxe_qp_modify(l.e.end[0].qp, returned, &attr, URXE_QP_STATE), 0);
	returns(&l.e, l.e.a);
	pair_run(l.e.pair, returned + 100000);
	for (unsigned i = 0; i < 3; i++)
		expect_wc(&l.e.a->send_cq, i, URXE_WC_SUCCESS);
	expect_again(&l, 3);
	engine_close(&l.e);
}

static void test_returned_device_repeats_its_requests(void **state)
{
	(void)state;
	lose_answers(URXE_QPS_RTS);
	lose_answers(URXE_QPS_SQD);
}

/* Three requests to a device whose probes wait for 10 ms. */
static void post_three(struct lossy *l)
{
	*l = (struct lossy){0};
	l->e.pair = pair_create(&(struct pair_attr){.seed = 1, .probe_ns = 10000000});
	connect_lossy(l, PATIENT);
	measure(l);
	l->losses[1].all = true;
	for (unsigned i = 0; i < 3; i++)
		post_send(&l->e, 0,
			  &(struct post){.wr_id = i, .opcode = URXE_WR_RDMA_READ, .length = 64});
}

static void expect_three(struct lossy *l, uint64_t until)
{
	pair_run(l->e.pair, until);
	for (unsigned i = 0; i < 3; i++)
		expect_wc(&l->e.a->send_cq, i, URXE_WC_SUCCESS);
}

/* By its own clock the device was silent for a moment only, as after its restoration. */
static void test_requests_of_a_moment_ago_come_again_soon(void **state)
{
	uint64_t returned;
	struct lossy l;

	(void)state;
	post_three(&l);
	returned = l.e.pair->now + 100000; /* the responses are lost */
	pair_run(l.e.pair, returned);
	l.losses[1].all = false;
	returns(&l.e, l.e.a);
	pair_run(l.e.pair, returned + 100000);
	expect_again(&l, 0);
	/* A new request does not delay the others. */
	post_send(&l.e, 0, &(struct post){.wr_id = 3, .opcode = URXE_WR_RDMA_WRITE, .length = 64});
	expect_three(&l, returned + 600000);
	expect_wc(&l.e.a->send_cq, 3, URXE_WC_SUCCESS);
	engine_close(&l.e);
}

/*
 * All probes were in vain, and the next packet waits for its rate when the device returns. If that
 * packet is lost, too, the series of probes begins anew, before the ACK timeout.
 */
static void test_returned_device_begins_its_probes_anew(void **state)
{
	const struct urxe_qp_attr limit = {.rate_limit = 1000}; /* kb/s */
	struct lossy l = {0};

	(void)state;
	l.e.pair = pair_create(&(struct pair_attr){.seed = 1, .probe_ns = 10000000});
	connect_lossy(&l, 20); /* a local ACK timeout of 4.3 s */
	measure(&l);
	l.losses[0].all = true;
	post_send(&l.e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 64});
	pair_run(l.e.pair, l.e.pair->now + 1000000000);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), 6);
	assert_int_equal(urxe_qp_modify(l.e.end[0].qp, l.e.pair->now, &limit, URXE_QP_RATE_LIMIT),
			 0);
	post_send(&l.e, 0,
		  &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = 2 * 1024});
	pair_run(l.e.pair, l.e.pair->now + 2000000); /* its second packet needs 8 ms */
	returns(&l.e, l.e.a);
	pair_run(l.e.pair, l.e.pair->now + 10000000);
	l.losses[0].all = false;
	pair_run(l.e.pair, l.e.pair->now + 100000000);
	expect_wc(&l.e.a->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&l.e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&l.e);
}

/* The request was sent without a local ACK timeout; its probes were in vain before the connection
 * got one. */
static void test_request_of_an_earlier_timeout_comes_again(void **state)
{
	const struct urxe_qp_attr drain = {.state = URXE_QPS_SQD}, patient = {.timeout = PATIENT};
	struct lossy l;

	(void)state;
	open_with_timeout(&l, false, false, 0);
	measure(&l);
	l.losses[0].all = true;
	post_send(&l.e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 64});
	pair_settle(l.e.pair);
	assert_int_equal(urxe_qp_modify(l.e.end[0].qp, l.e.pair->now, &drain, URXE_QP_STATE), 0);
	assert_int_equal(urxe_qp_modify(l.e.end[0].qp, l.e.pair->now, &patient, URXE_QP_TIMEOUT),
			 0);
	l.losses[0].all = false;
	returns(&l.e, l.e.a);
	pair_run(l.e.pair, l.e.pair->now + SOON);
	expect_wc(&l.e.a->send_cq, 0, URXE_WC_SUCCESS);
	engine_close(&l.e);
}

/* An answer shows that nothing was lost. */
static void test_answered_requests_do_not_come_again(void **state)
{
	struct lossy l;

	(void)state;
	post_three(&l);
	l.losses[1].all = false;
	returns(&l.e, l.e.a);
	expect_three(&l, l.e.pair->now + SOON);
	expect_again(&l, 0);
	engine_close(&l.e);
}

/* The peer sends its next READ only after the response to the first one, which takes 20 ms. No NAK
 * meets that READ. */
static void test_returned_device_ends_its_response_before_it_asks(void **state)
{
	const struct urxe_qp_attr limit = {.rate_limit = 100000}; /* kb/s */
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e = {.pair = pair_create(&(struct pair_attr){
				   .seed = 1, .mem_size = 4 << 20, .go_back_n = {true}})};

	(void)state;
	e.a = e.pair->node[0];
	e.b = e.pair->node[1];
	conn.timeout = PATIENT;
	conn.rd_atomic = 1;
	conn_open(e.pair, &conn, e.end);
	assert_int_equal(urxe_qp_modify(e.end[1].qp, 0, &limit, URXE_QP_RATE_LIMIT), 0);
	for (int i = 0; i < 2; i++)
		post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 256 << 10});
	pair_run(e.pair, e.pair->now + SOON / 5);
	returns(&e, e.b);
	pair_settle(e.pair);
	assert_int_equal(events(e.b, URXE_EVENT_NAK_SEQ_SENT), 0);
	engine_close(&e);
}

/* The NAK is lost, too: a second one follows. */
static void test_lost_nak_of_a_returned_device_comes_again(void **state)
{
	struct lossy l;

	(void)state;
	open_with_timeout(&l, true, false, PATIENT);
	measure(&l);
	l.losses[0].all = l.losses[1].all = true;
	post_send(&l.e, 0, &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 64});
	returns(&l.e, l.e.b);
	pair_run(l.e.pair, l.e.pair->now + SOON);
	assert_int_equal(events(l.e.b, URXE_EVENT_NAK_SEQ_SENT), 1);
	l.losses[0].all = l.losses[1].all = false;
	pair_run(l.e.pair, l.e.pair->now + 3 * SOON);
	expect_wc(&l.e.a->send_cq, 7, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&l.e);
}

#define IDLE 8 /* connections */

struct nak_times {
	uint64_t at[2 * IDLE];
	unsigned n;
};

static bool note_nak(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct nak_times *naks = arg;
	struct urxe_packet p;

	assert_int_equal(urxe_packet_parse(&p, data, len), URXE_DROP_NONE);
	if (p.opcode == 0x11 && p.aeth.syndrome >> 5 == 3 && naks->n < 2 * IDLE)
		naks->at[naks->n++] = now;
	return true;
}

/* Idle connections do not send their NAKs all at once. */
static void test_naks_of_connections_are_apart(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint ends[IDLE][2];
	struct nak_times naks = {0};
	struct lossy l;

	(void)state;
	open_lossy(&l, true, false);
	for (unsigned i = 0; i < IDLE - 1; i++)
		conn_open(l.e.pair, &conn, ends[i]);
	l.e.pair->link[1].filter = note_nak;
	l.e.pair->link[1].filter_arg = &naks;
	returns(&l.e, l.e.b);
	pair_run(l.e.pair, l.e.pair->now + SOON);
	assert_int_equal(naks.n, IDLE);
	for (unsigned i = 1; i < IDLE; i++)
		assert_true(naks.at[i] - naks.at[i - 1] >= 1000);
	engine_close(&l.e);
}

/* Only the owner of the device knows of its absence, not a station behind the wire. */
static void test_foreign_frame_with_own_mac_is_ignored(void **state)
{
	uint8_t data[URXE_ANNOUNCEMENT_LEN];
	struct urxe_frame frame = {.data = data, .len = sizeof(data), .from_wire = true};
	struct lossy l;

	(void)state;
	open_with_timeout(&l, true, false, PATIENT);
	measure(&l);
	urxe_announcement_build(data, l.e.b->mac);
	urxe_input(l.e.b->dev, l.e.pair->now, &frame, 1);
	pair_run(l.e.pair, l.e.pair->now + SOON);
	assert_int_equal(events(l.e.b, URXE_EVENT_NAK_SEQ_SENT), 0);
	assert_int_equal(drops(l.e.b, URXE_DROP_NOT_ROCE), 1);
	engine_close(&l.e);
}

/* A peer that waits for a receive request is not asked to send: that would cost it an RNR retry. */
static void test_returned_device_leaves_rnr_waits_alone(void **state)
{
	struct lossy l;

	(void)state;
	open_with_timeout(&l, true, false, PATIENT);
	post_send(&l.e, 0, &(struct post){.opcode = URXE_WR_SEND, .length = 64});
	while (!events(l.e.a, URXE_EVENT_NAK_RNR_RCVD))
		pair_run(l.e.pair, pair_next(l.e.pair));
	returns(&l.e, l.e.b);
	pair_run(l.e.pair, l.e.pair->now + SOON);
	assert_int_equal(events(l.e.b, URXE_EVENT_NAK_SEQ_SENT), 0);
	engine_close(&l.e);
}

/* Nothing was lost. The next gap gets its NAK as always. */
static void test_return_to_an_idle_peer_changes_nothing(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	measure(&l);
	for (unsigned i = 0; i < 2; i++) {
		returns(&l.e, l.e.a);
		returns(&l.e, l.e.b);
		pair_settle(l.e.pair);
	}
	expect_again(&l, 0);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1, 0);
	assert_int_equal(events(l.e.b, URXE_EVENT_NAK_SEQ_SENT), 2 * 2 + 1);
	expect_again(&l, 1);
	engine_close(&l.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_returned_device_asks_for_lost_requests),
		cmocka_unit_test(test_returned_device_acknowledges_before_it_asks),
		cmocka_unit_test(test_returned_device_asks_for_the_newest_packet_of_a_message),
		cmocka_unit_test(test_answer_to_a_probe_asks_for_lost_requests),
		cmocka_unit_test(test_answer_to_a_probe_asks_no_silent_peer),
		cmocka_unit_test(test_late_answer_after_a_probe_asks_for_nothing),
		cmocka_unit_test(test_returned_device_asks_for_its_gap_again),
		cmocka_unit_test(test_returned_device_repeats_its_last_ack),
		cmocka_unit_test(test_returned_device_repeats_its_last_response),
		cmocka_unit_test(test_repeated_last_response_keeps_its_opcode),
		cmocka_unit_test(test_returned_device_repeats_its_requests),
		cmocka_unit_test(test_requests_of_a_moment_ago_come_again_soon),
		cmocka_unit_test(test_returned_device_begins_its_probes_anew),
		cmocka_unit_test(test_request_of_an_earlier_timeout_comes_again),
		cmocka_unit_test(test_answered_requests_do_not_come_again),
		cmocka_unit_test(test_returned_device_ends_its_response_before_it_asks),
		cmocka_unit_test(test_lost_nak_of_a_returned_device_comes_again),
		cmocka_unit_test(test_naks_of_connections_are_apart),
		cmocka_unit_test(test_foreign_frame_with_own_mac_is_ignored),
		cmocka_unit_test(test_returned_device_leaves_rnr_waits_alone),
		cmocka_unit_test(test_return_to_an_idle_peer_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
