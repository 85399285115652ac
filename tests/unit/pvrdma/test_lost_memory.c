/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pages that the hypervisor takes away without a word, by shortening the file: accesses to them
 * raise SIGBUS, and end in errors of the requests. The extra region is the end of the file.
 */
#include "pair.h"

#include <unistd.h>

/* cmocka installs its own handlers of signals before each test. */
static void shorten_file(struct guest *g)
{
	assert_int_equal(vnic_guest_memory_catch_faults(NULL, NULL), 0);
	assert_int_equal(ftruncate(g->fd, GUEST_LOW_SIZE + GUEST_HIGH_SIZE), 0);
}

/* What the vfio-user server does after each use of guest memory. Returns the number of pieces. */
static unsigned check_memory(struct guest *g)
{
	uint64_t addr, size;
	unsigned n = 0;

	for (; vnic_guest_memory_find_lost(g->memory, &addr, &size); n++) {
		assert_true(addr >= GUEST_EXTRA && size <= GUEST_EXTRA_SIZE);
		pvrdma_memory_removed(g->dev, addr, size);
		vnic_guest_memory_forget(g->memory, addr, size);
	}
	return n;
}

/* Three pages, of which the one in the middle is in the extra region. */
static void open_mixed(struct guest *g, struct buffer *buffer)
{
	struct pv_cmd_create_mr create = {.start = VA & ~UINT64_C(0xfff),
					  .length = 3 * PV_PAGE,
					  .pd_handle = g->pd,
					  .access_flags = ALL_ACCESS,
					  .nchunks = 3};

	guest_plug(g);
	*buffer = (struct buffer){.va = create.start, .length = create.length};
	guest_pages(g, 3, &buffer->pages);
	create.pdir_dma = buffer->pages.dir;
	buffer->pages.addr[1] = table_of(g, &buffer->pages)[1] = GUEST_EXTRA;
	assert_int_equal(mr_create(g, &create, &buffer->handle, &buffer->key), 0);
}

static uint32_t status_of(struct pair *p, uint32_t opcode, uint64_t va, uint32_t length,
			  uint32_t key)
{
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, opcode, 0);
	struct pvrdma_sge sge = buffer_sge(&p->buffer[0], 0, length);
	struct pvrdma_cqe cqe;

	header.wr.rdma.remote_addr = va;
	header.wr.rdma.rkey = key;
	if (opcode == PVRDMA_WR_ATOMIC_FETCH_AND_ADD) {
		header.wr.atomic.remote_addr = va;
		header.wr.atomic.rkey = key;
		header.wr.atomic.compare_add = 1;
	}
	qp_post_send(&p->guest[0], &p->qp[0], &header, &sge);
	net_run(&p->net);
	assert_true(cq_poll(&p->guest[0], &p->cq[0], &cqe));
	return cqe.status;
}

/* The peer's requests to a page that is lost, before and after the device has withdrawn it. */
static void test_peer_access_to_a_lost_page_is_refused(void **state)
{
	static const uint32_t opcodes[] = {PVRDMA_WR_RDMA_WRITE, PVRDMA_WR_RDMA_READ,
					   PVRDMA_WR_ATOMIC_FETCH_AND_ADD};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct pair p;
		struct buffer mixed;
		uint64_t lost;

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
		open_mixed(&p.guest[1], &mixed);
		lost = mixed.va + PV_PAGE;
		assert_int_equal(status_of(&p, opcodes[i], lost, 8, mixed.key), 0);
		shorten_file(&p.guest[1]);
		assert_int_equal(status_of(&p, opcodes[i], lost, 8, mixed.key),
				 PVRDMA_WC_REM_ACCESS_ERR);
		assert_int_equal(
			pvrdma_engine_counters(p.guest[1].dev)->event[URXE_EVENT_MEMORY_GONE], 1);
		/* The page is one of zeros now: it must not serve a second request. */
		reconnect(&p);
		assert_int_equal(status_of(&p, opcodes[i], lost, 8, mixed.key),
				 PVRDMA_WC_REM_ACCESS_ERR);
		reconnect(&p);
		assert_int_equal(check_memory(&p.guest[1]), 1);
		assert_int_equal(check_memory(&p.guest[1]), 0);
		assert_int_equal(status_of(&p, opcodes[i], lost, 8, mixed.key),
				 PVRDMA_WC_REM_ACCESS_ERR);
		/* The other pages of the region still serve. */
		reconnect(&p);
		assert_int_equal(status_of(&p, opcodes[i], mixed.va, 8, mixed.key), 0);
		assert_int_equal(status_of(&p, opcodes[i], mixed.va + 2 * PV_PAGE, 8, mixed.key),
				 0);
		guest_pages_free(&mixed.pages);
		pair_close(&p);
	}
}

