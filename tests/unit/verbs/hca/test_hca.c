/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine with an HCA that a provider double plays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hca/hca.h>
#include <rxe/offload.h>
#include <rxe/rxe.h>

#include "fake_hca.h"
#include "hca/hca_device.h"
#include "hca_queues.h"

/* The program has no memory for a larger table. */
static bool no_memory;

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
	return no_memory ? NULL : __real_realloc(old, size);
}

/* --- Tests. */

static void completions_in_error_reach_their_queue(void **state)
{
	struct fake_qp *qp;

	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	qp = fake_hca.last_qp;
	offloaded_connect_rc();
	receive_some(urxe_qp_rq(f->qp), 2);
	send_some(1, 0);
	assert_int_equal(qp->n_recvs, 2);
	assert_int_equal(qp->n_sends, 1);
	fake_hca_complete_recv(qp, IBV_WC_SUCCESS, 9);
	fake_hca_complete_recv(qp, IBV_WC_LOC_LEN_ERR, 0);
	hca_poll(f->hca);
	assert_int_equal(f->wcs[0].wr_id, 200);
	assert_int_equal(f->wcs[0].byte_len, 9);
	assert_int_equal(f->wcs[1].wr_id, 201);
	assert_int_equal(f->wcs[1].status, URXE_WC_LOC_LEN_ERR);
	/* The engine flushes the send, which the HCA flushes, too. */
	fake_hca_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	hca_poll(f->hca);
	assert_int_equal(f->n, 3);
	assert_int_equal(f->wcs[2].wr_id, 100);
	assert_int_equal(f->wcs[2].status, URXE_WC_WR_FLUSH_ERR);
	assert_int_equal(qp->attr.qp_state, IBV_QPS_ERR);
}

static void late_completions_name_no_queue(void **state)
{
	struct fake_qp *qp;

	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	qp = fake_hca.last_qp;
	offloaded_connect_rc();
	send_some(2, 0);
	assert_int_equal(offloaded_modify(URXE_QPS_RESET, 0), 0);
	offloaded_connect_rc();
	send_some(1, 0);
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
	hca_poll(f->hca);
	assert_int_equal(f->n, 0);
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
	hca_poll(f->hca);
	assert_int_equal(f->n, 1);
}

#define QUEUES 64 /* for which the library has room at first */

/* The HCA must not have reset a queue pair that is still ready to send in the engine. */
static void a_reset_that_fails_leaves_the_queue_pair_as_it_was(void **state)
{
	const struct urxe_rq_attr attr = {.max_wr = 4, .max_sge = 1};
	struct urxe_rq *srqs[QUEUES - 1];
	struct fake_qp *qp;

	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	qp = fake_hca.last_qp;
	offloaded_connect_rc();
	for (int i = 0; i < QUEUES - 1; i++)
		assert_int_equal(urxe_srq_create(f->dev, &attr, &srqs[i]), 0);
	assert_int_equal(fake_hca.srqs, QUEUES - 1);
	no_memory = true;
	assert_int_equal(offloaded_modify(URXE_QPS_RESET, 0), -ENOMEM);
	no_memory = false;
	assert_int_equal(qp->attr.qp_state, IBV_QPS_RTS);
	send_some(1, 0);
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
	hca_poll(f->hca);
	assert_int_equal(f->n, 1);
	for (int i = 0; i < QUEUES - 1; i++)
		assert_int_equal(urxe_srq_destroy(srqs[i]), 0);
	assert_int_equal(offloaded_modify(URXE_QPS_RESET, 0), 0);
	assert_int_equal(qp->attr.qp_state, IBV_QPS_RESET);
}

/* More than one call takes: the queue pairs that come later have room in the HCA's CQ. */
static void late_completions_leave_the_cq(void **state)
{
	struct fake_qp *qp;
	struct ibv_wc wc;
	uint32_t calls = 0;

	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	qp = fake_hca.last_qp;
	offloaded_connect_rc();
	send_some(1, 0);
	assert_int_equal(offloaded_modify(URXE_QPS_RESET, 0), 0);
	for (int i = 0; i < 200; i++, qp->sent = 0)
		fake_hca_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	while (hca_poll(f->hca))
		assert_true(++calls < 100);
	assert_int_equal(ibv_poll_cq(qp->init.send_cq, 1, &wc), 0);
	assert_int_equal(f->n, 0);
}

