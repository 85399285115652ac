/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transfers between two PVRDMA devices, and within one; contents are checked byte by byte. */
#include "pair.h"

#include <errno.h>

/* Congestion experienced, in the second byte of an IPv6 header. */
#define IPV6_CE 0x30

static void send_and_receive(enum urxe_net net)
{
	struct pair p;
	struct pvrdma_sq_wqe_hdr header;

	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = net});
	buffer_fill(&p.guest[0], &p.buffer[0], 100, 10000, 5);
	pair_post_recv(&p, 1, 70, 77, 20000);
	header = rdma_header(&p, PVRDMA_WR_SEND, 0);
	execute(&p, &header, 100, 10000);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_SEND);
	assert_int_equal(expect_cqe(&p, 1, 70, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV).byte_len, 10000);
	assert_true(buffer_has(&p.guest[1], &p.buffer[1], 77, 10000, 5));
	assert_int_equal(*buffer_at(&p.guest[1], &p.buffer[1], 10077), 0);
	expect_no_cqe(&p, 0);
	expect_no_cqe(&p, 1);
	pair_close(&p);
}

static void test_send_arrives_over_ipv4(void **state)
{
	(void)state;
	send_and_receive(URXE_NET_IPV4);
}

static void test_send_arrives_over_rocev1(void **state)
{
	(void)state;
	send_and_receive(URXE_NET_ROCEV1);
}

static void test_send_arrives_over_ipv6(void **state)
{
	(void)state;
	send_and_receive(URXE_NET_IPV6);
}

static void test_send_immediate_is_in_the_receive_completion(void **state)
{
	struct pair p;
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_cqe cqe;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	pair_post_recv(&p, 1, 70, 0, 100);
	header = rdma_header(&p, PVRDMA_WR_SEND_WITH_IMM, 0);
	header.ex.imm_data = 0x12345678;
	execute(&p, &header, 0, 10);
	cqe = expect_cqe(&p, 1, 70, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
	assert_int_equal(cqe.imm_data, 0x12345678);
	assert_int_equal(cqe.wc_flags, PVRDMA_WC_WITH_IMM);
	assert_int_equal(cqe.port_num, 1);
	pair_close(&p);
}

static void test_write_and_read_move_each_byte(void **state)
{
	struct pair p;
	struct pvrdma_sq_wqe_hdr header;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	buffer_fill(&p.guest[0], &p.buffer[0], 0, 100000, 9);
	header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 4000);
	execute(&p, &header, 0, 100000);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_true(buffer_has(&p.guest[1], &p.buffer[1], 4000, 100000, 9));
	header = rdma_header(&p, PVRDMA_WR_RDMA_READ, 4000);
	execute(&p, &header, 130000, 100000);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_READ);
	assert_true(buffer_has(&p.guest[0], &p.buffer[0], 130000, 100000, 9));
	expect_no_cqe(&p, 1);
	pair_close(&p);
}

static uint64_t counter_of(const struct pair *p, int side, enum pvrdma_counter counter)
{
	return pvrdma_counters(p->guest[side].dev)[counter];
}

/*
 * The driver takes the responder the right to access memory: nothing is written until the right is
 * back, and then the peer's WRITE and the requests that were posted meanwhile go on.
 */
static void test_device_without_bus_mastering_writes_nothing(void **state)
{
	struct pair p;
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_sge sge;
	struct guest *halted;
	uint64_t interrupts;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	halted = &p.guest[1];
	buffer_fill(&p.guest[0], &p.buffer[0], 0, 5000, 9);
	buffer_fill(halted, &p.buffer[1], 0, 20000, 5);
	pvrdma_set_bus_master(halted->dev, false);
	interrupts = counter_of(&p, 1, PVRDMA_INTERRUPTS);

	header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 4000);
	sge = buffer_sge(&p.buffer[0], 0, 5000);
	qp_post_send(&p.guest[0], &p.qp[0], &header, &sge);
	header.wr.rdma.remote_addr = p.buffer[0].va + 100000;
	header.wr.rdma.rkey = p.buffer[0].key;
	sge = buffer_sge(&p.buffer[1], 10000, 5000);
	qp_post_send(halted, &p.qp[1], &header, &sge);
	net_run_for(&p.net, 1000000);
	assert_false(pvrdma_poll(halted->dev, halted->now));
	pvrdma_flush(halted->dev);
	expect_no_cqe(&p, 0);
	expect_no_cqe(&p, 1);
	assert_true(buffer_has(halted, &p.buffer[1], 0, 20000, 5));
	assert_int_equal(pvrdma_next_deadline(halted->dev), URXE_NEVER);
	guest_write(halted, PV_REG_REQUEST, 0);
	assert_int_equal(guest_read(halted, PV_REG_ERR), EIO);
	assert_int_equal(counter_of(&p, 1, PVRDMA_INTERRUPTS), interrupts);

	pvrdma_set_bus_master(halted->dev, true);
	assert_true(pvrdma_poll(halted->dev, halted->now));
	net_run(&p.net);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	expect_cqe(&p, 1, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_true(buffer_has(halted, &p.buffer[1], 4000, 5000, 9));
	pair_close(&p);
}

