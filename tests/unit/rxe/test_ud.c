/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagrams: Q_Keys, the GRH area, immediate data, and datagrams that do not fit. */
#include <errno.h>
#include <string.h>

#include "engine.h"

struct datagram {
	uint32_t opcode;
	uint32_t length;
	uint32_t qkey;
	uint32_t qpn; /* 0 = the peer's QPN */
};

static int try_datagram(struct engine *e, uint8_t net, const struct datagram *d)
{
	struct urxe_path path = conn_path(net, e->b);
	struct urxe_seg seg = node_seg(e->a, 0, d->length);
	struct urxe_send_wr wr = {
		.wr_id = 1,
		.opcode = d->opcode,
		.imm = 0x11223344,
		.segs = &seg,
		.n_segs = 1,
		.path = &path,
		.remote_qpn = d->qpn ? d->qpn : e->end[1].qpn,
		.remote_qkey = d->qkey,
	};
	int rc;

	path.traffic_class = 0x28;
	path.hop_limit = 17;
	path.flow_label = 0x54321;
	rc = urxe_post_send(e->end[0].qp, &wr);
	pair_settle(e->pair);
	return rc;
}

static void send_datagram(struct engine *e, uint8_t net, const struct datagram *d)
{
	assert_int_equal(try_datagram(e, net, d), 0);
	expect_wc(&e->a->send_cq, 1, URXE_WC_SUCCESS);
}

/* A17.4.5.2: an IPv6 header or GRH as on the wire; an IPv4 header in the last 20 of 40 bytes. */
static void check_grh(const uint8_t *grh, uint8_t net)
{
	struct urxe_gid from = craft_gid(net, 1), to = craft_gid(net, 2);

	if (net == URXE_NET_IPV4) {
		assert_int_equal(grh[20], 0x45);
		assert_int_equal(grh[21], 0x28 | 2); /* ECT(0), which test_congestion.c checks */
		assert_int_equal(grh[28], 17);
		assert_memory_equal(grh + 32, from.raw + 12, 4);
		assert_memory_equal(grh + 36, to.raw + 12, 4);
		return;
	}
	assert_int_equal(grh[0] >> 4, 6);
	assert_int_equal((grh[0] & 15) << 4 | grh[1] >> 4, net == URXE_NET_IPV6 ? 0x28 | 2 : 0x28);
	assert_int_equal((grh[1] & 15) << 16 | grh[2] << 8 | grh[3], 0x54321);
	assert_int_equal(grh[7], 17);
	assert_memory_equal(grh + 8, &from, 16);
	assert_memory_equal(grh + 24, &to, 16);
}

static void test_datagrams_of_all_lengths(void **state)
{
	static const uint32_t lengths[] = {0, 1, 3, 255, 1024};
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	for (uint8_t net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++)
		for (size_t i = 0; i < 10; i++) {
			uint32_t length = lengths[i / 2];
			bool imm = i & 1;
			struct urxe_wc wc;

			rand_fill(&(struct rand){i}, e.a->mem, length);
			memset(e.b->mem, 0, 2000);
			post_recv(&e.end[1], 2, 0, URXE_GRH_LEN + length);
			send_datagram(&e, net,
				      &(struct datagram){imm ? URXE_WR_SEND_IMM : URXE_WR_SEND,
							 length, conn.qkey, 0});
			wc = expect_wc(&e.b->recv_cq, 2, URXE_WC_SUCCESS);
			assert_int_equal(wc.opcode, URXE_WC_RECV);
			assert_int_equal(wc.byte_len, URXE_GRH_LEN + length);
			assert_int_equal(wc.src_qpn, e.end[0].qpn);
			assert_int_equal(wc.flags, URXE_WC_GRH | (imm ? URXE_WC_WITH_IMM : 0));
			if (imm)
				assert_int_equal(wc.imm, 0x11223344);
			assert_memory_equal(e.b->mem + URXE_GRH_LEN, e.a->mem, length);
			check_grh(e.b->mem, net);
		}
	engine_close(&e);
}

/*
 * A datagram carries the Q_Key of the address handle's peer, or with the high bit set the sender's
 * own (IBA 10.2.5).
 */
