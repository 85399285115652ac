/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine takes over queue pairs with a shared receive queue from an HCA, in the middle of
 * messages. Each message arrives once, and each receive request is used once. The HCA is the engine
 * of another device.
 */
#include <errno.h>
#include <string.h>

#include "take_over_bed.h"

#define TO       500000u /* of receive requests, offset in the memory of side 1 */
#define SLOT     6000u   /* bytes of a receive request, and of the longest message */
#define CONNS    3u
#define MESSAGES 6u /* of each connection */
#define RECEIVES (CONNS * MESSAGES + 4)
/* More packets than all messages have, and than all short ones have. */
#define PACKETS       60u
#define SHORT_PACKETS 18u

#define MILLISECOND 1000000u

struct srq_bed {
	struct bed bed;
	struct urxe_rq *srq;
	struct node_queue queue;
	struct endpoint conn[CONNS][2];
	uint32_t sent[CONNS], received[CONNS];
	uint32_t short_messages; /* of one packet */
	uint32_t used;           /* bit i: receive request i has completed */
	uint32_t posted;         /* receive requests; request i again as i + RECEIVES */
};

/* What the HCA and the peers are. */
#define GO_BACK_N 1u
#define MOVES     2u /* the device moves to another engine after the take-over */
#define WRITES    4u /* the peers may WRITE, so the engine does not know messages in progress */
#define SILENT    8u /* the HCA does not tell when it takes no more requests */
#define ALL_WAYS  16u
#define FORGETS   16u /* the HCA does not flush the request of a message in progress */

static struct urxe_dev *device_of(const struct srq_bed *s)
{
	return device(&s->bed, 1);
}

static struct node_cq *receives_of(const struct srq_bed *s)
{
	return &s->bed.above.node[1]->recv_cq;
}

/* --- Messages. */

static uint32_t message_length(const struct srq_bed *s, uint32_t conn, uint32_t i)
{
	return 1 + (conn * 977 + i * 2711) % (s->short_messages ? 1024 : SLOT);
}

static uint8_t pattern(uint32_t conn, uint32_t message, uint32_t i)
{
	return (uint8_t)(conn * 31 + message * 7 + i + i / 256);
}

static void send_message(struct srq_bed *s, uint32_t conn)
{
	struct node *node = s->bed.above.node[0];
	const uint32_t i = s->sent[conn]++;
	const uint32_t offset = (conn + i * CONNS) * SLOT % TO;
	const struct urxe_seg seg = node_seg(node, offset, message_length(s, conn, i));
	const struct urxe_send_wr wr = {
		.wr_id = i, .opcode = URXE_WR_SEND, .segs = &seg, .n_segs = 1};

	for (uint32_t at = 0; at < seg.length; at++)
		node->mem[offset + at] = pattern(conn, i, at);
	assert_int_equal(urxe_post_send(s->conn[conn][0].qp, &wr), 0);
}

static uint32_t conn_of(const struct srq_bed *s, unsigned side, uint32_t qpn)
{
	uint32_t conn = 0;

	while (s->conn[conn][side].qpn != qpn)
		assert_true(++conn < CONNS);
	return conn;
}

/* The next message of the connection has arrived in the request, which no other one has used. */
static void expect_message(struct srq_bed *s, const struct urxe_wc *wc)
{
	const uint32_t conn = conn_of(s, 1, wc->qpn), i = s->received[conn]++;
	const uint8_t *at = s->bed.above.node[1]->mem + TO + wc->wr_id * SLOT;

	assert_int_equal(wc->status, URXE_WC_SUCCESS);
	assert_true(wc->wr_id < RECEIVES);
	assert_false(s->used & 1u << wc->wr_id);
	s->used |= 1u << wc->wr_id;
	assert_int_equal(wc->byte_len, message_length(s, conn, i));
	for (uint32_t k = 0; k < wc->byte_len; k++)
		assert_int_equal(at[k], pattern(conn, i, k));
}