/* Executes the command, and returns the error of ERR. */
static uint32_t command_without_response(struct guest *g, uint32_t cmd, uint32_t handle)
{
	union pv_request request = {.handle = {.hdr = {.cmd = cmd}, .handle = handle}};

	memcpy(guest_at(g, g->request), &request, sizeof(request));
	guest_write(g, PV_REG_REQUEST, 0);
	return guest_read(g, PV_REG_ERR);
}

/* Linux' driver frees the memory of an object also if its destruction fails. */
static void test_objects_are_destroyed_without_bus_mastering(void **state)
{
	const uint8_t *slot;
	struct pair p;
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_sge sge;
	struct guest *halted;
	uint32_t at = 0;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	halted = &p.guest[1];
	sge = buffer_sge(&p.buffer[1], 0, 100);
	qp_post_recv(halted, &p.qp[1], 1, &sge, 1);
	buffer_fill(&p.guest[0], &p.buffer[0], 0, 100, 9);
	buffer_fill(halted, &p.buffer[1], 0, 100, 5);
	slot = guest_at(halted, halted->response);
	memset(guest_at(halted, halted->response), 0xaa, 16);
	pvrdma_set_bus_master(halted->dev, false);
	assert_int_equal(command_without_response(halted, PV_CMD_QUERY_QP, p.qp[1].handle), EIO);
	assert_int_equal(command_without_response(halted, PV_CMD_DESTROY_QP, p.qp[1].handle), 0);
	assert_int_equal(command_without_response(halted, PV_CMD_DESTROY_QP, p.qp[1].handle),
			 ENOENT);
	assert_int_equal(command_without_response(halted, PV_CMD_DESTROY_CQ, p.cq[1].handle), 0);
	assert_int_equal(command_without_response(halted, PV_CMD_DESTROY_MR, p.buffer[1].handle),
			 0);
	assert_int_equal(command_without_response(halted, PV_CMD_DESTROY_PD, halted->pd), 0);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(slot[i], 0xaa);

	pvrdma_set_bus_master(halted->dev, true);
	assert_null(pvrdma_next_qp(halted->dev, &at));
	header = rdma_header(&p, PVRDMA_WR_SEND, 0);
	sge = buffer_sge(&p.buffer[0], 0, 100);
	qp_post_send(&p.guest[0], &p.qp[0], &header, &sge);
	net_run_for(&p.net, 1000000);
	expect_no_cqe(&p, 1);
	assert_true(buffer_has(halted, &p.buffer[1], 0, 100, 5));
	pair_close(&p);
}

/* A READ of the peer has arrived, whose response would have bytes of the region, then a WRITE. */
static void test_qp_destroyed_without_bus_mastering_responds_no_more(void **state)
{
	uint8_t data[2][2048];
	struct urxe_frame frames[2];
	struct pair p;
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_sge sge;
	struct guest *halted;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	halted = &p.guest[1];
	sge = buffer_sge(&p.buffer[0], 0, 100);
	for (int i = 0; i < 2; i++) {
		frames[i] = (struct urxe_frame){.data = data[i], .room = sizeof(data[i])};
		header = rdma_header(&p, i ? PVRDMA_WR_RDMA_WRITE : PVRDMA_WR_RDMA_READ, 0);
		qp_post_send(&p.guest[0], &p.qp[0], &header, &sge);
	}
	assert_int_equal(pvrdma_output(p.guest[0].dev, p.guest[0].now, frames, 2), 2);
	pvrdma_input(halted->dev, halted->now, frames, 2);
	pvrdma_set_bus_master(halted->dev, false);
	assert_int_equal(command_without_response(halted, PV_CMD_DESTROY_QP, p.qp[1].handle), 0);
	assert_int_equal(pvrdma_output(halted->dev, halted->now, frames, 2), 0);
	pair_close(&p);
}

