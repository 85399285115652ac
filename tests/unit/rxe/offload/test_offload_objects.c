/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Offload of shared receive queues, UD, events of CQs, regions; and an HCA that goes and returns.
 */
#include <rxe/state.h>

#include "hca_double.h"

static void open_pair(struct engine *e, struct hca *hca, bool alone)
{
	e->pair = pair_create(&(struct pair_attr){.seed = 1});
	e->a = e->pair->node[0];
	e->b = e->pair->node[1];
	hca_open(hca, e->a, alone);
}

static void connect_pair(struct engine *e, const struct conn_attr *conn)
{
	conn_open(e->pair, conn, e->end);
}

static void open_rc(struct engine *e, struct hca *hca)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);

	open_pair(e, hca, false);
	connect_pair(e, &conn);
}

static void close_pair(struct engine *e, const struct hca *hca)
{
	engine_close(e);
	assert_int_equal(hca->regions, 0);
	assert_int_equal(hca->cqs, 0);
	assert_int_equal(hca->srqs, 0);
}

static void post_write(struct engine *e, uint64_t wr_id)
{
	post_send(e, 0,
		  &(struct post){.wr_id = wr_id,
				 .opcode = URXE_WR_RDMA_WRITE,
				 .flags = URXE_SEND_SIGNALED,
				 .length = 64});
	urxe_qp_execute(e->end[0].qp, e->pair->now);
}

/* --- Shared receive queues. */

static struct urxe_rq *open_srq(struct engine *e, struct node_queue *queue)
{
	const struct urxe_rq_attr attr = {.ctx = queue, .pd = NODE_PD, .max_wr = 16, .max_sge = 2};
	struct urxe_rq *srq;

	queue->node = e->a;
	assert_int_equal(urxe_srq_create(e->a->dev, &attr, &srq), 0);
	return srq;
}

/* A connection whose first end has a SRQ of the HCA. */
static struct urxe_rq *open_rc_with_srq(struct engine *e, struct hca *hca, struct node_queue *queue)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	open_pair(e, hca, false);
	conn.srq[0] = open_srq(e, queue);
	connect_pair(e, &conn);
	return conn.srq[0];
}

static void test_srq_receives_and_limit_go_to_the_hca(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct node_queue queue = {0};
	struct urxe_rq *srq;
	struct engine e;
	struct hca hca;

	(void)state;
	open_pair(&e, &hca, false);
	srq = open_srq(&e, &queue);
	assert_int_equal(hca.srqs, 1);
	conn.srq[0] = srq;
	/* The HCA's side is not asked: a SRQ serves QPs that all run on the HCA. */
	hca.takes = false;
	connect_pair(&e, &conn);
	assert_true(urxe_qp_offloaded(e.end[0].qp));
	post_recv(&e.end[0], 1, 0, 64);
	post_recv(&e.end[0], 2, 64, 64);
	assert_int_equal(hca.n_srq_recvs, 2);
	assert_int_equal(urxe_rq_retired(srq), 0);
	hca_complete_recv(&hca.qps[0], URXE_WC_SUCCESS);
	assert_int_equal(urxe_rq_retired(srq), 1);
	expect_wc(&e.a->recv_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(urxe_srq_set_limit(srq, 2), 0);
	assert_int_equal(hca.srq_limit, 2);
	assert_int_equal(urxe_srq_limit(srq), 2);
	urxe_offload_srq_event(srq, URXE_ASYNC_SRQ_LIMIT_REACHED);
	assert_int_equal(e.a->async[URXE_ASYNC_SRQ_LIMIT_REACHED], 1);
	assert_int_equal(urxe_srq_limit(srq), 0);
	assert_int_equal(urxe_srq_resize(srq, HCA_DEPTH + 1), -EINVAL);
	assert_int_equal(urxe_srq_resize(srq, HCA_DEPTH), 0);
	close_pair(&e, &hca);
}

/* The HCA refuses one receive for its contents: it gets those behind it at once. */
static void test_receives_behind_a_refused_one_go_to_the_hca(void **state)
{
	struct node_queue queue = {0};
	struct urxe_rq *srq;
	struct engine e;
	struct hca hca;

	(void)state;
	srq = open_rc_with_srq(&e, &hca, &queue);
	hca.room = 0;
	for (uint32_t i = 1; i <= 3; i++)
		post_recv(&e.end[0], i, 0, 64);
	hca.room = HCA_DEPTH;
	hca.bad_recv = 2;
	urxe_offload_refill(srq);
	assert_int_equal(hca.n_srq_recvs, 2);
	assert_int_equal(urxe_rq_retired(srq), 1);
	for (uint32_t i = 1; i <= 3; i += 2) {
		hca_complete_recv(&hca.qps[0], URXE_WC_SUCCESS);
		expect_wc(&e.a->recv_cq, i, URXE_WC_SUCCESS);
	}
	assert_int_equal(urxe_rq_retired(srq), 3);
	close_pair(&e, &hca);
}

static int try_qp(struct engine *e, struct urxe_rq *srq, uint32_t qpn)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	const struct urxe_qp_init init = {
		.type = URXE_QPT_RC,
		.pd = NODE_PD,
		.qpn = qpn,
		.send_cq = e->a->send_cq.cq,
		.recv_cq = e->a->recv_cq.cq,
		.srq = srq,
		.cap = conn.cap,
	};
	struct urxe_qp *qp;

	return urxe_qp_create(e->a->dev, &init, &qp);
}

