/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guests move to other memory and another device while their queue pairs transfer. The peer's
 * device stays, and notices a pause.
 */
#include "pair.h"

#include <errno.h>
#include <stdlib.h>

#include <isa-l/crc.h>

#define MOVES  10
#define LENGTH 100000u

static void move_guest(struct pair *p, int side)
{
	assert_int_equal(guest_migrate(&p->guest[side]), 0);
}

static void post_transfer(struct pair *p, uint32_t opcode, uint64_t local)
{
	const struct pvrdma_sge sge = buffer_sge(&p->buffer[0], local, LENGTH);
	const struct pvrdma_sq_wqe_hdr header = rdma_header(p, opcode, 4000);

	qp_post_send(&p->guest[0], &p->qp[0], &header, &sge);
}

/* Moves a guest after each of the first steps of the cable. */
static void run_with_moves(struct pair *p, int side)
{
	for (int i = 0; i < MOVES; i++) {
		net_step(&p->net);
		move_guest(p, side);
	}
	net_run(&p->net);
}

static void transfer_with_moves(int side)
{
	struct pair p;

	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	buffer_fill(&p.guest[0], &p.buffer[0], 0, LENGTH, 9);
	post_transfer(&p, PVRDMA_WR_RDMA_WRITE, 0);
	run_with_moves(&p, side);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_true(buffer_has(&p.guest[1], &p.buffer[1], 4000, LENGTH, 9));
	post_transfer(&p, PVRDMA_WR_RDMA_READ, 130000);
	run_with_moves(&p, side);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_READ);
	assert_true(buffer_has(&p.guest[0], &p.buffer[0], 130000, LENGTH, 9));
	expect_no_cqe(&p, 0);
	expect_no_cqe(&p, 1);
	pair_close(&p);
}

static void test_requester_moves(void **state)
{
	(void)state;
	transfer_with_moves(0);
}

static void test_responder_moves(void **state)
{
	(void)state;
	transfer_with_moves(1);
}

/* Completions that the driver has not read, an armed CQ, and receive requests that are posted. */
static void test_queues_move(void **state)
{
	struct pair p;
	struct pvrdma_sge sge;
	struct pvrdma_sq_wqe_hdr header;
	uint32_t handle;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	for (uint64_t i = 0; i < 4; i++) {
		sge = buffer_sge(&p.buffer[1], i * 1000, 1000);
		qp_post_recv(&p.guest[1], &p.qp[1], 70 + i, &sge, 1);
	}
	header = rdma_header(&p, PVRDMA_WR_SEND, 0);
	buffer_fill(&p.guest[0], &p.buffer[0], 0, 1000, 3);
	execute(&p, &header, 0, 1000);
	cq_arm(&p.guest[1], &p.cq[1], false);
	/* The completion came before the request for a notification, and was not notified. */
	net_run(&p.net);
	assert_true(guest_notification(&p.guest[1], &handle));
	cq_arm(&p.guest[1], &p.cq[1], false);
	move_guest(&p, 1);
	assert_false(guest_notification(&p.guest[1], &handle));
	execute(&p, &header, 0, 1000);
	assert_true(guest_notification(&p.guest[1], &handle));
	assert_int_equal(handle, p.cq[1].handle);
	expect_cqe(&p, 1, 70, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
	expect_cqe(&p, 1, 71, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
	assert_true(buffer_has(&p.guest[1], &p.buffer[1], 1000, 1000, 3));
	pair_close(&p);
}

/* The driver reads no notification, until the ring has no room for that of the CQ. */
static void test_due_notification_moves(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[0];
	const struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);
	uint32_t handle, due = 0, read = 0;

	while (!pvrdma_counters(g->dev)[PVRDMA_NOTIFICATIONS_LATE]) {
		cq_arm(g, &p->cq[0], false);
		execute(p, &header, 0, 8);
		expect_cqe(p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
		due++;
	}
	move_guest(p, 0);
	while (guest_notification(g, &handle)) {
		assert_int_equal(handle, p->cq[0].handle);
		read++;
	}
	assert_int_equal(read, due - 1);
	net_run(&p->net);
	assert_true(guest_notification(g, &handle));
	assert_int_equal(handle, p->cq[0].handle);
	assert_false(guest_notification(g, &handle));
}

/* The eventfd of an interrupt stays at the old host: the guest may not have got the interrupt. */
static void test_lost_interrupts_are_raised_after_a_move(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];
	const struct pvrdma_sge sge = buffer_sge(&p->buffer[1], 0, 1000);
	const struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_SEND, 0);
	uint32_t responses;

	qp_post_recv(g, &p->qp[1], 70, &sge, 1);
	cq_arm(g, &p->cq[1], false);
	execute(p, &header, 0, 1000);
	pvrdma_set_link(g->dev, false);
	pvrdma_flush(g->dev);
	assert_int_equal(g->interrupts[PV_VECTOR_CQ], 1);
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], 1);
	responses = g->interrupts[PV_VECTOR_RESPONSE];
	move_guest(p, 1);
	assert_int_equal(g->interrupts[PV_VECTOR_CQ], 2);
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], 2);
	assert_int_equal(g->interrupts[PV_VECTOR_RESPONSE], responses + 1);
	/* A driver that reads the causes has got the interrupts. */
	guest_read(g, PV_REG_ICR);
	move_guest(p, 1);
	assert_int_equal(g->interrupts[PV_VECTOR_CQ], 2);
	assert_int_equal(g->interrupts[PV_VECTOR_RESPONSE], responses + 1);
}

