/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Multicast: membership of groups, and which QPs receive a datagram (IBA 10.5). */
#include <errno.h>
#include <string.h>

#include "engine.h"

#define QKEY 0x11111111
#define ROOM 128 /* of one receive */

static const struct urxe_gid group_v4 = {{[10] = 0xff, 0xff, 239, 1, 2, 3}};
static const struct urxe_gid group_v6 = {{0xff, 0x0e, [15] = 0x42}};
static const struct urxe_gid other_v4 = {{[10] = 0xff, 0xff, 239, 1, 2, 4}};

/* Any number of UD QPs on two nodes, all in RTS. */
struct world {
	struct pair *pair;
	struct node *a, *b;
};

static void open_world(struct world *w)
{
	w->pair = pair_create(&(struct pair_attr){.seed = 1});
	w->a = w->pair->node[0];
	w->b = w->pair->node[1];
}

static void create_qp(struct world *w, unsigned side, struct endpoint *end, bool block)
{
	struct node *node = w->pair->node[side];
	const struct urxe_qp_init init = {
		.ctx = &end->queue,
		.type = URXE_QPT_UD,
		.sq_sig_all = true,
		.block_self_mcast = block,
		.pd = NODE_PD,
		.send_cq = node->send_cq.cq,
		.recv_cq = node->recv_cq.cq,
		.cap = conn_default(URXE_QPT_UD).cap,
	};

	*end = (struct endpoint){.queue.node = node, .node = node};
	assert_int_equal(urxe_qp_create(node->dev, &init, &end->qp), 0);
	end->rq = urxe_qp_rq(end->qp);
	end->qpn = urxe_qp_qpn(end->qp);
}

static void open_qp(struct world *w, unsigned side, struct endpoint *end, bool block)
{
	struct conn_attr conn = conn_default(URXE_QPT_UD);

	create_qp(w, side, end, block);
	conn_bring_up(w->pair, &conn, side, end, end);
}

static void send_to(struct world *w, struct endpoint *from, const struct urxe_gid *gid,
		    uint32_t qkey)
{
	struct urxe_seg seg = node_seg(from->node, 0, 8);
	struct urxe_path path = {.dgid = *gid, .hop_limit = 1};
	const struct urxe_send_wr wr = {
		.wr_id = 9,
		.opcode = URXE_WR_SEND,
		.segs = &seg,
		.n_segs = 1,
		.path = &path,
		.remote_qpn = URXE_QPN_MULTICAST,
		.remote_qkey = qkey,
	};

	path.sgid_index = NODE_SGID(gid->raw[0] ? URXE_NET_IPV6 : URXE_NET_IPV4);
	memset(path.dmac, 0x33, 2);
	assert_int_equal(urxe_post_send(from->qp, &wr), 0);
	pair_settle(w->pair);
	expect_wc(&from->node->send_cq, 9, URXE_WC_SUCCESS);
}

static unsigned received(struct node *node)
{
	struct urxe_wc wc;
	unsigned n = 0;

	for (; node_poll(&node->recv_cq, &wc); n++)
		assert_int_equal(wc.status, URXE_WC_SUCCESS);
	return n;
}

/* IPv4 and IPv6 groups, several QPs in one group, and one QP in several groups. */
static void test_group_members_receive_once(void **state)
{
	static const struct urxe_gid *const groups[] = {&group_v4, &group_v6};
	struct endpoint from, to[3];
	struct world w;

	(void)state;
	open_world(&w);
	open_qp(&w, 0, &from, false);
	for (unsigned i = 0; i < 3; i++) {
		open_qp(&w, 1, &to[i], false);
		for (uint64_t n = 0; n < 8; n++)
			post_recv(&to[i], i, ROOM * i, ROOM);
	}
	for (unsigned g = 0; g < 2; g++) {
		const struct urxe_gid *gid = groups[g];

		send_to(&w, &from, gid, QKEY);
		assert_int_equal(drops(w.b, URXE_DROP_NO_GROUP), 1 + g);
		assert_int_equal(received(w.b), 0);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(urxe_mcast_attach(to[i].qp, gid), 0);
		memset(w.a->mem, 0x40 + (int)g, 8);
		send_to(&w, &from, gid, QKEY);
		for (unsigned seen = 0, n = 0; n < 2; n++) {
			struct urxe_wc wc;

			assert_true(node_poll(&w.b->recv_cq, &wc));
			assert_int_equal(wc.status, URXE_WC_SUCCESS);
			assert_int_equal(wc.src_qpn, from.qpn);
			assert_int_equal(wc.byte_len, URXE_GRH_LEN + 8);
			seen |= 1u << wc.wr_id;
			assert_int_equal(w.b->mem[ROOM * wc.wr_id + URXE_GRH_LEN + 7], 0x40 + g);
			if (n)
				assert_int_equal(seen, 3);
		}
		assert_int_equal(received(w.b), 0);
	}
	assert_int_equal(received(w.a), 0); /* the sender is a member of no group */
	/* Datagrams of another group do not reach these members. */
	send_to(&w, &from, &other_v4, QKEY);
	assert_int_equal(received(w.b), 0);
	assert_int_equal(drops(w.b, URXE_DROP_NO_GROUP), 3);
	pair_destroy(w.pair);
}