static void receive_messages(struct srq_bed *s)
{
	struct urxe_wc wc;

	while (node_poll(receives_of(s), &wc))
		expect_message(s, &wc);
}

/* A message from ends[0] arrives at ends[1], which take the place of connection 0. */
static void carry_message(struct srq_bed *s, const struct endpoint ends[2])
{
	memcpy(s->conn[0], ends, sizeof(s->conn[0]));
	s->sent[0] = s->received[0] = 0;
	send_message(s, 0);
	settle(&s->bed);
	receive_messages(s);
	assert_int_equal(s->received[0], 1);
}

/* All messages have arrived, and their requests have completed. */
static void expect_all(struct srq_bed *s)
{
	uint32_t completed[CONNS] = {0};
	struct urxe_wc wc;

	receive_messages(s);
	while (node_poll(&s->bed.above.node[0]->send_cq, &wc)) {
		const uint32_t conn = conn_of(s, 0, wc.qpn);

		assert_int_equal(wc.status, URXE_WC_SUCCESS);
		assert_int_equal(wc.wr_id, completed[conn]++);
	}
	for (uint32_t conn = 0; conn < CONNS; conn++) {
		assert_int_equal(completed[conn], s->sent[conn]);
		assert_int_equal(s->received[conn], s->sent[conn]);
	}
}

/* The receive requests that are left are used in the order of posting. */
static void expect_rest_in_order(struct srq_bed *s)
{
	for (uint32_t n = 0; n < RECEIVES; n++) {
		const uint32_t before = s->used, i = (s->posted + n) % RECEIVES;

		if (before & 1u << i)
			continue;
		send_message(s, i % CONNS);
		settle(&s->bed);
		receive_messages(s);
		assert_int_equal(s->used, before | 1u << i);
	}
	assert_int_equal(urxe_rq_retired(s->srq), s->posted);
}

/* --- The bed. */

static void post_receives(struct srq_bed *s, uint32_t n)
{
	for (; n; n--) {
		const uint32_t i = s->posted++ % RECEIVES;

		post_recv(&s->conn[0][1], i, TO + i * SLOT, SLOT);
		s->used &= ~(1u << i);
	}
}

/* Only then does an answer of the HCA show that its PSNs are those of now. */
static void send_one_each(struct srq_bed *s)
{
	for (uint32_t conn = 0; conn < CONNS; conn++)
		send_message(s, conn);
	run_for(&s->bed, 100000);
}

/* So that a peer asks for no acknowledgement within the first messages. */
#define FIRST_PSN 0x123400

static void open_srq_bed(struct srq_bed *s, unsigned how)
{
	const struct urxe_rq_attr attr = {
		.ctx = &s->queue, .pd = NODE_PD, .max_wr = RECEIVES, .max_sge = 2};
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	memset(s, 0, sizeof(*s));
	bed_open_sides(&s->bed, false, true,
		       &(struct pair_attr){.seed = 1, .go_back_n = {how & GO_BACK_N}});
	s->bed.hca[1].silent = s->bed.hca[1].keeps_completions = how & SILENT;
	s->bed.hca[1].forgets = how & FORGETS;
	s->short_messages = how & WRITES;
	s->queue.node = s->bed.above.node[1];
	assert_int_equal(urxe_srq_create(device_of(s), &attr, &s->srq), 0);
	conn.srq[1] = s->srq;
	conn.psn[0] = FIRST_PSN;
	if (!(how & WRITES))
		conn.access = 0;
	if (how & SILENT)
		conn.timeout = 14;
	for (uint32_t i = 0; i < CONNS; i++) {
		conn_open(&s->bed.above, &conn, s->conn[i]);
		assert_true(urxe_qp_offloaded(s->conn[i][1].qp));
	}
	s->bed.e.end[1] = s->conn[0][1];
	post_receives(s, RECEIVES);
	send_one_each(s);
}