/* Linux' driver handles no interrupt of a response before its first command. */
static void test_move_before_the_first_command_raises_no_interrupt(void **state)
{
	struct guest g;

	(void)state;
	guest_open(&g, &(struct guest_attr){.id = 1});
	guest_prepare(&g);
	guest_load(&g);
	guest_activate(&g);
	assert_int_equal(guest_migrate(&g), 0);
	for (int i = 0; i < PV_VECTORS; i++)
		assert_int_equal(g.interrupts[i], 0);
	guest_close(&g);
}

/*
 * A WRITE to guest 1 is lost. It comes again as soon as that machine, or its peer's, hears of the
 * return.
 */
static void lose_until_return(int hears)
{
	struct pair p;
	struct pvrdma_sge sge;
	struct pvrdma_sq_wqe_hdr header;

	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	buffer_fill(&p.guest[0], &p.buffer[0], 0, 5000, 4);
	sge = buffer_sge(&p.buffer[0], 0, 5000);
	header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
	p.net.lose = UINT64_MAX;
	qp_write_send(&p.guest[0], &p.qp[0], &header, &sge);
	assert_true(pvrdma_poll(p.guest[0].dev, p.guest[0].now));
	net_run_for(&p.net, 50000000);
	p.net.lose = 0;
	assert_false(buffer_has(&p.guest[1], &p.buffer[1], 0, 5000, 4));
	move_guest(&p, 1);
	pvrdma_station_returned(p.guest[hears].dev, p.guest[hears].now, p.guest[1].mac);
	net_run_for(&p.net, 5000000); /* less than the ACK timeout */
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_true(buffer_has(&p.guest[1], &p.buffer[1], 0, 5000, 4));
	pair_close(&p);
}

static void test_returned_machine_repairs_its_connections(void **state)
{
	(void)state;
	lose_until_return(1);
	lose_until_return(0);
}

/* Requests that are in the guest's ring and of which no doorbell has told the device. */
static void test_unseen_requests_move(void **state)
{
	struct pair p;
	struct pvrdma_sge sge;
	struct pvrdma_sq_wqe_hdr header;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	buffer_fill(&p.guest[0], &p.buffer[0], 0, 500, 4);
	sge = buffer_sge(&p.buffer[0], 0, 500);
	header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
	qp_write_send(&p.guest[0], &p.qp[0], &header, &sge);
	move_guest(&p, 0);
	assert_true(pvrdma_poll(p.guest[0].dev, p.guest[0].now));
	net_run(&p.net);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_true(buffer_has(&p.guest[1], &p.buffer[1], 0, 500, 4));
	pair_close(&p);
}

/* The last of more queue pairs than a look in turn reaches has such a request: another doorbell has
 * replaced the one of this request. The device does not look again until something wakes it. */
