/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which frames may leave as one UDP GSO packet, and how a peer tells that it receives such packets.
 */
#include "engine.h"

#define MTU_BYTES 1024
#define MOST      32 /* frames of one urxe_output */
#define ROOM      4300
#define ETHERNET  14

struct run {
	struct urxe_frame frames[MOST];
	uint32_t n;
};

static uint8_t memory[MOST][ROOM];

/* peer_qpn: 0 = any. */
static void open_to(struct engine *e, uint8_t net, uint32_t peer_qpn)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.net = net;
	conn.path_mtu = URXE_MTU_1024;
	conn.qpn[1] = peer_qpn;
	engine_open(e, &conn);
}

static void open_gso(struct engine *e, uint8_t net, bool a, bool b)
{
	open_to(e, net, 0);
	urxe_dev_set_gso(e->a->dev, a);
	urxe_dev_set_gso(e->b->dev, b);
}

/* A request of node 0 that completes: its answer shows what node 1 can receive. */
static void exchange(struct engine *e, uint32_t opcode, uint32_t length)
{
	post_send(e, 0, &(struct post){.opcode = opcode, .length = length});
	pair_settle(e->pair);
	expect_wc(&e->a->send_cq, 0, URXE_WC_SUCCESS);
}

static struct run output(struct engine *e, struct node *node)
{
	struct run run;

	for (uint32_t i = 0; i < MOST; i++)
		run.frames[i] = (struct urxe_frame){.data = memory[i], .room = ROOM};
	run.n = urxe_output(node->dev, e->pair->now, run.frames, MOST);
	return run;
}

/* Posts a request and returns the packets that it begins with. */
static struct run request(struct engine *e, uint32_t opcode, uint32_t length)
{
	post_send(e, 0, &(struct post){.opcode = opcode, .length = length});
	return output(e, e->a);
}

static struct urxe_packet parse(const struct urxe_frame *frame)
{
	struct urxe_packet p;

	assert_int_equal(urxe_packet_parse(&p, frame->data, frame->len), URXE_DROP_NONE);
	assert_true(urxe_packet_icrc_ok(&p));
	return p;
}

static uint32_t identification(const struct urxe_frame *frame)
{
	return craft_get16(frame->data + ETHERNET + 4);
}

/* What the kernel requires of the segments of one packet, and what the ICRC does. */
static void expect_segments(const struct run *run, uint8_t net)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < run->n; i++) {
		const struct urxe_frame *frame = &run->frames[i];

		parse(frame);
		if (!frame->continues) {
			first = i;
			continue;
		}
		assert_true(i > 0);
		assert_true(frame->len <= run->frames[first].len);
		assert_true(i == first + 1 || frame[-1].len == run->frames[first].len);
		assert_memory_equal(frame->data, run->frames[first].data, ETHERNET);
		if (net == URXE_NET_IPV4)
			assert_int_equal(identification(frame), identification(&frame[-1]) + 1);
	}
}

static uint32_t count_continuing(const struct run *run)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < run->n; i++)
		n += run->frames[i].continues;
	return n;
}

static void deliver(struct engine *e, const struct run *run, struct node *to)
{
	urxe_input(to->dev, e->pair->now, run->frames, run->n);
}

static void test_write_packets_form_gso_runs(void **state)
{
	(void)state;
	for (uint8_t net = URXE_NET_IPV4; net <= URXE_NET_IPV6; net++) {
		struct engine e;
		struct run run;

		open_gso(&e, net, true, true);
		exchange(&e, URXE_WR_RDMA_WRITE, 8);
		rand_fill(&(struct rand){net}, e.a->mem, 9 * MTU_BYTES + 100);
		run = request(&e, URXE_WR_RDMA_WRITE, 9 * MTU_BYTES + 100);
		assert_int_equal(run.n, 10);
		/* The first packet is longer by its RETH, so the second ends its run. */
		assert_int_equal(count_continuing(&run), 8);
		expect_segments(&run, net);
		deliver(&e, &run, e.b);
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
		assert_memory_equal(e.a->mem, e.b->mem, 9 * MTU_BYTES + 100);
		engine_close(&e);
	}
}

/* The peer's READ request shows that it receives GSO packets. */
static void test_read_responses_form_gso_runs(void **state)
{
	struct engine e;
	struct run run;

	(void)state;
	open_gso(&e, URXE_NET_IPV4, true, true);
	run = request(&e, URXE_WR_RDMA_READ, 10 * MTU_BYTES);
	assert_int_equal(run.n, 1);
	deliver(&e, &run, e.b);
	run = output(&e, e.b);
	assert_int_equal(run.n, 10);
	assert_true(count_continuing(&run) >= 7);
	expect_segments(&run, URXE_NET_IPV4);
	engine_close(&e);
}