static void test_write_immediate_consumes_a_receive(void **state)
{
	struct pair p;
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_cqe cqe;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	buffer_fill(&p.guest[0], &p.buffer[0], 0, 5000, 3);
	qp_post_recv(&p.guest[1], &p.qp[1], 71, NULL, 0);
	header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE_WITH_IMM, 0);
	header.ex.imm_data = 99;
	execute(&p, &header, 0, 5000);
	cqe = expect_cqe(&p, 1, 71, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(cqe.imm_data, 99);
	assert_int_equal(cqe.byte_len, 5000);
	assert_true(buffer_has(&p.guest[1], &p.buffer[1], 0, 5000, 3));
	pair_close(&p);
}

/* Frames are lost in each direction; the contents arrive all the same. */
static void test_write_arrives_despite_lost_frames(void **state)
{
	struct pair p;
	struct pvrdma_sq_wqe_hdr header;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	p.net.lose = UINT64_C(0x0102040810204081);
	buffer_fill(&p.guest[0], &p.buffer[0], 0, BUFFER, 9);
	header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
	execute(&p, &header, 0, BUFFER);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_true(buffer_has(&p.guest[1], &p.buffer[1], 0, BUFFER, 9));
	pair_close(&p);
}

static uint64_t *word_at(struct pair *p, int side, uint64_t offset)
{
	return (uint64_t *)buffer_at(&p->guest[side], &p->buffer[side], offset);
}

static void test_atomics_return_the_old_value(void **state)
{
	const uint64_t offset = 8 - VA % 8;
	struct pvrdma_sq_wqe_hdr header = {.num_sge = 1, .send_flags = URXE_SEND_SIGNALED};
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	*word_at(&p, 1, offset) = 40;
	header.opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD;
	header.wr.atomic.remote_addr = p.buffer[1].va + offset;
	header.wr.atomic.rkey = p.buffer[1].key;
	header.wr.atomic.compare_add = 2;
	execute(&p, &header, offset, 8);
	expect_cqe(&p, 0, 0, PVRDMA_WC_SUCCESS, PVRDMA_WC_FETCH_ADD);
	assert_int_equal(*word_at(&p, 0, offset), 40);
	assert_int_equal(*word_at(&p, 1, offset), 42);
	header.opcode = PVRDMA_WR_ATOMIC_CMP_AND_SWP;
	header.wr.atomic.compare_add = 42;
	header.wr.atomic.swap = 7;
	execute(&p, &header, offset, 8);
	expect_cqe(&p, 0, 0, PVRDMA_WC_SUCCESS, PVRDMA_WC_COMP_SWAP);
	assert_int_equal(*word_at(&p, 0, offset), 42);
	assert_int_equal(*word_at(&p, 1, offset), 7);
	pair_close(&p);
}

static void exchange_datagram(uint8_t type, enum urxe_net net, uint32_t network)
{
	struct pair p;
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_cqe cqe;

	pair_open(&p, &(struct pair_attr){.type = type, .net = net});
	buffer_fill(&p.guest[0], &p.buffer[0], 0, 256, 4);
	pair_post_recv(&p, 1, 33, 0, 40 + 256);
	header = datagram_header(&p, 0);
	if (type == PV_QPT_GSI) {
		assert_int_equal(p.qp[0].qpn, 1);
		header.wr.ud.remote_qkey = 0x80010000;
	}
	execute(&p, &header, 0, 256);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_SEND);
	cqe = expect_cqe(&p, 1, 33, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
	assert_int_equal(cqe.byte_len, 40 + 256);
	assert_int_equal(cqe.src_qp, p.qp[0].qpn);
	assert_int_equal(cqe.wc_flags, PVRDMA_WC_GRH);
	assert_int_equal(cqe.network_hdr_type, network);
	/* The provider's programs expect the packet's type in the service level; the kernel none.
	 */
	assert_int_equal(cqe.sl, type == PV_QPT_UD && network == PVRDMA_NETWORK_IPV4 ? 0xa : 0);
	assert_true(buffer_has(&p.guest[1], &p.buffer[1], 40, 256, 4));
	pair_close(&p);
}

