/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Doorbells that the guest stores in memory, where a later one replaces an earlier one. */
#include "pair.h"

#include <errno.h>
#include <stdlib.h>

#define US    UINT64_C(1000)
#define QUIET (50 * US)

struct fixture {
	struct guest g;
	void *uar;
	struct cq cq;
	struct qp qp[2]; /* connected to each other */
	struct buffer buffer;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){.uar = calloc(1, PVRDMA_UAR_SIZE)};
	assert_non_null(f.uar);
	guest_open(&f.g, &(struct guest_attr){.id = 1, .uar = f.uar});
	f.g.now = 1000 * US; /* 0 is no time */
	guest_start(&f.g);
	cq_open(&f.g, &f.cq, 64);
	for (int i = 0; i < 2; i++)
		qp_open(&f.g, &f.qp[i],
			&(struct qp_attr){.type = PV_QPT_RC, .send_cq = &f.cq, .recv_cq = &f.cq});
	for (int i = 0; i < 2; i++)
		qp_connect(&f.g, &f.qp[i], &f.g, &f.qp[!i]);
	buffer_open(&f.g, &f.buffer, VA, BUFFER, ALL_ACCESS);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	guest_pages_free(&f->cq.pages);
	guest_pages_free(&f->buffer.pages);
	for (int i = 0; i < 2; i++)
		guest_pages_free(&f->qp[i].pages);
	guest_close(&f->g);
	free(f->uar);
	return 0;
}

static uint32_t word(const struct fixture *f, uint32_t page, uint32_t offset)
{
	return *(uint32_t *)((uint8_t *)f->uar + page * PV_PAGE + offset);
}

static uint64_t counter(const struct fixture *f, enum pvrdma_counter counter)
{
	return pvrdma_counters(f->g.dev)[counter];
}

/* The device's looks, one each 10 us, for that time. Whether one found something to do. */
static bool look_for(struct fixture *f, uint64_t time)
{
	bool found = false;

	for (uint64_t end = f->g.now + time; f->g.now < end; f->g.now += 10 * US) {
		found |= pvrdma_poll(f->g.dev, f->g.now);
		pvrdma_flush(f->g.dev);
	}
	return found;
}

static void send_message(struct fixture *f)
{
	const struct pvrdma_sge from = buffer_sge(&f->buffer, 0, 100);
	const struct pvrdma_sge to = buffer_sge(&f->buffer, 1000, 100);
	struct pvrdma_sq_wqe_hdr header = {
		.num_sge = 1, .opcode = PVRDMA_WR_SEND, .send_flags = URXE_SEND_SIGNALED};
	struct net net = {.guest = {&f->g}};

	qp_post_recv(&f->g, &f->qp[1], 2, &to, 1);
	qp_post_send(&f->g, &f->qp[0], &header, &from);
	assert_true(pvrdma_poll(f->g.dev, f->g.now));
	net_run(&net);
}

static void consume_completions(struct fixture *f)
{
	struct pvrdma_cqe cqe;

	while (cq_poll(&f->g, &f->cq, &cqe))
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
}

/* How many notifications of the CQ the driver has got. */
static unsigned notifications(struct fixture *f)
{
	uint32_t handle;
	unsigned n = 0;

	pvrdma_flush(f->g.dev);
	for (; guest_notification(&f->g, &handle); n++)
		assert_int_equal(handle, f->cq.handle);
	return n;
}

static void ring_poll(struct fixture *f, const struct cq *cq)
{
	guest_doorbell(&f->g, 0, PVRDMA_UAR_CQ_OFFSET, cq->handle | PV_UAR_CQ_POLL);
}

static void test_polled_doorbells_deliver_a_message(void **state)
{
	struct fixture *f = *state;

	buffer_fill(&f->g, &f->buffer, 0, 100, 7);
	send_message(f);
	assert_true(buffer_has(&f->g, &f->buffer, 1000, 100, 7));
	consume_completions(f);
	assert_int_equal(word(f, 0, PVRDMA_UAR_QP_OFFSET), 0);
	assert_false(pvrdma_poll(f->g.dev, f->g.now));
}

static void test_arm_is_seen(void **state)
{
	struct fixture *f = *state;

	cq_arm(&f->g, &f->cq, false);
	assert_true(pvrdma_poll(f->g.dev, f->g.now));
	assert_int_equal(word(f, 0, PVRDMA_UAR_CQ_OFFSET), 0);
	send_message(f);
	assert_int_equal(notifications(f), 1);
}

