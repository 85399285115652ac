/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queues of the PVRDMA device: notifications, overflows, malformed requests, indices that are
 * garbage, rings whose memory is removed, and a reset in mid transfer.
 */
#include "pair.h"

#include <errno.h>

static int small_pair_setup(void **state)
{
	static struct pair p;

	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4, .cqe = 16});
	*state = &p;
	return 0;
}

static void write_once(struct pair *p)
{
	const struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);

	execute(p, &header, 0, 8);
}

static uint32_t notifications(struct guest *g, uint32_t expected)
{
	uint32_t handle, n = 0;

	for (; guest_notification(g, &handle); n++)
		assert_int_equal(handle, expected);
	return n;
}

static void post_recv(struct pair *p, int side, uint64_t wr_id)
{
	const struct pvrdma_sge sge = buffer_sge(&p->buffer[side], 0, 1000);

	qp_post_recv(&p->guest[side], &p->qp[side], wr_id, &sge, 1);
}

/* --- Notifications */

static void test_no_notification_unless_armed(void **state)
{
	struct pair *p = *state;

	write_once(p);
	assert_int_equal(notifications(&p->guest[0], 0), 0);
	assert_int_equal(p->guest[0].interrupts[PV_VECTOR_CQ], 0);
}

static void test_armed_cq_notifies_once(void **state)
{
	struct pair *p = *state;

	cq_arm(&p->guest[0], &p->cq[0], false);
	pvrdma_flush(p->guest[0].dev);
	assert_int_equal(notifications(&p->guest[0], 0), 0);
	write_once(p);
	write_once(p);
	assert_int_equal(notifications(&p->guest[0], p->cq[0].handle), 1);
	assert_int_equal(p->guest[0].interrupts[PV_VECTOR_CQ], 1);
}

/* The driver arms the CQ while another processor of the guest suspends the device. */
static void test_cq_armed_without_bus_mastering_notifies_later(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[0];

	pvrdma_set_bus_master(g->dev, false);
	cq_arm(g, &p->cq[0], false);
	pvrdma_set_bus_master(g->dev, true);
	pvrdma_flush(g->dev);
	assert_int_equal(notifications(g, p->cq[0].handle), 0);
	write_once(p);
	pvrdma_flush(g->dev);
	assert_int_equal(notifications(g, p->cq[0].handle), 1);
}

/* The doorbell comes late: the completion that the program has not seen counts. */
static void test_late_arm_notifies_of_unseen_completions_only(void **state)
{
	struct pair *p = *state;
	struct pvrdma_cqe cqe;

	write_once(p);
	cq_arm(&p->guest[0], &p->cq[0], false);
	pvrdma_flush(p->guest[0].dev);
	assert_int_equal(notifications(&p->guest[0], p->cq[0].handle), 1);
	assert_int_equal(p->guest[0].interrupts[PV_VECTOR_CQ], 1);
	/* The program was notified of it, and arms before it polls, as most programs do. */
	cq_arm(&p->guest[0], &p->cq[0], false);
	pvrdma_flush(p->guest[0].dev);
	assert_int_equal(notifications(&p->guest[0], p->cq[0].handle), 0);
	write_once(p);
	assert_int_equal(notifications(&p->guest[0], p->cq[0].handle), 1);
	while (cq_poll(&p->guest[0], &p->cq[0], &cqe))
		;
	cq_arm(&p->guest[0], &p->cq[0], false);
	pvrdma_flush(p->guest[0].dev);
	assert_int_equal(notifications(&p->guest[0], p->cq[0].handle), 0);
}

static void send(struct pair *p, bool solicited)
{
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_SEND, 0);

	if (solicited)
		header.send_flags |= URXE_SEND_SOLICITED;
	execute(p, &header, 0, 8);
}