/* A wrong provider completes requests that it does not have. */
static void invented_completions_are_ignored(void **state)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	struct fake_qp *qp;

	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	qp = fake_hca.last_qp;
	offloaded_connect_rc();
	send_some(1, 0);
	receive_some(urxe_qp_rq(f->qp), 1);
	wc.qp_num = qp->ibv.qp_num;
	for (int bit = 0; bit < 64; bit++) {
		wc.wr_id = qp->recvs[0].wr_id ^ UINT64_C(1) << bit;
		/* Without its highest bit, the number is that of the send request. */
		if (bit != 63)
			fake_hca_complete(qp->init.recv_cq, &wc);
	}
	hca_poll(f->hca);
	assert_int_equal(f->n, 0);
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
	qp->sent = 0;
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
	hca_poll(f->hca);
	assert_int_equal(f->n, 1);
}

static void a_full_queue_takes_the_rest_later(void **state)
{
	struct fake_qp *qp;

	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	qp = fake_hca.last_qp;
	offloaded_connect_rc();
	qp->refuse_from = 3;
	qp->refuse_error = ENOMEM;
	send_some(5, 0);
	assert_int_equal(qp->n_sends, 3);
	qp->refuse_from = FAKE_WRS;
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
	hca_poll(f->hca);
	assert_int_equal(qp->n_sends, 5);
	assert_int_equal(f->n, 1);
}

/* Another program's thread that polls another CQ depends on the calls that poll all CQs. */
static void polling_one_cq_leaves_the_others_for_later(void **state)
{
	struct urxe_cq *first = f->cq;
	struct fake_qp *qps[2];
	uint32_t calls = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		if (i)
			assert_int_equal(urxe_cq_create(f->dev, f, &f->cq), 0);
		make_qp(URXE_QPT_RC, 0, NULL);
		qps[i] = fake_hca.last_qp;
		offloaded_connect_rc();
		send_some(1, 0);
		fake_hca_complete_send(qps[i], IBV_WC_SUCCESS);
	}
	hca_poll_cq(f->hca, urxe_offload_hca_cq(first));
	assert_int_equal(f->n, 1);
	for (; f->n < 2 && calls < 100; calls++)
		hca_poll_cq(f->hca, urxe_offload_hca_cq(first));
	assert_in_range(calls, 1, 20);
	/* No queue pair of the HCA uses the CQ: it has none there. */
	assert_int_equal(urxe_cq_create(f->dev, f, &f->cq), 0);
	assert_null(urxe_offload_hca_cq(f->cq));
}

static void a_refused_request_fails_in_its_turn(void **state)
{
	struct fake_qp *qp;

	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	qp = fake_hca.last_qp;
	offloaded_connect_rc();
	qp->refuse_from = 1;
	qp->refuse_error = EINVAL;
	send_some(3, 0);
	assert_int_equal(f->n, 0);
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
	hca_poll(f->hca);
	assert_int_equal(f->n, 3);
	assert_int_equal(f->wcs[0].status, URXE_WC_SUCCESS);
	assert_int_equal(f->wcs[1].wr_id, 101);
	assert_int_equal(f->wcs[1].status, URXE_WC_LOC_QP_OP_ERR);
}

static void odd_numbers_are_kept_or_refused(void **state)
{
	const struct urxe_extent extent = {f, sizeof(*f)};
	const struct urxe_mr_attr attr = {.pd = OFFLOADED_PD,
					  .access = URXE_ACCESS_LOCAL_WRITE |
						    URXE_ACCESS_REMOTE_WRITE,
					  .iova = 0x1000 + (uintptr_t)f % 4096,
					  .length = sizeof(*f),
					  .extents = &extent,
					  .n_extents = 1};
	struct urxe_mr *mr;

	(void)state;
	fake_hca.next_qpn = 0xfffffe;
	make_qp(URXE_QPT_RC, 0, NULL);
	urxe_qp_destroy(f->qp);
	/* The number of multicast packets is no queue pair's. */
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, NULL), -ENOSPC);
	assert_int_equal(fake_hca.qps, 0);
	fake_hca.next_key = 0xfffffff0;
	assert_int_equal(urxe_mr_reg(f->dev, &attr, &mr), 0);
	assert_int_equal(urxe_mr_key(mr), 0xfffffff0);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	/* Two keys: the region is the engine's alone. */
	fake_hca.rkey_differs = 1;
	assert_int_equal(urxe_mr_reg(f->dev, &attr, &mr), 0);
	assert_int_not_equal(urxe_mr_key(mr), 0xfffffff1);
	assert_int_equal(fake_hca.mrs, 0);
	fake_hca.rkey_differs = 0;
	fake_hca.no_mrs = true;
	assert_int_equal(urxe_mr_dereg(mr), 0);
	assert_int_equal(urxe_mr_reg(f->dev, &attr, &mr), -ENOMEM);
}

