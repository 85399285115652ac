/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the engine does when calls of the HCA's provider fail. fake_hca.h stands for libibverbs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hca/hca.h>
#include <rxe/offload.h>
#include <rxe/rxe.h>

#include "descriptor_limit.h"
#include "fake_hca.h"
#include "offloaded_dev.h"

static struct offloaded_dev *const f = &offloaded;

static int setup(void **state)
{
	(void)state;
	offloaded_open();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	offloaded_close();
	return 0;
}

static void make_qp(uint8_t type)
{
	assert_int_equal(offloaded_try_qp(type, 0, NULL), 0);
}

static int receive(struct urxe_rq *rq, uint64_t id)
{
	const struct urxe_recv_wr wr = {.wr_id = id};

	return urxe_post_recv(rq, &wr);
}

static int send_one(void)
{
	const struct urxe_send_wr wr = {.wr_id = 100,
					.opcode = URXE_WR_SEND,
					.flags = URXE_SEND_SIGNALED,
					.path = &offloaded_path,
					.remote_qpn = 0x55};
	int rc = urxe_post_send(f->qp, &wr);

	urxe_qp_execute(f->qp, 1);
	return rc;
}

static void a_failed_open_closes_the_device(void **state)
{
	static const enum fake_hca_open steps[] = {FAKE_HCA_OPEN_DEVICE, FAKE_HCA_QUERY_DEVICE,
						   FAKE_HCA_QUERY_PORT, FAKE_HCA_CREATE_CHANNEL};
	struct hca *hca = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		fake_hca_init();
		fake_hca.opens_to = steps[i];
		assert_int_equal(hca_open(&fake_hca.verbs, "fake0", 1, &offloaded_owner, &hca),
				 -EIO);
		assert_null(hca);
		/* A device that was opened is closed. */
		assert_int_equal(fake_hca.closed, steps[i] != FAKE_HCA_OPEN_DEVICE);
	}
}

/* libibverbs then finds no device, and does not tell why. */
static void an_open_without_descriptors_fails_for_that_reason(void **state)
{
	struct hca *hca = NULL;
	struct rlimit limit;
	int rc;

	(void)state;
	assert_int_equal(hca_open(&fake_hca.verbs, "none0", 1, &offloaded_owner, &hca), -ENODEV);
	limit = descriptor_limit_reach();
	rc = hca_open(&fake_hca.verbs, "none0", 1, &offloaded_owner, &hca);
	descriptor_limit_restore(&limit);
	assert_int_equal(rc, -EMFILE);
}

static int open_with_list_error(int error)
{
	struct hca *hca = NULL;

	fake_hca_init();
	fake_hca.list_error = error;
	return hca_open(&fake_hca.verbs, "fake0", 1, &offloaded_owner, &hca);
}

/* The owner tries again only after an error of memory or descriptors. */
static void an_open_fails_for_the_reason_of_the_list(void **state)
{
	(void)state;
	assert_int_equal(open_with_list_error(ENOMEM), -ENOMEM);
	assert_int_equal(open_with_list_error(EMFILE), -EMFILE);
	assert_int_equal(open_with_list_error(ENFILE), -ENFILE);
	/* The host has no RDMA device. */
	assert_int_equal(open_with_list_error(ENOSYS), -ENODEV);
}

/* libibverbs had no descriptor for the device's files, and has one now. */
static void an_open_looks_for_the_device_again(void **state)
{
	struct hca *hca = NULL;

	(void)state;
	fake_hca_init();
	fake_hca.empty_lists = 1;
	assert_int_equal(hca_open(&fake_hca.verbs, "fake0", 1, &offloaded_owner, &hca), 0);
	hca_close(hca);
}

/* --- Objects. */

static void without_a_pd_of_the_hca_objects_are_the_engines(void **state)
{
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OFFLOADED_PD, .max_wr = 8, .max_sge = 1};
	struct urxe_rq *srq;

	(void)state;
	fake_hca.no_pds = true;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	/* -ENOSPC: the engine of this test has no free QPN for a queue pair of its own. */
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, NULL), -ENOSPC);
	assert_int_equal(fake_hca.qps + fake_hca.srqs + fake_hca.pds, 0);
	assert_int_equal(urxe_srq_destroy(srq), 0);
	fake_hca.no_pds = false;
	make_qp(URXE_QPT_RC);
	assert_int_equal(fake_hca.pds, 1);
}

static void without_a_cq_of_the_hca_queue_pairs_are_the_engines(void **state)
{
	(void)state;
	fake_hca.no_cqs = true;
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, NULL), -ENOSPC);
	assert_int_equal(fake_hca.qps, 0);
	assert_null(urxe_offload_hca_cq(f->cq));
	fake_hca.no_cqs = false;
	make_qp(URXE_QPT_RC);
	assert_non_null(urxe_offload_hca_cq(f->cq));
}

static void a_refused_group_is_not_joined(void **state)
{
	const struct urxe_gid group = {.raw = {0xff, 0x0e, [15] = 9}};

	(void)state;
	make_qp(URXE_QPT_UD);
	offloaded_connect_ud();
	fake_hca.mcast_error = ENOMEM;
	assert_int_equal(urxe_mcast_attach(f->qp, &group), -ENOMEM);
	/* The engine has not joined it either. */
	assert_int_not_equal(urxe_mcast_detach(f->qp, &group), 0);
	fake_hca.mcast_error = 0;
	assert_int_equal(urxe_mcast_attach(f->qp, &group), 0);
	assert_int_equal(urxe_mcast_detach(f->qp, &group), 0);
}

