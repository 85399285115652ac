/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attributes of a path in the headers: VLAN and priority, traffic class, flow label, hop limit and
 * UDP source port, from the QP or the address handle, in requests and answers; and packets that a
 * VLAN or a connection excludes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/psn.h>

#include "by_hand.h"

#define VLAN 0x123
#define SL   5

/* The last packet of each kind on the link. */
struct tap {
	unsigned n;
	struct urxe_packet last;
};

static bool tap(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct tap *t = arg;

	(void)now;
	assert_int_equal(urxe_packet_parse(&t->last, data, len), URXE_DROP_NONE);
	assert_true(urxe_packet_icrc_ok(&t->last));
	t->n++;
	return true;
}

static void listen(struct engine *e, struct tap taps[2])
{
	for (unsigned i = 0; i < 2; i++) {
		taps[i] = (struct tap){0};
		e->pair->link[i].filter = tap;
		e->pair->link[i].filter_arg = &taps[i];
	}
}

static struct urxe_path path_to(uint8_t net, const struct node *node)
{
	struct urxe_path path = conn_path(net, node);

	path.traffic_class = 0x68;
	path.flow_label = 0x54321;
	path.hop_limit = 7;
	path.sl = SL;
	return path;
}

/* A connection or a pair of UD QPs, whose paths set all attributes. */
static void open_with_paths(struct engine *e, uint8_t type, uint8_t net, uint16_t vlan)
{
	struct conn_attr conn = conn_default(type);

	*e = (struct engine){.pair = pair_create(&(struct pair_attr){.seed = 1})};
	e->a = e->pair->node[0];
	e->b = e->pair->node[1];
	conn.net = net;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(urxe_gid_set_vlan(e->pair->node[i]->dev, NODE_SGID(net), vlan), 0);
		conn_create(e->pair, &conn, i, &e->end[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct urxe_qp_attr attr =
			conn_qp_attr(&conn, i, e->pair->node[!i], e->end[!i].qpn);

		attr.path = path_to(net, e->pair->node[!i]);
		for (attr.state = URXE_QPS_INIT; attr.state <= URXE_QPS_RTS; attr.state++)
			assert_int_equal(
				urxe_qp_modify(e->end[i].qp, 0, &attr, conn_mask(type, attr.state)),
				0);
	}
}

static struct urxe_wc send_one(struct engine *e, uint8_t type, uint8_t net)
{
	struct urxe_path path = path_to(net, e->b);
	struct urxe_seg seg = node_seg(e->a, 0, 8);
	const struct urxe_send_wr wr = {
		.wr_id = 3,
		.opcode = URXE_WR_SEND,
		.segs = &seg,
		.n_segs = 1,
		.path = type == URXE_QPT_UD ? &path : NULL,
		.remote_qpn = e->end[1].qpn,
		.remote_qkey = 0x11111111,
	};

	post_recv(&e->end[1], 4, 0, 64);
	assert_int_equal(urxe_post_send(e->end[0].qp, &wr), 0);
	pair_settle(e->pair);
	expect_wc(&e->a->send_cq, 3, URXE_WC_SUCCESS);
	return expect_wc(&e->b->recv_cq, 4, URXE_WC_SUCCESS);
}

/* The engine owns the two ECN bits of the traffic class (RFC 3168). */
static void check_wire(const struct urxe_packet *p, uint8_t net, uint16_t vlan)
{
	assert_int_equal(p->net, net);
	assert_int_equal(p->traffic_class & 0xfc, 0x68);
	assert_int_equal(p->hop_limit, 7);
	if (net != URXE_NET_IPV4)
		assert_int_equal(p->flow_label, 0x54321);
	if (net != URXE_NET_ROCEV1)
		assert_int_equal(p->udp_sport, 0xc000 | (0x0321 ^ 0x15));
	assert_int_equal(p->has_vlan, vlan != 0);
	if (vlan)
		assert_int_equal(p->vlan_tci, SL << 13 | vlan);
}

static void test_path_attributes_are_on_the_wire(void **state)
{
	(void)state;
	for (uint8_t type = URXE_QPT_RC; type <= URXE_QPT_UD; type++)
		for (uint8_t net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++)
			for (uint16_t vlan = 0; vlan <= VLAN; vlan += VLAN) {
				struct tap taps[2];
				struct engine e;
				struct urxe_wc wc;

				open_with_paths(&e, type, net, vlan);
				listen(&e, taps);
				wc = send_one(&e, type, net);
				/*
				 * A receiver answers a datagram with the service level of its
				 * completion.
				 */
				assert_int_equal(wc.sl, type == URXE_QPT_UD && vlan ? SL : 0);
				assert_int_equal(wc.net, type == URXE_QPT_UD ? net : 0);
				assert_int_equal(taps[0].n, 1);
				check_wire(&taps[0].last, net, vlan);
				assert_int_equal(taps[1].n, type == URXE_QPT_RC);
				if (type == URXE_QPT_RC)
					check_wire(&taps[1].last, net, vlan);
				assert_int_equal(all_drops(e.a) + all_drops(e.b), 0);
				engine_close(&e);
			}
}

/* A whole packet of the largest MTU, with a VLAN tag, fits the buffer that the caller gives. */
static void test_longest_packet_fits_the_buffer(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.path_mtu = URXE_MTU_4096;
	conn.net = URXE_NET_IPV6;
	e = (struct engine){.pair = pair_create(&(struct pair_attr){.seed = 1, .mtu = 4096 + 92})};
	e.a = e.pair->node[0];
	e.b = e.pair->node[1];
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(urxe_gid_set_vlan(e.pair->node[i]->dev, URXE_NET_IPV6, VLAN), 0);
	conn_open(e.pair, &conn, e.end);
	rand_fill(&(struct rand){1}, e.a->mem, 8192);
	post_recv(&e.end[1], 1, 0, 0);
	post_send(&e, 0,
		  &(struct post){
			  .wr_id = 2, .opcode = URXE_WR_RDMA_WRITE_IMM, .length = 4096, .imm = 1});
	post_send(&e, 1, &(struct post){.wr_id = 3, .opcode = URXE_WR_RDMA_READ, .length = 4096});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 2, URXE_WC_SUCCESS);
	expect_wc(&e.b->send_cq, 3, URXE_WC_SUCCESS);
	assert_memory_equal(e.a->mem, e.b->mem, 4096);
	engine_close(&e);
}

