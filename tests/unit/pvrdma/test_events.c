/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events of queue pairs and SRQs in the ring of the PVRDMA device. Each test reads all
 * events of a guest, so it also sees those that must not be there. test_queues.c has the events of
 * CQs and of lost rings, test_registers.c those of the port.
 */
#include "pair.h"

static void expect_event(struct guest *g, uint32_t type, uint32_t handle)
{
	struct pv_eqe eqe;

	assert_true(guest_event(g, &eqe));
	assert_int_equal(eqe.type, type);
	assert_int_equal(eqe.info, handle);
}

static void expect_no_event(struct guest *g)
{
	struct pv_eqe eqe;

	assert_false(guest_event(g, &eqe));
}

/* Sends 8 bytes from guest 0. */
static void send_once(struct pair *p)
{
	struct pvrdma_sq_wqe_hdr header = {
		.wr_id = 1, .num_sge = 1, .opcode = PVRDMA_WR_SEND, .send_flags = 0};

	execute(p, &header, 0, 8);
}

static uint32_t events_at_destruction(struct guest *g, const struct qp *qp)
{
	union pv_request request = {.handle = {.handle = qp->handle}};
	union pv_response response;

	assert_int_equal(guest_command(g, PV_CMD_DESTROY_QP, &request, &response), 0);
	return response.destroy_qp.events_reported;
}

/* --- Errors */

static void test_bad_rkey_raises_qp_access_error_event(void **state)
{
	struct pair *p = *state;

	assert_int_equal(write_status(p, 0, 8, 12345), PVRDMA_WC_REM_ACCESS_ERR);
	expect_event(&p->guest[1], URXE_ASYNC_QP_ACCESS_ERR, p->qp[1].handle);
	expect_no_event(&p->guest[1]);
	expect_no_event(&p->guest[0]);
	assert_int_equal(p->guest[1].interrupts[PV_VECTOR_ASYNC], 1);
	assert_int_equal(events_at_destruction(&p->guest[1], &p->qp[1]), 1);
	assert_int_equal(events_at_destruction(&p->guest[0], &p->qp[0]), 0);
}

/* The access rights of the queue pair do not permit atomics. */
static void test_forbidden_atomic_raises_qp_request_error_event(void **state)
{
	struct pair *p = *state;
	const struct pv_qp_attr no_atomics = {.qp_access_flags = URXE_ACCESS_REMOTE_WRITE};
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 0);

	assert_int_equal(qp_modify(&p->guest[1], &p->qp[1], &no_atomics, URXE_QP_ACCESS_FLAGS), 0);
	header.wr.atomic.remote_addr = (p->buffer[1].va + 7) & ~UINT64_C(7);
	header.wr.atomic.rkey = p->buffer[1].key;
	execute(p, &header, 0, 8);
	expect_cqe(p, 0, 1, PVRDMA_WC_REM_INV_REQ_ERR, 0);
	expect_event(&p->guest[1], URXE_ASYNC_QP_REQ_ERR, p->qp[1].handle);
	expect_no_event(&p->guest[1]);
	expect_no_event(&p->guest[0]);
}

/* --- Communication established */

/* The first packet arrives in RTR. Later ones cause no event. */
static void test_first_packet_in_rtr_raises_comm_est_event(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];

	assert_int_equal(qp_to(g, &p->qp[1], URXE_QPS_RESET), 0);
	qp_receive(g, &p->qp[1], &p->guest[0], &p->qp[0]);
	net_run(&p->net);
	expect_no_event(g);
	for (int i = 0; i < 2; i++)
		assert_int_equal(write_status(p, p->buffer[1].va, 8, p->buffer[1].key),
				 PVRDMA_WC_SUCCESS);
	expect_event(g, URXE_ASYNC_COMM_EST, p->qp[1].handle);
	expect_no_event(g);
	expect_no_event(&p->guest[0]);
}

static void test_packets_in_rts_raise_no_comm_est_event(void **state)
{
	struct pair *p = *state;

	assert_int_equal(write_status(p, p->buffer[1].va, 8, p->buffer[1].key), PVRDMA_WC_SUCCESS);
	expect_no_event(&p->guest[1]);
}

/* --- Drained send queue */

static int to_sqd(struct pair *p, uint8_t notify)
{
	const struct pv_qp_attr attrs = {.qp_state = URXE_QPS_SQD, .en_sqd_async_notify = notify};

	return qp_modify(&p->guest[0], &p->qp[0], &attrs,
			 URXE_QP_STATE | URXE_QP_EN_SQD_ASYNC_NOTIFY);
}

/* The event comes after the acknowledgement of the request that is outstanding. */
static void test_sq_drained_event_follows_the_last_acknowledgement(void **state)
{
	struct pair *p = *state;
	const struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);
	const struct pvrdma_sge sge = buffer_sge(&p->buffer[0], 0, BUFFER);
	struct pv_qp_attr attrs;

	qp_post_send(&p->guest[0], &p->qp[0], &header, &sge);
	assert_true(net_step(&p->net));
	assert_int_equal(to_sqd(p, 1), 0);
	expect_no_event(&p->guest[0]);
	qp_query(&p->guest[0], &p->qp[0], &attrs);
	assert_int_equal(attrs.sq_draining, 1);
	net_run(&p->net);
	expect_event(&p->guest[0], URXE_ASYNC_SQ_DRAINED, p->qp[0].handle);
	expect_no_event(&p->guest[0]);
	expect_no_event(&p->guest[1]);
	qp_query(&p->guest[0], &p->qp[0], &attrs);
	assert_int_equal(attrs.qp_state, URXE_QPS_SQD);
	assert_int_equal(attrs.sq_draining, 0);
	expect_cqe(p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
}