/* The HCA's QPN is in use, the owner gives a QPN, or the HCA has no room. */
static void test_qp_that_would_get_no_receives_is_refused(void **state)
{
	struct node_queue queue = {0};
	struct urxe_rq *srq;
	struct engine e;
	struct hca hca;

	(void)state;
	srq = open_rc_with_srq(&e, &hca, &queue);
	hca.next_qpn = HCA_QPN;
	assert_int_equal(try_qp(&e, srq, 0), -EOPNOTSUPP);
	assert_true(hca.qps[1].destroyed);
	assert_int_equal(try_qp(&e, srq, 0x40), -EOPNOTSUPP);
	hca.refuse_qp = -ENOSPC;
	assert_int_equal(try_qp(&e, srq, 0), -ENOMEM);
	close_pair(&e, &hca);
}

static void test_qp_of_a_srq_that_the_hca_has_lost_is_not_connected_again(void **state)
{
	const struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	const struct urxe_qp_attr init = {.state = URXE_QPS_INIT, .port = 1};
	struct node_queue queue = {0};
	struct engine e;
	struct hca hca;

	(void)state;
	open_rc_with_srq(&e, &hca, &queue);
	urxe_offload_cq_lost(e.a->recv_cq.cq);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, e.pair->now, &reset, URXE_QP_STATE), 0);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, e.pair->now, &init,
					URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT |
						URXE_QP_ACCESS_FLAGS),
			 -EOPNOTSUPP);
	close_pair(&e, &hca);
}

/* The HCA reports when it has taken the last receive of a failed QP. */
static void test_last_wqe_event_waits_for_the_hca(void **state)
{
	const struct urxe_qp_attr error = {.state = URXE_QPS_ERR};
	struct node_queue queue = {0};
	struct engine e;
	struct hca hca;

	(void)state;
	open_rc_with_srq(&e, &hca, &queue);
	post_recv(&e.end[0], 1, 0, 64);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, 0, &error, URXE_QP_STATE), 0);
	assert_int_equal(e.a->async[URXE_ASYNC_QP_LAST_WQE_REACHED], 0);
	urxe_offload_qp_event(e.a->dev, HCA_QPN, URXE_ASYNC_QP_LAST_WQE_REACHED);
	assert_int_equal(e.a->async[URXE_ASYNC_QP_LAST_WQE_REACHED], 1);
	close_pair(&e, &hca);
}

/* --- UD. */

static void test_ud_requests_keep_path_qpn_and_qkey(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_UD);
	const struct urxe_gid group = {{0xff, 0x0e, [15] = 1}};
	struct urxe_seg seg;
	struct urxe_path path;
	struct engine e;
	struct hca hca;

	(void)state;
	open_pair(&e, &hca, false);
	hca.takes = false;
	connect_pair(&e, &conn);
	assert_true(urxe_qp_offloaded(e.end[0].qp));
	path = conn_path(URXE_NET_IPV4, e.b);
	seg = node_seg(e.a, 0, 64);
	assert_int_equal(urxe_post_send(e.end[0].qp, &(struct urxe_send_wr){.wr_id = 1,
									    .opcode = URXE_WR_SEND,
									    .segs = &seg,
									    .n_segs = 1,
									    .path = &path,
									    .remote_qpn = 0x77,
									    .remote_qkey = 0x88}),
			 0);
	urxe_qp_execute(e.end[0].qp, 0);
	assert_int_equal(hca.qps[0].n_sends, 1);
	assert_int_equal(hca.qps[0].sends[0].remote_qpn, 0x77);
	assert_int_equal(hca.qps[0].sends[0].remote_qkey, 0x88);
	assert_memory_equal(hca.qps[0].sends[0].path->dgid.raw, path.dgid.raw, 16);
	assert_int_equal(urxe_mcast_attach(e.end[0].qp, &group), 0);
	assert_int_equal(urxe_mcast_attach(e.end[0].qp, &group), 0);
	assert_int_equal(hca.qps[0].groups, 1);
	assert_int_equal(urxe_mcast_detach(e.end[0].qp, &group), 0);
	assert_int_equal(hca.qps[0].groups, 0);
	assert_int_equal(urxe_mcast_attach(e.end[0].qp, &group), 0);
	urxe_qp_destroy(e.end[0].qp);
	assert_int_equal(hca.qps[0].groups, 0);
	assert_true(hca.qps[0].destroyed);
	close_pair(&e, &hca);
}