/*
 * The UDP source port is the flow label folded as Linux does; without a label it depends on the
 * QPNs, with the same result in both directions.
 */
static void test_udp_source_port_follows_the_flow_label(void **state)
{
	static const struct {
		uint32_t label;
		uint16_t sport;
	} rows[] = {{1, 0xc001},       {0x3fff, 0xffff},  {0x4000, 0xc001},
		    {0xfffff, 0xffc0}, {0xfc000, 0xc03f}, {0x04001, 0xc000}};
	struct engine e;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_qp_attr attr;
		struct tap taps[2];

		engine_open(&e, &conn);
		attr = conn_qp_attr(&conn, 0, e.b, e.end[1].qpn);
		attr.state = URXE_QPS_SQD;
		assert_int_equal(urxe_qp_modify(e.end[0].qp, 0, &attr, URXE_QP_STATE), 0);
		attr.path.flow_label = rows[i].label;
		assert_int_equal(urxe_qp_modify(e.end[0].qp, 0, &attr, URXE_QP_AV), 0);
		attr.state = URXE_QPS_RTS;
		assert_int_equal(urxe_qp_modify(e.end[0].qp, 0, &attr, URXE_QP_STATE), 0);
		listen(&e, taps);
		send_one(&e, URXE_QPT_RC, URXE_NET_IPV4);
		assert_int_equal(taps[0].last.udp_sport, rows[i].sport);
		assert_true(taps[1].last.udp_sport >= 0xc000);
		engine_close(&e);
	}
}