static void test_lost_payload_page_gives_local_protection_error(void **state)
{
	struct pair *p = *state;
	struct buffer mixed;
	struct pvrdma_sge sge;
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);
	struct pvrdma_cqe cqe;

	open_mixed(&p->guest[0], &mixed);
	shorten_file(&p->guest[0]);
	sge = buffer_sge(&mixed, 0, 3 * PV_PAGE);
	qp_post_send(&p->guest[0], &p->qp[0], &header, &sge);
	net_run(&p->net);
	assert_true(cq_poll(&p->guest[0], &p->cq[0], &cqe));
	assert_int_equal(cqe.status, PVRDMA_WC_LOC_PROT_ERR);
	assert_int_equal(check_memory(&p->guest[0]), 1);
	guest_pages_free(&mixed.pages);
}

static void test_lost_receive_buffer_fails_both_sides(void **state)
{
	struct pair *p = *state;
	struct buffer mixed;
	struct pvrdma_sge sge, from = buffer_sge(&p->buffer[0], 0, 2 * PV_PAGE);
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_SEND, 0);
	struct pvrdma_cqe cqe;

	open_mixed(&p->guest[1], &mixed);
	shorten_file(&p->guest[1]);
	sge = buffer_sge(&mixed, 0, 3 * PV_PAGE);
	qp_post_recv(&p->guest[1], &p->qp[1], 7, &sge, 1);
	qp_post_send(&p->guest[0], &p->qp[0], &header, &from);
	net_run(&p->net);
	assert_true(cq_poll(&p->guest[1], &p->cq[1], &cqe));
	assert_int_equal(cqe.wr_id, 7);
	assert_int_equal(cqe.status, PVRDMA_WC_LOC_PROT_ERR);
	assert_true(cq_poll(&p->guest[0], &p->cq[0], &cqe));
	assert_int_equal(cqe.status, PVRDMA_WC_REM_OP_ERR);
	guest_pages_free(&mixed.pages);
}

/*
 * Connects a new queue pair of guest 0 to guest 1's. Every other page of its rings is in the extra
 * region: the header, or the slots of the send queue.
 */
static void open_queue(struct pair *p, struct qp *qp, bool header)
{
	const struct qp_attr attr = {.type = PV_QPT_RC, .send_cq = &p->cq[0], .recv_cq = &p->cq[0]};
	struct guest *g = &p->guest[0];
	const uint64_t low_size = g->low_size, next_low = g->next_low;

	guest_plug(g);
	/* The allocator alternates; directory, table, header, send slots. */
	g->next_low = GUEST_EXTRA;
	g->low_size = GUEST_EXTRA + g->extra_size;
	g->high_next = !header;
	qp_open(g, qp, &attr);
	g->next_low = next_low;
	g->low_size = low_size;
	assert_int_equal(qp->pages.addr[0] >= GUEST_EXTRA, header);
	assert_int_equal(qp->pages.addr[1] >= GUEST_EXTRA, !header);
	qp_connect(g, qp, &p->guest[1], &p->qp[1]);
	qp_connect(&p->guest[1], &p->qp[1], g, qp);
}

static void ring_doorbell(struct pair *p, const struct qp *qp)
{
	guest_doorbell(&p->guest[0], 0, PVRDMA_UAR_QP_OFFSET, qp->handle | PV_UAR_QP_SEND);
	net_run(&p->net);
}