static void test_solicited_arm_ignores_unsolicited_completions(void **state)
{
	struct pair *p = *state;
	struct pvrdma_cqe cqe;

	for (unsigned i = 0; i < 6; i++)
		post_recv(p, 1, i);
	cq_arm(&p->guest[1], &p->cq[1], true);
	send(p, false);
	assert_int_equal(notifications(&p->guest[1], 0), 0);
	send(p, true);
	assert_int_equal(notifications(&p->guest[1], p->cq[1].handle), 1);
	assert_true(cq_poll(&p->guest[1], &p->cq[1], &cqe));
	assert_true(cq_poll(&p->guest[1], &p->cq[1], &cqe));
	send(p, true);
	send(p, false);
	/* Late: the solicited completion is the first of two that are not consumed. */
	cq_arm(&p->guest[1], &p->cq[1], true);
	pvrdma_flush(p->guest[1].dev);
	assert_int_equal(notifications(&p->guest[1], p->cq[1].handle), 1);
	assert_true(cq_poll(&p->guest[1], &p->cq[1], &cqe));
	send(p, false);
	cq_arm(&p->guest[1], &p->cq[1], true);
	pvrdma_flush(p->guest[1].dev);
	assert_int_equal(notifications(&p->guest[1], p->cq[1].handle), 0);
}

static void test_poll_doorbell_does_not_arm(void **state)
{
	struct pair *p = *state;

	guest_doorbell(&p->guest[0], 0, PVRDMA_UAR_CQ_OFFSET, p->cq[0].handle | PV_UAR_CQ_POLL);
	write_once(p);
	assert_int_equal(notifications(&p->guest[0], 0), 0);
	assert_int_equal(pvrdma_counters(p->guest[0].dev)[PVRDMA_DOORBELL_POLL], 1);
}

static void test_poll_doorbell_counts_for_empty_cqs_only(void **state)
{
	struct pair *p = *state;
	struct pvrdma_cqe cqe;

	write_once(p);
	guest_doorbell(&p->guest[0], 0, PVRDMA_UAR_CQ_OFFSET, p->cq[0].handle | PV_UAR_CQ_POLL);
	assert_int_equal(pvrdma_counters(p->guest[0].dev)[PVRDMA_DOORBELL_POLL], 0);
	assert_true(cq_poll(&p->guest[0], &p->cq[0], &cqe));
	guest_doorbell(&p->guest[0], 0, PVRDMA_UAR_CQ_OFFSET, p->cq[0].handle | PV_UAR_CQ_POLL);
	assert_int_equal(pvrdma_counters(p->guest[0].dev)[PVRDMA_DOORBELL_POLL], 1);
}

/* The ring of notifications is full; the notification comes when the driver has made room. */
static void test_notification_waits_for_room_in_its_ring(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[0];
	struct pvrdma_cqe cqe;
	uint32_t handle;
	unsigned i, n = 0;

	for (i = 0; i < 1100; i++) {
		cq_arm(g, &p->cq[0], false);
		write_once(p);
		assert_true(cq_poll(g, &p->cq[0], &cqe));
	}
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_NOTIFICATIONS], 1024);
	assert_true(pvrdma_next_deadline(g->dev) <= g->now + 1000000);
	while (guest_notification(g, &handle))
		n++;
	assert_int_equal(n, 1024);
	pvrdma_flush(g->dev);
	assert_int_equal(notifications(g, p->cq[0].handle), 1);
	net_run(&p->net);
	assert_true(pvrdma_next_deadline(g->dev) == URXE_NEVER);
}

/* A CQ that is destroyed while its notification waits. */
static void test_destroyed_cq_notifies_nobody(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[0];

	cq_arm(g, &p->cq[0], false);
	for (unsigned i = 0; i < 5; i++) {
		const struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);
		const struct pvrdma_sge sge = buffer_sge(&p->buffer[0], 0, 8);

		qp_post_send(g, &p->qp[0], &header, &sge);
	}
	assert_int_equal(qp_to(g, &p->qp[0], URXE_QPS_ERR), 0); /* five completions, one is due */
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_QP, p->qp[0].handle), 0);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_CQ, p->cq[0].handle), 0);
	pvrdma_flush(g->dev);
	assert_int_equal(notifications(g, 0), 0);
}

/* --- Overflow */

