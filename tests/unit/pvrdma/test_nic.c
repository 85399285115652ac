/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the state, the MTU and the MAC of the machine's NIC change for its PVRDMA device. */
#include "pair.h"

/* No frame passes a NIC that is down, of the requester or of the responder. */
static void test_no_frame_passes_an_inactive_nic(void **state)
{
	(void)state;
	for (int which = 0; which < 2; which++) {
		struct pvrdma_sq_wqe_hdr header;
		struct pvrdma_owner owner;
		struct pvrdma_nic nic = {.mtu = GUEST_MTU};
		struct pair p = {0};

		pair_open_guests(&p, URXE_NET_IPV4);
		guest_give_nic(&p.guest[which], &owner, &nic);
		guest_start(&p.guest[which]);
		pair_open_queues(&p, &(struct pair_attr){.type = PV_QPT_RC});
		buffer_fill(&p.guest[0], &p.buffer[0], 0, 100, 3);
		header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
		execute(&p, &header, 0, 100);
		expect_cqe(&p, 0, header.wr_id, PVRDMA_WC_RETRY_EXC_ERR, 0);
		assert_false(buffer_has(&p.guest[1], &p.buffer[1], 0, 100, 3));
		/* The requester's frames reach the cable only if its own NIC is up. */
		assert_int_equal(p.net.moved > 0, which);
		assert_int_equal(pvrdma_counters(p.guest[0].dev)[PVRDMA_TX_DOWN] > 0, !which);
		assert_int_equal(pvrdma_counters(p.guest[1].dev)[PVRDMA_RX_FRAMES], 0);
		nic.active = true;
		reconnect(&p);
		execute(&p, &header, 0, 100);
		expect_cqe(&p, 0, header.wr_id, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
		assert_true(buffer_has(&p.guest[1], &p.buffer[1], 0, 100, 3));
		pair_close(&p);
	}
}

/* A datagram is at most as long as the port's MTU, which the driver of the NIC chooses. */
static void test_datagram_beyond_the_mtu_of_the_nic_fails(void **state)
{
	struct pvrdma_nic nic = {.active = true, .mtu = 1500};
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_owner owner;
	struct pair p = {0};

	(void)state;
	pair_open_guests(&p, URXE_NET_IPV4);
	p.guest[0].attr.mtu = 4200;
	guest_give_nic(&p.guest[0], &owner, &nic);
	guest_start(&p.guest[0]);
	pair_open_queues(&p, &(struct pair_attr){.type = PV_QPT_UD});
	header = datagram_header(&p, 0);
	for (unsigned i = 0; i < 2; i++)
		pair_post_recv(&p, 1, i, 0, 40 + 2048);
	execute(&p, &header, 0, 1024);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_SEND);
	expect_cqe(&p, 1, 0, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
	execute(&p, &header, 0, 1025);
	expect_cqe(&p, 0, 1, PVRDMA_WC_LOC_LEN_ERR, 0);
	pair_close(&p);
}

/* --- The driver of the NIC sets another MAC, which peers find by ARP */

static const uint8_t other_mac[6] = {2, 0xaa, 0, 0, 0, 1};

static void open_with_other_mac(struct pair *p, struct pvrdma_owner *owner, struct pvrdma_nic *nic)
{
	*nic = (struct pvrdma_nic){.active = true, .mtu = GUEST_MTU};
	memcpy(nic->mac, other_mac, sizeof(nic->mac));
	*p = (struct pair){0};
	pair_open_guests(p, URXE_NET_IPV4);
	guest_give_nic(&p->guest[1], owner, nic);
	guest_start(&p->guest[1]);
}

static void write_100_bytes(struct pair *p)
{
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);

	execute(p, &header, 0, 100);
	expect_cqe(p, 0, header.wr_id, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
}

/* Existing connections go on, and new ones are made with the new address. */
static void test_connection_survives_a_new_mac_of_the_nic(void **state)
{
	struct pvrdma_owner owner;
	struct pvrdma_nic nic;
	struct pair p;

	(void)state;
	open_with_other_mac(&p, &owner, &nic);
	pair_open_queues(&p, &(struct pair_attr){.type = PV_QPT_RC});
	write_100_bytes(&p);
	memcpy(p.guest[1].mac, other_mac, sizeof(other_mac));
	reconnect(&p);
	write_100_bytes(&p);
	assert_int_equal(pvrdma_counters(p.guest[1].dev)[PVRDMA_RX_UNWANTED], 0);
	pair_close(&p);
}

/* Within the machine frames have the NIC's address, too, and do not leave. */
static void test_loopback_finds_itself_by_both_macs(void **state)
{
	struct pvrdma_owner owner;
	struct pvrdma_nic nic;
	struct pair p;
	struct guest *g = &p.guest[1];
	struct qp other;

	(void)state;
	open_with_other_mac(&p, &owner, &nic);
	pair_open_queues(&p, &(struct pair_attr){.type = PV_QPT_RC});
	memcpy(g->mac, other_mac, sizeof(other_mac));
	qp_open(g, &other,
		&(struct qp_attr){.type = PV_QPT_RC, .send_cq = &p.cq[1], .recv_cq = &p.cq[1]});
	qp_connect(g, &other, g, &p.qp[1]);
	assert_int_equal(qp_to(g, &p.qp[1], URXE_QPS_RESET), 0);
	qp_connect(g, &p.qp[1], g, &other);
	{
		const struct pvrdma_sq_wqe_hdr header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
		const struct pvrdma_sge sge = buffer_sge(&p.buffer[1], 1000, 100);

		qp_post_send(g, &p.qp[1], &header, &sge);
	}
	net_run(&p.net);
	expect_cqe(&p, 1, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_true(pvrdma_counters(g->dev)[PVRDMA_LOOPBACK] >= 2);
	assert_int_equal(p.net.moved, 0);
	qp_close(g, &other);
	pair_close(&p);
}

/* Two QPs of one guest, with RC and with datagrams: no frame leaves the device. */
static void test_loopback_sends_no_frame(void **state)
{
	struct guest g;
	struct net net = {.guest = {&g}};
	struct cq cq;
	struct qp qp[2];
	struct buffer buffer;
	struct pvrdma_sq_wqe_hdr header = {
		.num_sge = 1, .opcode = PVRDMA_WR_RDMA_WRITE, .send_flags = URXE_SEND_SIGNALED};
	struct pvrdma_sge sge;
	struct pvrdma_cqe cqe;

	(void)state;
	guest_open(&g, &(struct guest_attr){.id = 1});
	guest_start(&g);
	cq_open(&g, &cq, 16);
	for (int i = 0; i < 2; i++)
		qp_open(&g, &qp[i],
			&(struct qp_attr){.type = PV_QPT_RC, .send_cq = &cq, .recv_cq = &cq});
	for (int i = 0; i < 2; i++)
		qp_connect(&g, &qp[i], &g, &qp[!i]);
	buffer_open(&g, &buffer, VA, BUFFER, ALL_ACCESS);
	buffer_fill(&g, &buffer, 0, BUFFER / 2, 1);
	header.wr.rdma.remote_addr = VA + BUFFER / 2;
	header.wr.rdma.rkey = buffer.key;
	sge = buffer_sge(&buffer, 0, BUFFER / 2);
	qp_post_send(&g, &qp[0], &header, &sge);
	net_run(&net);
	assert_true(cq_poll(&g, &cq, &cqe));
	assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
	assert_true(buffer_has(&g, &buffer, BUFFER / 2, BUFFER / 2, 1));
	assert_int_equal(net.moved, 0);
	assert_int_equal(pvrdma_counters(g.dev)[PVRDMA_TX_FRAMES], 0);
	assert_true(pvrdma_counters(g.dev)[PVRDMA_LOOPBACK] > BUFFER / 2 / 1024);
	qp_close(&g, &qp[0]);
	qp_close(&g, &qp[1]);
	cq_close(&g, &cq);
	buffer_close(&g, &buffer);
	guest_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_frame_passes_an_inactive_nic),
		cmocka_unit_test(test_datagram_beyond_the_mtu_of_the_nic_fails),
		cmocka_unit_test(test_connection_survives_a_new_mac_of_the_nic),
		cmocka_unit_test(test_loopback_finds_itself_by_both_macs),
		cmocka_unit_test(test_loopback_sends_no_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