static void test_qkey_comes_from_request_or_qp(void **state)
{
	const struct {
		uint32_t sent;
		bool good;
	} rows[] = {{0x11111111, true}, {0x11111110, false}, {0x01111111, false}, {0, false},
		    {0x80000000, true}, {0x80010000, true},  {0xffffffff, true}};
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct engine e;
	uint64_t bad = 0;

	(void)state;
	engine_open(&e, &conn);
	post_recv(&e.end[1], 2, 0, 100);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		send_datagram(&e, URXE_NET_IPV4,
			      &(struct datagram){URXE_WR_SEND, 8, rows[i].sent, 0});
		if (rows[i].good) {
			expect_wc(&e.b->recv_cq, 2, URXE_WC_SUCCESS);
			post_recv(&e.end[1], 2, 0, 100);
		} else {
			bad++;
		}
		expect_none(&e.b->recv_cq);
		assert_int_equal(drops(e.b, URXE_DROP_BAD_QKEY), bad);
	}
	engine_close(&e);
}

/* A new Q_Key applies from the next datagram on. */
static void test_new_qkey_applies_at_once(void **state)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_RTS, .qkey = 0x22222222};
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_recv(&e.end[1], 2, 0, 100);
	assert_int_equal(
		urxe_qp_modify(e.end[1].qp, e.pair->now, &attr, URXE_QP_STATE | URXE_QP_QKEY), 0);
	send_datagram(&e, URXE_NET_IPV4, &(struct datagram){URXE_WR_SEND, 8, 0x11111111, 0});
	expect_none(&e.b->recv_cq);
	send_datagram(&e, URXE_NET_IPV4, &(struct datagram){URXE_WR_SEND, 8, 0x22222222, 0});
	expect_wc(&e.b->recv_cq, 2, URXE_WC_SUCCESS);
	engine_close(&e);
}

/*
 * The receiver drops a datagram that it cannot deliver, with a named reason; the sender gets no
 * error.
 */
static void test_undeliverable_datagrams_are_dropped(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	send_datagram(&e, URXE_NET_IPV4, &(struct datagram){URXE_WR_SEND, 8, conn.qkey, 0});
	assert_int_equal(drops(e.b, URXE_DROP_NO_RECV), 1);
	post_recv(&e.end[1], 2, 0, URXE_GRH_LEN + 7);
	send_datagram(&e, URXE_NET_IPV4, &(struct datagram){URXE_WR_SEND, 8, conn.qkey, 0});
	expect_none(&e.b->recv_cq);
	send_datagram(&e, URXE_NET_IPV4, &(struct datagram){URXE_WR_SEND, 7, conn.qkey, 0});
	expect_wc(&e.b->recv_cq, 2, URXE_WC_SUCCESS);
	send_datagram(&e, URXE_NET_IPV4, &(struct datagram){URXE_WR_SEND, 8, conn.qkey, 0x777777});
	assert_int_equal(drops(e.b, URXE_DROP_BAD_QPN), 1);
	assert_int_equal(all_drops(e.b), 3);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_RTS);
	engine_close(&e);
}

static void test_unfit_datagrams_are_refused(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct urxe_seg seg;
	struct urxe_send_wr wr = {.opcode = URXE_WR_SEND, .segs = &seg, .n_segs = 1};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	assert_int_equal(
		try_datagram(&e, URXE_NET_IPV4, &(struct datagram){URXE_WR_RDMA_WRITE, 8, 0, 0}),
		-EINVAL);
	assert_int_equal(
		try_datagram(&e, URXE_NET_IPV4, &(struct datagram){URXE_WR_RDMA_READ, 8, 0, 0}),
		-EINVAL);
	assert_int_equal(
		try_datagram(&e, URXE_NET_IPV4, &(struct datagram){URXE_WR_SEND, 4097, 0, 0}),
		-EMSGSIZE); /* longer than a packet */
	seg = node_seg(e.a, 0, 8);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), -EINVAL); /* to nowhere */
	engine_close(&e);
}

/* As Linux' rxe does, which finds no route then. Nothing is sent to the MAC address 0. */
static void test_datagram_without_next_hop_fails(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	uint8_t mac[6];
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	memcpy(mac, e.b->mac, sizeof(mac));
	memset(e.b->mac, 0, sizeof(mac));
	assert_int_equal(
		try_datagram(&e, URXE_NET_IPV4, &(struct datagram){URXE_WR_SEND, 8, conn.qkey, 0}),
		0);
	memcpy(e.b->mac, mac, sizeof(mac));
	expect_wc(&e.a->send_cq, 1, URXE_WC_LOC_QP_OP_ERR);
	assert_int_equal(qp_state(&e.end[0]), URXE_QPS_SQE);
	assert_int_equal(all_drops(e.b), 0);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_datagrams_of_all_lengths),
		cmocka_unit_test(test_qkey_comes_from_request_or_qp),
		cmocka_unit_test(test_new_qkey_applies_at_once),
		cmocka_unit_test(test_undeliverable_datagrams_are_dropped),
		cmocka_unit_test(test_unfit_datagrams_are_refused),
		cmocka_unit_test(test_datagram_without_next_hop_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
