/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Partitions: the P_Key table, membership, and which packets a QP accepts (IBA volume 1, 10.9). */
#include <errno.h>
#include <string.h>

#include "engine.h"

#define FULL    0x8001
#define LIMITED 0x0001

static int set_index(struct engine *e, unsigned side, uint16_t index)
{
	const struct urxe_qp_attr sqd = {.state = URXE_QPS_SQD, .pkey_index = index};
	const struct urxe_qp_attr rts = {.state = URXE_QPS_RTS};
	struct urxe_qp *qp = e->end[side].qp;
	int rc;

	assert_int_equal(urxe_qp_modify(qp, e->pair->now, &sqd, URXE_QP_STATE), 0);
	rc = urxe_qp_modify(qp, e->pair->now, &sqd, URXE_QP_PKEY_INDEX);
	assert_int_equal(urxe_qp_modify(qp, e->pair->now, &rts, URXE_QP_STATE), 0);
	return rc;
}

static void test_pkey_table_is_checked(void **state)
{
	struct node *node;
	struct engine e;
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	(void)state;
	engine_open(&e, &conn);
	node = e.a;
	assert_int_equal(urxe_pkey_set(node->dev, URXE_MAX_PKEYS, FULL), -EINVAL);
	assert_int_equal(urxe_pkey_set(node->dev, URXE_MAX_PKEYS - 1, FULL), 0);
	/* A QP cannot use an empty entry or an index out of range. */
	assert_int_equal(set_index(&e, 0, 1), -EINVAL);
	assert_int_equal(set_index(&e, 0, URXE_MAX_PKEYS), -EINVAL);
	assert_int_equal(set_index(&e, 0, URXE_MAX_PKEYS - 1), 0);
	/* A P_Key that a QP uses may be replaced, but not removed. */
	assert_int_equal(urxe_pkey_set(node->dev, URXE_MAX_PKEYS - 1, 0), -EBUSY);
	assert_int_equal(urxe_pkey_set(node->dev, URXE_MAX_PKEYS - 1, 0x8000), -EBUSY);
	assert_int_equal(urxe_pkey_set(node->dev, URXE_MAX_PKEYS - 1, LIMITED), 0);
	assert_int_equal(urxe_pkey_set(node->dev, 0, 0), 0);
	urxe_qp_destroy(e.end[0].qp);
	assert_int_equal(urxe_pkey_set(node->dev, URXE_MAX_PKEYS - 1, 0), 0);
	engine_close(&e);
}

/* IBA 10.9.3: the partition must be the same, and at least one of the two must be a full member. */
static void test_membership_decides_acceptance(void **state)
{
	static const struct {
		uint16_t ours, theirs;
		bool match;
	} rows[] = {
		{0xffff, 0xffff, true},  {0xffff, 0x7fff, true},    {0x7fff, 0xffff, true},
		{0x7fff, 0x7fff, false}, {FULL, FULL, true},        {FULL, LIMITED, true},
		{LIMITED, FULL, true},   {LIMITED, LIMITED, false}, {FULL, 0xffff, false},
		{FULL, 0x8002, false},   {LIMITED, 0x8002, false},  {0x8003, 0x8001, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_UC);
		struct engine e;

		engine_open(&e, &conn);
		assert_int_equal(urxe_pkey_set(e.a->dev, 0, rows[i].ours), 0);
		assert_int_equal(urxe_pkey_set(e.b->dev, 0, rows[i].theirs), 0);
		post_recv(&e.end[1], 1, 0, 8);
		post_send(&e, 0, &(struct post){.opcode = URXE_WR_SEND, .length = 8});
		pair_settle(e.pair);
		if (drops(e.b, URXE_DROP_BAD_PKEY) != !rows[i].match)
			fail_msg("%04x to %04x", rows[i].ours, rows[i].theirs);
		if (rows[i].match)
			expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
		expect_none(&e.b->recv_cq);
		engine_close(&e);
	}
}

/* Answers carry the responder's P_Key: a connection needs matching P_Keys in both directions. */
static void test_answers_carry_the_responders_pkey(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	for (unsigned side = 0; side < 2; side++) {
		struct node *node = e.pair->node[side];

		/* The nodes have the P_Key at different indices, which packets do not carry. */
		assert_int_equal(urxe_pkey_set(node->dev, 1 + side, side ? LIMITED : FULL), 0);
		assert_int_equal(set_index(&e, side, (uint16_t)(1 + side)), 0);
	}
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = 8});
	post_send(&e, 0, &(struct post){.wr_id = 2, .opcode = URXE_WR_RDMA_READ, .length = 8});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&e.a->send_cq, 2, URXE_WC_SUCCESS);
	/*
	 * The requester leaves the partition: the peer drops its packets until the requester gives
	 * up.
	 */
	assert_int_equal(set_index(&e, 0, 0), 0);
	post_send(&e, 0, &(struct post){.wr_id = 3, .opcode = URXE_WR_RDMA_WRITE, .length = 8});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 3, URXE_WC_RETRY_EXC_ERR);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_PKEY), all_drops(e.b));
	assert_true(all_drops(e.b) > 0);
	engine_close(&e);
}

static void inject(struct engine *e, struct node *to, const struct urxe_packet *p)
{
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame = {data, craft_frame(data, p), sizeof(data)};

	urxe_input(to->dev, e->pair->now, &frame, 1);
}

