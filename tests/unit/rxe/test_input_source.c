/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames that come from the wire must not have an address of the device as their source. */
#include <string.h>

#include "engine.h"

#define SMAC_AT 6

/* The last frame of node 0; the link loses it. */
struct copy {
	uint8_t data[512];
	uint32_t len;
};

static bool copy_frame(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct copy *copy = arg;

	(void)now;
	assert_true(len <= sizeof(copy->data));
	memcpy(copy->data, data, len);
	copy->len = len;
	return false;
}

static void open_and_send(struct engine *e, uint8_t type, uint8_t net, struct copy *copy)
{
	struct conn_attr conn = conn_default(type);
	struct urxe_path path;
	struct urxe_seg seg;
	struct urxe_send_wr wr = {.wr_id = 1, .opcode = URXE_WR_SEND, .segs = &seg, .n_segs = 1};

	conn.net = net;
	engine_open(e, &conn);
	e->pair->link[0].filter = copy_frame;
	e->pair->link[0].filter_arg = copy;
	post_recv(&e->end[1], 2, 0, 64);
	seg = node_seg(e->a, 0, 8);
	path = conn_path(net, e->b);
	if (type == URXE_QPT_UD) {
		wr.path = &path;
		wr.remote_qpn = e->end[1].qpn;
		wr.remote_qkey = conn.qkey;
	}
	assert_int_equal(urxe_post_send(e->end[0].qp, &wr), 0);
	pair_step(e->pair);
	assert_true(copy->len > 0);
}

static uint64_t refused(const struct node *node)
{
	return urxe_dev_counters(node->dev)->drop[URXE_DROP_OWN_SOURCE];
}

static void input(struct engine *e, struct copy *copy, bool from_wire)
{
	const struct urxe_frame frame = {
		.data = copy->data, .len = copy->len, .from_wire = from_wire};

	urxe_input(e->b->dev, e->pair->now, &frame, 1);
}

static void frames_of_other_hosts_pass(void **state)
{
	(void)state;
	for (uint8_t type = URXE_QPT_RC; type <= URXE_QPT_UD; type++) {
		struct copy copy = {.len = 0};
		struct engine e;

		open_and_send(&e, type, URXE_NET_IPV4, &copy);
		input(&e, &copy, true);
		expect_wc(&e.b->recv_cq, 2, URXE_WC_SUCCESS);
		assert_int_equal(refused(e.b), 0);
		engine_close(&e);
	}
}

static void own_mac_address_is_refused(void **state)
{
	struct copy copy = {.len = 0};
	struct engine e;

	(void)state;
	open_and_send(&e, URXE_QPT_RC, URXE_NET_IPV4, &copy);
	memcpy(copy.data + SMAC_AT, e.b->mac, sizeof(e.b->mac));
	input(&e, &copy, true);
	expect_none(&e.b->recv_cq);
	assert_int_equal(refused(e.b), 1);
	/* The switch has checked the frame: it comes from another process of this host. */
	input(&e, &copy, false);
	expect_wc(&e.b->recv_cq, 2, URXE_WC_SUCCESS);
	input(&e, &copy, true);
	assert_int_equal(refused(e.b), 2);
	engine_close(&e);
}

static void own_ip_address_is_refused(void **state)
{
	(void)state;
	for (uint8_t net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++) {
		struct copy copy = {.len = 0};
		struct urxe_gid gid;
		struct engine e;

		open_and_send(&e, URXE_QPT_UD, net, &copy);
		/* Node 1 gets node 0's address, as if both were one host. */
		gid = conn_path(net, e.a).dgid;
		assert_int_equal(urxe_gid_set(e.b->dev, 9, &gid, net == URXE_NET_ROCEV1), 0);
		input(&e, &copy, true);
		expect_none(&e.b->recv_cq);
		assert_int_equal(refused(e.b), 1);
		input(&e, &copy, false);
		expect_wc(&e.b->recv_cq, 2, URXE_WC_SUCCESS);
		engine_close(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_other_hosts_pass),
		cmocka_unit_test(own_mac_address_is_refused),
		cmocka_unit_test(own_ip_address_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