static void test_ud_datagram_reports_its_network_type(void **state)
{
	(void)state;
	exchange_datagram(PV_QPT_UD, URXE_NET_IPV4, PVRDMA_NETWORK_IPV4);
	exchange_datagram(PV_QPT_UD, URXE_NET_IPV6, PVRDMA_NETWORK_IPV6);
	exchange_datagram(PV_QPT_UD, URXE_NET_ROCEV1, PVRDMA_NETWORK_ROCE_V1);
}

static void test_gsi_datagram_reports_its_network_type(void **state)
{
	(void)state;
	exchange_datagram(PV_QPT_GSI, URXE_NET_IPV4, PVRDMA_NETWORK_IPV4);
	exchange_datagram(PV_QPT_GSI, URXE_NET_ROCEV1, PVRDMA_NETWORK_ROCE_V1);
}

/* Each row has a bad member in the address vector: the request fails in its order. */
static void test_bad_address_vector_fails_the_request_in_order(void **state)
{
	enum { PORT, PD, GID_INDEX, UNBOUND_GID, ROWS };

	(void)state;
	for (int row = 0; row < ROWS; row++) {
		struct pair p;
		struct pvrdma_sq_wqe_hdr header;

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_UD, .net = URXE_NET_IPV4});
		header = datagram_header(&p, 0);
		switch (row) {
		case PORT: header.wr.ud.av.port_pd &= 0xffffff; break;
		case PD: header.wr.ud.av.port_pd++; break;
		case GID_INDEX: header.wr.ud.av.gid_index = 255; break;
		case UNBOUND_GID: header.wr.ud.av.gid_index = 1; break;
		default: break;
		}
		execute(&p, &header, 0, 8);
		expect_cqe(&p, 0, 1, PVRDMA_WC_LOC_QP_OP_ERR, 0);
		assert_int_equal(pvrdma_counters(p.guest[0].dev)[PVRDMA_SENDS_BAD], 1);
		pair_close(&p);
	}
}

/* The traffic class of a received IPv4 datagram, whose header ends the 40 bytes before the data. */
static uint8_t received_traffic_class(struct pair *p)
{
	return ((const uint8_t *)word_at(p, 1, 16))[5] & 0xfc;
}

/* A flow label of 32 bits, as UCX's, covers the traffic class of the address vector. */
static void test_flow_label_of_32_bits_overrides_traffic_class(void **state)
{
	static const struct {
		uint32_t flow;
		uint8_t traffic_class;
	} rows[] = {{0x0a812345, 0xa8}, {UINT32_MAX, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pair p;
		struct pvrdma_sq_wqe_hdr header;

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_UD, .net = URXE_NET_IPV4});
		pair_post_recv(&p, 1, 33, 0, 40 + 8);
		header = datagram_header(&p, 0);
		header.wr.ud.av.sl_tclass_flowlabel = rows[i].flow;
		execute(&p, &header, 0, 8);
		expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_SEND);
		expect_cqe(&p, 1, 33, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
		assert_int_equal(received_traffic_class(&p), rows[i].traffic_class);
		pair_close(&p);
	}
}

static void test_srq_limit_event_follows_the_message(void **state)
{
	struct pair p = {0};
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_sge sge;
	struct srq srq;
	struct pv_eqe eqe;

	(void)state;
	pair_open_guests(&p, URXE_NET_IPV4);
	assert_int_equal(srq_try_open(&p.guest[1], &srq, 8, 2, 2), 0);
	pair_open_queues(&p,
			 &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4, .srq = &srq});
	for (unsigned i = 0; i < 3; i++) {
		sge = buffer_sge(&p.buffer[1], i * 1000, 1000);
		srq_post(&p.guest[1], &srq, 50 + i, &sge, 1);
	}
	for (unsigned i = 0; i < 3; i++) {
		buffer_fill(&p.guest[0], &p.buffer[0], 0, 900, (uint8_t)(i + 1));
		header = rdma_header(&p, PVRDMA_WR_SEND, 0);
		execute(&p, &header, 0, 900);
		expect_cqe(&p, 1, 50 + i, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
		assert_true(buffer_has(&p.guest[1], &p.buffer[1], i * 1000, 900, (uint8_t)(i + 1)));
		/* The second message leaves fewer requests than the limit. */
		assert_int_equal(guest_event(&p.guest[1], &eqe), i == 1);
		if (i == 1)
			assert_int_equal(eqe.type, URXE_ASYNC_SRQ_LIMIT_REACHED);
		if (i == 1)
			assert_int_equal(eqe.info, srq.handle);
	}
	assert_false(guest_event(&p.guest[1], &eqe));
	guest_pages_free(&srq.pages);
	pair_close(&p);
}