/* The sender's device copies a datagram to its own members; the sender can disable that. */
static void test_loopback_can_be_disabled(void **state)
{
	struct endpoint from, deaf, neighbour, to;
	struct world w;

	(void)state;
	open_world(&w);
	open_qp(&w, 0, &from, false);
	open_qp(&w, 0, &deaf, true);
	open_qp(&w, 0, &neighbour, false);
	open_qp(&w, 1, &to, false);
	assert_int_equal(urxe_mcast_attach(from.qp, &group_v4), 0);
	assert_int_equal(urxe_mcast_attach(deaf.qp, &group_v4), 0);
	assert_int_equal(urxe_mcast_attach(to.qp, &group_v4), 0);
	for (uint64_t n = 0; n < 4; n++) {
		post_recv(&from, 1, 1000, ROOM);
		post_recv(&deaf, 2, 2000, ROOM);
		post_recv(&neighbour, 3, 3000, ROOM);
		post_recv(&to, 4, 4000, ROOM);
	}
	/*
	 * A member sends: the sender, the member without loopback (which misses its own datagrams
	 * only) and the network get the datagram.
	 */
	send_to(&w, &from, &group_v4, QKEY);
	assert_int_equal(received(w.a), 2);
	assert_int_equal(received(w.b), 1);
	assert_int_equal(events(w.a, URXE_EVENT_MCAST_LOOPBACK), 2);
	send_to(&w, &deaf, &group_v4, QKEY);
	assert_int_equal(received(w.a), 1);
	assert_int_equal(received(w.b), 1);
	assert_int_equal(drops(w.a, URXE_DROP_OWN_MULTICAST), 1);
	/* A QP that is no member of any group sends. */
	send_to(&w, &neighbour, &group_v4, QKEY);
	assert_int_equal(received(w.a), 2);
	assert_int_equal(received(w.b), 1);
	/* A group without local members causes no copy. */
	send_to(&w, &from, &other_v4, QKEY);
	assert_int_equal(received(w.a), 0);
	assert_int_equal(all_drops(w.a), 1);
	pair_destroy(w.pair);
}

/* Each member's own state, Q_Key, partition and receive queue decide about its copy only. */
static void test_multicast_copy_depends_on_each_members_state(void **state)
{
	const struct urxe_qp_attr err = {.state = URXE_QPS_ERR};
	const struct urxe_qp_attr other_key = {.state = URXE_QPS_RTS, .qkey = 0x22222222};
	struct endpoint from, good, empty, strange, dead;
	struct world w;

	(void)state;
	open_world(&w);
	open_qp(&w, 0, &from, false);
	open_qp(&w, 1, &good, false);
	open_qp(&w, 1, &empty, false);
	open_qp(&w, 1, &strange, false);
	open_qp(&w, 1, &dead, false);
	assert_int_equal(urxe_mcast_attach(good.qp, &group_v4), 0);
	assert_int_equal(urxe_mcast_attach(empty.qp, &group_v4), 0);
	assert_int_equal(urxe_mcast_attach(strange.qp, &group_v4), 0);
	assert_int_equal(urxe_mcast_attach(dead.qp, &group_v4), 0);
	assert_int_equal(urxe_qp_modify(strange.qp, 1, &other_key, URXE_QP_STATE | URXE_QP_QKEY),
			 0);
	assert_int_equal(urxe_qp_modify(dead.qp, 1, &err, URXE_QP_STATE), 0);
	post_recv(&good, 1, 1000, ROOM);
	post_recv(&strange, 2, 2000, ROOM);
	send_to(&w, &from, &group_v4, QKEY);
	expect_wc(&w.b->recv_cq, 1, URXE_WC_SUCCESS);
	expect_none(&w.b->recv_cq);
	assert_int_equal(drops(w.b, URXE_DROP_NO_RECV), 1);
	assert_int_equal(drops(w.b, URXE_DROP_BAD_QKEY), 1);
	assert_int_equal(drops(w.b, URXE_DROP_BAD_STATE), 1);
	assert_int_equal(all_drops(w.b), 3);
	assert_int_equal(urxe_pkey_set(w.b->dev, 0, 0x8001), 0);
	send_to(&w, &from, &group_v4, QKEY);
	assert_int_equal(drops(w.b, URXE_DROP_BAD_PKEY), 3);
	pair_destroy(w.pair);
}

