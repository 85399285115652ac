/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Offloaded connections: which they are, their requests, completions, states, and errors. */
#include "hca_double.h"

#define M(name) URXE_QP_##name

struct fixture {
	struct engine e;
	struct hca hca;
	struct hca_qp *qp; /* of side 0 */
};

/* Side 0 has an HCA; side 1 is another host. Both QPs are in RESET. */
static void open_reset(struct fixture *f, const struct conn_attr *conn)
{
	f->e.pair = pair_create(&(struct pair_attr){.seed = 1});
	f->e.a = f->e.pair->node[0];
	f->e.b = f->e.pair->node[1];
	hca_open(&f->hca, f->e.a, false);
	for (unsigned side = 0; side < 2; side++)
		conn_create(f->e.pair, conn, side, &f->e.end[side]);
	f->qp = &f->hca.qps[0];
}

static void open_connection(struct fixture *f, const struct conn_attr *conn)
{
	open_reset(f, conn);
	for (unsigned side = 0; side < 2; side++)
		conn_bring_up(f->e.pair, conn, side, &f->e.end[side], &f->e.end[!side]);
}

static void open_rc(struct fixture *f)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);

	open_connection(f, &conn);
}

static void close_fixture(struct fixture *f)
{
	engine_close(&f->e);
	for (uint32_t i = 0; i < f->hca.n_qps; i++)
		assert_true(f->hca.qps[i].destroyed);
	assert_int_equal(f->hca.regions, 0);
	assert_int_equal(f->hca.cqs, 0);
	assert_int_equal(f->hca.srqs, 0);
}

static int go(struct fixture *f, uint8_t state, uint32_t mask)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_qp_attr attr = conn_qp_attr(&conn, 0, f->e.b, f->e.end[1].qpn);

	attr.state = state;
	return urxe_qp_modify(f->e.end[0].qp, f->e.pair->now, &attr, mask | M(STATE));
}

static void post_write(struct fixture *f, uint64_t wr_id, bool signaled)
{
	post_send(&f->e, 0,
		  &(struct post){.wr_id = wr_id,
				 .opcode = URXE_WR_RDMA_WRITE,
				 .flags = signaled ? URXE_SEND_SIGNALED : 0,
				 .offset = 64 * (uint32_t)wr_id,
				 .length = 64,
				 .remote = 4096});
	urxe_qp_execute(f->e.end[0].qp, f->e.pair->now);
}

static void test_qpn_and_rkey_come_from_the_hca(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint own;
	struct fixture f;

	(void)state;
	open_rc(&f);
	assert_int_equal(f.e.end[0].qpn, HCA_QPN);
	assert_int_equal(f.e.a->key, HCA_KEY);
	assert_true(urxe_qp_offloaded(f.e.end[0].qp));
	assert_true(urxe_offload_all(f.e.a->dev));
	assert_int_equal(f.qp->state, URXE_QPS_RTS);
	/* A number that the owner chooses is not the HCA's. */
	conn.qpn[0] = 0x123;
	conn_create(f.e.pair, &conn, 0, &own);
	assert_int_equal(own.qpn, 0x123);
	assert_int_equal(f.hca.n_qps, 1);
	conn_bring_up(f.e.pair, &conn, 0, &own, &f.e.end[1]);
	assert_false(urxe_qp_offloaded(own.qp));
	assert_false(urxe_offload_all(f.e.a->dev));
	assert_false(urxe_offload_has_qp(own.qp));
	assert_true(urxe_offload_has_qp(f.e.end[0].qp));
	close_fixture(&f);
}

/* The HCA's QPN or key is in use already: the object is the engine's alone. */
static void test_hca_numbers_in_use_stay_the_engines(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint again;
	struct fixture f;
	struct urxe_mr *mr;

	(void)state;
	open_reset(&f, &conn);
	f.hca.next_qpn = HCA_QPN;
	f.hca.next_key = HCA_KEY;
	conn_create(f.e.pair, &conn, 0, &again);
	assert_int_not_equal(again.qpn, HCA_QPN);
	assert_true(f.hca.qps[1].destroyed);
	mr = node_reg(f.e.a, NODE_PD + 1, 0, 0, 64);
	assert_int_not_equal(urxe_mr_key(mr), HCA_KEY);
	assert_int_equal(f.hca.regions, 1);
	close_fixture(&f);
}