static bool has_event(struct guest *g, uint32_t type, uint32_t info)
{
	struct pv_eqe eqe;
	bool found = false;

	while (guest_event(g, &eqe))
		found |= eqe.type == type && eqe.info == info;
	return found;
}

static void test_cq_overflow_fails_its_qps_with_one_event(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[0];
	struct pvrdma_cqe cqe;
	unsigned n = 0;

	for (unsigned i = 0; i < 17; i++)
		write_once(p);
	assert_true(has_event(g, URXE_ASYNC_CQ_ERR, p->cq[0].handle));
	assert_true(g->interrupts[PV_VECTOR_ASYNC] > 0);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_CQ_OVERFLOWS], 1);
	assert_int_equal(qp_query(g, &p->qp[0], NULL), URXE_QPS_ERR);
	while (cq_poll(g, &p->cq[0], &cqe)) {
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
		n++;
	}
	assert_int_equal(n, 16);
	assert_false(has_event(g, URXE_ASYNC_CQ_ERR, p->cq[0].handle));
}

static void test_cq_survives_garbage_indices(void **state)
{
	static const uint32_t garbage[] = {32, 0x80000000u, UINT32_MAX, 17};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct pair p;

		pair_open(&p,
			  &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4, .cqe = 16});
		write_once(&p);
		cq_indices(&p.guest[0], &p.cq[0])->cons_head = garbage[i];
		write_once(&p);
		/* The producer's index is the device's own. */
		cq_indices(&p.guest[0], &p.cq[0])->prod_tail = garbage[i];
		assert_true(has_event(&p.guest[0], URXE_ASYNC_CQ_ERR, p.cq[0].handle) ||
			    garbage[i] == 17);
		cq_arm(&p.guest[0], &p.cq[0], false);
		net_run(&p.net);
		pair_close(&p);
	}
}

/* --- Malformed requests complete in their order */

static void test_malformed_sends_complete_with_an_error_in_order(void **state)
{
	enum {
		OPCODE,
		LSO,
		MASKED_ATOMIC,
		READ_WITH_INV,
		SEGMENTS,
		MANY_SEGMENTS,
		KEY,
		LENGTH,
		ATOMIC_LENGTH,
		TOO_LONG,
		ROWS
	};

	(void)state;
	for (int row = 0; row < ROWS; row++) {
		struct pair p;
		struct pvrdma_sq_wqe_hdr good, bad;
		struct pvrdma_sge sges[3] = {0}, good_sge;
		uint32_t status = PVRDMA_WC_LOC_QP_OP_ERR;

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
		good = bad = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
		bad.wr_id = 2;
		good_sge = sges[0] = sges[1] = buffer_sge(&p.buffer[0], 0, 8);
		switch (row) {
		case OPCODE: bad.opcode = UINT32_MAX; break;
		case LSO: bad.opcode = PVRDMA_WR_LSO; break;
		case MASKED_ATOMIC: bad.opcode = PVRDMA_WR_MASKED_ATOMIC_CMP_AND_SWP; break;
		case READ_WITH_INV: bad.opcode = PVRDMA_WR_RDMA_READ_WITH_INV; break;
		case SEGMENTS: bad.num_sge = 3; break;
		case MANY_SEGMENTS: bad.num_sge = UINT32_MAX; break;
		case KEY:
			sges[0].lkey ^= 0x100;
			status = PVRDMA_WC_LOC_PROT_ERR;
			break;
		case LENGTH:
			sges[0].addr += BUFFER - 4;
			status = PVRDMA_WC_LOC_PROT_ERR;
			break;
		case ATOMIC_LENGTH:
			bad.opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD;
			sges[0].length = 7;
			break;
		case TOO_LONG:
			bad.num_sge = 2;
			sges[0].length = sges[1].length = 0x80000000u;
			status = PVRDMA_WC_LOC_LEN_ERR;
			break;
		default: break;
		}
		assert_true(qp_write_send(&p.guest[0], &p.qp[0], &good, &good_sge));
		assert_true(qp_write_send(&p.guest[0], &p.qp[0], &bad, sges));
		good.wr_id = 3;
		qp_post_send(&p.guest[0], &p.qp[0], &good, &good_sge);
		net_run(&p.net);
		expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
		expect_cqe(&p, 0, 2, status, 0);
		expect_cqe(&p, 0, 3, PVRDMA_WC_WR_FLUSH_ERR, 0);
		expect_no_cqe(&p, 0);
		pair_close(&p);
	}
}

