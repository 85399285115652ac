/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attributes out of range, full tables, and hash collisions in them. */
#include <errno.h>

#include "by_hand.h"
#include "rand.h"

static void test_device_attributes_are_checked(void **state)
{
	struct urxe_ops ops = {0};
	struct urxe_dev_attr attr = {.ops = &ops, .mtu = 200};
	struct urxe_gid gid = craft_gid(URXE_NET_IPV4, 1);
	struct urxe_dev *dev;

	(void)state;
	assert_int_equal(urxe_max_path_mtu(200), 0);
	assert_int_equal(urxe_dev_create(&attr, &dev), -EINVAL);
	attr.mtu = 1500;
	attr.max_packets = (1u << 22) + 1;
	assert_int_equal(urxe_dev_create(&attr, &dev), -EINVAL);
	attr.max_packets = 1u << 22;
	assert_int_equal(urxe_dev_create(&attr, &dev), 0);
	assert_int_equal(urxe_gid_set(dev, URXE_MAX_GIDS - 1, &gid, false), 0);
	assert_int_equal(urxe_gid_set(dev, URXE_MAX_GIDS, &gid, false), -EINVAL);
	urxe_dev_destroy(dev);
}

static void test_queue_sizes_are_checked(void **state)
{
	static const struct {
		uint32_t max_wr, max_sge;
		int rc;
	} rows[] = {
		{0, 0, 0},
		{URXE_MAX_WR, 1, 0},
		{1, URXE_MAX_SGE, 0},
		{URXE_MAX_WR + 1, 1, -EINVAL},
		{1, URXE_MAX_SGE + 1, -EINVAL},
		{UINT32_MAX, UINT32_MAX, -EINVAL},
	};
	struct pair *pair = pair_create(&(struct pair_attr){0});

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct urxe_rq_attr attr = {.max_wr = rows[i].max_wr,
						  .max_sge = rows[i].max_sge};
		struct urxe_rq *srq;

		assert_int_equal(urxe_srq_create(pair->node[0]->dev, &attr, &srq), rows[i].rc);
		if (!rows[i].rc)
			assert_int_equal(urxe_srq_destroy(srq), 0);
	}
	pair_destroy(pair);
}

/* The lengths of the extents add up to the region's length only modulo 2^64. */
static void test_extent_lengths_must_not_wrap(void **state)
{
	struct pair *pair = pair_create(&(struct pair_attr){0});
	uint8_t byte;
	const struct urxe_extent extents[] = {{&byte, UINT64_MAX}, {&byte, 2}};
	const struct urxe_mr_attr attr = {.length = 1, .extents = extents, .n_extents = 2};
	struct urxe_mr *mr;

	(void)state;
	assert_int_equal(urxe_mr_reg(pair->node[0]->dev, &attr, &mr), -EINVAL);
	pair_destroy(pair);
}

/* A lease of two QPNs; the caller dictates one of them. */
static void test_leased_qpns_can_be_dictated(void **state)
{
	struct urxe_ops ops = {0};
	const struct urxe_dev_attr attr = {
		.ops = &ops, .mtu = 1500, .qpn_first = 0x100, .qpn_count = 2};
	struct urxe_qp_init init = {.type = URXE_QPT_RC, .qpn = 0x100};
	struct urxe_qp *qp[3];
	struct urxe_dev *dev;
	struct urxe_cq *cq;

	(void)state;
	assert_int_equal(urxe_dev_create(&attr, &dev), 0);
	assert_int_equal(urxe_cq_create(dev, NULL, &cq), 0);
	init.send_cq = init.recv_cq = cq;
	assert_int_equal(urxe_qp_create(dev, &init, &qp[0]), 0);
	init.qpn = 0;
	assert_int_equal(urxe_qp_create(dev, &init, &qp[1]), 0);
	assert_int_equal(urxe_qp_qpn(qp[1]), 0x101);
	assert_int_equal(urxe_qp_create(dev, &init, &qp[2]), -ENOSPC);
	urxe_qp_destroy(qp[0]);
	assert_int_equal(urxe_qp_create(dev, &init, &qp[2]), 0);
	assert_int_equal(urxe_qp_qpn(qp[2]), 0x100);
	urxe_dev_destroy(dev);
}