/* Such a shared receive queue has its requests at the HCA. */
static void a_port_that_is_down_serves_old_shared_queues_only(void **state)
{
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OFFLOADED_PD, .max_wr = 8, .max_sge = 1};
	struct urxe_rq *old, *srq;

	(void)state;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &old), 0);
	hca_set_port_down(f->hca, true);
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, NULL), -ENOSPC);
	make_qp(URXE_QPT_RC, 0, old);
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	assert_int_equal(fake_hca.srqs, 1);
	hca_set_port_down(f->hca, false);
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, srq), -ENOSPC);
	make_qp(URXE_QPT_RC, 0, NULL);
}

/* The engine's queue pairs would receive nothing after the port is active again. */
static void hardware_whose_port_is_down_serves_all(void **state)
{
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OFFLOADED_PD, .max_wr = 8, .max_sge = 1};
	struct urxe_rq *srq;

	(void)state;
	f->hca->hardware = true;
	hca_set_port_down(f->hca, true);
	make_qp(URXE_QPT_RC, 0, NULL);
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	assert_int_equal(fake_hca.srqs, 1);
}

/* Of a ZERO_BASED region that begins within a page. */
static void iova_at_another_page_offset_is_the_engines(void **state)
{
	static _Alignas(4096) uint8_t room[8192];
	const struct urxe_extent extent = {room + 16, 4096};
	struct urxe_mr_attr attr = {.pd = OFFLOADED_PD,
				    .access = URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_ZERO_BASED,
				    .length = 4096,
				    .extents = &extent,
				    .n_extents = 1};
	struct urxe_mr *mr;

	(void)state;
	assert_int_equal(urxe_mr_reg(f->dev, &attr, &mr), 0);
	assert_int_equal(fake_hca.mrs, 0);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	attr.iova = 3 * 4096 + 16;
	assert_int_equal(urxe_mr_reg(f->dev, &attr, &mr), 0);
	assert_int_equal(fake_hca.mrs, 1);
	assert_int_equal(urxe_mr_dereg(mr), 0);
}

static void refused_objects_are_the_engines(void **state)
{
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OFFLOADED_PD, .max_wr = 8, .max_sge = 1};
	struct urxe_rq *srq;

	(void)state;
	fake_hca.no_qps = true;
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, NULL), -ENOSPC);
	fake_hca.no_qps = false;
	fake_hca.no_srqs = true;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, srq), -ENOSPC);
	assert_int_equal(fake_hca.qps + fake_hca.srqs, 0);
	assert_int_equal(urxe_srq_destroy(srq), 0);
	/* The engine would have no receive requests. */
	fake_hca.no_srqs = false;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	fake_hca.no_qps = true;
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, srq), -ENOMEM);
	fake_hca.no_qps = false;
	assert_int_equal(urxe_srq_destroy(srq), 0);
	/* More completions than the CQ holds, which cannot grow. */
	fake_hca.no_resize = true;
	for (int i = 0; i < 255 / 32; i++)
		make_qp(URXE_QPT_RC, 0, NULL);
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, NULL), -ENOSPC);
	fake_hca.no_resize = false;
	make_qp(URXE_QPT_RC, 0, NULL);
	assert_true(fake_hca.resized_to >= 8 * 32);
}

static void connections_that_the_owner_keeps_are_not_offloaded(void **state)
{
	(void)state;
	f->takes = false;
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	send_some(1, 0);
	assert_false(urxe_qp_offloaded(f->qp));
	assert_int_equal(fake_hca.last_qp->n_sends, 0);
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_INIT);
}

/* The engine makes these calls while a program posts or polls. */
static void no_thread_ends_in_calls_of_the_engine(void **state)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	(void)state;
	make_qp(URXE_QPT_UD, 0, NULL);
	offloaded_connect_ud();
	fake_hca.cancellable = 0;
	send_some(1, 0);
	assert_int_equal(fake_hca.ahs, 1);
	urxe_offload_query(f->qp, &attr, &init);
	fake_hca_complete_send(fake_hca.last_qp, IBV_WC_FATAL_ERR);
	hca_poll(f->hca);
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(fake_hca.cancellable, 0);
}