static void test_malformed_receive_fails_when_a_message_arrives(void **state)
{
	struct pair *p = *state;
	struct pv_ring_state *ring = qp_state_page(&p->guest[1], &p->qp[1]);
	struct pvrdma_rq_wqe_hdr *wqe;

	ring->rx.prod_tail = 1;
	wqe = guest_at(&p->guest[1], p->qp[1].pages.addr[p->qp[1].recv_page]);
	*wqe = (struct pvrdma_rq_wqe_hdr){.wr_id = 44, .num_sge = 3};
	guest_doorbell(&p->guest[1], 0, PVRDMA_UAR_QP_OFFSET, p->qp[1].handle | PV_UAR_QP_RECV);
	assert_int_equal(pvrdma_counters(p->guest[1].dev)[PVRDMA_RECVS_BAD], 1);
	send(p, false);
	expect_cqe(p, 1, 44, PVRDMA_WC_LOC_PROT_ERR, 0);
	expect_cqe(p, 0, 1, PVRDMA_WC_REM_OP_ERR, 0);
}

/* Program's flag for inline data, which the device does not offer: the segments count. */
static void test_inline_flag_is_ignored(void **state)
{
	struct pair *p = *state;
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);

	header.send_flags |= URXE_SEND_INLINE;
	buffer_fill(&p->guest[0], &p->buffer[0], 0, 100, 8);
	execute(p, &header, 0, 100);
	expect_cqe(p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_true(buffer_has(&p->guest[1], &p->buffer[1], 0, 100, 8));
}

/* --- Indices */

static void test_garbage_ring_index_makes_the_qp_fatal(void **state)
{
	static const uint32_t garbage[] = {32, 0x12345678, UINT32_MAX, 17};

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		const bool recv = i / 4;
		struct pair p;
		struct guest *g = &p.guest[0];
		struct pv_ring_state *ring;

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
		ring = qp_state_page(g, &p.qp[0]);
		*(recv ? &ring->rx.prod_tail : &ring->tx.prod_tail) = garbage[i % 4];
		guest_doorbell(g, 0, PVRDMA_UAR_QP_OFFSET,
			       p.qp[0].handle | (recv ? PV_UAR_QP_RECV : PV_UAR_QP_SEND));
		pvrdma_flush(g->dev);
		assert_true(has_event(g, URXE_ASYNC_QP_FATAL, p.qp[0].handle));
		assert_int_equal(qp_query(g, &p.qp[0], NULL), URXE_QPS_ERR);
		assert_true(pvrdma_counters(g->dev)[PVRDMA_RING_BAD] > 0);
		/* The device's indices are its own; after a reset the QP works. */
		for (int side = 0; side < 2; side++)
			assert_int_equal(qp_to(&p.guest[side], &p.qp[side], URXE_QPS_RESET), 0);
		for (int side = 0; side < 2; side++)
			qp_connect(&p.guest[side], &p.qp[side], &p.guest[!side], &p.qp[!side]);
		write_once(&p);
		expect_cqe(&p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
		pair_close(&p);
	}
}

static void test_reset_empties_rings(void **state)
{
	struct pair *p = *state;
	struct pv_ring_state *ring = qp_state_page(&p->guest[0], &p->qp[0]);

	write_once(p);
	post_recv(p, 0, 1);
	assert_int_equal(ring->tx.cons_head, 1);
	assert_int_equal(qp_to(&p->guest[0], &p->qp[0], URXE_QPS_RESET), 0);
	assert_int_equal(ring->tx.prod_tail | ring->tx.cons_head, 0);
	assert_int_equal(ring->rx.prod_tail | ring->rx.cons_head, 0);
}