/* The completions that the HCA has left are passed, too. */
static void run_longer(struct srq_bed *s)
{
	struct pair *wire = s->bed.wire;
	const uint64_t until = wire->now + MILLISECOND;

	if (pair_run(wire, until) == PAIR_IDLE)
		wire->now = until;
	hand_over(&s->bed, 1);
	engine_hca_deliver(&s->bed.hca[1]);
}

static int try_once(struct srq_bed *s)
{
	struct urxe_offload_refusal refusal;
	int rc = urxe_offload_take_over(device_of(s), s->bed.wire->now, true, &refusal);

	if (rc)
		assert_int_equal(refusal.reason, URXE_OFFLOAD_RECEIVES);
	return rc;
}

static uint32_t async_events(const struct srq_bed *s, enum urxe_async event)
{
	return s->bed.above.node[1]->async[event];
}

static void leave_hca_of(struct srq_bed *s)
{
	assert_false(urxe_offload_stopped(device_of(s)));
	for (uint32_t i = 0; i < CONNS; i++)
		assert_false(urxe_offload_has_qp(s->conn[i][1].qp));
	assert_int_equal(async_events(s, URXE_ASYNC_QP_FATAL), 0);
	leave_hca(&s->bed, 1);
	assert_int_equal(async_events(s, URXE_ASYNC_SRQ_ERR), 0);
}

static void take_over_srq(struct srq_bed *s)
{
	unsigned tries = 0;

	while (try_once(s)) {
		assert_true(++tries < 1000);
		if (s->bed.hca[1].silent)
			run_longer(s);
		else
			run_for(&s->bed, STEP);
	}
	leave_hca_of(s);
}

static void move_srq(struct srq_bed *s)
{
	struct endpoint *ends[CONNS];

	for (uint32_t i = 0; i < CONNS; i++)
		ends[i] = s->conn[i];
	receive_messages(s);
	move_node(s->bed.wire, 1, ends, CONNS);
	s->bed.above.node[1] = s->bed.wire->node[1];
}

/* --- Each moment. */

static uint32_t room; /* packets that the HCA still receives */

static bool pass_first(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return room && room--;
}

/* The first n packets of the messages of all connections arrive before the engine takes over. */
static void send_until(struct srq_bed *s, uint32_t n)
{
	room = n;
	s->bed.wire->link[0].filter = pass_first;
	for (uint32_t i = 1; i < MESSAGES; i++)
		for (uint32_t conn = 0; conn < CONNS; conn++)
			send_message(s, conn);
	run_for(&s->bed, 5000);
}

static void run_moment(uint32_t n, unsigned how)
{
	static struct srq_bed s;

	open_srq_bed(&s, how);
	send_until(&s, n);
	take_over_srq(&s);
	s.bed.wire->link[0].filter = NULL;
	if (how & MOVES)
		move_srq(&s);
	settle(&s.bed);
	expect_all(&s);
	if (!(how & MOVES))
		expect_rest_in_order(&s);
	bed_close(&s.bed);
}

static void test_take_over_at_each_moment_loses_no_message_and_no_request(void **state)
{
	(void)state;
	for (unsigned how = 0; how < ALL_WAYS; how++)
		for (uint32_t n = 0; n < (how & WRITES ? SHORT_PACKETS : PACKETS); n++)
			run_moment(n, how);
}

/* The first n packets of one message of each connection arrive before the engine takes over. */
static void run_message(uint32_t n, unsigned how)
{
	static struct srq_bed s;

	open_srq_bed(&s, how);
	receive_messages(&s);
	s.short_messages = false;
	room = n;
	s.bed.wire->link[0].filter = pass_first;
	for (uint32_t conn = 0; conn < CONNS; conn++)
		send_message(&s, conn);
	run_for(&s.bed, 5000);
	assert_int_equal(try_once(&s), -EAGAIN);
	post_receives(&s, CONNS);
	take_over_srq(&s);
	s.bed.wire->link[0].filter = NULL;
	settle(&s.bed);
	expect_all(&s);
	expect_rest_in_order(&s);
	bed_close(&s.bed);
}