static void test_qp_refused_by_the_hca_runs_in_software(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint own;
	struct fixture f;

	(void)state;
	open_reset(&f, &conn);
	f.hca.refuse_qp = -ENOMEM;
	conn_create(f.e.pair, &conn, 0, &own);
	assert_int_equal(f.hca.n_qps, 1);
	conn_bring_up(f.e.pair, &conn, 0, &own, &f.e.end[1]);
	assert_false(urxe_qp_offloaded(own.qp));
	close_fixture(&f);
}

static void test_hca_requests_complete_in_order(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_qp_load load;
	struct fixture f;
	struct urxe_wc wc;

	(void)state;
	conn.sq_sig_all = false;
	open_connection(&f, &conn);
	post_write(&f, 1, true);
	post_write(&f, 2, false);
	post_write(&f, 3, true);
	assert_int_equal(f.qp->n_sends, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(f.qp->sends[i].wr_id, i + 1);
		assert_int_equal(f.qp->sends[i].opcode, URXE_WR_RDMA_WRITE);
		assert_int_equal(f.qp->sends[i].remote_addr, f.e.b->iova + 4096);
		assert_int_equal(f.qp->sends[i].rkey, f.e.b->key);
		assert_int_equal(f.qp->seg[i].addr, f.e.a->iova + 64 * (i + 1));
		assert_int_equal(f.qp->seg[i].lkey, HCA_KEY);
	}
	expect_none(&f.e.a->send_cq);
	hca_complete_send(f.qp, URXE_WC_SUCCESS);
	wc = expect_wc(&f.e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(wc.opcode, URXE_WC_RDMA_WRITE);
	assert_int_equal(wc.qpn, HCA_QPN);
	hca_complete_send(f.qp, URXE_WC_SUCCESS);
	expect_none(&f.e.a->send_cq);
	assert_int_equal(urxe_sq_retired(f.e.end[0].qp), 2);
	hca_complete_send(f.qp, URXE_WC_SUCCESS);
	expect_wc(&f.e.a->send_cq, 3, URXE_WC_SUCCESS);
	assert_int_equal(events(f.e.a, URXE_EVENT_HCA_REQUESTS), 3);
	assert_int_equal(events(f.e.a, URXE_EVENT_HCA_BYTES), 3 * 64);
	assert_int_equal(events(f.e.a, URXE_EVENT_TX_PACKETS), 0);
	urxe_qp_load(f.e.end[0].qp, &load);
	assert_int_equal(load.packets, 0);
	close_fixture(&f);
}

static void test_hca_gets_inline_data_and_atomics(void **state)
{
	const uint64_t data = 0x1122334455667788;
	const struct urxe_send_wr wr = {.wr_id = 1,
					.opcode = URXE_WR_SEND_IMM,
					.flags = URXE_SEND_INLINE | URXE_SEND_SOLICITED,
					.imm = 77,
					.inline_data = &data,
					.inline_len = sizeof(data)};
	struct fixture f;

	(void)state;
	open_rc(&f);
	assert_int_equal(urxe_post_send(f.e.end[0].qp, &wr), 0);
	post_send(&f.e, 0,
		  &(struct post){.wr_id = 2,
				 .opcode = URXE_WR_COMPARE_SWAP,
				 .length = 8,
				 .compare_add = 5,
				 .swap = 6});
	/* The engine's owner may also only ask for frames. */
	pair_step(f.e.pair);
	assert_int_equal(f.qp->n_sends, 2);
	assert_int_equal(f.qp->sends[0].flags, URXE_SEND_INLINE | URXE_SEND_SOLICITED);
	assert_int_equal(f.qp->sends[0].imm, 77);
	assert_int_equal(f.qp->sends[0].inline_len, 8);
	assert_memory_equal(f.qp->sends[0].inline_data, &data, 8);
	assert_int_equal(f.qp->sends[1].compare_add, 5);
	assert_int_equal(f.qp->sends[1].swap, 6);
	close_fixture(&f);
}

static void test_a_full_hca_gets_the_rest_later(void **state)
{
	struct fixture f;

	(void)state;
	open_rc(&f);
	f.hca.room = 2;
	for (uint64_t id = 0; id < 5; id++)
		post_write(&f, id, true);
	assert_int_equal(f.qp->n_sends, 2);
	for (uint64_t id = 0; id < 5; id++) {
		assert_int_equal(f.qp->sends[0].wr_id, id);
		hca_complete_send(f.qp, URXE_WC_SUCCESS);
		expect_wc(&f.e.a->send_cq, id, URXE_WC_SUCCESS);
	}
	assert_int_equal(qp_state(&f.e.end[0]), URXE_QPS_RTS);
	close_fixture(&f);
}

/* Receives that were posted in INIT reach the HCA before the peer can send. */
static void test_receives_precede_rtr(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct fixture f;
	struct urxe_wc wc;

	(void)state;
	open_reset(&f, &conn);
	assert_int_equal(go(&f, URXE_QPS_INIT, conn_mask(conn.type, URXE_QPS_INIT)), 0);
	post_recv(&f.e.end[0], 1, 0, 64);
	post_recv(&f.e.end[0], 2, 64, 64);
	assert_int_equal(f.qp->n_recvs, 0);
	assert_int_equal(go(&f, URXE_QPS_RTR, conn_mask(conn.type, URXE_QPS_RTR)), 0);
	assert_int_equal(f.qp->recvs_at_rtr, 2);
	post_recv(&f.e.end[0], 3, 128, 64);
	assert_int_equal(f.qp->n_recvs, 3);
	for (uint64_t id = 1; id <= 3; id++) {
		hca_complete_recv(f.qp, URXE_WC_SUCCESS);
		wc = expect_wc(&f.e.a->recv_cq, id, URXE_WC_SUCCESS);
		assert_int_equal(wc.byte_len, 100);
		assert_ptr_equal(wc.qp_ctx, &f.e.end[0].queue);
		assert_int_equal(urxe_rq_retired(f.e.end[0].rq), id);
	}
	assert_int_equal(events(f.e.a, URXE_EVENT_HCA_RECEIVES), 3);
	close_fixture(&f);
}

static void refill_one(struct node_queue *queue)
{
	struct fixture *f = queue->arg;

	queue->refill = NULL;
	post_recv(&f->e.end[0], 9, 0, 64);
	assert_int_equal(f->qp->n_recvs, 0);
}

static void test_refill_gives_receives_to_the_hca(void **state)
{
	struct fixture f;

	(void)state;
	open_rc(&f);
	f.e.end[0].queue.refill = refill_one;
	f.e.end[0].queue.arg = &f;
	urxe_offload_refill(f.e.end[0].rq);
	assert_int_equal(f.qp->n_recvs, 1);
	assert_int_equal(f.qp->recv_ids[0], 9);
	/* Not for a queue of the engine. */
	urxe_offload_refill(f.e.end[1].rq);
	assert_int_equal(f.e.end[1].queue.refills, 0);
	close_fixture(&f);
}

static void test_the_hca_refuses_the_connection(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	struct fixture f;

	(void)state;
	open_reset(&f, &conn);
	assert_int_equal(go(&f, URXE_QPS_INIT, conn_mask(conn.type, URXE_QPS_INIT)), 0);
	post_recv(&f.e.end[0], 1, 0, 64);
	f.hca.refuse_modify = -ETIMEDOUT;
	f.hca.refuse_state = URXE_QPS_RTR;
	assert_int_equal(go(&f, URXE_QPS_RTR, conn_mask(conn.type, URXE_QPS_RTR)), -ETIMEDOUT);
	urxe_qp_query(f.e.end[0].qp, &attr, &init);
	assert_int_equal(attr.state, URXE_QPS_INIT);
	assert_int_equal(attr.max_dest_rd_atomic, 0);
	assert_false(urxe_qp_offloaded(f.e.end[0].qp));
	assert_int_equal(f.qp->state, URXE_QPS_INIT);
	assert_int_equal(f.qp->n_recvs, 0);
	f.hca.refuse_modify = 0;
	assert_int_equal(go(&f, URXE_QPS_RTR, conn_mask(conn.type, URXE_QPS_RTR)), 0);
	assert_int_equal(f.qp->recvs_at_rtr, 1);
	close_fixture(&f);
}

static bool would_take(struct fixture *f, uint8_t state, uint32_t mask)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_qp_attr attr = conn_qp_attr(&conn, 0, f->e.b, f->e.end[1].qpn);

	attr.state = state;
	return urxe_offload_takes(f->e.end[0].qp, &attr, mask);
}