/* Requests in the rings of a QP that goes to the error state are flushed. */
static void test_qp_in_error_flushes_requests_in_its_rings(void **state)
{
	struct pair *p = *state;

	post_recv(p, 0, 7);
	assert_int_equal(qp_to(&p->guest[0], &p->qp[0], URXE_QPS_ERR), 0);
	expect_cqe(p, 0, 7, PVRDMA_WC_WR_FLUSH_ERR, 0);
	post_recv(p, 0, 8);
	expect_cqe(p, 0, 8, PVRDMA_WC_WR_FLUSH_ERR, 0);
	write_once(p);
	expect_cqe(p, 0, 1, PVRDMA_WC_WR_FLUSH_ERR, 0);
}

/* Requests before the state in which they may be posted are dropped. */
static void test_sends_in_the_init_state_are_dropped(void **state)
{
	const struct pv_qp_attr init = {.qp_state = URXE_QPS_INIT, .port_num = 1};
	struct pair *p = *state;
	struct guest *g = &p->guest[0];

	assert_int_equal(qp_to(g, &p->qp[0], URXE_QPS_RESET), 0);
	assert_int_equal(
		qp_modify(g, &p->qp[0], &init,
			  URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS),
		0);
	write_once(p);
	expect_no_cqe(p, 0);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_SENDS_BAD], 1);
	assert_int_equal(((struct pv_ring_state *)qp_state_page(g, &p->qp[0]))->tx.cons_head, 1);
}

/* The driver may have given up the creation of such a queue pair, and freed its rings. */
static void test_rings_of_a_qp_in_the_reset_state_are_not_written(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[0];
	struct pv_ring_state *ring = qp_state_page(g, &p->qp[0]);

	assert_int_equal(qp_to(g, &p->qp[0], URXE_QPS_RESET), 0);
	ring->tx.prod_tail = ring->rx.prod_tail = 3;
	assert_false(pvrdma_poll(g->dev, g->now));
	guest_doorbell(g, 0, PVRDMA_UAR_QP_OFFSET,
		       p->qp[0].handle | PV_UAR_QP_SEND | PV_UAR_QP_RECV);
	assert_int_equal(ring->tx.cons_head, 0);
	assert_int_equal(ring->rx.cons_head, 0);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_SENDS_BAD], 0);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_RECVS_BAD], 0);
}

/* --- Rings lose their memory */

/* Copies a page of a list to the plugged memory, before an object is created. */
static void move_page(struct guest *g, struct pages *pages, uint32_t index)
{
	uint64_t *table = guest_at(g, *(uint64_t *)guest_at(g, pages->dir));

	table[index] = pages->addr[index] = GUEST_EXTRA + index * PV_PAGE;
}

static void reopen_cq(struct guest *g, struct cq *cq, uint32_t index)
{
	union pv_request request = {
		.create_cq = {.cqe = cq->slots, .nchunks = cq->pages.n, .pdir_dma = cq->pages.dir}};
	union pv_response response;

	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_CQ, cq->handle), 0);
	move_page(g, &cq->pages, index);
	assert_int_equal(guest_command(g, PV_CMD_CREATE_CQ, &request, &response), 0);
	cq->handle = response.create_cq.cq_handle;
}

static void test_cq_with_unplugged_pages_raises_cq_error(void **state)
{
	(void)state;
	for (uint32_t page = 0; page < 2; page++) {
		struct pair p = {0};
		struct guest *g = &p.guest[0];
		struct cq cq;
		struct qp qp;

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
		guest_plug(g);
		cq_open(g, &cq, 16);
		reopen_cq(g, &cq, page);
		qp_open(g, &qp,
			&(struct qp_attr){.type = PV_QPT_RC, .send_cq = &cq, .recv_cq = &cq});
		qp_connect(g, &qp, g, &qp);
		cq_arm(g, &cq, false);
		guest_unplug(g, GUEST_EXTRA, GUEST_EXTRA_SIZE);
		pvrdma_flush(g->dev);
		assert_true(has_event(g, URXE_ASYNC_CQ_ERR, cq.handle));
		assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_MEMORY_LOST], 1);
		cq_arm(g, &cq, false);
		{
			const struct pvrdma_sq_wqe_hdr header =
				rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
			const struct pvrdma_sge sge = buffer_sge(&p.buffer[0], 0, 8);

			qp_post_send(g, &qp, &header, &sge);
		}
		net_run(&p.net);
		assert_int_equal(qp_query(g, &qp, NULL), URXE_QPS_ERR);
		assert_false(has_event(g, URXE_ASYNC_CQ_ERR, cq.handle));
		qp_close(g, &qp);
		cq_close(g, &cq);
		pair_close(&p);
	}
}