/* The engine does not know the message, or its request. The peer sends it again from its first
 * packet on. */
static void test_unknown_send_in_progress_goes_on(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 16; n++) {
		run_message(n, WRITES);
		run_message(n, FORGETS);
		run_message(n, WRITES | FORGETS);
	}
}

/* --- While the HCA stops. */

/* All queue pairs have stopped in the middle of messages; the HCA has told nothing yet. */
static void stop_within_messages(struct srq_bed *s, unsigned how)
{
	open_srq_bed(s, how);
	send_until(s, 20);
	assert_int_equal(try_once(s), -EAGAIN);
	assert_true(urxe_offload_stopped(device_of(s)));
	s->bed.wire->link[0].filter = NULL;
}

static void test_abandoned_attempt_after_the_stop_runs_in_software(void **state)
{
	static struct srq_bed s;

	(void)state;
	for (unsigned how = 0; how <= SILENT; how += SILENT) {
		stop_within_messages(&s, how);
		urxe_offload_keep(device_of(&s));
		assert_true(urxe_offload_stopped(device_of(&s)));
		for (unsigned tries = 0; urxe_offload_stopped(device_of(&s)); tries++) {
			assert_true(tries < (how ? 1000 : 1));
			run_longer(&s);
			urxe_offload_keep(device_of(&s));
		}
		leave_hca_of(&s);
		settle(&s.bed);
		expect_all(&s);
		expect_rest_in_order(&s);
		bed_close(&s.bed);
	}
}

/* The requests that are posted meanwhile follow those that the HCA had. */
static void test_requests_of_the_time_between_are_the_last(void **state)
{
	static struct srq_bed s;

	(void)state;
	open_srq_bed(&s, 0);
	receive_messages(&s);
	assert_int_equal(try_once(&s), -EAGAIN);
	post_receives(&s, CONNS);
	take_over_srq(&s);
	expect_rest_in_order(&s);
	expect_all(&s);
	bed_close(&s.bed);
}

static void modify(struct srq_bed *s, uint32_t conn, uint8_t to)
{
	const struct urxe_qp_attr attr = {.state = to};

	assert_int_equal(
		urxe_qp_modify(s->conn[conn][1].qp, s->bed.wire->now, &attr, URXE_QP_STATE), 0);
}

/* Connection 0 ends. Its messages do not arrive, and the others do. */
static void expect_others(struct srq_bed *s, bool flushed)
{
	struct urxe_wc wc;

	settle(&s->bed);
	while (node_poll(receives_of(s), &wc)) {
		if (wc.status == URXE_WC_SUCCESS) {
			expect_message(s, &wc);
			continue;
		}
		assert_true(flushed);
		flushed = false;
		assert_int_equal(wc.status, URXE_WC_WR_FLUSH_ERR);
		assert_int_equal(wc.qpn, s->conn[0][1].qpn);
		assert_false(s->used & 1u << wc.wr_id);
		s->used |= 1u << wc.wr_id;
	}
	assert_false(flushed);
	for (uint32_t conn = 1; conn < CONNS; conn++)
		assert_int_equal(s->received[conn], s->sent[conn]);
}

/* The program changes a queue pair in the middle of a message. */
static void test_failed_qp_flushes_its_request_and_tells_its_end(void **state)
{
	static struct srq_bed s;

	(void)state;
	for (unsigned stopped = 0; stopped < 2; stopped++) {
		open_srq_bed(&s, 0);
		send_until(&s, 2);
		if (stopped)
			assert_int_equal(try_once(&s), -EAGAIN);
		modify(&s, 0, URXE_QPS_ERR);
		assert_int_equal(async_events(&s, URXE_ASYNC_QP_LAST_WQE_REACHED), 0);
		take_over_srq(&s);
		s.bed.wire->link[0].filter = NULL;
		assert_int_equal(async_events(&s, URXE_ASYNC_QP_LAST_WQE_REACHED), 1);
		expect_others(&s, true);
		bed_close(&s.bed);
	}
}