/* --- Events of completion queues. */

static void test_armed_cq_arms_the_hca_again_after_early_events(void **state)
{
	struct node_cq *cq;
	struct engine e;
	struct hca hca;

	(void)state;
	open_rc(&e, &hca);
	cq = &e.a->send_cq;
	urxe_cq_arm(cq->cq, false);
	assert_int_equal(hca.arms, 1);
	/* The event belongs to a completion that was taken before. */
	urxe_offload_cq_event(cq->cq);
	assert_int_equal(cq->events, 0);
	assert_int_equal(hca.arms, 2);
	post_write(&e, 1);
	hca_complete_send(&hca.qps[0], URXE_WC_SUCCESS);
	assert_int_equal(cq->events, 1);
	/* Nobody has asked for another. */
	urxe_offload_cq_event(cq->cq);
	assert_int_equal(cq->events, 1);
	close_pair(&e, &hca);
}

/* Only the HCA's event tells that a message was solicited. */
static void test_solicited_arm_needs_the_hcas_event(void **state)
{
	struct node_cq *cq;
	struct engine e;
	struct hca hca;

	(void)state;
	open_rc(&e, &hca);
	cq = &e.a->recv_cq;
	post_recv(&e.end[0], 1, 0, 64);
	post_recv(&e.end[0], 2, 0, 64);
	urxe_cq_arm(cq->cq, true);
	assert_int_equal(hca.solicited_arms, 1);
	hca_complete_recv(&hca.qps[0], URXE_WC_SUCCESS);
	assert_int_equal(cq->events, 0);
	hca_complete_recv(&hca.qps[0], URXE_WC_SUCCESS);
	urxe_offload_cq_event(cq->cq);
	assert_int_equal(cq->events, 1);
	urxe_offload_cq_event(cq->cq);
	assert_int_equal(cq->events, 1);
	close_pair(&e, &hca);
}

/* A CQ that was armed before its first offloaded QP is armed at the HCA then. */
static void test_cq_armed_before_offload_is_armed_at_the_hca(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;
	struct hca hca;

	(void)state;
	open_pair(&e, &hca, false);
	urxe_cq_arm(e.a->recv_cq.cq, true);
	assert_int_equal(hca.solicited_arms, 0);
	connect_pair(&e, &conn);
	assert_int_equal(hca.solicited_arms, 1);
	assert_int_equal(hca.arms, 0);
	close_pair(&e, &hca);
}

/* --- Regions. */

static void test_rereg_gets_a_new_hca_rkey(void **state)
{
	const struct urxe_mw_attr window = {.pd = NODE_PD, .type = URXE_MW_TYPE_1};
	struct urxe_extent extent;
	struct urxe_mr_attr attr;
	struct urxe_fast_mr *fast;
	struct urxe_mw *mw;
	struct urxe_mr *mr;
	struct engine e;
	struct hca hca;

	(void)state;
	open_pair(&e, &hca, false);
	extent = (struct urxe_extent){e.a->mem, 64};
	attr = (struct urxe_mr_attr){
		.pd = NODE_PD, .length = 64, .extents = &extent, .n_extents = 1};
	assert_int_equal(urxe_mr_reg(e.a->dev, &attr, &mr), 0);
	assert_int_equal(urxe_mr_key(mr), HCA_KEY + 1);
	/* A region that changes gets a new key. */
	attr.access = URXE_ACCESS_LOCAL_WRITE;
	assert_int_equal(urxe_mr_rereg(&mr, &attr), 0);
	assert_int_equal(urxe_mr_key(mr), HCA_KEY + 2);
	assert_int_equal(hca.regions, 2);
	hca.refuse_mr = -ENOMEM;
	assert_int_equal(urxe_mr_rereg(&mr, &attr), -ENOMEM);
	assert_int_equal(urxe_mr_key(mr), HCA_KEY + 2);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	assert_int_equal(hca.regions, 1);
	assert_int_equal(urxe_mr_reg(e.a->dev, &attr, &mr), -ENOMEM);
	/* Not of such an HCA. */
	assert_int_equal(urxe_mw_alloc(e.a->dev, &window, &mw), -EOPNOTSUPP);
	assert_int_equal(urxe_fast_mr_alloc(e.a->dev, NODE_PD, 1, &fast), 0);
	assert_int_equal(urxe_fast_mr_free(fast), 0);
	assert_int_equal(hca.regions, 1);
	close_pair(&e, &hca);
}