static uint16_t port_of(uint32_t qpn, uint32_t remote_qpn)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;
	struct tap taps[2];

	conn.qpn[0] = qpn;
	conn.qpn[1] = remote_qpn;
	engine_open(&e, &conn);
	listen(&e, taps);
	send_one(&e, URXE_QPT_RC, URXE_NET_IPV4);
	assert_int_equal(taps[1].last.udp_sport, taps[0].last.udp_sport);
	engine_close(&e);
	return taps[0].last.udp_sport;
}

/* Queue pairs have consecutive QPNs, and so have their peers, in blocks of two processes. */
static void test_udp_source_ports_of_queue_pairs_differ(void **state)
{
	static const uint32_t peers[] = {0x1000, 0x2000};
	uint16_t ports[64];

	(void)state;
	for (unsigned peer = 0; peer < 2; peer++) {
		unsigned distinct = 0;

		for (unsigned i = 0; i < 64; i++) {
			unsigned before = 0;

			ports[i] = port_of(0x1000 + i, peers[peer] + i);
			assert_true(ports[i] >= 0xc000);
			while (before < i && ports[before] != ports[i])
				before++;
			distinct += before == i;
		}
		assert_true(distinct >= 60);
	}
}

/* The first QPNs of processes are multiples of 4,096. Linux' bonds (layer3+4) choose a path by low
 * bits of the port. */
static void test_udp_source_ports_of_processes_differ_in_low_bits(void **state)
{
	uint16_t ones = 0, zeros = 0;

	(void)state;
	for (uint32_t i = 1; i <= 16; i++) {
		uint16_t port = port_of(i << 12, i << 12);

		assert_true(port >= 0xc000);
		ones |= port;
		zeros |= (uint16_t)~port;
	}
	assert_int_equal(ones & 0x3fff, 0x3fff);
	assert_int_equal(zeros & 0x3fff, 0x3fff);
}

/* An IPv6 packet has no IPv4 source, nor the reverse; RoCEv1 has only GIDs. */
static void test_addresses_of_a_path_have_one_family(void **state)
{
	static const uint8_t nets[] = {URXE_NET_ROCEV1, URXE_NET_IPV4, URXE_NET_IPV6};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_qp_attr attr;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	attr = conn_qp_attr(&conn, 0, e.b, e.end[1].qpn);
	attr.state = URXE_QPS_SQD;
	assert_int_equal(urxe_qp_modify(e.end[0].qp, 0, &attr, URXE_QP_STATE), 0);
	for (size_t from = 0; from < sizeof(nets); from++)
		for (size_t to = 1; to < sizeof(nets); to++) {
			attr.path = conn_path(nets[to], e.b);
			attr.path.sgid_index = NODE_SGID(nets[from]);
			assert_int_equal(urxe_qp_modify(e.end[0].qp, 0, &attr, URXE_QP_AV),
					 !from || from == to ? 0 : -EINVAL);
		}
	engine_close(&e);
}

static void test_vlan_of_a_gid_is_checked(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_gid gid = craft_gid(URXE_NET_IPV4, 1);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	assert_int_equal(urxe_gid_set_vlan(e.a->dev, URXE_MAX_GIDS, 1), -EINVAL);
	assert_int_equal(urxe_gid_set_vlan(e.a->dev, URXE_MAX_GIDS - 1, 1), -EINVAL); /* empty */
	assert_int_equal(urxe_gid_set_vlan(e.a->dev, URXE_NET_IPV4, 4095), -EINVAL);
	assert_int_equal(urxe_gid_set_vlan(e.a->dev, URXE_NET_IPV4, 4094), 0);
	assert_int_equal(urxe_gid_set_vlan(e.a->dev, URXE_NET_IPV4, 0), 0);
	assert_int_equal(urxe_gid_set_vlan(e.a->dev, URXE_NET_IPV4, VLAN), 0);
	/* A GID entry that is set again has no VLAN. */
	assert_int_equal(urxe_gid_set(e.a->dev, URXE_NET_IPV4, &gid, false), 0);
	post_recv(&e.end[0], 4, 0, 64);
	post_send(&e, 1, &(struct post){.wr_id = 3, .opcode = URXE_WR_SEND, .length = 8});
	pair_settle(e.pair);
	expect_wc(&e.a->recv_cq, 4, URXE_WC_SUCCESS);
	engine_close(&e);
}

