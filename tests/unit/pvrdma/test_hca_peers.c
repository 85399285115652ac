/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The PVRDMA device with an HCA that a provider double plays: datagrams and connections that wait
 * until the HCA is prepared for their peer. */
#include "hca_machine.h"

#include <errno.h>

/* A UD queue pair in place of the other one, in RTS. */
static struct fake_qp *open_datagrams(void)
{
	const struct qp_attr attr = {
		.type = PV_QPT_UD, .send_cq = &f.cq, .recv_cq = &f.cq, .sge = 1};

	qp_close(&f.g, &f.qp);
	guest_pages_free(&f.qp.pages);
	qp_open(&f.g, &f.qp, &attr);
	qp_datagram(&f.g, &f.qp);
	return fake_hca.last_qp;
}

static void post_datagram(void)
{
	const struct pvrdma_sge sge = buffer_sge(&f.buffer, 10, 100);
	const struct pvrdma_sq_wqe_hdr header = {
		.wr_id = 9,
		.num_sge = 1,
		.opcode = PVRDMA_WR_SEND,
		.send_flags = URXE_SEND_SIGNALED,
		.wr.ud = {.remote_qpn = 0x99,
			  .av = {.port_pd = f.g.pd | 1u << 24,
				 .gid_index = 1,
				 .dgid = {[10] = 0xff, 0xff, 192, 0, 2, 9},
				 .dmac = {2, 3}}}};

	qp_post_send(&f.g, &f.qp, &header, &sge);
}

static void datagrams_wait_until_the_hca_is_prepared(void **state)
{
	uint8_t bytes[2048];
	struct urxe_frame frame = {.data = bytes, .room = sizeof(bytes)};
	uint32_t prepared;
	struct fake_qp *qp;

	(void)state;
	start();
	qp = open_datagrams();
	f.prepare_error = -EAGAIN;
	post_datagram();
	post_datagram();
	/* What comes meanwhile changes nothing for them. */
	prepared = f.prepared;
	pvrdma_hca_polled(f.g.dev, 1);
	assert_int_equal(pvrdma_output(f.g.dev, 1, &frame, 1), 0);
	assert_int_equal(f.prepared, prepared);
	pvrdma_hca_prepared(f.g.dev, 1);
	assert_int_equal(f.prepared, prepared + 1);
	assert_int_equal(qp->n_sends, 0);
	f.prepare_error = 0;
	pvrdma_hca_prepared(f.g.dev, 1);
	assert_int_equal(qp->n_sends, 2);
	qp_close(&f.g, &f.qp);
}

static void a_datagram_for_which_no_hca_can_be_prepared_fails(void **state)
{
	struct pvrdma_cqe cqe;
	struct fake_qp *qp;

	(void)state;
	start();
	qp = open_datagrams();
	f.prepare_error = -EHOSTUNREACH;
	post_datagram();
	assert_true(cq_poll(&f.g, &f.cq, &cqe));
	assert_int_equal(cqe.wr_id, 9);
	assert_int_equal(cqe.status, PVRDMA_WC_LOC_QP_OP_ERR);
	assert_int_equal(qp->n_sends, 0);
	qp_close(&f.g, &f.qp);
}

/* Requests of the error state are flushed at once. */
static void a_datagram_that_waits_ends_with_its_queue_pair(void **state)
{
	struct pvrdma_cqe cqe;

	(void)state;
	start();
	open_datagrams();
	f.prepare_error = -EAGAIN;
	post_datagram();
	assert_false(cq_poll(&f.g, &f.cq, &cqe));
	assert_int_equal(qp_to(&f.g, &f.qp, URXE_QPS_ERR), 0);
	assert_true(cq_poll(&f.g, &f.cq, &cqe));
	assert_int_equal(cqe.status, PVRDMA_WC_WR_FLUSH_ERR);
	qp_close(&f.g, &f.qp);
}

static const struct pv_qp_attr rtr = {
	.qp_state = URXE_QPS_RTR,
	.path_mtu = URXE_MTU_1024,
	.dest_qp_num = 0x99,
	.max_dest_rd_atomic = 1,
	.ah_attr = {.dgid = {[10] = 0xff, 0xff, 192, 0, 2, 9},
		    .ah_flags = 1,
		    .port_num = 1,
		    .sgid_index = 1,
		    .dmac = {2, 3}},
};
#define RTR_MASK                                                                             \
	(URXE_QP_STATE | URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN | URXE_QP_RQ_PSN | \
	 URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER)

static uint32_t interrupts; /* for responses, before a command that waits */

/* The driver sends the transition to RTR, for which no HCA is prepared yet: it gets no error, and
 * waits. */