static void test_unseen_request_of_many_queue_pairs_moves(void **state)
{
	struct pair p;
	struct pvrdma_sge sge;
	struct pvrdma_sq_wqe_hdr header;
	struct qp others[70];

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	pair_connect_last(&p, others, 70);
	sge = buffer_sge(&p.buffer[0], 0, 500);
	header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
	qp_write_send(&p.guest[0], &others[69], &header, &sge);
	move_guest(&p, 0);
	assert_true(pvrdma_poll(p.guest[0].dev, p.guest[0].now));
	assert_int_equal(pvrdma_counters(p.guest[0].dev)[PVRDMA_SENDS], 1);
	for (uint32_t i = 0; i < 70; i++)
		qp_close(&p.guest[0], &others[i]);
	pair_close(&p);
}

static void test_srq_moves(void **state)
{
	struct pair p = {0};
	struct pvrdma_sge sge;
	struct pvrdma_sq_wqe_hdr header;
	struct srq srq;

	(void)state;
	pair_open_guests(&p, URXE_NET_IPV4);
	assert_int_equal(srq_try_open(&p.guest[1], &srq, 16, 1, 0), 0);
	pair_open_queues(&p,
			 &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4, .srq = &srq});
	for (uint64_t i = 0; i < 16; i++) {
		sge = buffer_sge(&p.buffer[1], i * 100, 100);
		srq_post(&p.guest[1], &srq, i, &sge, 1);
	}
	buffer_fill(&p.guest[0], &p.buffer[0], 0, 100, 8);
	header = rdma_header(&p, PVRDMA_WR_SEND, 0);
	for (uint64_t i = 0; i < 16; i++) {
		move_guest(&p, 1);
		execute(&p, &header, 0, 100);
		expect_cqe(&p, 1, i, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
		assert_true(buffer_has(&p.guest[1], &p.buffer[1], i * 100, 100, 8));
	}
	qp_close(&p.guest[1], &p.qp[1]);
	srq_close(&p.guest[1], &srq);
	guest_pages_free(&srq.pages);
	pair_close(&p);
}

/* Datagrams arrive after both guests have moved to hosts with this MTU. */
static void move_datagrams(uint32_t mtu)
{
	struct pair p;
	struct pvrdma_sge sge;
	struct pvrdma_sq_wqe_hdr header = {.wr_id = 1,
					   .num_sge = 1,
					   .opcode = PVRDMA_WR_SEND,
					   .send_flags = URXE_SEND_SIGNALED};

	pair_open(&p, &(struct pair_attr){.type = PV_QPT_UD, .net = URXE_NET_IPV4});
	sge = buffer_sge(&p.buffer[1], 0, 1000);
	qp_post_recv(&p.guest[1], &p.qp[1], 70, &sge, 1);
	for (int i = 0; i < 2; i++) {
		p.guest[i].attr.mtu = mtu;
		move_guest(&p, i);
	}
	header.wr.ud.remote_qpn = p.qp[1].qpn;
	header.wr.ud.remote_qkey = GUEST_QKEY;
	qp_av(&p.guest[0], &p.guest[1], &header.wr.ud.av);
	execute(&p, &header, 0, 100);
	expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_SEND);
	expect_cqe(&p, 1, 70, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
	pair_close(&p);
}

static void test_datagrams_move(void **state)
{
	(void)state;
	move_datagrams(GUEST_MTU);
}

/* Only a connection demands the MTU that the old host had. */
static void test_unconnected_queue_pairs_move_to_a_shorter_mtu(void **state)
{
	struct pair *p = *state;

	move_datagrams(600);
	p->guest[1].attr.mtu = 600;
	assert_int_equal(guest_migrate(&p->guest[1]), -EINVAL);
	assert_int_equal(qp_to(&p->guest[1], &p->qp[1], URXE_QPS_RESET), 0);
	move_guest(p, 1);
}