/* A connection within the guest and one to the peer are busy at the same time. */
static void test_loopback_and_peer_connection_work_together(void **state)
{
	struct pair p;
	struct guest *g = &p.guest[0];
	struct qp own[2];
	struct pvrdma_sq_wqe_hdr to_peer, to_own;
	struct pvrdma_sge sge;
	uint8_t bytes[8][2048];
	struct urxe_frame frames[8];

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	for (int i = 0; i < 2; i++)
		qp_open(g, &own[i],
			&(struct qp_attr){
				.type = PV_QPT_RC, .send_cq = &p.cq[0], .recv_cq = &p.cq[0]});
	for (int i = 0; i < 2; i++)
		qp_connect(g, &own[i], g, &own[!i]);
	buffer_fill(g, &p.buffer[0], 0, 5000, 1);
	sge = buffer_sge(&p.buffer[0], 0, 5000);
	to_peer = to_own = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
	to_own.wr.rdma.remote_addr = p.buffer[0].va + 10000;
	to_own.wr.rdma.rkey = p.buffer[0].key;
	qp_post_send(g, &own[0], &to_own, &sge);
	qp_post_send(g, &p.qp[0], &to_peer, &sge);
	for (int i = 0; i < 8; i++)
		frames[i] = (struct urxe_frame){.data = bytes[i], .room = sizeof(bytes[i])};
	/* Each frame for the peer still has a buffer of its own. */
	assert_int_equal(pvrdma_output(g->dev, 0, frames, 8), 5);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < i; j++)
			assert_ptr_not_equal(frames[i].data, frames[j].data);
	pvrdma_input(p.guest[1].dev, 0, frames, 5);
	net_run(&p.net);
	assert_true(buffer_has(g, &p.buffer[0], 10000, 5000, 1));
	assert_true(buffer_has(&p.guest[1], &p.buffer[1], 0, 5000, 1));
	for (int i = 0; i < 2; i++)
		qp_close(g, &own[i]);
	pair_close(&p);
}

/* A QP ends while requests wait in its ring for room in the engine's queue. */
static void test_waiting_requests_of_a_destroyed_qp_vanish(void **state)
{
	(void)state;
	for (int destroy = 0; destroy < 2; destroy++) {
		struct pvrdma_sq_wqe_hdr header;
		struct pvrdma_sge sge;
		struct pair p;

		pair_open(&p,
			  &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4, .wr = 4});
		header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
		sge = buffer_sge(&p.buffer[0], 0, 64);
		for (unsigned i = 0; i < 8; i++)
			qp_post_send(&p.guest[0], &p.qp[0], &header, &sge);
		if (destroy)
			assert_int_equal(guest_handle_command(&p.guest[0], PV_CMD_DESTROY_QP,
							      p.qp[0].handle),
					 0);
		else
			assert_int_equal(qp_to(&p.guest[0], &p.qp[0], URXE_QPS_RESET), 0);
		net_run(&p.net);
		expect_no_cqe(&p, 0);
		pair_close(&p);
	}
}

/* Posts 8 requests, more than the engine's queue takes: the ring is full then. */
static void open_pair_with_full_ring(struct pair *p)
{
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_sge sge;

	pair_open(p,
		  &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4, .wr = 4, .cqe = 64});
	header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);
	sge = buffer_sge(&p->buffer[0], 0, 64);
	for (unsigned i = 0; i < 8; i++) {
		header.wr_id = i;
		qp_post_send(&p->guest[0], &p->qp[0], &header, &sge);
	}
	assert_false(qp_write_send(&p->guest[0], &p->qp[0], &header, &sge));
}