/* Which of HCA and engine would use an address that only the HCA can reach. */
static void test_would_take_predicts_where_an_address_is_used(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	const uint32_t rtr = conn_mask(conn.type, URXE_QPS_RTR);
	struct urxe_offload_refusal refusal;
	struct urxe_mr *alone;
	struct fixture f;

	(void)state;
	open_reset(&f, &conn);
	assert_false(would_take(&f, URXE_QPS_RTR, rtr)); /* not from RESET */
	assert_int_equal(go(&f, URXE_QPS_INIT, conn_mask(conn.type, URXE_QPS_INIT)), 0);
	assert_true(would_take(&f, URXE_QPS_RTR, rtr));
	assert_false(would_take(&f, URXE_QPS_RTR, rtr & ~(uint32_t)M(STATE)));
	f.hca.takes = false;
	assert_false(would_take(&f, URXE_QPS_RTR, rtr));
	f.hca.takes = true;
	f.hca.refuse_mr = -EOPNOTSUPP;
	alone = node_reg(f.e.a, NODE_PD, NODE_ACCESS, 0, 64);
	assert_false(would_take(&f, URXE_QPS_RTR, rtr));
	assert_int_equal(urxe_mr_dereg(alone), 0);
	assert_int_equal(go(&f, URXE_QPS_RTR, rtr), 0);
	assert_int_equal(go(&f, URXE_QPS_RTS, conn_mask(conn.type, URXE_QPS_RTS)), 0);
	assert_true(would_take(&f, URXE_QPS_SQD, M(AV)));
	/* A take-over waits for a request of the HCA. */
	post_write(&f, 1, true);
	assert_int_equal(urxe_offload_take_over(f.e.a->dev, f.e.pair->now, true, &refusal),
			 -EAGAIN);
	assert_true(would_take(&f, URXE_QPS_SQD, M(AV)));
	urxe_offload_unset(f.e.a->dev);
	assert_false(would_take(&f, URXE_QPS_SQD, M(AV)));
	close_fixture(&f);
}