static void expect_fatal_event(struct pair *p, const struct qp *qp)
{
	struct pv_eqe eqe;

	assert_true(guest_event(&p->guest[0], &eqe));
	assert_int_equal(eqe.type, URXE_ASYNC_QP_FATAL);
	assert_int_equal(eqe.info, qp->handle);
	assert_int_equal(qp_query(&p->guest[0], qp, NULL), URXE_QPS_ERR);
}

/* A request of zeros would be a WRITE of nothing, with success. */
static void test_lost_request_slot_executes_no_zero_request(void **state)
{
	struct pair *p = *state;
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);
	struct pvrdma_sge sge = buffer_sge(&p->buffer[0], 0, 8);
	struct pvrdma_cqe cqe;
	struct qp qp;

	assert_int_equal(qp_to(&p->guest[1], &p->qp[1], URXE_QPS_RESET), 0);
	open_queue(p, &qp, false);
	assert_true(qp_write_send(&p->guest[0], &qp, &header, &sge));
	shorten_file(&p->guest[0]);
	ring_doorbell(p, &qp);
	assert_true(cq_poll(&p->guest[0], &p->cq[0], &cqe));
	assert_int_equal(cqe.status, PVRDMA_WC_LOC_QP_OP_ERR);
	assert_int_equal(pvrdma_counters(p->guest[0].dev)[PVRDMA_SENDS_BAD], 1);
	assert_true(check_memory(&p->guest[0]) > 0);
	assert_int_equal(pvrdma_counters(p->guest[0].dev)[PVRDMA_MEMORY_LOST], 1);
	expect_fatal_event(p, &qp);
	guest_pages_free(&qp.pages);
}

/* An index of 0 would make the device execute old requests once more. */
static void test_lost_ring_indices_repeat_no_requests(void **state)
{
	struct pair *p = *state;
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);
	struct pvrdma_sge sge = buffer_sge(&p->buffer[0], 0, 8);
	struct pvrdma_cqe cqe;
	struct qp qp;

	assert_int_equal(qp_to(&p->guest[1], &p->qp[1], URXE_QPS_RESET), 0);
	open_queue(p, &qp, true);
	for (unsigned i = 0; i < qp.send_slots + 3; i++) {
		qp_post_send(&p->guest[0], &qp, &header, &sge);
		net_run(&p->net);
		assert_true(cq_poll(&p->guest[0], &p->cq[0], &cqe));
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
	}
	shorten_file(&p->guest[0]);
	ring_doorbell(p, &qp);
	assert_int_equal(pvrdma_counters(p->guest[0].dev)[PVRDMA_SENDS], qp.send_slots + 3);
	expect_fatal_event(p, &qp);
	assert_true(check_memory(&p->guest[0]) > 0);
	guest_pages_free(&qp.pages);
}

/* The queue pair's rings lie in memory that can be removed; it has a receive request, number 7. */
static void open_queue_with_a_request(struct pair *p, struct qp *qp)
{
	struct pvrdma_sge sge = buffer_sge(&p->buffer[0], 0, 8);

	assert_int_equal(qp_to(&p->guest[1], &p->qp[1], URXE_QPS_RESET), 0);
	open_queue(p, qp, true);
	qp_post_recv(&p->guest[0], qp, 7, &sge, 1);
	net_run(&p->net);
}

static void expect_nothing_written(struct pair *p)
{
	struct guest *g = &p->guest[0];
	struct pvrdma_cqe cqe;
	struct pv_eqe eqe;

	net_run(&p->net);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_MEMORY_LOST], 1);
	assert_false(guest_event(g, &eqe));
	assert_false(cq_poll(g, &p->cq[0], &cqe));
}

/* The queue pair fails once, and its receive request completes; no CQ fails. */
static void expect_failure_of_the_queue(struct pair *p, const struct qp *qp)
{
	struct guest *g = &p->guest[0];
	struct pvrdma_cqe cqe;
	struct pv_eqe eqe;

	net_run(&p->net);
	expect_fatal_event(p, qp);
	assert_false(guest_event(g, &eqe));
	assert_true(cq_poll(g, &p->cq[0], &cqe));
	assert_int_equal(cqe.wr_id, 7);
	assert_int_equal(cqe.status, PVRDMA_WC_WR_FLUSH_ERR);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_CQ_OVERFLOWS], 0);
	assert_int_equal(qp_query(g, &p->qp[0], NULL), URXE_QPS_RTS);
}