/* A QP receives only frames in the VLAN of its address; a tag with VLAN ID 0 counts as no tag. */
static void test_qp_receives_only_its_vlan(void **state)
{
	static const struct {
		uint16_t own;
		bool tagged;
		uint16_t tci;
		bool good;
	} rows[] = {
		{0, false, 0, true},         {0, true, 0xe000, true},
		{0, true, 1, false},         {VLAN, true, VLAN, true},
		{VLAN, false, 0, false},     {VLAN, true, 0xe000, false},
		{VLAN, true, 0x0122, false}, {VLAN, true, 0xf123, true},
		{0, true, 0xfff, false},
	};

	(void)state;
	for (uint8_t type = URXE_QPT_RC; type <= URXE_QPT_UD; type++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct conn_attr conn = conn_default(type);
			struct urxe_packet p;
			struct engine e;

			engine_open(&e, &conn);
			assert_int_equal(
				urxe_gid_set_vlan(e.b->dev, NODE_SGID(conn.net), rows[i].own), 0);
			post_recv(&e.end[1], 1, 0, 64);
			p = from_peer(&e, &conn, (uint8_t)(0x04 | (type - URXE_QPT_RC) << 5));
			if (type == URXE_QPT_UD)
				p.opcode = 0x64;
			p.has_vlan = rows[i].tagged;
			p.vlan_tci = rows[i].tci;
			inject(&e, &p);
			if (drops(e.b, URXE_DROP_BAD_VLAN) != !rows[i].good)
				fail_msg("type %u, own %x, tag %x", type, rows[i].own, rows[i].tci);
			if (rows[i].good)
				expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
			expect_none(&e.b->recv_cq);
			engine_close(&e);
		}
}

/*
 * One address in two VLANs: a datagram may arrive in either, a connection receives only in its own.
 */
static void test_connection_receives_only_in_its_own_vlan(void **state)
{
	static const uint8_t opcodes[] = {
		[URXE_QPT_RC] = 0x04, [URXE_QPT_UC] = 0x24, [URXE_QPT_UD] = 0x64};

	(void)state;
	for (uint8_t type = URXE_QPT_RC; type <= URXE_QPT_UD; type++) {
		struct conn_attr conn = conn_default(type);
		struct urxe_gid gid = craft_gid(conn.net, 2);
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		assert_int_equal(urxe_gid_set(e.b->dev, 9, &gid, false), 0);
		assert_int_equal(urxe_gid_set_vlan(e.b->dev, 9, VLAN), 0);
		post_recv(&e.end[1], 1, 0, 64);
		p = from_peer(&e, &conn, opcodes[type]);
		p.has_vlan = true;
		p.vlan_tci = VLAN;
		inject(&e, &p);
		assert_int_equal(drops(e.b, URXE_DROP_BAD_VLAN), type != URXE_QPT_UD);
		p.vlan_tci++;
		inject(&e, &p);
		assert_int_equal(drops(e.b, URXE_DROP_BAD_VLAN), 1 + (type != URXE_QPT_UD));
		engine_close(&e);
	}
}