/* The engine executes the connection, under the HCA's QPN and key. */
static void test_engine_runs_connections_under_hca_numbers(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct fixture f;

	(void)state;
	open_reset(&f, &conn);
	f.hca.takes = false;
	for (unsigned side = 0; side < 2; side++)
		conn_bring_up(f.e.pair, &conn, side, &f.e.end[side], &f.e.end[!side]);
	assert_false(urxe_qp_offloaded(f.e.end[0].qp));
	memset(f.e.a->mem, 0x5a, 64);
	post_write(&f, 0, true);
	pair_settle(f.e.pair);
	expect_wc(&f.e.a->send_cq, 0, URXE_WC_SUCCESS);
	assert_memory_equal(f.e.b->mem + 4096, f.e.a->mem, 64);
	post_send(&f.e, 1, &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_READ, .length = 64});
	pair_settle(f.e.pair);
	expect_wc(&f.e.b->send_cq, 7, URXE_WC_SUCCESS);
	assert_int_equal(f.qp->n_sends, 0);
	close_fixture(&f);
}

/* A packet for an offloaded QP is the HCA's, not the engine's. */
static void test_frames_are_dropped(void **state)
{
	struct fixture f;

	(void)state;
	open_rc(&f);
	post_send(&f.e, 1, &(struct post){.wr_id = 7, .opcode = URXE_WR_RDMA_WRITE, .length = 64});
	pair_run(f.e.pair, f.e.pair->now + 1000000);
	assert_true(drops(f.e.a, URXE_DROP_OFFLOADED) > 0);
	assert_int_equal(events(f.e.a, URXE_EVENT_TX_PACKETS), 0);
	close_fixture(&f);
}

/* --- Errors. */