static void a_refused_transition_fails_the_modify(void **state)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	(void)state;
	make_qp(URXE_QPT_UD);
	fake_hca.modify_error = ENOMEM;
	assert_int_equal(
		offloaded_modify(URXE_QPS_INIT, URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_QKEY),
		-ENOMEM);
	urxe_qp_query(f->qp, &attr, &init);
	assert_int_equal(attr.state, URXE_QPS_RESET);
	fake_hca.modify_error = 0;
	offloaded_connect_ud();
	assert_true(urxe_qp_offloaded(f->qp));
}

static void a_failed_query_returns_the_engines_values(void **state)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	(void)state;
	make_qp(URXE_QPT_RC);
	offloaded_connect_rc();
	fake_hca.last_qp->attr.rq_psn = 0x777;
	fake_hca.last_qp->attr.qp_state = IBV_QPS_RTS;
	urxe_offload_query(f->qp, &attr, &init);
	assert_int_equal(attr.rq_psn, 0x777);
	fake_hca.query_error = EIO;
	urxe_offload_query(f->qp, &attr, &init);
	assert_int_equal(attr.state, URXE_QPS_RTS);
	assert_int_not_equal(attr.rq_psn, 0x777);
}

/* --- Requests. */

static void a_refused_receive_fails_its_queue_pair(void **state)
{
	struct fake_qp *qp;

	(void)state;
	make_qp(URXE_QPT_RC);
	qp = fake_hca.last_qp;
	offloaded_connect_rc();
	qp->refuse_recv_from = 1;
	qp->refuse_error = EINVAL;
	assert_int_equal(receive(urxe_qp_rq(f->qp), 200), 0);
	assert_int_equal(qp->n_recvs, 1);
	assert_int_equal(f->asyncs, 0);
	assert_int_equal(receive(urxe_qp_rq(f->qp), 201), 0);
	assert_int_equal(f->asyncs, 1);
	assert_int_equal(f->last_async, URXE_ASYNC_QP_FATAL);
	assert_int_equal(qp->attr.qp_state, IBV_QPS_ERR);
}

static void a_refused_receive_of_a_shared_queue_is_dropped(void **state)
{
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OFFLOADED_PD, .max_wr = 8, .max_sge = 1};
	struct urxe_rq *srq;

	(void)state;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, srq), 0);
	offloaded_connect_rc();
	fake_hca.srq_recv_error = EINVAL;
	assert_int_equal(receive(srq, 200), 0);
	assert_int_equal(fake_hca.n_srq_recvs, 0);
	fake_hca.srq_recv_error = 0;
	assert_int_equal(receive(srq, 201), 0);
	assert_int_equal(fake_hca.n_srq_recvs, 1);
	urxe_qp_destroy(f->qp);
	assert_int_equal(urxe_srq_destroy(srq), 0);
}

/* If ibv_poll_cq fails, hca_is_dead returns true, and the owner closes the HCA. */
static void a_failed_poll_makes_the_hca_dead(void **state)
{
	(void)state;
	make_qp(URXE_QPT_RC);
	offloaded_connect_rc();
	assert_int_equal(send_one(), 0);
	assert_false(hca_is_dead(f->hca));
	fake_hca.poll_error = true;
	hca_poll(f->hca);
	assert_true(hca_is_dead(f->hca));
	assert_int_equal(f->n, 0);
	hca_detach(f->hca);
	hca_close(f->hca);
	f->hca = NULL;
	/* The send request that the HCA had is flushed. */
	assert_int_equal(f->n, 1);
	assert_int_equal(f->wcs[0].wr_id, 100);
	assert_int_equal(f->wcs[0].status, URXE_WC_WR_FLUSH_ERR);
	assert_int_equal(f->last_async, URXE_ASYNC_QP_FATAL);
}

/* The flush of a queue pair may end others of the CQ. */
static void an_overrun_of_a_full_cq_fails_all_its_queue_pairs(void **state)
{
	struct urxe_qp *first;

	(void)state;
	make_qp(URXE_QPT_RC);
	offloaded_connect_rc();
	first = f->qp;
	make_qp(URXE_QPT_RC);
	offloaded_connect_rc();
	assert_int_equal(send_one(), 0);
	fake_hca.no_error_state = f->cq_full = true;
	fake_hca.event = (struct ibv_async_event){.element.cq = fake_hca.last_qp->init.send_cq,
						  .event_type = IBV_EVENT_CQ_ERR};
	fake_hca.has_event = true;
	hca_handle_events(f->hca);
	assert_int_equal(fake_hca.qps, 0);
	assert_false(urxe_qp_offloaded(first) || urxe_qp_offloaded(f->qp));
	/* One event for the CQ, and one for each queue pair. */
	assert_int_equal(f->asyncs, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_open_closes_the_device),
		TEST(an_open_without_descriptors_fails_for_that_reason),
		cmocka_unit_test(an_open_fails_for_the_reason_of_the_list),
		cmocka_unit_test(an_open_looks_for_the_device_again),
		TEST(without_a_pd_of_the_hca_objects_are_the_engines),
		TEST(without_a_cq_of_the_hca_queue_pairs_are_the_engines),
		TEST(a_refused_group_is_not_joined),
		TEST(a_refused_transition_fails_the_modify),
		TEST(a_failed_query_returns_the_engines_values),
		TEST(a_refused_receive_fails_its_queue_pair),
		TEST(a_refused_receive_of_a_shared_queue_is_dropped),
		TEST(a_failed_poll_makes_the_hca_dead),
		TEST(an_overrun_of_a_full_cq_fails_all_its_queue_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