static void test_qp_with_unplugged_pages_becomes_fatal(void **state)
{
	(void)state;
	for (uint32_t page = 0; page < 3; page++) {
		struct pair p = {0};
		struct guest *g = &p.guest[0];
		struct pv_cmd_create_qp *create;
		union pv_request request = {0};
		union pv_response response;

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
		guest_plug(g);
		assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_QP, p.qp[0].handle), 0);
		move_page(g, &p.qp[0].pages, page);
		create = &request.create_qp;
		*create = (struct pv_cmd_create_qp){
			.pdir_dma = p.qp[0].pages.dir,
			.pd_handle = g->pd,
			.send_cq_handle = p.cq[0].handle,
			.recv_cq_handle = p.cq[0].handle,
			.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.total_chunks = (uint16_t)p.qp[0].pages.n,
			.send_chunks = (uint16_t)(p.qp[0].recv_page - 1),
			.qp_type = PV_QPT_RC,
		};
		assert_int_equal(guest_command(g, PV_CMD_CREATE_QP, &request, &response), 0);
		p.qp[0].handle = response.create_qp.qp_handle;
		memset(qp_state_page(g, &p.qp[0]), 0, PV_PAGE);
		qp_connect(g, &p.qp[0], &p.guest[1], &p.qp[1]);
		/* Another page first, so that the rest is two regions. */
		guest_unplug(g, GUEST_EXTRA + (page == 1 ? 0 : PV_PAGE), PV_PAGE);
		assert_int_equal(qp_query(g, &p.qp[0], NULL), URXE_QPS_RTS);
		guest_unplug(g, GUEST_EXTRA, GUEST_EXTRA_SIZE);
		assert_int_equal(qp_query(g, &p.qp[0], NULL), URXE_QPS_ERR);
		assert_true(has_event(g, URXE_ASYNC_QP_FATAL, p.qp[0].handle));
		guest_doorbell(g, 0, PVRDMA_UAR_QP_OFFSET,
			       p.qp[0].handle | PV_UAR_QP_SEND | PV_UAR_QP_RECV);
		assert_int_equal(qp_to(g, &p.qp[0], URXE_QPS_RESET), 0);
		assert_false(pvrdma_poll(g->dev, 0));
		net_run(&p.net);
		pair_close(&p);
	}
}

static void test_srq_with_unplugged_pages_raises_srq_error(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];
	struct srq srq;
	union pv_request request = {0};
	union pv_response response;

	guest_plug(g);
	assert_int_equal(srq_try_open(g, &srq, 16, 2, 0), 0);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_SRQ, srq.handle), 0);
	move_page(g, &srq.pages, 1);
	request.create_srq = (struct pv_cmd_create_srq){.pd_handle = g->pd,
							.pdir_dma = srq.pages.dir,
							.nchunks = srq.pages.n,
							.attrs = {.max_wr = 16, .max_sge = 2}};
	assert_int_equal(guest_command(g, PV_CMD_CREATE_SRQ, &request, &response), 0);
	srq.handle = response.handle.handle;
	guest_unplug(g, GUEST_EXTRA, GUEST_EXTRA_SIZE);
	assert_true(has_event(g, URXE_ASYNC_SRQ_ERR, srq.handle));
	guest_doorbell(g, 0, PVRDMA_UAR_SRQ_OFFSET, srq.handle | PV_UAR_SRQ_RECV);
	guest_pages_free(&srq.pages);
}