/* A multicast group is received in the VLANs of the device's addresses. */
static void test_groups_are_received_in_vlans_of_the_device(void **state)
{
	static const struct urxe_gid group = {{[10] = 0xff, 0xff, 239, 1, 2, 3}};
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	assert_int_equal(urxe_mcast_attach(e.end[1].qp, &group), 0);
	post_recv(&e.end[1], 1, 0, 64);
	p = from_peer(&e, &conn, 0x64);
	p.dgid = group;
	p.dest_qpn = URXE_QPN_MULTICAST;
	p.has_vlan = true;
	p.vlan_tci = VLAN;
	inject(&e, &p);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_VLAN), 1);
	assert_int_equal(urxe_gid_set_vlan(e.b->dev, URXE_NET_IPV4, VLAN), 0);
	inject(&e, &p);
	expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
	engine_close(&e);
}

/* Delivers a message for which the QP has a receive request. */
static void deliver(struct engine *e, struct urxe_packet *p, uint64_t wr_id)
{
	post_recv(&e->end[1], wr_id, 0, 64);
	inject(e, p);
	expect_wc(&e->b->recv_cq, wr_id, URXE_WC_SUCCESS);
	p->psn = urxe_psn_add(p->psn, 1);
}

static void check_addresses(uint8_t net, uint8_t type)
{
	struct conn_attr conn = conn_default(type);
	struct urxe_packet good, p;
	struct urxe_gid second;
	struct engine e;

	conn.net = net;
	engine_open(&e, &conn);
	second = craft_gid(net, 99);
	assert_int_equal(urxe_gid_set(e.b->dev, 9, &second, net == URXE_NET_ROCEV1), 0);
	good = from_peer(&e, &conn, type == URXE_QPT_RC ? 0x04 : 0x24);
	deliver(&e, &good, 1);
	p = good;
	p.sgid.raw[15]++;
	inject(&e, &p);
	p = good;
	p.dgid = second; /* an address of this node, but not the connection's */
	inject(&e, &p);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_SGID), 2);
	p.dgid.raw[15]++;
	inject(&e, &p);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_DGID), 1);
	p = good;
	p.has_vlan = true;
	p.vlan_tci = 5;
	inject(&e, &p);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_VLAN), 1);
	expect_none(&e.b->recv_cq);
	deliver(&e, &good, 9);
	assert_int_equal(all_drops(e.b), 4);
	/* The GID entry moves to a VLAN, then is removed. */
	assert_int_equal(urxe_gid_set_vlan(e.b->dev, NODE_SGID(net), 5), 0);
	inject(&e, &good);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_VLAN), 2);
	assert_int_equal(urxe_gid_set(e.b->dev, NODE_SGID(net), NULL, false), 0);
	inject(&e, &good);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_DGID), 2);
	expect_none(&e.b->recv_cq);
	engine_close(&e);
}

/* GRH checks of a connection (IBA 9.6.1.2.3): both addresses, and the kind of packet. */
static void test_grh_addresses_are_checked(void **state)
{
	(void)state;
	for (uint8_t net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++)
		for (uint8_t type = URXE_QPT_RC; type <= URXE_QPT_UC; type++)
			check_addresses(net, type);
}

/* Moves a QP to RESET and back to RTR, with another peer. */
static void reconnect(struct engine *e, const struct conn_attr *conn, struct urxe_gid dgid)
{
	struct urxe_qp_attr attr = conn_qp_attr(conn, 1, e->a, e->end[0].qpn);

	attr.path.dgid = dgid;
	for (attr.state = URXE_QPS_RESET; attr.state <= URXE_QPS_RTR; attr.state++)
		assert_int_equal(urxe_qp_modify(e->end[1].qp, e->pair->now, &attr,
						conn_mask(conn->type, attr.state)),
				 0);
}

/* After a reconnection, packets of the old peer are dropped. */
static void test_reconnection_refuses_the_old_peer(void **state)
{
	(void)state;
	for (uint8_t type = URXE_QPT_RC; type <= URXE_QPT_UC; type++) {
		struct conn_attr conn = conn_default(type);
		struct urxe_packet first, p;
		struct engine e;

		conn.net = URXE_NET_IPV4;
		engine_open(&e, &conn);
		first = p = from_peer(&e, &conn, type == URXE_QPT_RC ? 0x04 : 0x24);
		deliver(&e, &p, 1);
		p = first;
		p.sgid = craft_gid(conn.net, 98);
		reconnect(&e, &conn, p.sgid);
		inject(&e, &first);
		assert_int_equal(drops(e.b, URXE_DROP_BAD_SGID), 1);
		deliver(&e, &p, 2);
		assert_int_equal(all_drops(e.b), 1);
		engine_close(&e);
	}
}