/* The poll that fails the queue pair ends it, because the HCA refuses the error state. */
static void no_thread_ends_in_a_destruction_of_the_engine(void **state)
{
	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	send_some(1, 0);
	fake_hca.no_error_state = true;
	fake_hca.cancellable = 0;
	fake_hca_complete_send(fake_hca.last_qp, IBV_WC_FATAL_ERR);
	hca_poll(f->hca);
	assert_int_equal(fake_hca.qps, 0);
	assert_int_equal(fake_hca.cancellable, 0);
}

static void inline_data_goes_by_memory_if_the_hca_takes_none(void **state)
{
	const struct ibv_send_wr *wr;

	(void)state;
	make_qp(URXE_QPT_RC, 64, NULL);
	offloaded_connect_rc();
	send_some(1, URXE_SEND_INLINE);
	assert_true(fake_hca.last_qp->sends[0].send_flags & IBV_SEND_INLINE);
	assert_int_equal(fake_hca.mrs, 0);
	urxe_qp_destroy(f->qp);
	make_qp(URXE_QPT_RC, 65, NULL);
	offloaded_connect_rc();
	send_some(1, URXE_SEND_INLINE);
	wr = &fake_hca.last_qp->sends[0];
	assert_false(wr->send_flags & IBV_SEND_INLINE);
	assert_int_equal(fake_hca.mrs, 1);
}

static void a_shared_queue_gives_its_own_numbers_back(void **state)
{
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OFFLOADED_PD, .max_wr = 8, .max_sge = 1};
	struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR};
	struct urxe_rq *srq;

	(void)state;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	make_qp(URXE_QPT_RC, 0, srq);
	offloaded_connect_rc();
	receive_some(srq, 3);
	assert_int_equal(fake_hca.n_srq_recvs, 3);
	/* Requests of a shared queue complete in any order. */
	wc.qp_num = urxe_qp_qpn(f->qp);
	wc.wr_id = fake_hca.srq_recvs[2].wr_id;
	wc.status = IBV_WC_SUCCESS;
	wc.opcode = IBV_WC_RECV;
	fake_hca_complete(fake_hca.last_qp->init.recv_cq, &wc);
	hca_poll(f->hca);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->wcs[0].wr_id, 202);
	/* The same again is none. */
	fake_hca_complete(fake_hca.last_qp->init.recv_cq, &wc);
	hca_poll(f->hca);
	assert_int_equal(f->n, 1);
	urxe_qp_destroy(f->qp);
	assert_int_equal(urxe_srq_destroy(srq), 0);
}

/* HCAs may leave completions in the CQ when a queue pair is reset. Those of a shared receive queue
 * name the queue pair by its number only. */
static void a_completion_before_a_reset_is_not_of_the_next_connection(void **state)
{
	static const enum ibv_wc_status statuses[] = {IBV_WC_WR_FLUSH_ERR, IBV_WC_SUCCESS};
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OFFLOADED_PD, .max_wr = 8, .max_sge = 1};
	struct urxe_rq *srq;

	(void)state;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	make_qp(URXE_QPT_RC, 0, srq);
	offloaded_connect_rc();
	receive_some(srq, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct ibv_wc wc = {.wr_id = fake_hca.srq_recvs[i].wr_id,
					  .status = statuses[i],
					  .qp_num = urxe_qp_qpn(f->qp),
					  .opcode = IBV_WC_RECV};

		fake_hca_complete(fake_hca.last_qp->init.recv_cq, &wc);
		assert_int_equal(offloaded_modify(URXE_QPS_RESET, 0), 0);
		offloaded_connect_rc();
		hca_poll(f->hca);
		assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_RTS);
		assert_int_equal(urxe_rq_retired(srq), i + 1);
		assert_int_equal(f->n, 0);
	}
	urxe_qp_destroy(f->qp);
	assert_int_equal(urxe_srq_destroy(srq), 0);
}