#define KEYS 400

/* Keys with the same place in the hash table come and go in any order; the table loses none. */
static void test_key_table_survives_collisions(void **state)
{
	struct pair *pair = pair_create(&(struct pair_attr){0});
	struct urxe_mr *mrs[KEYS] = {0};
	struct rand rand = {3};
	uint8_t byte;
	const struct urxe_extent extent = {&byte, 1};

	(void)state;
	for (unsigned n = 0; n < 20000; n++) {
		uint32_t i = rand_below(&rand, KEYS);
		/*
		 * Neighbouring keys, and keys whose products with the hash factor are close to each
		 * other.
		 */
		const struct urxe_mr_attr attr = {.length = 1,
						  .extents = &extent,
						  .n_extents = 1,
						  .key = i % 2 ? 0x10000 + i : 0x9e3779b1u * i + 1};
		struct urxe_mr *mr;

		if (mrs[i]) {
			assert_int_equal(urxe_mr_key(mrs[i]), attr.key);
			assert_int_equal(urxe_mr_reg(pair->node[0]->dev, &attr, &mr), -EEXIST);
			assert_int_equal(urxe_mr_dereg(mrs[i]), 0);
			mrs[i] = NULL;
		} else {
			assert_int_equal(urxe_mr_reg(pair->node[0]->dev, &attr, &mrs[i]), 0);
		}
	}
	pair_destroy(pair);
}

static bool lose(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return false;
}

#define QPS 24

/* The test removes some of many timers: the others keep their order. */
static void timers_in_order(uint64_t seed)
{
	struct pair *pair =
		pair_create(&(struct pair_attr){.seed = seed, .go_back_n = {true, true}});
	struct endpoint end[QPS][2];
	struct rand rand = {seed};
	uint64_t last = 0;
	unsigned n = 0;
	struct urxe_wc wc;

	pair->link[0].filter = lose;
	for (unsigned i = 0; i < QPS; i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_send_wr wr = {.opcode = URXE_WR_SEND};

		conn.retry_cnt = 0;
		conn.timeout = (uint8_t)rand_in(&rand, 1, 20);
		wr.wr_id = conn.timeout;
		conn_open(pair, &conn, end[i]);
		assert_int_equal(urxe_post_send(end[i][0].qp, &wr), 0);
		pair_step(pair); /* the timer starts here */
	}
	for (unsigned i = 0; i < QPS; i += 3)
		urxe_qp_destroy(end[i][0].qp);
	pair_settle(pair);
	while (node_poll(&pair->node[0]->send_cq, &wc)) {
		assert_int_equal(wc.status, URXE_WC_RETRY_EXC_ERR);
		assert_true(wc.wr_id >= last);
		last = wc.wr_id;
		n++;
	}
	assert_int_equal(n, QPS - QPS / 3);
	pair_destroy(pair);
}

static void test_timers_expire_in_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++)
		timers_in_order(seed);
}

#define MANY 2100 /* QPs, so that the device's table of QPs grows several times (id_map.h) */

static void fill_receive(const struct endpoint *end, uint64_t id)
{
	const struct urxe_seg seg = node_seg(end->node, 0, 8);
	const struct urxe_recv_wr wr = {.wr_id = id, .n_segs = 1, .segs = &seg};

	assert_int_equal(urxe_post_recv(end->rq, &wr), 0);
}

static void assert_all_done(struct node_cq *cq, unsigned n)
{
	struct urxe_wc wc;

	while (node_poll(cq, &wc)) {
		assert_int_equal(wc.status, URXE_WC_SUCCESS);
		n--;
	}
	assert_int_equal(n, 0);
}