/* --- Memory of the device process */

#define MEMORY_MAX  (UINT64_C(4) << 30)
#define LARGEST_SRQ 32768u

/* A page directory whose tables and pages are all the same: the driver may do that. */
static uint64_t endless_directory(struct guest *g)
{
	const uint64_t page = guest_page(g), table = guest_page(g), dir = guest_page(g);

	for (unsigned i = 0; i < PV_PAGE / 8; i++) {
		((uint64_t *)guest_at(g, table))[i] = page;
		((uint64_t *)guest_at(g, dir))[i] = table;
	}
	return dir;
}

static int open_srq(struct guest *g, uint64_t dir, uint32_t max_wr, uint32_t *handle)
{
	union pv_request request = {.create_srq = {.pd_handle = g->pd,
						   .pdir_dma = dir,
						   .nchunks = 1u << 18,
						   .attrs = {.max_wr = max_wr, .max_sge = 32}}};
	union pv_response response;
	int rc = guest_command(g, PV_CMD_CREATE_SRQ, &request, &response);

	*handle = response.handle.handle;
	return rc;
}

/* Opens SRQs until there is no memory, not even for a small one; returns the bytes of the largest.
 */
static uint64_t fill_memory(struct guest *g, uint64_t dir)
{
	uint64_t bytes = 0;
	uint32_t handle;
	int rc;

	for (uint32_t max_wr = LARGEST_SRQ; max_wr; max_wr /= 2) {
		while (!(rc = open_srq(g, dir, max_wr, &handle)))
			bytes += max_wr * UINT64_C(32) * sizeof(struct pvrdma_sge);
		assert_int_equal(rc, -ENOMEM);
	}
	return bytes;
}

static uint32_t count_qps(struct guest *g, struct cq *cq, uint64_t dir, uint8_t type,
			  uint32_t *handles)
{
	union pv_request request = {.create_qp = {.pd_handle = g->pd,
						  .send_cq_handle = cq->handle,
						  .recv_cq_handle = cq->handle,
						  .max_send_wr = 1,
						  .max_recv_wr = 1,
						  .max_send_sge = 1,
						  .max_recv_sge = 1,
						  .qp_type = type,
						  .pdir_dma = dir,
						  .total_chunks = 3,
						  .send_chunks = 1}};
	union pv_response response;
	uint32_t n = 0;

	while (n < 64 && !guest_command(g, PV_CMD_CREATE_QP, &request, &response))
		handles[n++] = response.create_qp.qp_handle;
	return n;
}

/* A guest makes the device process take memory: only so much. */
static void test_memory_is_limited(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[0];
	const uint64_t dir = endless_directory(g);
	uint32_t handles[64], first, n_ud, n_rc;
	uint64_t bytes;

	assert_int_equal(open_srq(g, dir, 128, &first), 0);
	bytes = fill_memory(g, dir);
	assert_true(bytes > MEMORY_MAX / 10 * 9 && bytes < MEMORY_MAX);
	assert_int_equal(count_qps(g, &p->cq[0], dir, PV_QPT_RC, handles), 0);
	/* 64 KiB for some queue pairs; those of RC remember READs and atomics. */
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_SRQ, first), 0);
	n_ud = count_qps(g, &p->cq[0], dir, PV_QPT_UD, handles);
	for (uint32_t i = 0; i < n_ud; i++)
		assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_QP, handles[i]), 0);
	n_rc = count_qps(g, &p->cq[0], dir, PV_QPT_RC, handles);
	assert_true(n_ud >= 8);
	assert_true(n_rc >= 1 && n_rc < n_ud / 2);
}

/* --- Reset */