/* Queue pairs with two receive CQs share the queue: each CQ may get all its completions. */
static void a_larger_shared_queue_fits_each_cq(void **state)
{
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OFFLOADED_PD, .max_wr = 8, .max_sge = 1};
	struct urxe_cq *first = f->cq;
	struct ibv_cq *ibv[2];
	struct urxe_rq *srq;

	(void)state;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	make_qp(URXE_QPT_RC, 0, srq);
	ibv[0] = fake_hca.last_qp->init.recv_cq;
	assert_int_equal(urxe_cq_create(f->dev, f, &f->cq), 0);
	make_qp(URXE_QPT_RC, 0, srq);
	ibv[1] = fake_hca.last_qp->init.recv_cq;
	assert_int_equal(urxe_srq_resize(srq, 600), 0);
	for (int i = 0; i < 2; i++)
		assert_true(ibv[i]->cqe >= 600);
	f->cq = first;
}

/* Room for the queue's requests is reserved once in each CQ, and given back with the CQ's last
 * queue pair. */
static void queue_pairs_of_a_cq_share_room_for_a_shared_queue(void **state)
{
	const struct urxe_rq_attr attr = {
		.ctx = f, .pd = OFFLOADED_PD, .max_wr = 200, .max_sge = 1};
	struct urxe_cq *cqs[2] = {f->cq};
	struct urxe_qp *qps[6];
	struct urxe_rq *srq;

	(void)state;
	assert_int_equal(urxe_cq_create(f->dev, f, &cqs[1]), 0);
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 6; i++) {
			f->cq = cqs[i % 2];
			make_qp(URXE_QPT_RC, 0, srq);
			assert_in_range(fake_hca.last_qp->init.recv_cq->cqe, 200, 600);
			qps[i] = f->qp;
		}
		for (int i = 0; i < 6; i++)
			urxe_qp_destroy(qps[i]);
	}
	f->cq = cqs[0];
}

/* The queue pair that has reserved the room ends before the other one. */
static void room_for_a_shared_queue_stays_with_its_other_queue_pair(void **state)
{
	const struct urxe_rq_attr attr = {
		.ctx = f, .pd = OFFLOADED_PD, .max_wr = 200, .max_sge = 1};
	struct urxe_qp *first;
	struct urxe_rq *srq;

	(void)state;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	make_qp(URXE_QPT_RC, 0, srq);
	first = f->qp;
	make_qp(URXE_QPT_RC, 0, srq);
	urxe_qp_destroy(first);
	assert_int_equal(urxe_srq_resize(srq, 600), 0);
	assert_true(fake_hca.last_qp->init.recv_cq->cqe >= 600);
}

static void events_reach_the_engine(void **state)
{
	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	fake_hca.event = (struct ibv_async_event){.element.qp = &fake_hca.last_qp->ibv,
						  .event_type = IBV_EVENT_COMM_EST};
	fake_hca.has_event = true;
	hca_handle_events(f->hca);
	assert_int_equal(f->asyncs, 1);
	assert_int_equal(f->last_async, URXE_ASYNC_COMM_EST);
	/* A solicited event can only be the HCA's. */
	urxe_cq_arm(f->cq, true);
	assert_int_equal(fake_hca.arm_solicited, 1);
	fake_hca.comp_event = fake_hca.last_qp->init.recv_cq;
	hca_handle_events(f->hca);
	assert_int_equal(f->comp_events, 1);
}

/* The program that an event wakes finds them, more than one hca_poll() takes. No event of the CQ
 * comes before. */
static void completions_precede_an_event(void **state)
{
	const struct urxe_rq_attr attr = {
		.ctx = f, .pd = OFFLOADED_PD, .max_wr = 300, .max_sge = 1};
	struct urxe_rq *srq;
	struct fake_qp *qp;

	(void)state;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	make_qp(URXE_QPT_RC, 0, srq);
	qp = fake_hca.last_qp;
	offloaded_connect_rc();
	receive_some(srq, 300);
	assert_int_equal(fake_hca.n_srq_recvs, 300);
	for (int i = 0; i < 300; i++) {
		const struct ibv_wc wc = {.wr_id = fake_hca.srq_recvs[i].wr_id,
					  .qp_num = qp->ibv.qp_num,
					  .opcode = IBV_WC_RECV};

		fake_hca_complete(qp->init.recv_cq, &wc);
	}
	fake_hca.event = (struct ibv_async_event){.element.qp = &qp->ibv,
						  .event_type = IBV_EVENT_QP_LAST_WQE_REACHED};
	fake_hca.has_event = true;
	hca_handle_events(f->hca);
	assert_int_equal(f->last_async, URXE_ASYNC_QP_LAST_WQE_REACHED);
	assert_int_equal(f->before_async, 300);
}