/* Bursts of packets for many QPs, some of which are destroyed. */
static void test_packets_for_destroyed_qps_are_dropped(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	static struct endpoint end[MANY][2];

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		conn_open(pair, &conn, end[i]);
	for (unsigned i = 0; i < MANY; i++) {
		const struct urxe_send_wr wr = {.opcode = URXE_WR_SEND};

		fill_receive(&end[i][1], i);
		assert_int_equal(urxe_post_send(end[i][0].qp, &wr), 0);
	}
	for (unsigned i = 0; i < MANY; i += 5)
		urxe_qp_destroy(end[i][1].qp);
	pair_run(pair, 100000);
	assert_all_done(&pair->node[1]->recv_cq, MANY - MANY / 5);
	assert_all_done(&pair->node[0]->send_cq, MANY - MANY / 5);
	assert_true(urxe_dev_counters(pair->node[1]->dev)->drop[URXE_DROP_BAD_QPN] >= MANY / 5);
	pair_destroy(pair);
}

/*
 * Copies of one early packet take one place, however many arrive: other early packets still find
 * places.
 */
static void test_copies_of_an_early_packet_share_a_place(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	p = from_peer(&e, &conn, 0x0a);
	p.psn += 2;
	for (unsigned i = 0; i < 5000; i++)
		inject(&e, &p);
	p.psn--;
	inject(&e, &p);
	assert_int_equal(drops(e.b, URXE_DROP_OUT_OF_SEQUENCE), 0);
	p.psn--;
	p.ack_req = true;
	inject(&e, &p);
	assert_int_equal(answers(&e).msn, 3);
	engine_close(&e);
}

/*
 * A device limits the memory for early packets of all its QPs; it drops and counts packets beyond
 * the limit.
 */
static void test_memory_for_early_packets_is_bounded(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	struct engine e = {.pair = pair, .a = pair->node[0], .b = pair->node[1]};

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct urxe_packet p;

		conn_open(pair, &conn, e.end);
		p = from_peer(&e, &conn, 0x0a);
		for (unsigned ahead = 1; ahead < 256; ahead++) {
			p.psn = (conn.psn[0] + ahead) & 0xffffff;
			inject(&e, &p);
		}
	}
	assert_int_equal(events(e.b, URXE_EVENT_REORDERED), 4096);
	assert_int_equal(drops(e.b, URXE_DROP_OUT_OF_SEQUENCE), 20 * 255 - 4096);
	pair_destroy(pair);
}

/* As after a restore that fails late. A search that begins anew for each object takes minutes. */
static void test_device_with_many_objects_is_destroyed_soon(void **state)
{
	struct urxe_ops ops = {0};
	const struct urxe_dev_attr attr = {.ops = &ops, .mtu = 1500};
	uint8_t byte;
	const struct urxe_extent extent = {&byte, 1};
	const struct urxe_mr_attr region = {.length = 1, .extents = &extent, .n_extents = 1};
	struct urxe_dev *dev;
	struct urxe_mr *mr;

	(void)state;
	assert_int_equal(urxe_dev_create(&attr, &dev), 0);
	for (uint32_t i = 0; i < 1u << 19; i++)
		assert_int_equal(urxe_mr_reg(dev, &region, &mr), 0);
	urxe_dev_destroy(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device_attributes_are_checked),
		cmocka_unit_test(test_queue_sizes_are_checked),
		cmocka_unit_test(test_extent_lengths_must_not_wrap),
		cmocka_unit_test(test_leased_qpns_can_be_dictated),
		cmocka_unit_test(test_key_table_survives_collisions),
		cmocka_unit_test(test_timers_expire_in_order),
		cmocka_unit_test(test_packets_for_destroyed_qps_are_dropped),
		cmocka_unit_test(test_copies_of_an_early_packet_share_a_place),
		cmocka_unit_test(test_memory_for_early_packets_is_bounded),
		cmocka_unit_test(test_device_with_many_objects_is_destroyed_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
