/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queries of the engine's objects. */
#include <string.h>

#include "engine.h"

#define LENGTH 20000 /* several packets */

static bool lose_all(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return false;
}

static struct urxe_qp_load load_of(const struct endpoint *end)
{
	struct urxe_qp_load load;

	urxe_qp_load(end->qp, &load);
	return load;
}

/* A device with one QP: each counter of the device equals the QP's. */
static void assert_all_of_one(struct endpoint *end)
{
	assert_memory_equal(urxe_qp_counters(end->qp), urxe_dev_counters(end->node->dev),
			    sizeof(struct urxe_counters));
}

static void test_load_counts_requests(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_qp_load load;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_recv(&e.end[1], 1, 0, LENGTH);
	post_recv(&e.end[1], 2, 0, LENGTH);
	assert_int_equal(load_of(&e.end[1]).receives, 2);
	e.pair->link[0].filter = lose_all;
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_SEND, .length = LENGTH});
	post_send(&e, 0, &(struct post){.wr_id = 2, .opcode = URXE_WR_SEND, .length = 1});
	load = load_of(&e.end[0]);
	assert_int_equal(load.sends, 2);
	assert_int_equal(load.packets, 0);
	assert_int_equal(load.retries, conn.retry_cnt);
	assert_int_equal(load.rnr_retries, conn.rnr_retry);
	pair_step(e.pair);
	assert_true(load_of(&e.end[0]).packets > 1);

	e.pair->link[0].filter = NULL;
	pair_settle(e.pair);
	load = load_of(&e.end[0]);
	assert_int_equal(load.sends + load.packets, 0);
	assert_int_equal(load_of(&e.end[1]).receives, 0);
	engine_close(&e);
}

/* The number of packets that a QP sends before it waits for an acknowledgement. */
static uint32_t window_of(enum urxe_mtu path_mtu, bool same_host)
{
	const struct pair_attr attr = {.seed = 1, .mem_size = 4u << 20};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint peer;
	uint32_t packets;
	struct urxe_frame frame;
	struct engine e = {.pair = pair_create(&attr)};

	conn.path_mtu = (uint8_t)path_mtu;
	conn_create(e.pair, &conn, 0, &e.end[0]);
	peer = (struct endpoint){.node = e.pair->node[!same_host], .qpn = 99};
	conn_bring_up(e.pair, &conn, 0, &e.end[0], &peer);
	post_send(
		&e, 0,
		&(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = attr.mem_size});
	do
		frame = (struct urxe_frame){.data = e.pair->frames, .room = e.pair->frame_room};
	while (urxe_output(e.end[0].node->dev, e.pair->now, &frame, 1));
	packets = load_of(&e.end[0]).packets;
	pair_destroy(e.pair);
	return packets;
}

/* A network may lose packets, so the window is smaller than within one host. */
static void test_window_is_smaller_on_a_network(void **state)
{
	(void)state;
	assert_int_equal(window_of(URXE_MTU_4096, false), 128);
	assert_int_equal(window_of(URXE_MTU_1024, false), 256);
	assert_int_equal(window_of(URXE_MTU_4096, true), 448);
	assert_int_equal(window_of(URXE_MTU_1024, true), 448);
}

static void test_counters_of_a_lossy_connection(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	e.pair->link[0].faults.drop = 0.1;
	e.pair->link[1].faults.duplicate = 0.1;
	for (unsigned i = 0; i < 20; i++)
		post_send(&e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = i & 1 ? URXE_WR_RDMA_READ : URXE_WR_RDMA_WRITE,
					 .length = LENGTH});
	pair_settle(e.pair);
	assert_true(urxe_qp_counters(e.end[0].qp)->event[URXE_EVENT_RETRANSMIT] > 0);
	assert_all_of_one(&e.end[0]);
	assert_all_of_one(&e.end[1]);
	engine_close(&e);
}

static void test_counters_of_an_error(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 9, .rkey = ~0u});
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 9});
	pair_settle(e.pair);
	assert_int_equal(urxe_qp_counters(e.end[0].qp)->event[URXE_EVENT_WC_REM_ACCESS], 1);
	assert_int_equal(urxe_qp_counters(e.end[0].qp)->event[URXE_EVENT_WC_WR_FLUSH], 1);
	assert_int_equal(urxe_qp_counters(e.end[1].qp)->event[URXE_EVENT_NAK_ACCESS_SENT], 1);
	assert_all_of_one(&e.end[0]);
	assert_all_of_one(&e.end[1]);
	engine_close(&e);
}

/* Two QPs of a device: each has its own counters, and the device has the sums. */
static void test_counters_add_up(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	const struct urxe_counters *one, *other;
	struct endpoint second[2];
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	conn_open(e.pair, &conn, second);
	one = urxe_qp_counters(e.end[0].qp);
	other = urxe_qp_counters(second[0].qp);
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = LENGTH});
	pair_settle(e.pair);
	assert_true(one->event[URXE_EVENT_TX_BYTES] > LENGTH);
	assert_int_equal(other->event[URXE_EVENT_TX_BYTES], 0);
	e.end[0] = second[0];
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = LENGTH});
	pair_settle(e.pair);
	for (int i = 0; i < URXE_EVENT_COUNT; i++)
		assert_int_equal(one->event[i] + other->event[i], events(e.a, i));
	assert_int_equal(one->event[URXE_EVENT_TX_BYTES], other->event[URXE_EVENT_TX_BYTES]);
	engine_close(&e);
}

static void test_region_query_returns_attributes(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	const struct urxe_extent *none = NULL;
	struct urxe_mr_attr attr;
	struct urxe_mr *mr;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	mr = node_reg(e.a, NODE_PD + 1, URXE_ACCESS_REMOTE_READ, 4096, 123);
	urxe_mr_query(mr, &attr);
	assert_int_equal(attr.pd, NODE_PD + 1);
	assert_int_equal(attr.access, URXE_ACCESS_REMOTE_READ);
	assert_int_equal(attr.key, urxe_mr_key(mr));
	assert_int_equal(attr.length, 123);
	assert_int_equal(attr.iova, node_seg(e.a, 4096, 123).addr);
	assert_ptr_equal(attr.extents, none);
	assert_int_equal(attr.n_extents, 0);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_counts_requests),
		cmocka_unit_test(test_window_is_smaller_on_a_network),
		cmocka_unit_test(test_counters_of_a_lossy_connection),
		cmocka_unit_test(test_counters_of_an_error),
		cmocka_unit_test(test_counters_add_up),
		cmocka_unit_test(test_region_query_returns_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