/* They complete in any order. */
static void the_engine_has_the_requests_that_the_hca_has_not_used(void **state)
{
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OFFLOADED_PD, .max_wr = 8, .max_sge = 1};
	struct urxe_offload_refusal refusal;
	struct urxe_qp_load load;
	struct urxe_rq *srq;
	struct fake_qp *qp;
	struct ibv_wc wc;

	(void)state;
	assert_int_equal(urxe_srq_create(f->dev, &attr, &srq), 0);
	make_qp(URXE_QPT_UD, 0, srq);
	qp = fake_hca.last_qp;
	offloaded_connect_ud();
	receive_some(srq, 4);
	wc = (struct ibv_wc){.wr_id = fake_hca.srq_recvs[2].wr_id,
			     .qp_num = qp->ibv.qp_num,
			     .opcode = IBV_WC_RECV};
	assert_int_equal(urxe_offload_take_over(f->dev, 1, true, &refusal), -EAGAIN);
	assert_int_equal(refusal.reason, URXE_OFFLOAD_RECEIVES);
	assert_int_equal(qp->attr.qp_state, IBV_QPS_ERR);
	/* This one comes late, and its event at once. */
	fake_hca_complete(qp->init.recv_cq, &wc);
	fake_hca.event = (struct ibv_async_event){.element.qp = &qp->ibv,
						  .event_type = IBV_EVENT_QP_LAST_WQE_REACHED};
	fake_hca.has_event = true;
	assert_true(hca_drain(f->hca));
	assert_int_equal(urxe_offload_take_over(f->dev, 1, true, &refusal), 0);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->wcs[0].wr_id, 202);
	assert_int_equal(fake_hca.qps + fake_hca.srqs, 0);
	urxe_qp_load(f->qp, &load);
	assert_int_equal(load.receives, 3);
	assert_int_equal(f->asyncs, 0);
}

static void overrun_cq(struct ibv_cq *cq)
{
	fake_hca.event = (struct ibv_async_event){.element.cq = cq, .event_type = IBV_EVENT_CQ_ERR};
	fake_hca.has_event = true;
	hca_handle_events(f->hca);
}

/* The HCA has dropped their completions. */
static void requests_of_an_overrun_cq_are_flushed(void **state)
{
	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	receive_some(urxe_qp_rq(f->qp), 2);
	send_some(2, 0);
	pthread_mutex_lock(&f->lock);
	hca_defer_destruction(f->hca);
	overrun_cq(fake_hca.last_qp->init.recv_cq);
	assert_int_equal(f->n, 4);
	assert_int_equal(f->wcs[0].status, URXE_WC_WR_FLUSH_ERR);
	assert_int_equal(f->wcs[3].status, URXE_WC_WR_FLUSH_ERR);
	assert_int_equal(f->flushed_before_end, 0);
	assert_int_equal(f->asyncs, 1);
	assert_int_equal(f->last_async, URXE_ASYNC_QP_FATAL);
	hca_destroy_deferred(f->hca);
	pthread_mutex_unlock(&f->lock);
}

static void later_queue_pairs_of_an_overrun_cq_are_the_engines(void **state)
{
	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	overrun_cq(fake_hca.last_qp->init.recv_cq);
	/* The device has no QPN for queue pairs of the engine. */
	assert_int_equal(offloaded_try_qp(URXE_QPT_RC, 0, NULL), -ENOSPC);
	assert_int_equal(fake_hca.qps, 0);
}

/* The engine waits for the completions of a queue pair in the error state. */
static void an_overrun_after_an_error_flushes_requests(void **state)
{
	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	receive_some(urxe_qp_rq(f->qp), 2);
	assert_int_equal(offloaded_modify(URXE_QPS_ERR, 0), 0);
	assert_int_equal(f->n, 0);
	overrun_cq(fake_hca.last_qp->init.recv_cq);
	assert_int_equal(f->n, 2);
}

/* An owner that sleeps asks for an event of each CQ with requests, and looks once more. */
static void a_sleeping_owner_misses_no_completion(void **state)
{
	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	assert_false(hca_arm(f->hca));
	assert_int_equal(fake_hca.armed, 0);
	send_some(2, 0);
	assert_false(hca_arm(f->hca));
	assert_int_equal(fake_hca.armed, 1);
	assert_int_equal(fake_hca.arm_solicited, 0);
	fake_hca_complete_send(fake_hca.last_qp, IBV_WC_SUCCESS);
	assert_true(hca_arm(f->hca));
	assert_int_equal(f->n, 1);
	assert_false(hca_arm(f->hca));
}