static void expect_no_run(struct engine *e)
{
	struct run run = request(e, URXE_WR_RDMA_WRITE, 10 * MTU_BYTES);

	assert_int_equal(run.n, 10);
	assert_int_equal(count_continuing(&run), 0);
	for (uint32_t i = 0; i < run.n; i++)
		parse(&run.frames[i]);
	deliver(e, &run, e->b);
	pair_settle(e->pair);
	expect_wc(&e->a->send_cq, 0, URXE_WC_SUCCESS);
}

static void test_only_between_two_that_know_gso(void **state)
{
	(void)state;
	for (unsigned which = 0; which < 3; which++) {
		struct engine e;

		open_gso(&e, URXE_NET_IPV4, which & 1, which & 2);
		exchange(&e, URXE_WR_RDMA_WRITE, 8);
		expect_no_run(&e);
		engine_close(&e);
	}
}

static void test_rocev1_frames_form_no_gso_run(void **state)
{
	struct engine e;

	(void)state;
	open_gso(&e, URXE_NET_ROCEV1, true, true);
	exchange(&e, URXE_WR_RDMA_WRITE, 8);
	expect_no_run(&e);
	engine_close(&e);
}

/* The kernel moves a VLAN tag out of the frame and back. */
static void test_vlan_frames_form_no_gso_run(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.net = URXE_NET_IPV4;
	conn.path_mtu = URXE_MTU_1024;
	e.pair = pair_create(&(struct pair_attr){.seed = 1});
	e.a = e.pair->node[0];
	e.b = e.pair->node[1];
	for (unsigned i = 0; i < 2; i++) {
		struct urxe_dev *dev = e.pair->node[i]->dev;

		urxe_dev_set_gso(dev, true);
		assert_int_equal(urxe_gid_set_vlan(dev, NODE_SGID(URXE_NET_IPV4), 5), 0);
	}
	conn_open(e.pair, &conn, e.end);
	exchange(&e, URXE_WR_RDMA_WRITE, 8);
	expect_no_run(&e);
	engine_close(&e);
}

/* The peer's daemon takes over its frames: the next ACK has no mark. */
static void test_the_peer_stops_receiving_gso(void **state)
{
	struct engine e;

	(void)state;
	open_gso(&e, URXE_NET_IPV4, true, true);
	exchange(&e, URXE_WR_RDMA_WRITE, 8);
	urxe_dev_set_gso(e.b->dev, false);
	exchange(&e, URXE_WR_RDMA_WRITE, 8);
	expect_no_run(&e);
	urxe_dev_set_gso(e.b->dev, true);
	exchange(&e, URXE_WR_RDMA_WRITE, 8);
	assert_true(request(&e, URXE_WR_RDMA_WRITE, 10 * MTU_BYTES).frames[3].continues);
	engine_close(&e);
}

static void modify(struct engine *e, unsigned side, const struct urxe_qp_attr *attr, uint32_t mask)
{
	assert_int_equal(urxe_qp_modify(e->end[side].qp, e->pair->now, attr, mask), 0);
}

/* The new peer, or the peer on its new path, has not told yet that it receives GSO packets. */
static void test_a_new_peer_gets_no_gso_run_at_first(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	open_gso(&e, URXE_NET_IPV4, true, true);
	exchange(&e, URXE_WR_RDMA_WRITE, 8);
	conn.net = URXE_NET_IPV4;
	conn.path_mtu = URXE_MTU_1024;
	for (unsigned side = 0; side < 2; side++) {
		modify(&e, side, &(struct urxe_qp_attr){.state = URXE_QPS_RESET}, URXE_QP_STATE);
		conn_bring_up(e.pair, &conn, side, &e.end[side], &e.end[!side]);
	}
	expect_no_run(&e);
	engine_close(&e);
}

static void test_a_new_path_gets_no_gso_run_at_first(void **state)
{
	struct urxe_qp_attr attr = {.state = URXE_QPS_SQD};
	struct engine e;

	(void)state;
	open_gso(&e, URXE_NET_IPV4, true, true);
	exchange(&e, URXE_WR_RDMA_WRITE, 8);
	modify(&e, 0, &attr, URXE_QP_STATE);
	attr.path = conn_path(URXE_NET_IPV4, e.b);
	modify(&e, 0, &attr, URXE_QP_STATE | URXE_QP_AV);
	attr.state = URXE_QPS_RTS;
	modify(&e, 0, &attr, URXE_QP_STATE);
	expect_no_run(&e);
	engine_close(&e);
}

static uint32_t label_of_run(struct engine *e)
{
	struct run run;
	uint32_t label;

	exchange(e, URXE_WR_RDMA_WRITE, 8);
	run = request(e, URXE_WR_RDMA_WRITE, 10 * MTU_BYTES);
	assert_true(count_continuing(&run) > 0);
	label = parse(&run.frames[0]).flow_label;
	for (uint32_t i = 1; i < run.n; i++)
		assert_int_equal(parse(&run.frames[i]).flow_label, label);
	return label;
}