/* The frame ends where its allocation ends, so that AddressSanitizer reports reads behind it. */
static void input_exact(struct engine *e, const uint8_t *data, uint32_t len)
{
	struct urxe_frame frame = {malloc(len), len, len};

	assert_non_null(frame.data);
	memcpy(frame.data, data, len);
	urxe_input(e->b->dev, e->pair->now, &frame, 1);
	free(frame.data);
}

static void add_to(uint8_t *field, int16_t more)
{
	craft_put16(field, (uint16_t)(craft_get16(field) + more));
}

/* Frames of a connection with wrong lengths (right: 44 bytes from the IPv4 header on, 24 from the
 * UDP header on), or whose contents are shorter than those. */
static void test_wrong_lengths_are_refused(void **state)
{
	static const struct {
		int16_t ip_more;
		int16_t udp_more;
		enum urxe_drop drop;
	} rows[] = {
		{1, 0, URXE_DROP_TRUNCATED},
		{-1, 0, URXE_DROP_BAD_UDP},
		{0, 4, URXE_DROP_BAD_UDP},
		{0, -4, URXE_DROP_BAD_UDP},
		{-50, 0, URXE_DROP_TRUNCATED},
		{-36, 0, URXE_DROP_BAD_IP},
		/* The two agree. */
		{4, 4, URXE_DROP_TRUNCATED},
		{-4, -4, URXE_DROP_BAD_LENGTH},
		{-16, -16, URXE_DROP_BAD_LENGTH},
		{-17, -17, URXE_DROP_BAD_UDP},
		{-20, -20, URXE_DROP_BAD_UDP},
		{-24, -24, URXE_DROP_BAD_UDP},
		{-28, -28, URXE_DROP_BAD_IP},
	};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint8_t data[CRAFT_MAX];
	struct urxe_packet p;
	struct engine e;

	(void)state;
	conn.net = URXE_NET_IPV4;
	engine_open(&e, &conn);
	p = from_peer(&e, &conn, 0x04);
	deliver(&e, &p, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t len = craft_frame(data, &p);
		uint64_t before = drops(e.b, rows[i].drop);

		add_to(data + 16, rows[i].ip_more);
		add_to(data + 38, rows[i].udp_more);
		input_exact(&e, data, len);
		if (drops(e.b, rows[i].drop) != before + 1)
			fail_msg("IPv4 %+d, UDP %+d", rows[i].ip_more, rows[i].udp_more);
	}
	for (uint32_t len = craft_frame(data, &p); len--;)
		input_exact(&e, data, len);
	expect_none(&e.b->recv_cq);
	deliver(&e, &p, 2);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path_attributes_are_on_the_wire),
		cmocka_unit_test(test_longest_packet_fits_the_buffer),
		cmocka_unit_test(test_udp_source_port_follows_the_flow_label),
		cmocka_unit_test(test_udp_source_ports_of_queue_pairs_differ),
		cmocka_unit_test(test_udp_source_ports_of_processes_differ_in_low_bits),
		cmocka_unit_test(test_addresses_of_a_path_have_one_family),
		cmocka_unit_test(test_vlan_of_a_gid_is_checked),
		cmocka_unit_test(test_qp_receives_only_its_vlan),
		cmocka_unit_test(test_connection_receives_only_in_its_own_vlan),
		cmocka_unit_test(test_groups_are_received_in_vlans_of_the_device),
		cmocka_unit_test(test_grh_addresses_are_checked),
		cmocka_unit_test(test_reconnection_refuses_the_old_peer),
		cmocka_unit_test(test_wrong_lengths_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