/* The owner has registered a region with the HCA itself. */
static void test_region_registered_by_the_owner_keeps_its_rkey(void **state)
{
	struct urxe_extent extent;
	struct urxe_mr_attr attr;
	struct urxe_mr *mr, *alone;
	struct engine e;
	struct hca hca;

	(void)state;
	open_pair(&e, &hca, false);
	extent = (struct urxe_extent){e.a->mem, 64};
	attr = (struct urxe_mr_attr){
		.pd = NODE_PD, .length = 64, .extents = &extent, .n_extents = 1};
	hca.regions++;
	assert_int_equal(urxe_offload_mr_reg(e.a->dev, &attr, &hca, 0x4321, &mr), 0);
	assert_int_equal(urxe_mr_key(mr), 0x4321);
	assert_int_equal(urxe_offload_mr_reg(e.a->dev, &attr, &hca, 0x4321, &alone), -EEXIST);
	assert_int_equal(urxe_offload_mr_reg(e.a->dev, &attr, NULL, 0, &alone), 0);
	assert_int_not_equal(urxe_mr_key(alone), 0x4321);
	assert_int_equal(urxe_mr_dereg(alone), 0);
	assert_int_equal(hca.regions, 2);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	assert_int_equal(hca.regions, 1);
	attr.length = 65;
	assert_int_equal(urxe_offload_mr_reg(e.a->dev, &attr, NULL, 0, &alone), -EINVAL);
	close_pair(&e, &hca);
}

/* A region whose owner withdraws memory is deregistered at the HCA, and keeps its key. */
static void test_withdrawn_region_keeps_its_rkey(void **state)
{
	struct engine e;
	struct hca hca;
	uint32_t key;

	(void)state;
	open_pair(&e, &hca, false);
	key = urxe_mr_key(e.a->mr);
	assert_int_equal(hca.regions, 1);
	urxe_offload_withdraw(e.a->mr);
	assert_int_equal(hca.regions, 0);
	assert_int_equal(urxe_mr_key(e.a->mr), key);
	urxe_offload_withdraw(e.a->mr);
	assert_int_equal(hca.regions, 0);
	close_pair(&e, &hca);
}

/* A region that the HCA cannot have keeps the connections of its PD, and only these, here. */
static void test_software_region_keeps_connections_of_its_pd(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint more[2];
	struct urxe_mr *mr, *other;
	struct engine e;
	struct hca hca;

	(void)state;
	open_pair(&e, &hca, false);
	hca.refuse_mr = -EOPNOTSUPP;
	mr = node_reg(e.a, NODE_PD, 0, 0, 64);
	other = node_reg(e.a, NODE_PD + 1, 0, 0, 64);
	connect_pair(&e, &conn);
	assert_false(urxe_qp_offloaded(e.end[0].qp));
	assert_int_equal(urxe_mr_dereg(mr), 0);
	conn_open(e.pair, &conn, more);
	assert_true(urxe_qp_offloaded(more[0].qp));
	assert_int_equal(urxe_mr_dereg(other), 0);
	close_pair(&e, &hca);
}

/* --- The HCA goes, and returns. */