/* The engine's queue is full: requests wait in the ring, and all of them are executed. */
static void test_requests_wait_in_the_ring_for_the_engine(void **state)
{
	struct pair p;

	(void)state;
	open_pair_with_full_ring(&p);
	net_run(&p.net);
	for (unsigned i = 0; i < 8; i++)
		expect_cqe(&p, 0, i, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	pair_close(&p);
}

/* The peer does not answer: requests that wait in the ring are flushed as those of the engine. */
static void test_requests_in_the_ring_of_a_failed_qp_are_flushed(void **state)
{
	struct pair p;

	(void)state;
	open_pair_with_full_ring(&p);
	p.net.lose = UINT64_MAX;
	net_run(&p.net);
	expect_cqe(&p, 0, 0, PVRDMA_WC_RETRY_EXC_ERR, 0);
	for (unsigned i = 1; i < 8; i++)
		expect_cqe(&p, 0, i, PVRDMA_WC_WR_FLUSH_ERR, 0);
	pair_close(&p);
}

/* Rings are used over several rounds of their indices. */
static void test_rings_wrap_without_loss(void **state)
{
	struct pvrdma_sq_wqe_hdr header;
	struct pair p;

	(void)state;
	pair_open(&p,
		  &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4, .wr = 4, .cqe = 4});
	for (unsigned i = 0; i < 100; i++) {
		buffer_fill(&p.guest[0], &p.buffer[0], 0, 100, (uint8_t)i);
		pair_post_recv(&p, 1, i, 0, 100);
		header = rdma_header(&p, PVRDMA_WR_SEND, 0);
		header.wr_id = 1000 + i;
		execute(&p, &header, 0, 100);
		expect_cqe(&p, 0, 1000 + i, PVRDMA_WC_SUCCESS, PVRDMA_WC_SEND);
		expect_cqe(&p, 1, i, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
		assert_true(buffer_has(&p.guest[1], &p.buffer[1], 0, 100, (uint8_t)i));
	}
	pair_close(&p);
}

/* Without doorbells, pvrdma_poll finds the requests. */
static void test_poll_finds_requests_without_doorbell(void **state)
{
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_sge sge;
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	assert_false(pvrdma_poll(p.guest[0].dev, 0));
	header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
	sge = buffer_sge(&p.buffer[0], 0, 64);
	assert_true(qp_write_send(&p.guest[0], &p.qp[0], &header, &sge));
	net_run(&p.net);
	expect_no_cqe(&p, 0);
	assert_true(pvrdma_poll(p.guest[0].dev, 0));
	assert_false(pvrdma_poll(p.guest[0].dev, 0));
	net_run(&p.net);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	pair_close(&p);
}

/* A QP ends when a message has arrived, but no acknowledgement was sent: it still reaches the peer.
 */
static void test_ended_qp_acknowledges(void **state)
{
	enum { DESTROY, RESET, ERROR, ROWS };

	(void)state;
	for (int row = 0; row < ROWS; row++) {
		struct pair p;
		struct pvrdma_sq_wqe_hdr header;
		struct pvrdma_sge sge;
		struct pvrdma_cqe cqe;
		uint8_t bytes[2048];
		struct urxe_frame frame = {.data = bytes, .room = sizeof(bytes)};
		struct guest *to = &p.guest[1];

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
		pair_post_recv(&p, 1, 70, 0, 100);
		header = rdma_header(&p, PVRDMA_WR_SEND, 0);
		sge = buffer_sge(&p.buffer[0], 0, 100);
		qp_post_send(&p.guest[0], &p.qp[0], &header, &sge);
		assert_int_equal(pvrdma_output(p.guest[0].dev, 0, &frame, 1), 1);
		pvrdma_input(to->dev, 0, &frame, 1);
		assert_true(cq_poll(to, &p.cq[1], &cqe));
		if (row == DESTROY)
			assert_int_equal(
				guest_handle_command(to, PV_CMD_DESTROY_QP, p.qp[1].handle), 0);
		else
			assert_int_equal(
				qp_to(to, &p.qp[1], row == RESET ? URXE_QPS_RESET : URXE_QPS_ERR),
				0);
		assert_int_equal(pvrdma_next_deadline(to->dev), 0);
		net_run(&p.net);
		expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_SEND);
		pair_close(&p);
	}
}

/* Moves one packet to the other guest. `ecn`: bits for the second byte of its IP header. */
static void move_packet(struct pair *p, int from, uint8_t ecn)
{
	uint8_t bytes[2048];
	struct urxe_frame frame = {.data = bytes, .room = sizeof(bytes)};

	assert_int_equal(pvrdma_output(p->guest[from].dev, 0, &frame, 1), 1);
	bytes[15] |= ecn;
	pvrdma_input(p->guest[!from].dev, 0, &frame, 1);
}