static void test_completions_precede_flushes(void **state)
{
	struct fixture f;

	(void)state;
	open_rc(&f);
	f.hca.room = 2;
	for (uint64_t id = 0; id < 3; id++) {
		post_write(&f, id, true);
		post_recv(&f.e.end[0], 10 + id, 0, 64);
	}
	assert_int_equal(go(&f, URXE_QPS_ERR, 0), 0);
	assert_int_equal(f.qp->state, URXE_QPS_ERR);
	expect_none(&f.e.a->send_cq);
	expect_none(&f.e.a->recv_cq);
	hca_complete_send(f.qp, URXE_WC_SUCCESS);
	hca_complete_send(f.qp, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&f.e.a->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&f.e.a->send_cq, 1, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&f.e.a->send_cq, 2, URXE_WC_WR_FLUSH_ERR);
	hca_complete_recv(f.qp, URXE_WC_SUCCESS);
	hca_complete_recv(f.qp, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&f.e.a->recv_cq, 10, URXE_WC_SUCCESS);
	expect_wc(&f.e.a->recv_cq, 11, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&f.e.a->recv_cq, 12, URXE_WC_WR_FLUSH_ERR);
	/* Requests after that are flushed at once. */
	post_write(&f, 20, true);
	post_recv(&f.e.end[0], 21, 0, 64);
	expect_wc(&f.e.a->send_cq, 20, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&f.e.a->recv_cq, 21, URXE_WC_WR_FLUSH_ERR);
	/* Receives in the owner's ring, too. */
	f.e.end[0].queue.refill = refill_one;
	f.e.end[0].queue.arg = &f;
	urxe_offload_refill(f.e.end[0].rq);
	assert_false(f.e.end[0].queue.refill);
	assert_int_equal(f.e.a->recv_cq.tail - f.e.a->recv_cq.head, 1);
	close_fixture(&f);
}

static void test_hca_error_completion_moves_the_qp_to_error(void **state)
{
	struct fixture f;

	(void)state;
	open_rc(&f);
	for (uint64_t id = 0; id < 2; id++)
		post_write(&f, id, false);
	hca_complete_send(f.qp, URXE_WC_REM_ACCESS_ERR);
	expect_wc(&f.e.a->send_cq, 0, URXE_WC_REM_ACCESS_ERR);
	assert_int_equal(qp_state(&f.e.end[0]), URXE_QPS_ERR);
	expect_none(&f.e.a->send_cq);
	hca_complete_send(f.qp, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&f.e.a->send_cq, 1, URXE_WC_WR_FLUSH_ERR);
	close_fixture(&f);
}

/* An unreliable QP whose send failed is in SQE at some HCAs. */
static void test_hca_send_error_of_uc_leads_to_sqe(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_UC);
	struct fixture f;

	(void)state;
	open_connection(&f, &conn);
	f.hca.state = URXE_QPS_SQE;
	for (uint64_t id = 0; id < 2; id++)
		post_write(&f, id, true);
	hca_complete_send(f.qp, URXE_WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(&f.e.end[0]), URXE_QPS_SQE);
	hca_complete_send(f.qp, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&f.e.a->send_cq, 0, URXE_WC_LOC_PROT_ERR);
	expect_wc(&f.e.a->send_cq, 1, URXE_WC_WR_FLUSH_ERR);
	close_fixture(&f);
}

/* The program goes on before the HCA's flush of a later request is polled. */
static void test_flush_of_the_time_in_sqe_leaves_a_repaired_qp_in_rts(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_UC);
	struct fixture f;

	(void)state;
	open_connection(&f, &conn);
	for (uint64_t id = 0; id < 2; id++)
		post_write(&f, id, true);
	f.hca.state = URXE_QPS_SQE;
	hca_complete_send(f.qp, URXE_WC_LOC_PROT_ERR);
	expect_wc(&f.e.a->send_cq, 0, URXE_WC_LOC_PROT_ERR);
	assert_int_equal(go(&f, URXE_QPS_RTS, 0), 0);
	f.hca.state = URXE_QPS_RTS;
	post_write(&f, 2, true);
	hca_complete_send(f.qp, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&f.e.a->send_cq, 1, URXE_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(&f.e.end[0]), URXE_QPS_RTS);
	hca_complete_send(f.qp, URXE_WC_SUCCESS);
	expect_wc(&f.e.a->send_cq, 2, URXE_WC_SUCCESS);
	close_fixture(&f);
}