/* The owner defers destruction, but the program may use the memory of flushed requests again. */
static void a_queue_pair_that_goes_on_ends_before_its_flush(void **state)
{
	struct fake_qp *qp;

	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	qp = fake_hca.last_qp;
	offloaded_connect_rc();
	receive_some(urxe_qp_rq(f->qp), 2);
	send_some(1, 0);
	fake_hca.no_error_state = true;
	pthread_mutex_lock(&f->lock);
	hca_defer_destruction(f->hca);
	fake_hca_complete_send(qp, IBV_WC_RETRY_EXC_ERR);
	hca_poll(f->hca);
	assert_int_equal(f->n, 3);
	assert_int_equal(f->wcs[0].status, URXE_WC_RETRY_EXC_ERR);
	assert_int_equal(f->wcs[2].status, URXE_WC_WR_FLUSH_ERR);
	assert_int_equal(f->flushed_before_end, 0);
	hca_destroy_deferred(f->hca);
	pthread_mutex_unlock(&f->lock);
}

static void the_end_of_the_hca_fails_its_queue_pairs(void **state)
{
	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	send_some(2, 0);
	assert_false(hca_is_dead(f->hca));
	fake_hca.event = (struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL};
	fake_hca.has_event = true;
	hca_handle_events(f->hca);
	assert_true(hca_is_dead(f->hca));
	hca_detach(f->hca);
	assert_int_equal(fake_hca.qps, 0);
	assert_int_equal(f->last_async, URXE_ASYNC_QP_FATAL);
	assert_int_equal(f->n, 2);
	assert_int_equal(f->wcs[1].status, URXE_WC_WR_FLUSH_ERR);
	hca_attach(f->hca, f->dev);
}

static void limits_are_the_smaller_ones(void **state)
{
	struct hca_limits limits;

	(void)state;
	hca_limits(f->hca, &limits);
	assert_int_equal(limits.max_qp_wr, 100);
	assert_int_equal(limits.max_sge, 4);
	assert_int_equal(limits.max_cqe, 1000);
	assert_int_equal(limits.mtu, URXE_MTU_1024);
	assert_false(limits.atomics);
}

static void another_device_is_not_opened(void **state)
{
	struct hca *hca;

	(void)state;
	assert_int_equal(hca_open(&fake_hca.verbs, "fake", 1, &offloaded_owner, &hca), -ENODEV);
	assert_int_equal(hca_open(NULL, "fake0", 1, &offloaded_owner, &hca), -ENOSYS);
}

static int init_with_pkey(uint16_t index)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_INIT, .port = 1, .pkey_index = index};

	return urxe_qp_modify(f->qp, 1, &attr,
			      URXE_QP_STATE | URXE_QP_PORT | URXE_QP_PKEY_INDEX |
				      URXE_QP_ACCESS_FLAGS);
}

/* The tables of engine and HCA differ: the index at the HCA is that of the same P_Key. */
static void a_pkey_has_the_index_of_the_hca(void **state)
{
	static const uint16_t pkeys[] = {0xffff, 0x8002};

	(void)state;
	fake_hca.pkeys[0] = 0x8001;
	fake_hca.pkeys[3] = 0xffff;
	assert_int_equal(urxe_pkey_set(f->dev, 1, pkeys[1]), 0);
	hca_set_pkeys(f->hca, pkeys, 2);
	make_qp(URXE_QPT_RC, 0, NULL);
	assert_int_equal(init_with_pkey(0), 0);
	assert_int_equal(fake_hca.last_qp->attr.pkey_index, 3);
	assert_true(urxe_offload_has_qp(f->qp));
	urxe_qp_destroy(f->qp);
	/* The HCA does not have the other one. */
	make_qp(URXE_QPT_RC, 0, NULL);
	assert_int_equal(init_with_pkey(1), 0);
	assert_false(urxe_offload_has_qp(f->qp));
	assert_int_equal(fake_hca.qps, 0);
	urxe_qp_destroy(f->qp);
}

static int set_rate(uint32_t rate)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_RTS, .rate_limit = rate};

	return urxe_qp_modify(f->qp, 1, &attr, URXE_QP_STATE | URXE_QP_RATE_LIMIT);
}