static void test_qp_that_is_reset_while_it_stops_keeps_no_request(void **state)
{
	static struct srq_bed s;

	(void)state;
	open_srq_bed(&s, 0);
	send_until(&s, 2);
	assert_int_equal(try_once(&s), -EAGAIN);
	modify(&s, 0, URXE_QPS_RESET);
	take_over_srq(&s);
	s.bed.wire->link[0].filter = NULL;
	assert_int_equal(async_events(&s, URXE_ASYNC_QP_LAST_WQE_REACHED), 0);
	expect_others(&s, false);
	bed_close(&s.bed);
}

/* Another connection of the queue pair, while the HCA's queue pairs stop, is the engine's. */
static void test_qp_that_leaves_reset_while_the_srq_stops_is_software(void **state)
{
	const struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	static struct srq_bed s;

	(void)state;
	open_srq_bed(&s, 0);
	conn.access = 0;
	send_until(&s, 2);
	assert_int_equal(try_once(&s), -EAGAIN);
	modify(&s, 0, URXE_QPS_RESET);
	assert_int_equal(urxe_qp_modify(s.conn[0][0].qp, s.bed.wire->now, &reset, URXE_QP_STATE),
			 0);
	engine_hca_deliver(&s.bed.hca[1]);
	for (unsigned side = 0; side < 2; side++)
		conn_bring_up(&s.bed.above, &conn, side, &s.conn[0][side], &s.conn[0][!side]);
	assert_false(urxe_offload_has_qp(s.conn[0][1].qp));
	take_over_srq(&s);
	s.bed.wire->link[0].filter = NULL;
	receive_messages(&s);
	s.received[0] = s.sent[0]; /* the reset has ended the others */
	send_message(&s, 0);
	settle(&s.bed);
	receive_messages(&s);
	for (uint32_t i = 0; i < CONNS; i++)
		assert_int_equal(s.received[i], s.sent[i]);
	bed_close(&s.bed);
}

/* The HCA has a queue pair in INIT when its queue pairs stop. The connection that the program makes
 * meanwhile begins with the PSN of that connection. */
static void test_qp_that_stops_in_init_expects_the_psn_of_its_connection(void **state)
{
	static const uint32_t psns[] = {0x100, 0x900000};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_qp_attr init;
	static struct srq_bed s;
	struct endpoint end[2];

	(void)state;
	conn.access = 0;
	for (unsigned i = 0; i < 2; i++) {
		open_srq_bed(&s, 0);
		receive_messages(&s);
		conn.srq[1] = s.srq;
		conn.psn[0] = psns[i];
		for (unsigned side = 0; side < 2; side++)
			conn_create(&s.bed.above, &conn, side, &end[side]);
		init = conn_qp_attr(&conn, 1, end[0].node, end[0].qpn);
		init.state = URXE_QPS_INIT;
		assert_int_equal(urxe_qp_modify(end[1].qp, s.bed.wire->now, &init,
						conn_mask(URXE_QPT_RC, URXE_QPS_INIT)),
				 0);
		assert_true(urxe_qp_offloaded(end[1].qp));
		assert_int_equal(try_once(&s), -EAGAIN);
		for (unsigned side = 0; side < 2; side++)
			conn_bring_up(&s.bed.above, &conn, side, &end[side], &end[!side]);
		assert_true(urxe_qp_offloaded(end[1].qp));
		take_over_srq(&s);
		carry_message(&s, end);
		bed_close(&s.bed);
	}
}

/* The HCA's completions come after the end of their queue pair: the program does not get them, but
 * the owner learns that the queue has room. */
