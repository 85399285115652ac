/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The window that queue pairs with peers on another host share (docs/recovery.md). */
#include <string.h>

#include "engine.h"
#include "move.h"

#define CONNECTIONS 64
#define MESSAGE     (256 * 1024)
#define SHARED      512 /* packets of 1 KiB that all queue pairs may have unacknowledged */
#define ONE         256 /* and one queue pair alone */
#define LOCAL       448 /* and one queue pair whose peer is on the same host */

struct crowd {
	struct engine e;
	struct endpoint end[CONNECTIONS][2];
	uint32_t n;
};

static void crowd_open(struct crowd *c, uint32_t n, bool same_mac)
{
	const struct pair_attr attr = {.seed = 1, .mem_size = MESSAGE, .same_mac = same_mac};
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	*c = (struct crowd){.n = n, .e.pair = pair_create(&attr)};
	c->e.a = c->e.pair->node[0];
	c->e.b = c->e.pair->node[1];
	conn.path_mtu = URXE_MTU_1024;
	conn.retry_cnt = 7;
	for (uint32_t i = 0; i < n; i++)
		conn_open(c->e.pair, &conn, c->end[i]);
}

static void post(struct crowd *c, uint32_t i, uint32_t opcode)
{
	memcpy(c->e.end, c->end[i], sizeof(c->e.end));
	post_send(&c->e, 0, &(struct post){.wr_id = i, .opcode = opcode, .length = MESSAGE});
}

static void post_all(struct crowd *c, uint32_t opcode)
{
	for (uint32_t i = 0; i < c->n; i++)
		post(c, i, opcode);
}

/* Takes all frames that the first node sends without an acknowledgement, and loses them. */
static void lose_output(struct crowd *c)
{
	struct urxe_frame frame;

	do
		frame = (struct urxe_frame){.data = c->e.pair->frames,
					    .room = c->e.pair->frame_room};
	while (urxe_output(c->e.a->dev, c->e.pair->now, &frame, 1));
}

static uint32_t packets_of(const struct crowd *c, uint32_t i)
{
	struct urxe_qp_load load;

	urxe_qp_load(c->end[i][0].qp, &load);
	return load.packets;
}

static uint32_t all_packets(const struct crowd *c)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < c->n; i++)
		sum += packets_of(c, i);
	return sum;
}

static void expect_all(struct crowd *c)
{
	struct urxe_wc wc;

	pair_settle(c->e.pair);
	for (uint32_t i = 0; i < c->n; i++) {
		assert_true(node_poll(&c->e.a->send_cq, &wc));
		assert_int_equal(wc.status, URXE_WC_SUCCESS);
	}
}

/* Two queue pairs have the whole window each; more queue pairs share as much. */
static void test_queue_pairs_share_windows(void **state)
{
	static const struct {
		uint32_t n, each;
	} rows[] = {{1, ONE}, {2, ONE}, {4, SHARED / 4}, {16, SHARED / 16}, {64, SHARED / 64}};
	struct crowd c;

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		crowd_open(&c, rows[k].n, false);
		post_all(&c, URXE_WR_RDMA_WRITE);
		lose_output(&c);
		for (uint32_t i = 0; i < c.n; i++)
			assert_int_equal(packets_of(&c, i), rows[k].each);
		expect_all(&c);
		pair_destroy(c.e.pair);
	}
}

/* In SQD the path of a queue pair changes from this host to another one: its window becomes
 * smaller.
 */
static void test_path_to_another_host_has_a_smaller_window(void **state)
{
	struct urxe_qp_attr attr = {.state = URXE_QPS_SQD};
	struct crowd c;

	(void)state;
	crowd_open(&c, 1, true);
	assert_int_equal(urxe_qp_modify(c.end[0][0].qp, 0, &attr, URXE_QP_STATE), 0);
	attr.path = conn_path(URXE_NET_IPV4, c.e.b);
	attr.path.dmac[5] ^= 1;
	assert_int_equal(urxe_qp_modify(c.end[0][0].qp, 0, &attr, URXE_QP_STATE | URXE_QP_AV), 0);
	attr.state = URXE_QPS_RTS;
	assert_int_equal(urxe_qp_modify(c.end[0][0].qp, 0, &attr, URXE_QP_STATE), 0);
	post(&c, 0, URXE_WR_RDMA_WRITE);
	post(&c, 0, URXE_WR_RDMA_WRITE);
	lose_output(&c);
	assert_int_equal(packets_of(&c, 0), ONE);
	pair_destroy(c.e.pair);
}

static void test_queue_pairs_within_a_host_share_nothing(void **state)
{
	struct crowd c;

	(void)state;
	crowd_open(&c, 4, true);
	post_all(&c, URXE_WR_RDMA_WRITE);
	lose_output(&c);
	for (uint32_t i = 0; i < c.n; i++)
		assert_true(packets_of(&c, i) >= ONE);
	pair_destroy(c.e.pair);
}

/*
 * A share that becomes smaller while a queue pair sends stops it only behind a packet that asks for
 * an acknowledgement. Else the queue pair would wait until its probe.
 */