static void test_empty_send_queue_raises_sq_drained_event_at_once(void **state)
{
	struct pair *p = *state;

	assert_int_equal(to_sqd(p, 1), 0);
	pvrdma_flush(p->guest[0].dev);
	expect_event(&p->guest[0], URXE_ASYNC_SQ_DRAINED, p->qp[0].handle);
	assert_int_equal(p->guest[0].interrupts[PV_VECTOR_ASYNC], 1);
}

static void test_sqd_without_notification_raises_no_event(void **state)
{
	struct pair *p = *state;

	assert_int_equal(to_sqd(p, 0), 0);
	net_run(&p->net);
	expect_no_event(&p->guest[0]);
}

/* --- SRQs */

struct srq_pair {
	struct pair p;
	struct srq srq; /* of guest 1 */
};

static int srq_setup(void **state)
{
	static struct srq_pair s;

	s = (struct srq_pair){0};
	pair_open_guests(&s.p, URXE_NET_IPV4);
	assert_int_equal(srq_try_open(&s.p.guest[1], &s.srq, 16, 1, 0), 0);
	pair_open_queues(&s.p, &(struct pair_attr){.type = PV_QPT_RC, .srq = &s.srq});
	*state = &s;
	return 0;
}

static int srq_teardown(void **state)
{
	struct srq_pair *s = *state;

	guest_pages_free(&s->srq.pages);
	pair_close(&s->p);
	return 0;
}

static void post_to_srq(struct srq_pair *s, unsigned n)
{
	const struct pvrdma_sge sge = buffer_sge(&s->p.buffer[1], 0, 1000);

	for (unsigned i = 0; i < n; i++)
		srq_post(&s->p.guest[1], &s->srq, 7, &sge, 1);
}

static void set_limit(struct srq_pair *s, uint32_t limit)
{
	union pv_request request = {.modify_srq = {.srq_handle = s->srq.handle,
						   .attr_mask = PV_SRQ_LIMIT,
						   .attrs = {.srq_limit = limit}}};
	union pv_response response;

	assert_int_equal(guest_command(&s->p.guest[1], PV_CMD_MODIFY_SRQ, &request, &response), 0);
}

static void test_srq_below_its_limit_raises_one_event(void **state)
{
	struct srq_pair *s = *state;
	struct guest *g = &s->p.guest[1];

	post_to_srq(s, 5);
	set_limit(s, 3);
	send_once(&s->p);
	send_once(&s->p);
	expect_no_event(g);
	send_once(&s->p);
	expect_event(g, URXE_ASYNC_SRQ_LIMIT_REACHED, s->srq.handle);
	/* One event for each MODIFY_SRQ. */
	send_once(&s->p);
	expect_no_event(g);
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], 1);
}

/* A queue pair with an SRQ takes no more requests of the SRQ after an error. */
static void test_qp_with_srq_in_error_raises_last_wqe_event(void **state)
{
	struct srq_pair *s = *state;
	struct guest *g = &s->p.guest[1];

	post_to_srq(s, 2);
	send_once(&s->p);
	expect_no_event(g);
	assert_int_equal(qp_to(g, &s->p.qp[1], URXE_QPS_ERR), 0);
	pvrdma_flush(g->dev);
	expect_event(g, URXE_ASYNC_QP_LAST_WQE_REACHED, s->p.qp[1].handle);
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], 1);
	assert_int_equal(qp_to(g, &s->p.qp[1], URXE_QPS_ERR), 0);
	expect_no_event(g);
	assert_int_equal(events_at_destruction(g, &s->p.qp[1]), 1);
}

static void test_access_error_with_srq_raises_two_events(void **state)
{
	struct srq_pair *s = *state;
	struct guest *g = &s->p.guest[1];

	assert_int_equal(write_status(&s->p, 0, 8, 12345), PVRDMA_WC_REM_ACCESS_ERR);
	expect_event(g, URXE_ASYNC_QP_LAST_WQE_REACHED, s->p.qp[1].handle);
	expect_event(g, URXE_ASYNC_QP_ACCESS_ERR, s->p.qp[1].handle);
	expect_no_event(g);
	assert_int_equal(events_at_destruction(g, &s->p.qp[1]), 2);
}

#define SRQ_TEST(test) cmocka_unit_test_setup_teardown(test, srq_setup, srq_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(test_bad_rkey_raises_qp_access_error_event),
		PAIR_TEST(test_forbidden_atomic_raises_qp_request_error_event),
		PAIR_TEST(test_first_packet_in_rtr_raises_comm_est_event),
		PAIR_TEST(test_packets_in_rts_raise_no_comm_est_event),
		PAIR_TEST(test_sq_drained_event_follows_the_last_acknowledgement),
		PAIR_TEST(test_empty_send_queue_raises_sq_drained_event_at_once),
		PAIR_TEST(test_sqd_without_notification_raises_no_event),
		SRQ_TEST(test_srq_below_its_limit_raises_one_event),
		SRQ_TEST(test_qp_with_srq_in_error_raises_last_wqe_event),
		SRQ_TEST(test_access_error_with_srq_raises_two_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