/* The device learns that the driver uses events of the CQ. */
static void notify_once(struct fixture *f)
{
	cq_arm(&f->g, &f->cq, false);
	look_for(f, 10 * US);
	send_message(f);
	assert_int_equal(notifications(f), 1);
	consume_completions(f);
}

/* The program arms the CQ, polls once more, and sleeps: the message comes before or after that. */
static void test_poll_replaces_an_arm(void **state)
{
	struct fixture *f = *state;

	notify_once(f);
	for (int before = 0; before < 2; before++) {
		cq_arm(&f->g, &f->cq, false);
		ring_poll(f, &f->cq);
		assert_false(look_for(f, QUIET - 10 * US));
		if (before)
			send_message(f);
		assert_int_equal(notifications(f), 0);
		assert_int_equal(look_for(f, 2 * QUIET), before);
		if (!before)
			send_message(f);
		assert_int_equal(notifications(f), 1);
		consume_completions(f);
	}
}

/* Another CQ of the page is polled after the ARM. */
static void test_other_cq_replaces_an_arm(void **state)
{
	struct fixture *f = *state;
	struct cq other;

	cq_open(&f->g, &other, 16);
	cq_arm(&f->g, &f->cq, false);
	cq_arm(&f->g, &other, false);
	look_for(f, 2 * QUIET);
	send_message(f);
	assert_int_equal(notifications(f), 1);
	cq_close(&f->g, &other);
}

/* The guest's kernel polls one CQ, and never arms it; the other CQ's ARM arms all CQs of the page.
 */
static void test_cq_that_is_only_polled_causes_no_notification(void **state)
{
	struct fixture *f = *state;
	struct cq other;

	cq_open(&f->g, &other, 16);
	ring_poll(f, &f->cq);
	look_for(f, 10 * US);
	cq_arm(&f->g, &other, false);
	look_for(f, 2 * QUIET);
	for (int i = 0; i < 2; i++) {
		send_message(f);
		look_for(f, 2 * QUIET);
		consume_completions(f);
		ring_poll(f, &f->cq);
	}
	assert_int_equal(notifications(f), 0);
	/* The kernel arms it after all. */
	cq_arm(&f->g, &f->cq, false);
	look_for(f, 10 * US);
	send_message(f);
	assert_int_equal(notifications(f), 1);
	cq_close(&f->g, &other);
}

/* One thread arms a CQ and sleeps; another one polls an empty CQ of the page without a pause. */
static void test_arm_arrives_while_another_cq_is_polled(void **state)
{
	struct fixture *f = *state;
	struct cq other;

	notify_once(f);
	cq_open(&f->g, &other, 16);
	cq_arm(&f->g, &other, false);
	look_for(f, 10 * US);
	cq_arm(&f->g, &f->cq, false);
	for (int i = 0; i < 1000; i++) {
		ring_poll(f, &other);
		look_for(f, 10 * US);
		if (i == 500)
			send_message(f);
	}
	assert_int_equal(notifications(f), 1);
	/* A program that reads completions in time is not interrupted. */
	for (int i = 0; i < 1000; i++) {
		ring_poll(f, &other);
		look_for(f, 10 * US);
		if (i % 4 == 0)
			consume_completions(f);
		if (i % 4 == 1)
			send_message(f);
	}
	assert_int_equal(notifications(f), 0);
	cq_close(&f->g, &other);
}

/* The program reads ten messages of a CQ at a time, never arms it, and polls another one. */
static void test_cq_that_is_read_late_causes_few_notifications(void **state)
{
	struct fixture *f = *state;
	unsigned n = 0;
	struct cq other;

	cq_open(&f->g, &other, 16);
	for (int i = 0; i < 10000; i++) {
		ring_poll(f, &other);
		look_for(f, 10 * US);
		if (i % 20 == 0)
			send_message(f);
		if (i % 200 == 199)
			consume_completions(f);
		n += notifications(f);
	}
	/* For 500 messages, one in 10 ms. */
	assert_in_range(n, 1, 120);
	/* An ARM that the device sees is answered at once. */
	consume_completions(f);
	cq_arm(&f->g, &f->cq, false);
	look_for(f, 10 * US);
	send_message(f);
	assert_int_equal(notifications(f), 1);
	cq_close(&f->g, &other);
}