/* Guest 0 posts a request, which arrives in one packet. */
static void send_packet(struct pair *p, struct qp *qp, const struct pvrdma_sq_wqe_hdr *header,
			uint32_t length)
{
	const struct pvrdma_sge sge = buffer_sge(&p->buffer[0], 0, length);

	qp_post_send(&p->guest[0], qp, header, &sge);
	move_packet(p, 0, 0);
}

/* Opens a connection whose QP of guest 1 has a receive request. */
static void open_connected(struct pair *p, struct qp qp[2])
{
	const struct pvrdma_sge to = buffer_sge(&p->buffer[1], 0, 100);

	for (int i = 0; i < 2; i++)
		qp_open(&p->guest[i], &qp[i],
			&(struct qp_attr){
				.type = PV_QPT_RC, .send_cq = &p->cq[i], .recv_cq = &p->cq[i]});
	for (int i = 0; i < 2; i++)
		qp_connect(&p->guest[i], &qp[i], &p->guest[!i], &qp[!i]);
	qp_post_recv(&p->guest[1], &qp[1], 1, &to, 1);
}

/* Guest 0 sends a message to the QP of guest 1, which ends as soon as the message has arrived. */
static void send_and_end(struct pair *p, struct qp qp[2])
{
	const struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_SEND, 0);
	struct pvrdma_cqe cqe;

	send_packet(p, &qp[0], &header, 100);
	assert_true(cq_poll(&p->guest[1], &p->cq[1], &cqe));
	qp_close(&p->guest[1], &qp[1]);
}

/* Guest 1 writes to guest 0, in many packets. */
static void post_long_write(struct pair *p)
{
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);
	const struct pvrdma_sge sge = buffer_sge(&p->buffer[1], 100, BUFFER - 100);

	header.wr.rdma.remote_addr = p->buffer[0].va + 100;
	header.wr.rdma.rkey = p->buffer[0].key;
	buffer_fill(&p->guest[1], &p->buffer[1], 100, BUFFER - 100, 3);
	qp_post_send(&p->guest[1], &p->qp[1], &header, &sge);
}

struct kept_frames {
	uint32_t acks, others;
};

/* The frames that the device of guest 1 keeps: only they stay after a reset. */
static struct kept_frames reset_to_kept(struct pair *p)
{
	uint8_t bytes[2048];
	struct urxe_frame frame = {.data = bytes, .room = sizeof(bytes)};
	struct kept_frames kept = {0};

	pvrdma_reset(p->guest[1].dev);
	while (pvrdma_output(p->guest[1].dev, 0, &frame, 1)) {
		kept.acks += frame.acknowledges;
		kept.others += !frame.acknowledges;
	}
	return kept;
}

/*
 * Another QP has many packets to send, none of which leaves before the QPs have ended. Each packet
 * leaves once.
 */
static void test_ended_qps_acknowledge_beside_a_busy_one(void **state)
{
	enum { ENDING = 80 };
	struct qp ending[ENDING][2];
	struct pvrdma_cqe cqe;
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4, .cqe = 128});
	post_long_write(&p);
	for (unsigned i = 0; i < ENDING; i++) {
		open_connected(&p, ending[i]);
		send_and_end(&p, ending[i]);
	}
	net_run(&p.net);
	for (unsigned i = 0; i < ENDING; i++) {
		assert_true(cq_poll(&p.guest[0], &p.cq[0], &cqe));
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
		qp_close(&p.guest[0], &ending[i][0]);
	}
	expect_cqe(&p, 1, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_true(buffer_has(&p.guest[0], &p.buffer[0], 100, BUFFER - 100, 3));
	assert_int_equal(pvrdma_engine_counters(p.guest[1].dev)->event[URXE_EVENT_RETRANSMIT], 0);
	pair_close(&p);
}

/* A guest makes the device keep frames: only 64 of READ responses, but each acknowledgement. */
static void test_ended_qps_keep_few_responses(void **state)
{
	struct pair *p = *state;
	const struct pvrdma_sq_wqe_hdr read = rdma_header(p, PVRDMA_WR_RDMA_READ, 0);
	struct kept_frames kept;
	struct qp ending[5][2];

	for (unsigned i = 0; i < 5; i++) {
		open_connected(p, ending[i]);
		if (i < 3)
			send_packet(p, &ending[i][0], &read, 40 * 1024);
		send_and_end(p, ending[i]);
	}
	kept = reset_to_kept(p);
	assert_int_equal(kept.acks, 5);
	assert_int_equal(kept.others, 64);
	for (unsigned i = 0; i < 5; i++)
		qp_close(&p->guest[0], &ending[i][0]);
}