static void test_late_completion_of_a_destroyed_qp_tells_the_owner(void **state)
{
	static struct srq_bed s;
	uint32_t before;

	(void)state;
	open_srq_bed(&s, SILENT);
	before = urxe_rq_retired(s.srq);
	send_message(&s, 0);
	pair_run(s.bed.wire, s.bed.wire->now + 100000);
	assert_int_equal(urxe_rq_retired(s.srq), before);
	urxe_qp_destroy(s.conn[0][1].qp);
	assert_int_equal(s.queue.retired, 0);
	engine_hca_deliver(&s.bed.hca[1]);
	assert_int_equal(urxe_rq_retired(s.srq), before + 1);
	assert_int_equal(s.queue.retired, 1);
	bed_close(&s.bed);
}

/* --- Queue pairs that carry no messages. */

static void test_srq_without_qps_is_taken_at_once(void **state)
{
	const struct urxe_rq_attr attr = {.pd = NODE_PD, .max_wr = 8, .max_sge = 2};
	struct urxe_offload_refusal refusal;
	static struct bed bed;
	struct urxe_rq *srq;

	(void)state;
	bed_open_sides(&bed, false, true, &(struct pair_attr){.seed = 1});
	assert_int_equal(urxe_srq_create(device(&bed, 1), &attr, &srq), 0);
	assert_int_equal(urxe_offload_take_over(device(&bed, 1), 1, true, &refusal), 0);
	leave_hca(&bed, 1);
	assert_int_equal(urxe_srq_destroy(srq), 0);
	bed_close(&bed);
}

/* Before the stop, only the HCA has requests for it. */
static void test_qp_that_is_created_during_an_attempt_goes_on_in_software(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint early[2], late[2];
	static struct srq_bed s;

	(void)state;
	open_srq_bed(&s, 0);
	conn.srq[1] = s.srq;
	conn.access = 0;
	conn_create(&s.bed.above, &conn, 0, &early[0]);
	conn_create(&s.bed.above, &conn, 1, &early[1]);
	assert_true(urxe_offload_has_qp(early[1].qp));
	assert_int_equal(try_once(&s), -EAGAIN);
	conn_create(&s.bed.above, &conn, 0, &late[0]);
	conn_create(&s.bed.above, &conn, 1, &late[1]);
	assert_false(urxe_offload_has_qp(late[1].qp));
	take_over_srq(&s);
	assert_false(urxe_offload_has_qp(early[1].qp));
	for (unsigned i = 0; i < 2; i++) {
		struct endpoint *ends = i ? late : early;

		for (unsigned side = 0; side < 2; side++)
			conn_bring_up(&s.bed.above, &conn, side, &ends[side], &ends[!side]);
		receive_messages(&s);
		carry_message(&s, ends);
	}
	bed_close(&s.bed);
}

/* --- Events of the limit. */

static void test_limit_is_told_once(void **state)
{
	static struct srq_bed s;

	(void)state;
	for (uint32_t limit = 2; limit < RECEIVES; limit++) {
		open_srq_bed(&s, 0);
		assert_int_equal(urxe_srq_set_limit(s.srq, limit), 0);
		send_until(&s, 20);
		take_over_srq(&s);
		s.bed.wire->link[0].filter = NULL;
		settle(&s.bed);
		expect_all(&s);
		expect_rest_in_order(&s);
		assert_int_equal(async_events(&s, URXE_ASYNC_SRQ_LIMIT_REACHED), 1);
		assert_int_equal(urxe_srq_limit(s.srq), 0);
		bed_close(&s.bed);
	}
}

/* Opens a pair of which side 1 has an HCA and takes its requests from an SRQ, `queue`. */
static void open_with_srq(struct bed *bed, struct node_queue *queue, enum urxe_qp_type type)
{
	const struct urxe_rq_attr attr = {.ctx = queue, .pd = NODE_PD, .max_wr = 8, .max_sge = 2};
	struct conn_attr conn = conn_default(type);

	bed_open_sides(bed, false, true, &(struct pair_attr){.seed = 1});
	queue->node = bed->e.b;
	assert_int_equal(urxe_srq_create(device(bed, 1), &attr, &conn.srq[1]), 0);
	conn_open(&bed->above, &conn, bed->e.end);
}