static void test_program_that_polls_is_not_interrupted(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 100; i++) {
		ring_poll(f, &f->cq);
		assert_false(look_for(f, QUIET - 10 * US));
		if (i % 10 == 0) {
			send_message(f);
			consume_completions(f);
		}
	}
	assert_int_equal(notifications(f), 0);
}

static void open_qp_of_srq(struct fixture *f, struct qp *qp, struct srq *srq)
{
	qp_open(&f->g, qp,
		&(struct qp_attr){
			.type = PV_QPT_RC, .send_cq = &f->cq, .recv_cq = &f->cq, .srq = srq});
}

static void open_srqs(struct fixture *f, struct srq srq[2])
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(srq_try_open(&f->g, &srq[i], 8, 1, 0), 0);
}

/* Posts a receive to each; the second doorbell replaces the first before the device looks. */
static void post_to_srqs(struct fixture *f, struct srq srq[2])
{
	const struct pvrdma_sge sge = buffer_sge(&f->buffer, 0, 8);

	for (int i = 0; i < 2; i++)
		srq_post(&f->g, &srq[i], 1, &sge, 1);
	assert_true(pvrdma_poll(f->g.dev, f->g.now));
}

static void close_srqs(struct fixture *f, struct srq srq[2])
{
	for (int i = 0; i < 2; i++)
		srq_close(&f->g, &srq[i]);
}

/* The doorbell of the first SRQ is replaced by that of the second. */
static void test_doorbell_of_a_second_srq_loses_no_receives(void **state)
{
	struct fixture *f = *state;
	struct srq srq[2];
	struct qp qp;

	open_srqs(f, srq);
	open_qp_of_srq(f, &qp, &srq[0]);
	post_to_srqs(f, srq);
	assert_int_equal(counter(f, PVRDMA_RECVS), 2);
	qp_close(&f->g, &qp);
	close_srqs(f, srq);
}

static struct pv_ring_indices *srq_indices(const struct fixture *f, const struct srq *srq)
{
	return &((struct pv_ring_state *)guest_at(&f->g, srq->pages.addr[0]))->rx;
}

/* The driver may have given up the creation of an SRQ without queue pairs, and freed its ring. */
static void test_receives_of_an_srq_wait_for_its_doorbell_or_first_qp(void **state)
{
	struct fixture *f = *state;
	struct srq srq[2];
	struct qp qp;

	open_srqs(f, srq);
	post_to_srqs(f, srq);
	assert_int_equal(srq_indices(f, &srq[0])->cons_head, 0);
	assert_int_equal(srq_indices(f, &srq[1])->cons_head, 1);
	open_qp_of_srq(f, &qp, &srq[0]);
	assert_int_equal(srq_indices(f, &srq[0])->cons_head, 1);
	qp_close(&f->g, &qp);
	close_srqs(f, srq);
}

/* Pages of contexts are looked at, and others are not. */
static void test_only_pages_of_user_contexts_are_polled(void **state)
{
	struct fixture *f = *state;
	union pv_request request = {.create_uc = {.pfn64 = GUEST_UAR_PFN + 5}};
	union pv_response response;

	guest_doorbell(&f->g, 5, PVRDMA_UAR_QP_OFFSET, UINT32_MAX);
	guest_doorbell(&f->g, 6, PVRDMA_UAR_QP_OFFSET, UINT32_MAX);
	assert_false(pvrdma_poll(f->g.dev, f->g.now));
	assert_int_equal(guest_command(&f->g, PV_CMD_CREATE_UC, &request, &response), 0);
	pvrdma_poll(f->g.dev, f->g.now);
	assert_int_equal(word(f, 5, PVRDMA_UAR_QP_OFFSET), 0);
	assert_int_equal(word(f, 6, PVRDMA_UAR_QP_OFFSET), UINT32_MAX);
	assert_int_equal(counter(f, PVRDMA_DOORBELL_BAD), 1);
	/* The queue pairs of the driver's page are none of this context's. */
	guest_doorbell(&f->g, 5, PVRDMA_UAR_QP_OFFSET, f->qp[0].handle | PV_UAR_QP_SEND);
	pvrdma_poll(f->g.dev, f->g.now);
	assert_int_equal(counter(f, PVRDMA_DOORBELL_BAD), 2);
	assert_int_equal(guest_handle_command(&f->g, PV_CMD_DESTROY_UC, response.handle.handle), 0);
}