/*
 * Congestion control holds the responses to a READ, and the acknowledgement behind them. When the
 * QP ends, the device does not keep packets of another QP in their place.
 */
static void test_ended_qp_with_paced_responses_keeps_no_packets_of_others(void **state)
{
	struct pvrdma_sq_wqe_hdr read;
	struct qp ending[2];
	struct pair p;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV6});
	open_connected(&p, ending);
	read = rdma_header(&p, PVRDMA_WR_RDMA_READ, 0);
	send_packet(&p, &ending[0], &read, 8 * 1024);
	move_packet(&p, 1, IPV6_CE);
	move_packet(&p, 0, 0);
	move_packet(&p, 1, 0);
	assert_int_equal(pvrdma_engine_counters(p.guest[1].dev)->event[URXE_EVENT_RATE_CUT], 1);
	post_long_write(&p);
	send_and_end(&p, ending);
	assert_true(reset_to_kept(&p).others <= 1);
	qp_close(&p.guest[0], &ending[0]);
	pair_close(&p);
}

/* A tagged GID: frames between VLANs do not arrive, frames within one do. */
static void test_gids_in_different_vlans_do_not_connect(void **state)
{
	(void)state;
	for (int same = 0; same < 2; same++) {
		struct pair p = {0};
		struct pvrdma_sq_wqe_hdr header;

		pair_open_guests(&p, URXE_NET_IPV4);
		for (uint32_t i = 0; i < 2; i++) {
			struct urxe_gid gid;

			guest_gid(&p.guest[i], &gid);
			assert_int_equal(guest_bind(&p.guest[i], 0, &gid, same ? 7 : 7 + i), 0);
		}
		pair_open_queues(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
		header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
		execute(&p, &header, 0, 100);
		expect_cqe(&p, 0, 1, same ? PVRDMA_WC_SUCCESS : PVRDMA_WC_RETRY_EXC_ERR,
			   PVRDMA_WC_RDMA_WRITE);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send_arrives_over_ipv4),
		cmocka_unit_test(test_send_arrives_over_rocev1),
		cmocka_unit_test(test_send_arrives_over_ipv6),
		cmocka_unit_test(test_send_immediate_is_in_the_receive_completion),
		cmocka_unit_test(test_write_and_read_move_each_byte),
		cmocka_unit_test(test_device_without_bus_mastering_writes_nothing),
		cmocka_unit_test(test_objects_are_destroyed_without_bus_mastering),
		cmocka_unit_test(test_qp_destroyed_without_bus_mastering_responds_no_more),
		cmocka_unit_test(test_write_immediate_consumes_a_receive),
		cmocka_unit_test(test_write_arrives_despite_lost_frames),
		cmocka_unit_test(test_atomics_return_the_old_value),
		cmocka_unit_test(test_ud_datagram_reports_its_network_type),
		cmocka_unit_test(test_gsi_datagram_reports_its_network_type),
		cmocka_unit_test(test_bad_address_vector_fails_the_request_in_order),
		cmocka_unit_test(test_flow_label_of_32_bits_overrides_traffic_class),
		cmocka_unit_test(test_srq_limit_event_follows_the_message),
		cmocka_unit_test(test_loopback_and_peer_connection_work_together),
		cmocka_unit_test(test_waiting_requests_of_a_destroyed_qp_vanish),
		cmocka_unit_test(test_requests_wait_in_the_ring_for_the_engine),
		cmocka_unit_test(test_requests_in_the_ring_of_a_failed_qp_are_flushed),
		cmocka_unit_test(test_rings_wrap_without_loss),
		cmocka_unit_test(test_poll_finds_requests_without_doorbell),
		cmocka_unit_test(test_ended_qp_acknowledges),
		cmocka_unit_test(test_ended_qps_acknowledge_beside_a_busy_one),
		PAIR_TEST(test_ended_qps_keep_few_responses),
		cmocka_unit_test(test_ended_qp_with_paced_responses_keeps_no_packets_of_others),
		cmocka_unit_test(test_gids_in_different_vlans_do_not_connect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