static void test_only_ud_attaches_to_groups(void **state)
{
	static const struct urxe_gid no_group[] = {
		{{0}},
		{{[10] = 0xff, 0xff, 223, 255, 255, 255}},
		{{[10] = 0xff, 0xff, 240, 0, 0, 0}},
		{{0xfe, 0x80, [15] = 1}},
	};
	struct conn_attr rc = conn_default(URXE_QPT_RC);
	struct endpoint from, to, connected;
	struct world w;

	(void)state;
	open_world(&w);
	open_qp(&w, 0, &from, false);
	create_qp(&w, 1, &to, false);
	conn_create(w.pair, &rc, 1, &connected);
	assert_int_equal(urxe_mcast_attach(connected.qp, &group_v4), -EINVAL);
	for (size_t i = 0; i < sizeof(no_group) / sizeof(no_group[0]); i++)
		assert_int_equal(urxe_mcast_attach(to.qp, &no_group[i]), -EINVAL);
	assert_int_equal(urxe_mcast_detach(to.qp, &group_v4), -EINVAL);
	assert_false(urxe_mcast_attached(to.qp) || urxe_mcast_any_attached(w.b->dev));
	/* A QP in RESET can attach, and attaching twice has no further effect. */
	assert_int_equal(urxe_mcast_attach(to.qp, &group_v4), 0);
	assert_true(urxe_mcast_attached(to.qp) && urxe_mcast_any_attached(w.b->dev));
	assert_int_equal(urxe_mcast_attach(to.qp, &group_v4), 0);
	rc = conn_default(URXE_QPT_UD);
	conn_bring_up(w.pair, &rc, 1, &to, &to);
	post_recv(&to, 1, 0, ROOM);
	post_recv(&to, 2, 0, ROOM);
	send_to(&w, &from, &group_v4, QKEY);
	expect_wc(&w.b->recv_cq, 1, URXE_WC_SUCCESS);
	expect_none(&w.b->recv_cq);
	assert_int_equal(urxe_mcast_detach(to.qp, &group_v4), 0);
	assert_int_equal(urxe_mcast_detach(to.qp, &group_v4), -EINVAL);
	assert_false(urxe_mcast_attached(to.qp) || urxe_mcast_any_attached(w.b->dev));
	send_to(&w, &from, &group_v4, QKEY);
	expect_none(&w.b->recv_cq);
	assert_int_equal(drops(w.b, URXE_DROP_NO_GROUP), 1);
	/* A destroyed QP is a member of no group any more. */
	assert_int_equal(urxe_mcast_attach(to.qp, &group_v4), 0);
	assert_int_equal(urxe_mcast_attach(to.qp, &group_v6), 0);
	urxe_qp_destroy(to.qp);
	send_to(&w, &from, &group_v4, QKEY);
	assert_int_equal(drops(w.b, URXE_DROP_NO_GROUP), 2);
	pair_destroy(w.pair);
}