static void rate_limits_are_the_drivers(void **state)
{
	(void)state;
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	/* A driver without rate limits. */
	assert_int_equal(set_rate(1000), -EOPNOTSUPP);
	assert_int_equal(set_rate(0), 0);
	fake_hca.has_rates = true;
	assert_int_equal(set_rate(2000), 0);
	assert_int_equal(fake_hca.last_qp->attr.rate_limit, 2000);
	assert_int_equal(set_rate(0), 0);
	assert_int_equal(fake_hca.last_qp->attr.rate_limit, 0);
	urxe_qp_destroy(f->qp);
}

/* What the HCA does not have, and what a program that asks for it gets. */
static void operations_of_the_engine_are_not_offered(void **state)
{
	static uint8_t memory[4096];
	const struct urxe_mw_attr window = {.pd = OFFLOADED_PD, .type = URXE_MW_TYPE_1};
	const struct urxe_extent extent = {memory, sizeof(memory)};
	const struct urxe_mr_attr region = {
		.pd = OFFLOADED_PD,
		.access = URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_FLUSH_GLOBAL,
		.iova = (uintptr_t)memory,
		.length = sizeof(memory),
		.extents = &extent,
		.n_extents = 1,
	};
	const struct urxe_send_wr flush = {.wr_id = 1,
					   .opcode = URXE_WR_FLUSH,
					   .flags = URXE_SEND_SIGNALED,
					   .flush = {.placement = URXE_FLUSH_GLOBAL, .length = 8}};
	struct urxe_mw *mw;
	struct urxe_mr *mr;

	(void)state;
	assert_int_equal(urxe_mw_alloc(f->dev, &window, &mw), -EOPNOTSUPP);
	assert_int_equal(urxe_mr_reg(f->dev, &region, &mr), 0);
	assert_int_equal(fake_hca.mrs, 0); /* the engine's alone */
	assert_int_equal(urxe_mr_dereg(mr), 0);
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	assert_int_equal(urxe_post_send(f->qp, &flush), 0);
	urxe_qp_execute(f->qp, 1);
	assert_int_equal(fake_hca.last_qp->n_sends, 0);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->wcs[0].status, URXE_WC_LOC_QP_OP_ERR);
	urxe_qp_destroy(f->qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(completions_in_error_reach_their_queue),
		TEST(late_completions_name_no_queue),
		TEST(a_reset_that_fails_leaves_the_queue_pair_as_it_was),
		TEST(late_completions_leave_the_cq),
		TEST(invented_completions_are_ignored),
		TEST(a_full_queue_takes_the_rest_later),
		TEST(polling_one_cq_leaves_the_others_for_later),
		TEST(a_refused_request_fails_in_its_turn),
		TEST(odd_numbers_are_kept_or_refused),
		TEST(a_port_that_is_down_serves_old_shared_queues_only),
		TEST(hardware_whose_port_is_down_serves_all),
		TEST(iova_at_another_page_offset_is_the_engines),
		TEST(refused_objects_are_the_engines),
		TEST(connections_that_the_owner_keeps_are_not_offloaded),
		TEST(no_thread_ends_in_calls_of_the_engine),
		TEST(no_thread_ends_in_a_destruction_of_the_engine),
		TEST(inline_data_goes_by_memory_if_the_hca_takes_none),
		TEST(a_shared_queue_gives_its_own_numbers_back),
		TEST(a_completion_before_a_reset_is_not_of_the_next_connection),
		TEST(a_larger_shared_queue_fits_each_cq),
		TEST(queue_pairs_of_a_cq_share_room_for_a_shared_queue),
		TEST(room_for_a_shared_queue_stays_with_its_other_queue_pair),
		TEST(events_reach_the_engine),
		TEST(completions_precede_an_event),
		TEST(the_engine_has_the_requests_that_the_hca_has_not_used),
		TEST(requests_of_an_overrun_cq_are_flushed),
		TEST(later_queue_pairs_of_an_overrun_cq_are_the_engines),
		TEST(an_overrun_after_an_error_flushes_requests),
		TEST(a_sleeping_owner_misses_no_completion),
		TEST(a_queue_pair_that_goes_on_ends_before_its_flush),
		TEST(the_end_of_the_hca_fails_its_queue_pairs),
		TEST(limits_are_the_smaller_ones),
		TEST(another_device_is_not_opened),
		TEST(a_pkey_has_the_index_of_the_hca),
		TEST(rate_limits_are_the_drivers),
		TEST(operations_of_the_engine_are_not_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