static void test_lost_hca_fails_its_qps_and_srqs(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint more[2];
	struct node_queue queue = {0};
	struct engine e;
	struct hca hca;

	(void)state;
	open_rc(&e, &hca);
	open_srq(&e, &queue);
	post_write(&e, 1);
	post_recv(&e.end[0], 2, 0, 64);
	urxe_offload_unset(e.a->dev);
	assert_int_equal(hca.regions + hca.cqs + hca.srqs, 0);
	assert_true(hca.qps[0].destroyed);
	assert_int_equal(e.a->async[URXE_ASYNC_QP_FATAL], 1);
	assert_int_equal(e.a->async[URXE_ASYNC_SRQ_ERR], 1);
	assert_int_equal(qp_state(&e.end[0]), URXE_QPS_ERR);
	expect_wc(&e.a->send_cq, 1, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&e.a->recv_cq, 2, URXE_WC_WR_FLUSH_ERR);
	/* The same key goes on in software. */
	conn_open(e.pair, &conn, more);
	e.end[0] = more[0];
	e.end[1] = more[1];
	post_write(&e, 3);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 3, URXE_WC_SUCCESS);
	urxe_offload_unset(e.a->dev);
	close_pair(&e, &hca);
}

static void test_lost_hca_flushes_without_a_second_event(void **state)
{
	const struct urxe_qp_attr error = {.state = URXE_QPS_ERR};
	struct engine e;
	struct hca hca;

	(void)state;
	open_rc(&e, &hca);
	post_write(&e, 1);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, 0, &error, URXE_QP_STATE), 0);
	expect_none(&e.a->send_cq);
	urxe_offload_unset(e.a->dev);
	expect_wc(&e.a->send_cq, 1, URXE_WC_WR_FLUSH_ERR);
	assert_int_equal(e.a->async[URXE_ASYNC_QP_FATAL], 0);
	close_pair(&e, &hca);
}

/* The HCA has the state of its queue pairs. */
static void test_device_with_offloaded_qps_is_not_saved(void **state)
{
	const struct urxe_state_save how = {0};
	struct engine e;
	struct hca hca;
	uint8_t *stream;
	size_t length;

	(void)state;
	open_rc(&e, &hca);
	assert_int_equal(urxe_state_save(e.a->dev, 1, &how, &stream, &length), -EOPNOTSUPP);
	urxe_qp_destroy(e.end[0].qp);
	assert_int_equal(urxe_state_save(e.a->dev, 1, &how, &stream, &length), 0);
	urxe_state_free(stream);
	close_pair(&e, &hca);
}

static void test_old_region_keeps_connections_from_a_new_hca(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct node_queue queue = {0};
	struct endpoint more[2];
	struct urxe_rq *srq;
	struct engine e;
	struct hca hca;

	(void)state;
	/* The region is older than the HCA: so connections with it stay in the engine, ... */
	open_pair(&e, &hca, true);
	connect_pair(&e, &conn);
	assert_int_equal(e.end[0].qpn, HCA_QPN);
	assert_false(urxe_qp_offloaded(e.end[0].qp));
	srq = open_srq(&e, &queue);
	assert_int_equal(hca.srqs, 0);
	assert_int_equal(urxe_srq_destroy(srq), 0);
	/* ... until it has gone. */
	assert_int_equal(urxe_mr_dereg(e.a->mr), 0);
	e.a->mr = node_reg(e.a, NODE_PD, NODE_ACCESS, 0, e.a->mem_size);
	assert_int_equal(hca.regions, 1);
	conn_open(e.pair, &conn, more);
	assert_true(urxe_qp_offloaded(more[0].qp));
	close_pair(&e, &hca);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_srq_receives_and_limit_go_to_the_hca),
		cmocka_unit_test(test_receives_behind_a_refused_one_go_to_the_hca),
		cmocka_unit_test(test_qp_that_would_get_no_receives_is_refused),
		cmocka_unit_test(test_qp_of_a_srq_that_the_hca_has_lost_is_not_connected_again),
		cmocka_unit_test(test_last_wqe_event_waits_for_the_hca),
		cmocka_unit_test(test_ud_requests_keep_path_qpn_and_qkey),
		cmocka_unit_test(test_armed_cq_arms_the_hca_again_after_early_events),
		cmocka_unit_test(test_solicited_arm_needs_the_hcas_event),
		cmocka_unit_test(test_cq_armed_before_offload_is_armed_at_the_hca),
		cmocka_unit_test(test_rereg_gets_a_new_hca_rkey),
		cmocka_unit_test(test_region_registered_by_the_owner_keeps_its_rkey),
		cmocka_unit_test(test_withdrawn_region_keeps_its_rkey),
		cmocka_unit_test(test_software_region_keeps_connections_of_its_pd),
		cmocka_unit_test(test_lost_hca_fails_its_qps_and_srqs),
		cmocka_unit_test(test_lost_hca_flushes_without_a_second_event),
		cmocka_unit_test(test_device_with_offloaded_qps_is_not_saved),
		cmocka_unit_test(test_old_region_keeps_connections_from_a_new_hca),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
