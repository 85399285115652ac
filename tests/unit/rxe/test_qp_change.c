/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Effects of a changed attribute on a QP in use (IBA 11.2.5.2): access, RNR timer, timeouts, the
 * path; and sends that wait in SQD.
 */
#include <errno.h>
#include <string.h>

#include "by_hand.h"

#define M(name)   URXE_QP_##name
#define FRAME_MAX 5000

static void change(struct engine *e, unsigned side, uint8_t state, const struct urxe_qp_attr *attr,
		   uint32_t mask)
{
	struct urxe_qp_attr wanted = *attr;

	wanted.state = state;
	assert_int_equal(urxe_qp_modify(e->end[side].qp, e->pair->now, &wanted, mask | M(STATE)),
			 0);
}

static void go(struct engine *e, unsigned side, uint8_t state)
{
	change(e, side, state, &(struct urxe_qp_attr){0}, 0);
}

/* RTS to RTS: a right is removed between two requests, and granted again for the next QP. */
static void test_access_rights_change_in_rts(void **state)
{
	static const struct {
		uint32_t opcode, access;
	} rows[] = {{URXE_WR_RDMA_WRITE, URXE_ACCESS_REMOTE_WRITE},
		    {URXE_WR_RDMA_READ, URXE_ACCESS_REMOTE_READ},
		    {URXE_WR_FETCH_ADD, URXE_ACCESS_REMOTE_ATOMIC}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_qp_attr attr = {.access = conn.access};
		struct engine e;

		engine_open(&e, &conn);
		attr.access &= ~rows[i].access;
		for (uint64_t id = 0; id < 2; id++) {
			post_send(
				&e, 0,
				&(struct post){.wr_id = id, .opcode = rows[i].opcode, .length = 8});
			pair_settle(e.pair);
			expect_wc(&e.a->send_cq, id,
				  id ? URXE_WC_REM_INV_REQ_ERR : URXE_WC_SUCCESS);
			if (!id)
				change(&e, 1, URXE_QPS_RTS, &attr, M(ACCESS_FLAGS));
		}
		engine_close(&e);
	}
}

/* The RNR NAK after the change names the new timer. */
static void test_new_min_rnr_timer_is_in_the_next_nak(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	conn.min_rnr_timer = 5;
	engine_open(&e, &conn);
	p = from_peer(&e, &conn, 0x04);
	inject(&e, &p);
	assert_int_equal(answers(&e).syndrome, 0x20 | 5);
	change(&e, 1, URXE_QPS_RTS, &(struct urxe_qp_attr){.min_rnr_timer = 30}, M(MIN_RNR_TIMER));
	inject(&e, &p);
	assert_int_equal(answers(&e).syndrome, 0x20 | 30);
	engine_close(&e);
}

static bool lose_all(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return false;
}

/* In SQD: a shorter timeout and fewer repetitions than at the connection. */
static void test_timeout_and_retries_change_in_sqd(void **state)
{
	const struct urxe_qp_attr attr = {.timeout = 3, .retry_cnt = 1};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint64_t start, least = 2 * (4096ull << 3);
	struct engine e;

	(void)state;
	conn.timeout = 14;
	conn.retry_cnt = 7;
	engine_open(&e, &conn);
	go(&e, 0, URXE_QPS_SQD);
	change(&e, 0, URXE_QPS_SQD, &attr, M(TIMEOUT) | M(RETRY_CNT));
	go(&e, 0, URXE_QPS_RTS);
	e.pair->link[0].filter = lose_all;
	start = e.pair->now;
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = 8});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_RETRY_EXC_ERR);
	assert_in_range(e.pair->now - start, least, 4 * least);
	assert_int_equal(events(e.a, URXE_EVENT_TIMEOUT), 2);
	engine_close(&e);
}

/* RNR repetitions count against the last value set. */
static void test_rnr_retry_change_applies(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	go(&e, 0, URXE_QPS_SQD);
	change(&e, 0, URXE_QPS_SQD, &(struct urxe_qp_attr){.rnr_retry = 2}, M(RNR_RETRY));
	go(&e, 0, URXE_QPS_RTS);
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_SEND, .length = 8});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(events(e.a, URXE_EVENT_NAK_RNR_RCVD), 3);
	engine_close(&e);
}

static bool keep_last(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)now;
	assert_int_equal(urxe_packet_parse(arg, data, len), URXE_DROP_NONE);
	return true;
}