/* GRO joins IPv6 packets of one flow. So runs to QPs of two processes have two flow labels. */
static void test_ipv6_runs_to_two_peers_have_two_flows(void **state)
{
	uint32_t labels[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct engine e;

		open_to(&e, URXE_NET_IPV6, 0x1000 * (i + 1));
		urxe_dev_set_gso(e.a->dev, true);
		urxe_dev_set_gso(e.b->dev, true);
		labels[i] = label_of_run(&e);
		engine_close(&e);
	}
	assert_int_not_equal(labels[0], labels[1]);
}

/*
 * A network may spread IPv6 packets by their flow label. So all packets of a QP have one label:
 * before and after the peer's first mark, and repeated.
 */
static void test_ipv6_packets_of_a_qp_have_one_flow_label(void **state)
{
	struct engine e;
	struct run run;
	uint32_t label;

	(void)state;
	open_gso(&e, URXE_NET_IPV6, true, true);
	run = request(&e, URXE_WR_RDMA_WRITE, 8);
	label = parse(&run.frames[0]).flow_label;
	assert_int_not_equal(label, 0);
	deliver(&e, &run, e.b);
	pair_settle(e.pair);
	assert_int_equal(label_of_run(&e), label);
	e.pair->now = urxe_next_deadline(e.a->dev);
	run = output(&e, e.a); /* again */
	assert_int_equal(run.n, 1);
	assert_int_equal(parse(&run.frames[0]).flow_label, label);
	engine_close(&e);
}

/* The label that is made of a QPN does not count as the mark. */
static void test_ipv6_flow_label_of_a_qpn_is_no_mark(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.net = URXE_NET_IPV6;
	conn.path_mtu = URXE_MTU_1024;
	conn.qpn[0] = 0x57578;
	engine_open(&e, &conn);
	urxe_dev_set_gso(e.a->dev, true);
	exchange(&e, URXE_WR_RDMA_WRITE, 8);
	expect_no_run(&e);
	engine_close(&e);
}

static void test_ipv6_runs_have_the_flow_label_of_the_path(void **state)
{
	struct urxe_qp_attr attr = {.state = URXE_QPS_SQD};
	struct engine e;

	(void)state;
	open_gso(&e, URXE_NET_IPV6, true, true);
	modify(&e, 0, &attr, URXE_QP_STATE);
	attr.path = conn_path(URXE_NET_IPV6, e.b);
	attr.path.flow_label = 0x12345;
	modify(&e, 0, &attr, URXE_QP_STATE | URXE_QP_AV);
	attr.state = URXE_QPS_RTS;
	modify(&e, 0, &attr, URXE_QP_STATE);
	assert_int_equal(label_of_run(&e), 0x12345);
	engine_close(&e);
}

/* Repeated packets reach a receiver of any kind. */
static void test_repeated_packets_go_alone(void **state)
{
	struct engine e;
	struct run run;
	uint32_t repeated = 0;

	(void)state;
	open_gso(&e, URXE_NET_IPV4, true, true);
	exchange(&e, URXE_WR_RDMA_WRITE, 8);
	run = request(&e, URXE_WR_RDMA_WRITE, 10 * MTU_BYTES);
	assert_true(count_continuing(&run) > 0);
	/* All are lost. */
	while (repeated < 10) {
		uint64_t at = urxe_next_deadline(e.a->dev);

		if (at > e.pair->now)
			e.pair->now = at;
		run = output(&e, e.a);
		assert_int_equal(count_continuing(&run), 0);
		repeated += run.n;
		deliver(&e, &run, e.b);
		run = output(&e, e.b);
		deliver(&e, &run, e.a);
	}
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_packets_form_gso_runs),
		cmocka_unit_test(test_read_responses_form_gso_runs),
		cmocka_unit_test(test_only_between_two_that_know_gso),
		cmocka_unit_test(test_rocev1_frames_form_no_gso_run),
		cmocka_unit_test(test_vlan_frames_form_no_gso_run),
		cmocka_unit_test(test_the_peer_stops_receiving_gso),
		cmocka_unit_test(test_a_new_peer_gets_no_gso_run_at_first),
		cmocka_unit_test(test_a_new_path_gets_no_gso_run_at_first),
		cmocka_unit_test(test_ipv6_runs_to_two_peers_have_two_flows),
		cmocka_unit_test(test_ipv6_packets_of_a_qp_have_one_flow_label),
		cmocka_unit_test(test_ipv6_flow_label_of_a_qpn_is_no_mark),
		cmocka_unit_test(test_ipv6_runs_have_the_flow_label_of_the_path),
		cmocka_unit_test(test_repeated_packets_go_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