/* New objects get handles, numbers and keys that no object has, as without a move. */
static void test_handles_move(void **state)
{
	struct pair p;
	struct cq cq[4];
	uint32_t first;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	for (int i = 0; i < 3; i++)
		cq_open(&p.guest[1], &cq[i], 16);
	cq_close(&p.guest[1], &cq[1]);
	move_guest(&p, 1);
	cq_open(&p.guest[1], &cq[3], 16);
	first = cq[3].handle;
	assert_int_not_equal(first, p.cq[1].handle);
	assert_int_not_equal(first, cq[0].handle);
	assert_int_not_equal(first, cq[2].handle);
	assert_int_equal(guest_handle_command(&p.guest[1], PV_CMD_DESTROY_CQ, cq[1].handle),
			 -ENOENT);
	for (int i = 0; i < 4; i++)
		if (i != 1)
			cq_close(&p.guest[1], &cq[i]);
	for (int i = 0; i < 4; i++)
		guest_pages_free(&cq[i].pages);
	/* The queue pair goes with the CQ that it uses. */
	assert_int_equal(guest_handle_command(&p.guest[1], PV_CMD_DESTROY_CQ, p.cq[1].handle), 0);
	assert_int_equal(guest_handle_command(&p.guest[1], PV_CMD_DESTROY_QP, p.qp[1].handle),
			 -ENOENT);
	pair_close(&p);
}

/* The region of all memory, with the holes of the guest's address space. */
static void test_dma_region_moves(void **state)
{
	struct pair p;
	struct pv_cmd_create_mr request = {.flags = PV_MR_FLAG_DMA, .access_flags = ALL_ACCESS};
	uint32_t handle, key;
	uint64_t at;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	request.pd_handle = p.guest[1].pd;
	assert_int_equal(mr_create(&p.guest[1], &request, &handle, &key), 0);
	move_guest(&p, 1);
	at = p.buffer[1].pages.addr[0];
	assert_int_equal(write_status(&p, at, 100, key), PVRDMA_WC_SUCCESS);
	reconnect(&p);
	/* In the hole. */
	assert_int_equal(write_status(&p, GUEST_HIGH - 4096, 100, key), PVRDMA_WC_REM_ACCESS_ERR);
	pair_close(&p);
}

/* A queue in memory that was removed before stays failed, and the rest goes on. */
static void test_lost_memory_moves(void **state)
{
	struct pair p;
	struct pv_eqe eqe;
	struct cq cq;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	cq_open(&p.guest[1], &cq, 16);
	guest_unplug(&p.guest[1], cq.pages.addr[0], PV_PAGE);
	assert_true(guest_event(&p.guest[1], &eqe));
	assert_int_equal(eqe.type, URXE_ASYNC_CQ_ERR);
	assert_int_equal(write_status(&p, p.buffer[1].va, 100, p.buffer[1].key), PVRDMA_WC_SUCCESS);
	/* The new host has memory where the old one has none. */
	move_guest(&p, 1);
	assert_int_equal(write_status(&p, p.buffer[1].va, 100, p.buffer[1].key), PVRDMA_WC_SUCCESS);
	assert_false(guest_event(&p.guest[1], &eqe));
	assert_int_equal(guest_handle_command(&p.guest[1], PV_CMD_DESTROY_CQ, cq.handle), 0);
	guest_pages_free(&cq.pages);
	pair_close(&p);
}

/* --- The log of written pages */

#define SPAN_PAGES ((GUEST_HIGH + GUEST_HIGH_SIZE) / PV_PAGE)

static bool lists_page(const struct pages *pages, uint64_t addr)
{
	for (uint32_t i = 0; i < pages->n; i++)
		if (pages->addr[i] == addr)
			return true;
	return false;
}

/* Whether the driver writes to the page itself, which a hypervisor notices without the device. */
static bool is_drivers(const struct pair *p, int side, uint64_t addr)
{
	return lists_page(&p->qp[side].pages, addr) || addr == p->cq[side].pages.addr[0] ||
	       addr == p->guest[side].request || addr == p->guest[side].async.addr[0] ||
	       addr == p->guest[side].cq_notify.addr[0];
}

/* Each page that has changed since the copy of the memory is in the log, or is the driver's. */
static void expect_logged(const struct pair *p, int side, const uint8_t *before)
{
	static uint64_t bitmap[SPAN_PAGES / 64];
	const struct guest *g = &p->guest[side];
	uint32_t changed = 0, logged = 0;

	memset(bitmap, 0, sizeof(bitmap));
	vnic_guest_memory_take_log(g->memory, 0, SPAN_PAGES * PV_PAGE, PV_PAGE, bitmap);
	for (uint64_t at = 0; at < GUEST_LOW_SIZE + GUEST_HIGH_SIZE; at += PV_PAGE) {
		const uint64_t addr = at < GUEST_LOW_SIZE ? at : at - GUEST_LOW_SIZE + GUEST_HIGH;
		const uint64_t page = addr / PV_PAGE;
		const bool marked = bitmap[page / 64] >> page % 64 & 1;

		logged += marked;
		if (!memcmp(before + at, g->bytes + at, PV_PAGE))
			continue;
		changed++;
		assert_true(marked || is_drivers(p, side, addr));
	}
	assert_true(changed > 20);
	/* The log has little more than what was written. */
	assert_true(logged <= changed + 8);
}