static void test_a_smaller_share_needs_no_probe(void **state)
{
	static const uint32_t opcodes[] = {URXE_WR_RDMA_WRITE, URXE_WR_RDMA_READ};
	struct crowd c;

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		crowd_open(&c, CONNECTIONS, false);
		post_all(&c, opcodes[k]);
		expect_all(&c);
		assert_int_equal(events(c.e.a, URXE_EVENT_PROBE), 0);
		assert_int_equal(events(c.e.a, URXE_EVENT_TIMEOUT), 0);
		assert_int_equal(events(c.e.a, URXE_EVENT_RETRANSMIT), 0);
		pair_destroy(c.e.pair);
	}
}

static void reset(struct endpoint *end)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_RESET};

	assert_int_equal(urxe_qp_modify(end->qp, 0, &attr, URXE_QP_STATE), 0);
}

static void set_error(struct endpoint *end)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};

	assert_int_equal(urxe_qp_modify(end->qp, 0, &attr, URXE_QP_STATE), 0);
}

static void destroy(struct endpoint *end)
{
	urxe_qp_destroy(end->qp);
}

/* Queue pairs that are reset, in error or destroyed leave their share to the last one. */
static void test_ended_queue_pairs_leave_their_share(void **state)
{
	static void (*const ends[])(struct endpoint * end) = {reset, set_error, destroy};
	struct crowd c;

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		crowd_open(&c, CONNECTIONS, false);
		post_all(&c, URXE_WR_RDMA_WRITE);
		lose_output(&c);
		for (uint32_t i = 1; i < c.n; i++)
			ends[k](&c.end[i][0]);
		post(&c, 0, URXE_WR_RDMA_WRITE);
		lose_output(&c);
		assert_int_equal(packets_of(&c, 0), ONE);
		pair_destroy(c.e.pair);
	}
}

static void expect_whole_window_of_another(struct crowd *c)
{
	post(c, c->n - 1, URXE_WR_RDMA_WRITE);
	lose_output(c);
	assert_int_equal(packets_of(c, c->n - 1), ONE);
}

/* The peer has no receive request: the queue pairs wait after an RNR NAK, with one packet each. */
static void test_refused_queue_pairs_have_no_share(void **state)
{
	struct crowd c;

	(void)state;
	crowd_open(&c, 9, false);
	for (uint32_t i = 0; i < 8; i++)
		post(&c, i, URXE_WR_SEND);
	while (events(c.e.a, URXE_EVENT_NAK_RNR_RCVD) < 8)
		assert_true(pair_run(c.e.pair, c.e.pair->now + 1000) != PAIR_IDLE);
	expect_whole_window_of_another(&c);
	pair_destroy(c.e.pair);
}

static bool lose_all(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return false;
}

/* Queue pairs to a host that has gone must not slow down the others until they end in an error. */
static void test_queue_pairs_of_a_silent_peer_have_no_share(void **state)
{
	struct crowd c;

	(void)state;
	crowd_open(&c, 9, false);
	c.e.pair->link[0].filter = lose_all;
	for (uint32_t i = 0; i < 8; i++)
		post(&c, i, URXE_WR_RDMA_WRITE);
	while (events(c.e.a, URXE_EVENT_TIMEOUT) < 4 * 8)
		assert_true(pair_run(c.e.pair, c.e.pair->now + 100000) != PAIR_IDLE);
	expect_whole_window_of_another(&c);
	pair_destroy(c.e.pair);
}

/* A restored device knows how many of its queue pairs wait. */
static void test_a_restored_device_shares_windows(void **state)
{
	struct endpoint *ends[8];
	struct crowd c;

	(void)state;
	crowd_open(&c, 8, false);
	for (uint32_t i = 0; i < 4; i++)
		post(&c, i, URXE_WR_RDMA_WRITE);
	lose_output(&c);
	assert_int_equal(all_packets(&c), SHARED);
	for (uint32_t i = 0; i < 8; i++)
		ends[i] = c.end[i];
	move_node(c.e.pair, 0, ends, 8);
	for (uint32_t i = 4; i < 8; i++)
		post(&c, i, URXE_WR_RDMA_WRITE);
	lose_output(&c);
	for (uint32_t i = 4; i < 8; i++)
		assert_int_equal(packets_of(&c, i), SHARED / 8);
	expect_all(&c);
	pair_destroy(c.e.pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue_pairs_share_windows),
		cmocka_unit_test(test_path_to_another_host_has_a_smaller_window),
		cmocka_unit_test(test_queue_pairs_within_a_host_share_nothing),
		cmocka_unit_test(test_a_smaller_share_needs_no_probe),
		cmocka_unit_test(test_ended_queue_pairs_leave_their_share),
		cmocka_unit_test(test_refused_queue_pairs_have_no_share),
		cmocka_unit_test(test_queue_pairs_of_a_silent_peer_have_no_share),
		cmocka_unit_test(test_a_restored_device_shares_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