static struct urxe_packet to_b(struct engine *e, uint8_t opcode, uint16_t pkey)
{
	static const uint8_t reserved[16];
	struct urxe_packet p = {
		.net = URXE_NET_IPV4,
		.hop_limit = 64,
		.udp_sport = 0xc000,
		.sgid = craft_gid(URXE_NET_IPV4, 1),
		.dgid = craft_gid(URXE_NET_IPV4, 2),
		.opcode = opcode,
		.pkey = pkey,
		.dest_qpn = e->end[1].qpn,
		.payload = reserved,
	};

	memcpy(p.smac, e->a->mac, 6);
	memcpy(p.dmac, e->b->mac, 6);
	return p;
}

/* NICs put the default P_Key into a CNP, whatever P_Key the QP has. */
static void test_cnp_may_have_the_default_pkey(void **state)
{
	static const struct {
		uint16_t pkey;
		bool good;
	} rows[] = {
		{FULL, true}, {LIMITED, true}, {0xffff, true}, {0x7fff, false}, {0x8002, false}};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint64_t bad = 0, good = 0;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	assert_int_equal(urxe_pkey_set(e.b->dev, 3, FULL), 0);
	assert_int_equal(set_index(&e, 1, 3), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct urxe_packet p = to_b(&e, 0x81, rows[i].pkey);

		p.becn = true;
		p.payload_len = 16;
		inject(&e, e.b, &p);
		good += rows[i].good;
		bad += !rows[i].good;
		assert_int_equal(events(e.b, URXE_EVENT_CNP_RCVD), good);
		assert_int_equal(drops(e.b, URXE_DROP_BAD_PKEY), bad);
	}
	engine_close(&e);
}

/* --- QP 1 accepts every partition of its host, and its send requests name one (IBA 10.9). */

static void open_gsi(struct engine *e, unsigned side)
{
	struct node *node = e->pair->node[side];
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	const struct urxe_qp_init init = {
		.ctx = &e->end[side].queue,
		.type = URXE_QPT_UD,
		.sq_sig_all = true,
		.pd = NODE_PD,
		.qpn = URXE_QPN_GSI,
		.send_cq = node->send_cq.cq,
		.recv_cq = node->recv_cq.cq,
		.cap = conn.cap,
	};
	struct endpoint *end = &e->end[side];

	*end = (struct endpoint){.queue.node = node, .node = node, .qpn = URXE_QPN_GSI};
	assert_int_equal(urxe_qp_create(node->dev, &init, &end->qp), 0);
	end->rq = urxe_qp_rq(end->qp);
}

static int post_gsi(struct engine *e, uint16_t pkey_index)
{
	struct urxe_path path = conn_path(URXE_NET_IPV4, e->b);
	const struct urxe_send_wr wr = {
		.wr_id = 1,
		.opcode = URXE_WR_SEND,
		.path = &path,
		.remote_qpn = URXE_QPN_GSI,
		.remote_qkey = 0x11111111,
		.pkey_index = pkey_index,
	};

	return urxe_post_send(e->end[0].qp, &wr);
}

static void test_gsi_uses_the_pkey_of_the_request(void **state)
{
	struct engine e = {.pair = pair_create(&(struct pair_attr){.seed = 1})};
	struct conn_attr conn = conn_default(URXE_QPT_UD);

	(void)state;
	e.a = e.pair->node[0];
	e.b = e.pair->node[1];
	for (unsigned side = 0; side < 2; side++)
		open_gsi(&e, side);
	for (unsigned side = 0; side < 2; side++)
		conn_bring_up(e.pair, &conn, side, &e.end[side], &e.end[!side]);
	assert_int_equal(urxe_pkey_set(e.a->dev, 1, FULL), 0);
	assert_int_equal(urxe_pkey_set(e.a->dev, 2, 0x8002), 0);
	assert_int_equal(urxe_pkey_set(e.b->dev, 5, LIMITED), 0);
	post_recv(&e.end[1], 7, 0, 64);
	post_recv(&e.end[1], 8, 0, 64);
	assert_int_equal(post_gsi(&e, 0), 0);
	assert_int_equal(post_gsi(&e, 1), 0);
	pair_settle(e.pair);
	assert_int_equal(expect_wc(&e.b->recv_cq, 7, URXE_WC_SUCCESS).pkey_index, 0);
	assert_int_equal(expect_wc(&e.b->recv_cq, 8, URXE_WC_SUCCESS).pkey_index, 5);
	assert_int_equal(post_gsi(&e, 2), 0);
	pair_settle(e.pair);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_PKEY), 1);
	for (unsigned i = 0; i < 3; i++)
		expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(post_gsi(&e, 3), -EINVAL);
	assert_int_equal(post_gsi(&e, URXE_MAX_PKEYS), -EINVAL);
	/*
	 * The entry is removed while the request waits: the engine sends nothing and fails the
	 * request.
	 */
	assert_int_equal(post_gsi(&e, 2), 0);
	assert_int_equal(urxe_pkey_set(e.a->dev, 2, 0), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_LOC_QP_OP_ERR);
	assert_int_equal(all_drops(e.b), 1);
	pair_destroy(e.pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pkey_table_is_checked),
		cmocka_unit_test(test_membership_decides_acceptance),
		cmocka_unit_test(test_answers_carry_the_responders_pkey),
		cmocka_unit_test(test_cnp_may_have_the_default_pkey),
		cmocka_unit_test(test_gsi_uses_the_pkey_of_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