static void test_dirty_log_has_each_page_written(void **state)
{
	struct pair p;
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_sge sge;
	uint8_t *before[2];

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	buffer_fill(&p.guest[0], &p.buffer[0], 0, 60000, 9);
	for (int i = 0; i < 2; i++) {
		before[i] = malloc(GUEST_MEMORY);
		memcpy(before[i], p.guest[i].bytes, GUEST_MEMORY);
		vnic_guest_memory_start_log(p.guest[i].memory);
	}
	sge = buffer_sge(&p.buffer[1], 150000, 50000);
	qp_post_recv(&p.guest[1], &p.qp[1], 70, &sge, 1);
	cq_arm(&p.guest[0], &p.cq[0], false);
	header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 4000);
	execute(&p, &header, 0, 60000);
	header.opcode = PVRDMA_WR_SEND;
	execute(&p, &header, 0, 50000);
	header.opcode = PVRDMA_WR_RDMA_READ;
	execute(&p, &header, 100000, 60000);
	header = rdma_header(&p, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 0);
	header.wr.atomic.remote_addr = (p.buffer[1].va + 220007) & ~UINT64_C(7);
	header.wr.atomic.rkey = p.buffer[1].key;
	header.wr.atomic.compare_add = 5;
	execute(&p, &header, 200000, 8);
	for (int i = 0; i < 2; i++) {
		expect_logged(&p, i, before[i]);
		free(before[i]);
		vnic_guest_memory_stop_log(p.guest[i].memory);
	}
	pair_close(&p);
}

/* --- Refusals */

static uint8_t *save(struct guest *g, size_t *length)
{
	uint8_t *stream;

	pvrdma_pause(g->dev, g->now);
	assert_int_equal(pvrdma_save(g->dev, g->now, &stream, length), 0);
	return stream;
}

static void test_restore_refuses_cut_and_changed_streams(void **state)
{
	struct pair p;
	struct guest other;
	uint8_t *stream;
	size_t length;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	guest_open(&other, &(struct guest_attr){.id = 2});
	stream = save(&p.guest[1], &length);
	for (size_t n = 0; n < length; n++)
		assert_int_equal(pvrdma_restore(other.dev, 0, stream, n), -EBADMSG);
	for (size_t i = 0; i < length; i++) {
		const uint8_t byte = stream[i];

		stream[i] ^= 1;
		assert_int_not_equal(pvrdma_restore(other.dev, 0, stream, length), 0);
		stream[i] = byte;
	}
	assert_false(pvrdma_active(other.dev));
	assert_int_equal(pvrdma_restore(other.dev, 0, stream, length), 0);
	assert_true(pvrdma_active(other.dev));
	free(stream);
	guest_close(&other);
	pair_close(&p);
}

/* A restored device that is saved at once gives the same stream, but for the addresses in memory.
 */
static void test_restored_device_saves_a_stream_of_equal_length(void **state)
{
	struct pair p;
	struct guest other;
	uint8_t *stream, *again;
	size_t length, length_again;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	guest_open(&other, &(struct guest_attr){.id = 2});
	stream = save(&p.guest[1], &length);
	assert_int_equal(pvrdma_restore(other.dev, p.guest[1].now, stream, length), 0);
	assert_int_equal(pvrdma_save(other.dev, p.guest[1].now, &again, &length_again), 0);
	assert_int_equal(length, length_again);
	free(stream);
	free(again);
	guest_close(&other);
	pair_close(&p);
}