/* The hypervisor removes memory while the driver forbids accesses: nothing is written to the rest,
 * and the queue pair fails when the driver permits them again. */
static void test_memory_removed_without_bus_mastering_causes_no_writes(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[0];
	struct qp qp;

	open_queue_with_a_request(p, &qp);
	pvrdma_set_bus_master(g->dev, false);
	guest_unplug(g, GUEST_EXTRA, GUEST_EXTRA_SIZE);
	expect_nothing_written(p);
	pvrdma_set_bus_master(g->dev, true);
	expect_failure_of_the_queue(p, &qp);
	guest_pages_free(&qp.pages);
}

/* Both the pause and the want of bus mastering forbid writes, whichever ends first. */
static void test_lost_rings_fail_after_pause_and_want_of_bus_mastering(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[0];
	struct qp qp;

	open_queue_with_a_request(p, &qp);
	pvrdma_set_bus_master(g->dev, false);
	pvrdma_pause(g->dev, g->now);
	guest_unplug(g, GUEST_EXTRA, GUEST_EXTRA_SIZE);
	pvrdma_resume(g->dev, g->now);
	expect_nothing_written(p);
	pvrdma_pause(g->dev, g->now);
	pvrdma_set_bus_master(g->dev, true);
	expect_nothing_written(p);
	pvrdma_resume(g->dev, g->now);
	expect_failure_of_the_queue(p, &qp);
	guest_pages_free(&qp.pages);
}

/* The machine may run on another host already, with the same memory: the old device writes nothing,
 * and reports the failure only if the machine goes on here. */
static void test_memory_removed_while_paused_causes_no_writes(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[0];
	uint32_t interrupts;
	struct pvrdma_cqe cqe;
	struct pv_eqe eqe;
	struct qp qp;

	open_queue_with_a_request(p, &qp);
	interrupts = g->interrupts[PV_VECTOR_ASYNC];
	pvrdma_pause(g->dev, g->now);
	guest_unplug(g, GUEST_EXTRA, GUEST_EXTRA_SIZE);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_MEMORY_LOST], 1);
	assert_false(guest_event(g, &eqe));
	assert_false(cq_poll(g, &p->cq[0], &cqe));
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], interrupts);
	pvrdma_resume(g->dev, g->now);
	net_run(&p->net);
	expect_fatal_event(p, &qp);
	assert_false(guest_event(g, &eqe));
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], interrupts + 1);
	assert_true(cq_poll(g, &p->cq[0], &cqe));
	assert_int_equal(cqe.wr_id, 7);
	assert_int_equal(cqe.status, PVRDMA_WC_WR_FLUSH_ERR);
	/* Once, also if the driver has reset it. */
	for (int i = 0; i < 2; i++) {
		pvrdma_pause(g->dev, g->now);
		pvrdma_resume(g->dev, g->now);
		net_run(&p->net);
		assert_false(guest_event(g, &eqe));
		assert_int_equal(qp_to(g, &qp, URXE_QPS_RESET), 0);
	}
	assert_int_equal(qp_query(g, &qp, NULL), URXE_QPS_RESET);
	guest_pages_free(&qp.pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peer_access_to_a_lost_page_is_refused),
		PAIR_TEST(test_lost_payload_page_gives_local_protection_error),
		PAIR_TEST(test_lost_receive_buffer_fails_both_sides),
		PAIR_TEST(test_lost_request_slot_executes_no_zero_request),
		PAIR_TEST(test_lost_ring_indices_repeat_no_requests),
		PAIR_TEST(test_memory_removed_without_bus_mastering_causes_no_writes),
		PAIR_TEST(test_lost_rings_fail_after_pause_and_want_of_bus_mastering),
		PAIR_TEST(test_memory_removed_while_paused_causes_no_writes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