/* The HCA refuses a request for its contents, or cannot execute its opcode. */
static void test_refused_requests_fail_in_order(void **state)
{
	const struct urxe_send_wr bind = {.wr_id = 2, .opcode = URXE_WR_BIND_MW};
	struct fixture f;

	(void)state;
	for (int refused = 0; refused < 3; refused++) {
		open_rc(&f);
		post_write(&f, 1, true);
		if (refused == 0)
			assert_int_equal(
				urxe_post_malformed(f.e.end[0].qp, 2, URXE_WC_LOC_QP_OP_ERR), 0);
		else if (refused == 1)
			assert_int_equal(urxe_post_send(f.e.end[0].qp, &bind), 0);
		f.hca.refuse_send = refused == 2 ? -EINVAL : 0;
		post_write(&f, refused == 2 ? 2 : 3, true);
		assert_int_equal(f.qp->n_sends, 1);
		expect_none(&f.e.a->send_cq);
		hca_complete_send(f.qp, URXE_WC_SUCCESS);
		expect_wc(&f.e.a->send_cq, 1, URXE_WC_SUCCESS);
		expect_wc(&f.e.a->send_cq, 2,
			  refused == 1 ? URXE_WC_MW_BIND_ERR : URXE_WC_LOC_QP_OP_ERR);
		if (refused < 2)
			expect_wc(&f.e.a->send_cq, 3, URXE_WC_WR_FLUSH_ERR);
		assert_int_equal(f.qp->state, URXE_QPS_ERR);
		close_fixture(&f);
	}
}

/* An HCA that does not obey loses the QP, and the requests are flushed. */
static void test_hca_that_does_not_stop_loses_the_qp(void **state)
{
	struct fixture f;

	(void)state;
	open_rc(&f);
	post_write(&f, 1, true);
	post_recv(&f.e.end[0], 2, 0, 64);
	f.hca.refuse_modify = -EIO;
	f.hca.refuse_state = URXE_QPS_ERR;
	assert_int_equal(go(&f, URXE_QPS_ERR, 0), 0);
	assert_true(f.qp->destroyed);
	expect_wc(&f.e.a->send_cq, 1, URXE_WC_WR_FLUSH_ERR);
	expect_wc(&f.e.a->recv_cq, 2, URXE_WC_WR_FLUSH_ERR);
	close_fixture(&f);
}

static void test_reset_drops_late_hca_completions(void **state)
{
	struct urxe_wc late = {.qpn = HCA_QPN, .wr_id = 1};
	struct fixture f;

	(void)state;
	open_rc(&f);
	post_write(&f, 1, true);
	post_recv(&f.e.end[0], 2, 0, 64);
	assert_int_equal(go(&f, URXE_QPS_RESET, 0), 0);
	assert_int_equal(f.qp->state, URXE_QPS_RESET);
	assert_false(urxe_qp_offloaded(f.e.end[0].qp));
	assert_false(urxe_offload_all(f.e.a->dev));
	urxe_offload_complete(f.e.a->dev, &late, false);
	urxe_offload_complete(f.e.a->dev, &late, true);
	late.qpn = 0x999;
	urxe_offload_complete(f.e.a->dev, &late, true);
	expect_none(&f.e.a->send_cq);
	expect_none(&f.e.a->recv_cq);
	/* The QP is as new. */
	for (int to = URXE_QPS_INIT; to <= URXE_QPS_RTS; to++)
		assert_int_equal(go(&f, (uint8_t)to, conn_mask(URXE_QPT_RC, to)), 0);
	assert_true(urxe_qp_offloaded(f.e.end[0].qp));
	assert_true(urxe_offload_all(f.e.a->dev));
	post_write(&f, 3, true);
	/* More completions than requests. */
	hca_complete_send(f.qp, URXE_WC_SUCCESS);
	late.qpn = HCA_QPN;
	urxe_offload_complete(f.e.a->dev, &late, false);
	urxe_offload_complete(f.e.a->dev, &late, true);
	expect_wc(&f.e.a->send_cq, 3, URXE_WC_SUCCESS);
	expect_none(&f.e.a->send_cq);
	expect_none(&f.e.a->recv_cq);
	close_fixture(&f);
}

/* --- States. */