static void test_reset_device_writes_no_memory(void **state)
{
	(void)state;
	for (unsigned steps = 0; steps < 12; steps++) {
		const int side = steps % 2;
		struct pair p;
		struct pvrdma_sq_wqe_hdr header;
		struct pvrdma_sge sge;

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
		header = rdma_header(&p, steps % 4 < 2 ? PVRDMA_WR_RDMA_WRITE : PVRDMA_WR_RDMA_READ,
				     0);
		sge = buffer_sge(&p.buffer[0], 0, BUFFER);
		qp_post_send(&p.guest[0], &p.qp[0], &header, &sge);
		for (unsigned i = 0; i < steps / 4; i++)
			net_step(&p.net);
		if (steps % 3)
			pvrdma_reset(p.guest[side].dev);
		else
			guest_write(&p.guest[side], PV_REG_CTL, PV_CTL_RESET);
		/* The guest's kernel gives the memory to others, which must not see writes. */
		memset(p.guest[side].bytes, 0x5a, GUEST_LOW_SIZE);
		net_run(&p.net);
		for (uint32_t i = 0; i < GUEST_LOW_SIZE; i += 8)
			assert_true(*(uint64_t *)(p.guest[side].bytes + i) ==
				    UINT64_C(0x5a5a5a5a5a5a5a5a));
		if (side)
			expect_cqe(&p, 0, 1, PVRDMA_WC_RETRY_EXC_ERR, 0);
		pair_close(&p);
	}
}

#define SMALL_PAIR_TEST(test) cmocka_unit_test_setup_teardown(test, small_pair_setup, pair_teardown)

/* More queue pairs than a look in turn reaches: the device ignores the last one's doorbell. */
static void test_doorbell_without_bus_mastering_is_made_up_for(void **state)
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
	pvrdma_set_bus_master(p.guest[0].dev, false);
	qp_post_send(&p.guest[0], &others[69], &header, &sge);
	pvrdma_set_bus_master(p.guest[0].dev, true);
	assert_true(pvrdma_poll(p.guest[0].dev, p.guest[0].now));
	assert_int_equal(pvrdma_counters(p.guest[0].dev)[PVRDMA_SENDS], 1);
	for (uint32_t i = 0; i < 70; i++)
		qp_close(&p.guest[0], &others[i]);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SMALL_PAIR_TEST(test_no_notification_unless_armed),
		SMALL_PAIR_TEST(test_armed_cq_notifies_once),
		cmocka_unit_test(test_doorbell_without_bus_mastering_is_made_up_for),
		SMALL_PAIR_TEST(test_cq_armed_without_bus_mastering_notifies_later),
		SMALL_PAIR_TEST(test_late_arm_notifies_of_unseen_completions_only),
		SMALL_PAIR_TEST(test_solicited_arm_ignores_unsolicited_completions),
		SMALL_PAIR_TEST(test_poll_doorbell_does_not_arm),
		SMALL_PAIR_TEST(test_poll_doorbell_counts_for_empty_cqs_only),
		SMALL_PAIR_TEST(test_notification_waits_for_room_in_its_ring),
		SMALL_PAIR_TEST(test_destroyed_cq_notifies_nobody),
		SMALL_PAIR_TEST(test_cq_overflow_fails_its_qps_with_one_event),
		cmocka_unit_test(test_cq_survives_garbage_indices),
		cmocka_unit_test(test_malformed_sends_complete_with_an_error_in_order),
		SMALL_PAIR_TEST(test_malformed_receive_fails_when_a_message_arrives),
		SMALL_PAIR_TEST(test_inline_flag_is_ignored),
		cmocka_unit_test(test_garbage_ring_index_makes_the_qp_fatal),
		SMALL_PAIR_TEST(test_reset_empties_rings),
		SMALL_PAIR_TEST(test_qp_in_error_flushes_requests_in_its_rings),
		SMALL_PAIR_TEST(test_sends_in_the_init_state_are_dropped),
		SMALL_PAIR_TEST(test_rings_of_a_qp_in_the_reset_state_are_not_written),
		cmocka_unit_test(test_cq_with_unplugged_pages_raises_cq_error),
		cmocka_unit_test(test_qp_with_unplugged_pages_becomes_fatal),
		SMALL_PAIR_TEST(test_srq_with_unplugged_pages_raises_srq_error),
		SMALL_PAIR_TEST(test_memory_is_limited),
		cmocka_unit_test(test_reset_device_writes_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