static void test_restore_refuses_another_mac_type_mtu_or_memory(void **state)
{
	struct pair p;
	struct guest other;
	uint8_t *stream;
	size_t length;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	stream = save(&p.guest[1], &length);
	guest_open(&other, &(struct guest_attr){.id = 3});
	assert_int_equal(pvrdma_restore(other.dev, 0, stream, length), -EINVAL);
	guest_close(&other);
	guest_open(&other, &(struct guest_attr){.id = 2, .roce_v1 = true});
	assert_int_equal(pvrdma_restore(other.dev, 0, stream, length), -EINVAL);
	guest_close(&other);
	guest_open(&other, &(struct guest_attr){.id = 2, .mtu = 600});
	assert_int_equal(pvrdma_restore(other.dev, 0, stream, length), -EINVAL);
	guest_close(&other);
	guest_open(&other, &(struct guest_attr){.id = 2});
	guest_unplug(&other, GUEST_HIGH, GUEST_HIGH_SIZE);
	assert_int_equal(pvrdma_restore(other.dev, 0, stream, length), -EFAULT);
	guest_close(&other);
	free(stream);
	pair_close(&p);
}

/* Sets the length and the checksum of a stream (rxe/state_stream.h). */
static void complete(uint8_t *stream, uint64_t length)
{
	uint32_t crc;

	memcpy(stream + 16, &length, sizeof(length));
	crc = crc32_gzip_refl(0, stream, 12);
	crc = crc32_gzip_refl(crc, stream + 16, length - 16);
	memcpy(stream + 12, &crc, sizeof(crc));
}

/* The stream has a PD, and no engine. One of the words is the number of bytes that the PD takes. */
static void test_restore_refuses_objects_without_an_engine(void **state)
{
	struct guest g, other;
	uint8_t *stream, *end, word[8];
	size_t length;

	(void)state;
	guest_open(&g, &(struct guest_attr){.id = 2});
	guest_start(&g);
	guest_open(&other, &(struct guest_attr){.id = 2});
	stream = save(&g, &length);
	/* Behind a byte that says whether there is an engine, and the length of its stream. */
	end = memmem(stream, length, "urxestat", 8);
	assert_non_null(end);
	end -= sizeof(uint32_t);
	end[-1] = false;
	for (uint8_t *at = stream + 24; at + sizeof(word) < end; at++) {
		memcpy(word, at, sizeof(word));
		memset(at, 0, sizeof(word));
		complete(stream, (uint64_t)(end - stream));
		assert_int_not_equal(pvrdma_restore(other.dev, 0, stream, (size_t)(end - stream)),
				     0);
		memcpy(at, word, sizeof(word));
	}
	free(stream);
	guest_close(&other);
	guest_close(&g);
}

/* --- Numbers that the host chooses */

struct numbers {
	uint32_t next;    /* the last number taken */
	uint32_t claimed; /* number of them */
	uint32_t freed;
	int refusal; /* of claims; 0 = none */
};

static uint32_t take_number(void *ctx)
{
	return ++((struct numbers *)ctx)->next;
}

static void free_number(void *ctx, uint32_t qpn)
{
	(void)qpn;
	((struct numbers *)ctx)->freed++;
}

static int demand_number(void *ctx, uint32_t qpn)
{
	struct numbers *numbers = ctx;

	assert_in_range(qpn, 0x1001, numbers->next);
	if (numbers->refusal)
		return numbers->refusal;
	numbers->claimed++;
	return 0;
}

static void connect_to_any(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	(void)ctx, (void)mac, (void)qpn;
}