static void test_group_limits_are_enforced(void **state)
{
	static struct endpoint end[URXE_MAX_MCAST_QPS + 1];
	struct urxe_gid gid = group_v6;
	struct world w;

	(void)state;
	open_world(&w);
	for (unsigned i = 0; i <= URXE_MAX_MCAST_QPS; i++) {
		create_qp(&w, 0, &end[i], false);
		assert_int_equal(urxe_mcast_attach(end[i].qp, &group_v4),
				 i < URXE_MAX_MCAST_QPS ? 0 : -ENOMEM);
	}
	for (unsigned i = 1; i <= URXE_MAX_MCAST_GROUPS; i++) {
		gid.raw[14] = (uint8_t)(i >> 8);
		gid.raw[15] = (uint8_t)i;
		assert_int_equal(urxe_mcast_attach(end[0].qp, &gid),
				 i < URXE_MAX_MCAST_GROUPS ? 0 : -ENOMEM);
	}
	/* A refused attach leaves nothing behind: exactly one place is free again. */
	assert_int_equal(urxe_mcast_detach(end[1].qp, &group_v4), 0);
	assert_int_equal(urxe_mcast_attach(end[URXE_MAX_MCAST_QPS].qp, &group_v4), 0);
	assert_int_equal(urxe_mcast_attach(end[1].qp, &group_v4), -ENOMEM);
	gid.raw[14] = 0;
	gid.raw[15] = 1;
	assert_int_equal(urxe_mcast_detach(end[0].qp, &gid), 0);
	gid.raw[15] = 2;
	assert_int_equal(urxe_mcast_attach(end[1].qp, &gid), 0);
	gid.raw[13] = 7;
	assert_int_equal(urxe_mcast_attach(end[1].qp, &gid), 0);
	gid.raw[13] = 8;
	assert_int_equal(urxe_mcast_attach(end[1].qp, &gid), -ENOMEM);
	pair_destroy(w.pair);
}

/* A multicast address needs the multicast QPN, and only datagrams may have it. */
static void test_multicast_address_needs_multicast_qpn(void **state)
{
	static const struct {
		uint8_t opcode;
		bool gid, qpn;
		enum urxe_drop drop;
	} rows[] = {
		{0x64, true, true, URXE_DROP_NONE},
		{0x64, true, false, URXE_DROP_BAD_MULTICAST},
		{0x64, false, true, URXE_DROP_BAD_MULTICAST},
		{0x04, true, true, URXE_DROP_BAD_SERVICE},
		{0x24, true, true, URXE_DROP_BAD_SERVICE},
		{0x11, true, true, URXE_DROP_BAD_SERVICE},
	};
	struct endpoint to;
	struct world w;

	(void)state;
	open_world(&w);
	open_qp(&w, 1, &to, false);
	assert_int_equal(urxe_mcast_attach(to.qp, &group_v4), 0);
	post_recv(&to, 1, 0, ROOM);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct urxe_packet p = {
			.net = URXE_NET_IPV4,
			.udp_sport = 0xc000,
			.hop_limit = 1,
			.sgid = craft_gid(URXE_NET_IPV4, 1),
			.dgid = rows[i].gid ? group_v4 : craft_gid(URXE_NET_IPV4, 2),
			.opcode = rows[i].opcode,
			.pkey = 0xffff,
			.dest_qpn = rows[i].qpn ? URXE_QPN_MULTICAST : to.qpn,
			.deth = {QKEY, 5},
		};
		uint64_t before = rows[i].drop ? drops(w.b, rows[i].drop) : 0;
		uint8_t data[CRAFT_MAX];
		struct urxe_frame frame = {data, craft_frame(data, &p), sizeof(data)};

		urxe_input(w.b->dev, 1, &frame, 1);
		if (rows[i].drop)
			assert_int_equal(drops(w.b, rows[i].drop), before + 1);
		else
			expect_wc(&w.b->recv_cq, 1, URXE_WC_SUCCESS);
	}
	expect_none(&w.b->recv_cq);
	pair_destroy(w.pair);
}

/*
 * The loopback copy fails the receiving QP, which is also the sender, after the send has completed.
 */
static void test_loopback_overflow_fails_the_qp(void **state)
{
	struct endpoint from;
	struct world w;

	(void)state;
	open_world(&w);
	open_qp(&w, 0, &from, false);
	assert_int_equal(urxe_mcast_attach(from.qp, &group_v4), 0);
	post_recv(&from, 1, 0, ROOM);
	w.a->recv_cq.depth = 0;
	send_to(&w, &from, &group_v4, QKEY);
	assert_int_equal(w.a->async[URXE_ASYNC_CQ_ERR], 1);
	assert_int_equal(qp_state(&from), URXE_QPS_ERR);
	pair_destroy(w.pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_group_members_receive_once),
		cmocka_unit_test(test_loopback_can_be_disabled),
		cmocka_unit_test(test_multicast_copy_depends_on_each_members_state),
		cmocka_unit_test(test_only_ud_attaches_to_groups),
		cmocka_unit_test(test_group_limits_are_enforced),
		cmocka_unit_test(test_multicast_address_needs_multicast_qpn),
		cmocka_unit_test(test_loopback_overflow_fails_the_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