/* The peer gets another address and MAC address, and both sides change their path. */
static void test_path_changes_in_sqd(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet last;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	e.pair->link[0].filter = keep_last;
	e.pair->link[0].filter_arg = &last;
	for (unsigned i = 0; i < 2; i++) {
		struct urxe_qp_attr attr = {.path = conn_path(URXE_NET_IPV6, e.pair->node[!i])};

		attr.path.traffic_class = 0x20;
		memset(attr.path.dmac, 0x42, 6);
		go(&e, i, URXE_QPS_SQD);
		change(&e, i, URXE_QPS_SQD, &attr, M(AV));
		go(&e, i, URXE_QPS_RTS);
	}
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = 8});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(last.net, URXE_NET_IPV6);
	assert_int_equal(last.traffic_class & 0xfc, 0x20);
	assert_int_equal(last.dmac[0], 0x42);
	assert_int_equal(all_drops(e.a) + all_drops(e.b), 0);
	engine_close(&e);
}

/*
 * For every QP type: a request posted in SQD waits, the receive side works, and the request starts
 * in RTS.
 */
static void test_requests_wait_in_sqd(void **state)
{
	(void)state;
	for (uint8_t type = URXE_QPT_RC; type <= URXE_QPT_UD; type++) {
		struct conn_attr conn = conn_default(type);
		struct urxe_qp_attr sqd = {.en_sqd_async_notify = true};
		struct urxe_path path;
		struct urxe_send_wr wr = {.wr_id = 5, .opcode = URXE_WR_SEND};
		struct engine e;

		engine_open(&e, &conn);
		path = conn_path(conn.net, e.b);
		wr.path = type == URXE_QPT_UD ? &path : NULL;
		wr.remote_qpn = e.end[1].qpn;
		wr.remote_qkey = conn.qkey;
		post_recv(&e.end[1], 6, 0, 64);
		change(&e, 0, URXE_QPS_SQD, &sqd, M(EN_SQD_ASYNC_NOTIFY));
		assert_int_equal(e.a->async[URXE_ASYNC_SQ_DRAINED], 1); /* it was empty */
		assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
		pair_settle(e.pair);
		expect_none(&e.a->send_cq);
		expect_none(&e.b->recv_cq);
		go(&e, 0, URXE_QPS_RTS);
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, 5, URXE_WC_SUCCESS);
		expect_wc(&e.b->recv_cq, 6, URXE_WC_SUCCESS);
		assert_int_equal(e.a->async[URXE_ASYNC_SQ_DRAINED], 1);
		engine_close(&e);
	}
}

/*
 * A datagram that cannot be sent moves its QP to SQE; the QP still receives, and sends again after
 * the return to RTS.
 */
static void test_datagram_error_leads_to_sqe(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct urxe_path path;
	struct urxe_send_wr wr = {.opcode = URXE_WR_SEND, .path = &path};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	path = conn_path(conn.net, e.b);
	path.sgid_index = URXE_MAX_GIDS - 1; /* an empty entry */
	wr.remote_qpn = e.end[1].qpn;
	wr.remote_qkey = conn.qkey;
	for (wr.wr_id = 0; wr.wr_id < 3; wr.wr_id++)
		assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_LOC_QP_OP_ERR);
	expect_wc(&e.a->send_cq, 1, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&e.a->send_cq, 2, URXE_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(&e.end[0]), URXE_QPS_SQE);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	expect_wc(&e.a->send_cq, 3, URXE_WC_WR_FLUSH_ERR);
	change(&e, 0, URXE_QPS_RTS, &(struct urxe_qp_attr){.cur_state = URXE_QPS_SQE},
	       M(CUR_STATE));
	path.sgid_index = NODE_SGID(conn.net);
	post_recv(&e.end[1], 7, 0, 64);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 3, URXE_WC_SUCCESS);
	expect_wc(&e.b->recv_cq, 7, URXE_WC_SUCCESS);
	engine_close(&e);
}

/* A datagram may be as long as the link's MTU is now; a connection keeps its path MTU. */
static void test_datagrams_follow_the_link_mtu(void **state)
{
	struct engine e;

	(void)state;
	for (int ud = 0; ud < 2; ud++) {
		struct conn_attr conn = conn_default(ud ? URXE_QPT_UD : URXE_QPT_RC);
		struct urxe_path path;
		struct urxe_seg seg = {.length = 2048};
		struct urxe_send_wr wr = {
			.opcode = URXE_WR_SEND, .path = &path, .n_segs = 1, .segs = &seg};

		conn.path_mtu = URXE_MTU_2048;
		engine_open(&e, &conn);
		path = conn_path(conn.net, e.b);
		wr.remote_qpn = e.end[1].qpn;
		wr.remote_qkey = conn.qkey;
		seg.lkey = e.a->key;
		seg.addr = e.a->iova;
		assert_int_equal(urxe_link_mtu_set(e.a->dev, 1500), 0);
		assert_int_equal(urxe_post_send(e.end[0].qp, &wr), ud ? -EMSGSIZE : 0);
		assert_int_equal(urxe_link_mtu_set(e.a->dev, 4200), 0);
		assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
		engine_close(&e);
	}
}