/* The queue pair gets its rights when it leaves RESET, and then nothing moves: drivers that return
 * PSNs of the modification look alike. */
static void test_idle_qp_with_rights_refuses_a_take_over(void **state)
{
	struct node_queue queue = {0};
	struct urxe_offload_refusal refusal;
	static struct bed bed;

	(void)state;
	open_with_srq(&bed, &queue, URXE_QPT_RC);
	assert_int_equal(try_take_over(&bed, 1, &refusal), -EOPNOTSUPP);
	assert_int_equal(refusal.reason, URXE_OFFLOAD_UNPROVEN_PSN);
	post_recv(&bed.e.end[1], 1, TO, SLOT);
	post_send(&bed.e, 0, &(struct post){.opcode = URXE_WR_SEND});
	settle(&bed);
	take_over(&bed, 1);
	bed_close(&bed);
}

/* --- Datagrams. */

static void send_datagram(struct bed *bed, uint32_t length)
{
	const struct urxe_path path = conn_path(URXE_NET_IPV4, bed->e.b);
	const struct urxe_seg seg = node_seg(bed->e.a, 0, length);
	const struct urxe_send_wr wr = {.opcode = URXE_WR_SEND,
					.segs = &seg,
					.n_segs = 1,
					.path = &path,
					.remote_qpn = bed->e.end[1].qpn,
					.remote_qkey = conn_default(URXE_QPT_UD).qkey};

	assert_int_equal(urxe_post_send(bed->e.end[0].qp, &wr), 0);
}

static void test_datagrams_use_the_requests_in_order(void **state)
{
	struct node_queue queue = {0};
	struct urxe_offload_refusal refusal;
	static struct bed bed;

	(void)state;
	open_with_srq(&bed, &queue, URXE_QPT_UD);
	for (uint32_t i = 0; i < 6; i++)
		post_recv(&bed.e.end[1], i, TO + i * SLOT, SLOT);
	for (uint32_t i = 0; i < 6; i++) {
		send_datagram(&bed, 100 + i);
		settle(&bed);
		assert_int_equal(expect_wc(&bed.e.b->recv_cq, i, URXE_WC_SUCCESS).byte_len,
				 100 + i + URXE_GRH_LEN);
		if (i == 2)
			take_over(&bed, 1);
	}
	assert_int_equal(urxe_offload_take_over(device(&bed, 1), 1, true, &refusal), 0);
	bed_close(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take_over_at_each_moment_loses_no_message_and_no_request),
		cmocka_unit_test(test_unknown_send_in_progress_goes_on),
		cmocka_unit_test(test_abandoned_attempt_after_the_stop_runs_in_software),
		cmocka_unit_test(test_requests_of_the_time_between_are_the_last),
		cmocka_unit_test(test_failed_qp_flushes_its_request_and_tells_its_end),
		cmocka_unit_test(test_qp_that_is_reset_while_it_stops_keeps_no_request),
		cmocka_unit_test(test_qp_that_leaves_reset_while_the_srq_stops_is_software),
		cmocka_unit_test(test_qp_that_stops_in_init_expects_the_psn_of_its_connection),
		cmocka_unit_test(test_late_completion_of_a_destroyed_qp_tells_the_owner),
		cmocka_unit_test(test_srq_without_qps_is_taken_at_once),
		cmocka_unit_test(test_qp_that_is_created_during_an_attempt_goes_on_in_software),
		cmocka_unit_test(test_limit_is_told_once),
		cmocka_unit_test(test_idle_qp_with_rights_refuses_a_take_over),
		cmocka_unit_test(test_datagrams_use_the_requests_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