static void test_sqd_and_its_drained_event_come_from_the_hca(void **state)
{
	const struct urxe_qp_attr notify = {.state = URXE_QPS_SQD, .en_sqd_async_notify = true};
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	struct fixture f;

	(void)state;
	open_rc(&f);
	post_write(&f, 1, true);
	assert_int_equal(
		urxe_qp_modify(f.e.end[0].qp, 0, &notify, M(STATE) | M(EN_SQD_ASYNC_NOTIFY)), 0);
	assert_int_equal(f.qp->modified, M(STATE) | M(EN_SQD_ASYNC_NOTIFY));
	assert_int_equal(f.e.a->async[URXE_ASYNC_SQ_DRAINED], 0);
	post_write(&f, 2, true);
	assert_int_equal(f.qp->n_sends, 1);
	f.hca.state = URXE_QPS_SQD;
	urxe_offload_query(f.e.end[0].qp, &attr, &init);
	assert_int_equal(attr.state, URXE_QPS_SQD);
	assert_true(attr.sq_draining);
	assert_int_equal(attr.sq_psn, 0x555555);
	assert_int_equal(attr.rq_psn, 0xaaaaaa);
	urxe_offload_qp_event(f.e.a->dev, HCA_QPN, URXE_ASYNC_SQ_DRAINED);
	assert_int_equal(f.e.a->async[URXE_ASYNC_SQ_DRAINED], 1);
	assert_int_equal(go(&f, URXE_QPS_RTS, 0), 0);
	urxe_qp_execute(f.e.end[0].qp, 0);
	assert_int_equal(f.qp->n_sends, 2);
	close_fixture(&f);
}

/* The HCA may tell it in no other way, as after a WRITE of the peer with a bad key. */
static void test_query_tells_that_the_hca_has_failed(void **state)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	struct fixture f;

	(void)state;
	open_rc(&f);
	f.hca.state = URXE_QPS_RTS;
	urxe_offload_query(f.e.end[0].qp, &attr, &init);
	assert_int_equal(attr.state, URXE_QPS_RTS);
	f.hca.state = URXE_QPS_ERR;
	urxe_offload_query(f.e.end[0].qp, &attr, &init);
	assert_int_equal(attr.state, URXE_QPS_ERR);
	assert_int_equal(attr.cur_state, URXE_QPS_ERR);
	close_fixture(&f);
}

static void test_hca_qp_events_reach_the_owner(void **state)
{
	struct fixture f;

	(void)state;
	open_rc(&f);
	urxe_offload_qp_event(f.e.a->dev, HCA_QPN, URXE_ASYNC_COMM_EST);
	assert_int_equal(f.e.a->async[URXE_ASYNC_COMM_EST], 1);
	assert_int_equal(qp_state(&f.e.end[0]), URXE_QPS_RTS);
	urxe_offload_qp_event(f.e.a->dev, HCA_QPN, URXE_ASYNC_QP_ACCESS_ERR);
	assert_int_equal(f.e.a->async[URXE_ASYNC_QP_ACCESS_ERR], 1);
	assert_int_equal(qp_state(&f.e.end[0]), URXE_QPS_ERR);
	urxe_offload_qp_event(f.e.a->dev, 0x999, URXE_ASYNC_QP_FATAL);
	assert_int_equal(f.e.a->async[URXE_ASYNC_QP_FATAL], 0);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_qpn_and_rkey_come_from_the_hca),
		cmocka_unit_test(test_hca_numbers_in_use_stay_the_engines),
		cmocka_unit_test(test_qp_refused_by_the_hca_runs_in_software),
		cmocka_unit_test(test_hca_requests_complete_in_order),
		cmocka_unit_test(test_hca_gets_inline_data_and_atomics),
		cmocka_unit_test(test_a_full_hca_gets_the_rest_later),
		cmocka_unit_test(test_receives_precede_rtr),
		cmocka_unit_test(test_refill_gives_receives_to_the_hca),
		cmocka_unit_test(test_the_hca_refuses_the_connection),
		cmocka_unit_test(test_would_take_predicts_where_an_address_is_used),
		cmocka_unit_test(test_engine_runs_connections_under_hca_numbers),
		cmocka_unit_test(test_frames_are_dropped),
		cmocka_unit_test(test_completions_precede_flushes),
		cmocka_unit_test(test_hca_error_completion_moves_the_qp_to_error),
		cmocka_unit_test(test_hca_send_error_of_uc_leads_to_sqe),
		cmocka_unit_test(test_flush_of_the_time_in_sqe_leaves_a_repaired_qp_in_rts),
		cmocka_unit_test(test_refused_requests_fail_in_order),
		cmocka_unit_test(test_hca_that_does_not_stop_loses_the_qp),
		cmocka_unit_test(test_reset_drops_late_hca_completions),
		cmocka_unit_test(test_sqd_and_its_drained_event_come_from_the_hca),
		cmocka_unit_test(test_query_tells_that_the_hca_has_failed),
		cmocka_unit_test(test_hca_qp_events_reach_the_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