static void test_restore_demands_the_qpn_from_the_host(void **state)
{
	struct numbers numbers = {.next = 0x1000};
	const struct pvrdma_owner owner = {.take_qpn = take_number,
					   .free_qpn = free_number,
					   .demand_qpn = demand_number,
					   .connecting = connect_to_any,
					   .ctx = &numbers};
	struct pair p = {0};
	uint32_t freed;

	(void)state;
	pair_open_guests(&p, URXE_NET_IPV4);
	p.guest[1].attr.owner = &owner;
	guest_reopen(&p.guest[1]);
	guest_start(&p.guest[1]);
	pair_open_queues(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	assert_int_equal(p.qp[1].qpn, 0x1001);
	move_guest(&p, 1);
	assert_int_equal(numbers.claimed, 1);
	assert_int_equal(write_status(&p, p.buffer[1].va, 100, p.buffer[1].key), PVRDMA_WC_SUCCESS);
	/* Another process of the new host has the number: the guest stays, and goes on. */
	freed = numbers.freed;
	numbers.refusal = -EADDRINUSE;
	assert_int_equal(guest_migrate(&p.guest[1]), -EADDRINUSE);
	assert_int_equal(numbers.freed, freed);
	assert_int_equal(write_status(&p, p.buffer[1].va, 100, p.buffer[1].key), PVRDMA_WC_SUCCESS);
	pair_close(&p);
}

/* The new host's link is down: the driver learns it, and learns when the link is back. The saved
 * driver may have set up the NIC, and has not told its users yet that the port is active. */
static void test_driver_learns_that_the_new_link_is_down(void **state)
{
	const uint64_t resumed = 5000000;
	struct pair p;
	struct guest other;
	struct pv_eqe eqe;
	uint8_t *stream;
	size_t length;

	(void)state;
	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	guest_open(&other, &(struct guest_attr){.id = 2});
	guest_write(&p.guest[1], PV_REG_CTL, PV_CTL_UNQUIESCE);
	stream = save(&p.guest[1], &length);
	pvrdma_set_link(other.dev, false);
	assert_int_equal(pvrdma_restore(other.dev, 0, stream, length), 0);
	memcpy(other.bytes, p.guest[1].bytes, GUEST_MEMORY);
	other.async = p.guest[1].async;
	pvrdma_resume(other.dev, resumed);
	assert_false(guest_event(&other, &eqe));
	pvrdma_poll(other.dev, resumed + 9999999);
	assert_false(guest_event(&other, &eqe));
	pvrdma_poll(other.dev, resumed + 10000000);
	assert_true(guest_event(&other, &eqe));
	assert_int_equal(eqe.type, PV_EVENT_PORT_ERR);
	pvrdma_set_link(other.dev, true);
	assert_true(guest_event(&other, &eqe));
	assert_int_equal(eqe.type, PV_EVENT_PORT_ACTIVE);
	other.async = (struct pages){0};
	free(stream);
	guest_close(&other);
	pair_close(&p);
}

/* The driver was activated without a link. */
static void test_driver_learns_that_the_new_link_is_up(void **state)
{
	struct guest g, other;
	struct pv_eqe eqe;
	uint8_t *stream;
	size_t length;

	(void)state;
	guest_open(&g, &(struct guest_attr){.id = 2});
	guest_open(&other, &(struct guest_attr){.id = 2});
	pvrdma_set_link(g.dev, false);
	guest_start(&g);
	stream = save(&g, &length);
	assert_int_equal(pvrdma_restore(other.dev, 0, stream, length), 0);
	memcpy(other.bytes, g.bytes, GUEST_MEMORY);
	other.async = g.async;
	pvrdma_resume(other.dev, 0);
	assert_true(guest_event(&other, &eqe));
	assert_int_equal(eqe.type, PV_EVENT_PORT_ACTIVE);
	other.async = (struct pages){0};
	free(stream);
	guest_close(&other);
	guest_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requester_moves),
		cmocka_unit_test(test_responder_moves),
		cmocka_unit_test(test_queues_move),
		PAIR_TEST(test_due_notification_moves),
		PAIR_TEST(test_lost_interrupts_are_raised_after_a_move),
		cmocka_unit_test(test_move_before_the_first_command_raises_no_interrupt),
		cmocka_unit_test(test_returned_machine_repairs_its_connections),
		cmocka_unit_test(test_unseen_requests_move),
		cmocka_unit_test(test_unseen_request_of_many_queue_pairs_moves),
		cmocka_unit_test(test_srq_moves),
		cmocka_unit_test(test_datagrams_move),
		PAIR_TEST(test_unconnected_queue_pairs_move_to_a_shorter_mtu),
		cmocka_unit_test(test_handles_move),
		cmocka_unit_test(test_dma_region_moves),
		cmocka_unit_test(test_lost_memory_moves),
		cmocka_unit_test(test_dirty_log_has_each_page_written),
		cmocka_unit_test(test_restore_refuses_cut_and_changed_streams),
		cmocka_unit_test(test_restored_device_saves_a_stream_of_equal_length),
		cmocka_unit_test(test_restore_refuses_another_mac_type_mtu_or_memory),
		cmocka_unit_test(test_restore_refuses_objects_without_an_engine),
		cmocka_unit_test(test_restore_demands_the_qpn_from_the_host),
		cmocka_unit_test(test_driver_learns_that_the_new_link_is_down),
		cmocka_unit_test(test_driver_learns_that_the_new_link_is_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