/* A datagram that was posted before the link's MTU shrank is sent whole, as RC's packets are. */
static void test_a_queued_datagram_is_not_cut(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct urxe_path path;
	struct urxe_send_wr wr = {.wr_id = 1, .opcode = URXE_WR_SEND, .path = &path, .n_segs = 1};
	struct urxe_seg seg;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	path = conn_path(conn.net, e.b);
	seg = node_seg(e.a, 0, 2048);
	wr.segs = &seg;
	wr.remote_qpn = e.end[1].qpn;
	wr.remote_qkey = conn.qkey;
	rand_fill(&(struct rand){1}, e.a->mem, seg.length);
	post_recv(&e.end[1], 2, 0, URXE_GRH_LEN + seg.length);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	assert_int_equal(urxe_link_mtu_set(e.a->dev, 1500), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(expect_wc(&e.b->recv_cq, 2, URXE_WC_SUCCESS).byte_len,
			 URXE_GRH_LEN + seg.length);
	assert_memory_equal(e.b->mem + URXE_GRH_LEN, e.a->mem, seg.length);
	engine_close(&e);
}

/* Node 0 sends one packet. */
static struct urxe_packet next_packet(struct engine *e)
{
	static uint8_t data[FRAME_MAX];
	struct urxe_frame frame = {data, 0, sizeof(data)};
	struct urxe_packet p;

	assert_int_equal(urxe_output(e->a->dev, e->pair->now, &frame, 1), 1);
	assert_int_equal(urxe_packet_parse(&p, data, frame.len), URXE_DROP_NONE);
	return p;
}

/* Requests follow the message in progress, but they wait, so the peer has no later packet to
 * answer. */
static void test_last_packet_before_a_drain_requests_an_ack(void **state)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_SQD};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint8_t room[FRAME_MAX];
	struct urxe_frame frame = {room, 0, sizeof(room)};
	struct engine e;

	(void)state;
	conn.sq_sig_all = false;
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 2; i++)
		post_send(&e, 0,
			  &(struct post){.opcode = URXE_WR_RDMA_WRITE,
					 .length = 2 * (128u << conn.path_mtu)});
	assert_false(next_packet(&e).ack_req);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, e.pair->now, &attr, URXE_QP_STATE), 0);
	assert_true(next_packet(&e).ack_req);
	assert_int_equal(urxe_output(e.a->dev, e.pair->now, &frame, 1), 0);
	engine_close(&e);
}

/* The last packet has left before, without AckReq: the requester repeats it with AckReq at once. */
static void test_drain_requests_the_ack_of_a_message_that_was_sent(void **state)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_SQD};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint8_t room[FRAME_MAX];
	struct urxe_frame frame = {room, 0, sizeof(room)};
	struct urxe_packet p, again;
	struct engine e;

	(void)state;
	conn.sq_sig_all = false;
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 2; i++)
		post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
	p = next_packet(&e);
	assert_false(p.ack_req);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, e.pair->now, &attr, URXE_QP_STATE), 0);
	again = next_packet(&e);
	assert_int_equal(again.psn, p.psn);
	assert_true(again.ack_req);
	assert_int_equal(urxe_output(e.a->dev, e.pair->now, &frame, 1), 0);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_access_rights_change_in_rts),
		cmocka_unit_test(test_new_min_rnr_timer_is_in_the_next_nak),
		cmocka_unit_test(test_timeout_and_retries_change_in_sqd),
		cmocka_unit_test(test_rnr_retry_change_applies),
		cmocka_unit_test(test_path_changes_in_sqd),
		cmocka_unit_test(test_requests_wait_in_sqd),
		cmocka_unit_test(test_last_packet_before_a_drain_requests_an_ack),
		cmocka_unit_test(test_drain_requests_the_ack_of_a_message_that_was_sent),
		cmocka_unit_test(test_datagram_error_leads_to_sqe),
		cmocka_unit_test(test_datagrams_follow_the_link_mtu),
		cmocka_unit_test(test_a_queued_datagram_is_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