static void begin_rtr(void)
{
	const struct pv_qp_attr init = {.qp_state = URXE_QPS_INIT, .port_num = 1};
	union pv_request request = {
		.modify_qp = {.qp_handle = f.qp.handle, .attr_mask = RTR_MASK, .attrs = rtr}};

	assert_int_equal(
		qp_modify(&f.g, &f.qp, &init,
			  URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS),
		0);
	f.prepare_error = -EAGAIN;
	interrupts = f.g.interrupts[PV_VECTOR_RESPONSE];
	guest_begin_command(&f.g, PV_CMD_MODIFY_QP, &request);
	assert_int_equal(guest_read(&f.g, PV_REG_ERR), 0);
	pvrdma_hca_prepared(f.g.dev, 1);
	assert_int_equal(f.g.interrupts[PV_VECTOR_RESPONSE], interrupts);
	assert_true(pvrdma_command_waits(f.g.dev));
}

/* The driver gets the response to the transition: a positive errno value. */
static void expect_rtr(uint8_t error)
{
	const union pv_response *response = guest_at(&f.g, f.g.response);

	assert_int_equal(f.g.interrupts[PV_VECTOR_RESPONSE], interrupts + 1);
	assert_int_equal(response->hdr.response, f.g.token);
	assert_int_equal(response->hdr.ack, PV_CMD_ACK + PV_CMD_MODIFY_QP);
	assert_int_equal(response->hdr.err, error);
	assert_false(pvrdma_command_waits(f.g.dev));
}

static void a_connection_waits_until_the_hca_is_prepared(void **state)
{
	(void)state;
	start();
	begin_rtr();
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_INIT);
	f.prepare_error = 0;
	pvrdma_hca_prepared(f.g.dev, 1);
	expect_rtr(0);
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_RTR);
	assert_int_equal(qp_query(&f.g, &f.qp, NULL), URXE_QPS_RTR);
	qp_close(&f.g, &f.qp);
}

static void a_connection_for_which_no_hca_can_be_prepared_fails(void **state)
{
	(void)state;
	start();
	begin_rtr();
	f.prepare_error = -EHOSTUNREACH;
	pvrdma_hca_prepared(f.g.dev, 1);
	expect_rtr(EHOSTUNREACH);
	assert_int_equal(qp_query(&f.g, &f.qp, NULL), URXE_QPS_INIT);
	qp_close(&f.g, &f.qp);
}

static void a_connection_does_not_wait_for_an_hca_that_has_gone(void **state)
{
	(void)state;
	start();
	begin_rtr();
	pvrdma_set_hca(f.g.dev, NULL);
	expect_rtr(0);
	qp_close(&f.g, &f.qp);
}

/* The engine has no HCA until the device goes on, perhaps elsewhere. */
static void a_connection_does_not_wait_in_a_paused_device(void **state)
{
	(void)state;
	start();
	begin_rtr();
	pvrdma_pause(f.g.dev, 1);
	expect_rtr(0);
	pvrdma_resume(f.g.dev, 1);
	qp_close(&f.g, &f.qp);
}

/* Linux' driver gives up a command when a signal comes, or after 10 s. */
static void a_connection_that_the_driver_gave_up_is_forgotten(void **state)
{
	(void)state;
	start();
	begin_rtr();
	assert_int_equal(qp_query(&f.g, &f.qp, NULL), URXE_QPS_INIT);
	interrupts = f.g.interrupts[PV_VECTOR_RESPONSE];
	f.prepare_error = 0;
	pvrdma_hca_prepared(f.g.dev, 1);
	assert_int_equal(f.g.interrupts[PV_VECTOR_RESPONSE], interrupts);
	assert_int_equal(qp_query(&f.g, &f.qp, NULL), URXE_QPS_INIT);
	qp_close(&f.g, &f.qp);
}

/* The HCA may have no way to a peer of the same host. */
static void a_connection_to_which_the_owner_finds_a_way_needs_no_hca(void **state)
{
	(void)state;
	start();
	f.finds_way = true;
	f.prepare_error = -EHOSTUNREACH;
	connect_qp();
	assert_int_equal(f.prepared, 0);
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_INIT);
	qp_close(&f.g, &f.qp);
}

static void datagrams_of_the_engine_need_no_hca(void **state)
{
	(void)state;
	start();
	fake_hca.no_qps = true;
	open_datagrams();
	post_datagram();
	assert_int_equal(f.prepared, 0);
	qp_close(&f.g, &f.qp);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(datagrams_wait_until_the_hca_is_prepared),
		TEST(a_datagram_for_which_no_hca_can_be_prepared_fails),
		TEST(a_datagram_that_waits_ends_with_its_queue_pair),
		TEST(a_connection_waits_until_the_hca_is_prepared),
		TEST(a_connection_for_which_no_hca_can_be_prepared_fails),
		TEST(a_connection_does_not_wait_for_an_hca_that_has_gone),
		TEST(a_connection_does_not_wait_in_a_paused_device),
		TEST(a_connection_that_the_driver_gave_up_is_forgotten),
		TEST(a_connection_to_which_the_owner_finds_a_way_needs_no_hca),
		TEST(datagrams_of_the_engine_need_no_hca),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