/* The guest breaks a ring: its requests end and the driver gets an event, without a doorbell. */
static void test_look_that_fails_a_qp_found_something(void **state)
{
	struct fixture *f = *state;

	for (int recv = 0; recv < 2; recv++) {
		struct pv_ring_state *ring = qp_state_page(&f->g, &f->qp[recv]);

		assert_false(pvrdma_poll(f->g.dev, f->g.now));
		*(recv ? &ring->rx.prod_tail : &ring->tx.prod_tail) = UINT32_MAX;
		assert_true(pvrdma_poll(f->g.dev, f->g.now));
		assert_int_equal(qp_query(&f->g, &f->qp[recv], NULL), URXE_QPS_ERR);
		assert_false(pvrdma_poll(f->g.dev, f->g.now));
	}
}

/* Without the right to access memory, doorbells wait; a reset removes them. */
static void test_doorbells_wait_for_bus_mastering_and_reset_clears(void **state)
{
	struct fixture *f = *state;

	cq_arm(&f->g, &f->cq, false);
	pvrdma_set_bus_master(f->g.dev, false);
	assert_false(pvrdma_poll(f->g.dev, f->g.now));
	assert_int_not_equal(word(f, 0, PVRDMA_UAR_CQ_OFFSET), 0);
	pvrdma_set_bus_master(f->g.dev, true);
	assert_true(pvrdma_poll(f->g.dev, f->g.now));
	cq_arm(&f->g, &f->cq, false);
	guest_write(&f->g, PV_REG_CTL, PV_CTL_RESET);
	assert_int_equal(word(f, 0, PVRDMA_UAR_CQ_OFFSET), 0);
	assert_false(pvrdma_poll(f->g.dev, f->g.now));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A device of another process takes the memory over while the guest rings doorbells. */
static void test_doorbell_rung_during_a_handover_is_kept(void **state)
{
	struct fixture *f = *state;
	const uint32_t arm = f->cq.handle | PV_UAR_CQ_ARM;
	struct pvrdma *other;
	uint8_t *stream;
	size_t length;

	pvrdma_pause(f->g.dev, f->g.now);
	assert_int_equal(pvrdma_save(f->g.dev, f->g.now, &stream, &length), 0);
	guest_doorbell(&f->g, 0, PVRDMA_UAR_CQ_OFFSET, arm);
	/* A process that fails leaves the doorbell. */
	assert_int_equal(pvrdma_create(&f->g.attr, &other), 0);
	assert_int_equal(pvrdma_restore(other, f->g.now, stream, length - 1), -EBADMSG);
	pvrdma_destroy(other);
	assert_int_equal(word(f, 0, PVRDMA_UAR_CQ_OFFSET), arm);
	assert_int_equal(pvrdma_create(&f->g.attr, &other), 0);
	assert_int_equal(pvrdma_restore(other, f->g.now, stream, length), 0);
	pvrdma_destroy(f->g.dev);
	assert_int_equal(word(f, 0, PVRDMA_UAR_CQ_OFFSET), arm);
	f->g.dev = other;
	pvrdma_resume(f->g.dev, f->g.now);
	assert_true(look_for(f, 20 * US));
	assert_int_equal(word(f, 0, PVRDMA_UAR_CQ_OFFSET), 0);
	free(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_polled_doorbells_deliver_a_message),
		TEST(test_arm_is_seen),
		TEST(test_poll_replaces_an_arm),
		TEST(test_other_cq_replaces_an_arm),
		TEST(test_cq_that_is_only_polled_causes_no_notification),
		TEST(test_arm_arrives_while_another_cq_is_polled),
		TEST(test_cq_that_is_read_late_causes_few_notifications),
		TEST(test_program_that_polls_is_not_interrupted),
		TEST(test_doorbell_of_a_second_srq_loses_no_receives),
		TEST(test_receives_of_an_srq_wait_for_its_doorbell_or_first_qp),
		TEST(test_only_pages_of_user_contexts_are_polled),
		TEST(test_look_that_fails_a_qp_found_something),
		TEST(test_doorbells_wait_for_bus_mastering_and_reset_clears),
		TEST(test_doorbell_rung_during_a_handover_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
