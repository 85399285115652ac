/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Work requests that bind and invalidate: local ones and SENDs with invalidate, their order among
 * other requests, and the services that have them.
 */
#include "window.h"

/* --- The owner invalidates. */

static void test_local_invalidate_ends_access(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	bind_well(&b, W);
	assert_int_equal(write_at_window(&b), URXE_WC_SUCCESS);
	post_inv(b.e.end[1].qp, 2, urxe_mw_key(b.mw));
	pair_settle(b.e.pair);
	assert_int_equal(expect_wc(&b.e.b->send_cq, 2, URXE_WC_SUCCESS).opcode, URXE_WC_LOCAL_INV);
	bind_well(&b, W); /* the window is free: it can be bound again, by another key */
	assert_int_equal(write_at_window(&b), URXE_WC_SUCCESS);
	post_inv(b.e.end[1].qp, 3, urxe_mw_key(b.mw));
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 3, URXE_WC_SUCCESS);
	assert_int_equal(write_at_window(&b), URXE_WC_REM_ACCESS_ERR);
	assert_int_equal(urxe_mr_dereg(b.mr), 0);
	engine_close(&b.e);
}

enum victim { TYPE_1_KEY, FREE_KEY, OLD_TAG, NO_KEY, REGION_KEY, OTHERS_KEY, VICTIMS };

/* A key that this QP must not invalidate. */
static uint32_t victim_key(struct bench *b, enum victim victim, struct endpoint *second)
{
	struct urxe_mw_bind bind;

	if (victim == REGION_KEY)
		return urxe_mr_key(b->mr);
	if (victim == NO_KEY)
		return urxe_mw_key(b->mw) ^ 0x100000;
	if (victim == TYPE_1_KEY)
		b->mw = alloc_mw(b->e.b, TYPE_1, NODE_PD);
	if (victim == FREE_KEY)
		return urxe_mw_key(b->mw);
	bind = bind_to(b, W);
	post_bind(victim == OTHERS_KEY ? second[1].qp : b->e.end[1].qp, 1, &bind);
	pair_settle(b->e.pair);
	expect_wc(&b->e.b->send_cq, 1, URXE_WC_SUCCESS);
	return victim == OLD_TAG ? bind.mw_key : urxe_mw_key(b->mw);
}

static void test_local_invalidate_of_other_keys_fails(void **state)
{
	struct endpoint second[2];
	struct bench b;
	bool bound;

	(void)state;
	for (enum victim victim = 0; victim < VICTIMS; victim++) {
		open_bench(&b, URXE_QPT_RC, TYPE_2);
		open_second(&b.e, second);
		post_inv(b.e.end[1].qp, 9, victim_key(&b, victim, second));
		bound = victim == TYPE_1_KEY || victim == OLD_TAG || victim == OTHERS_KEY;
		pair_settle(b.e.pair);
		expect_wc(&b.e.b->send_cq, 9, URXE_WC_LOC_QP_OP_ERR);
		assert_int_equal(qp_state(&b.e.end[1]), URXE_QPS_ERR);
		assert_int_equal(region_is_bound(&b), bound);
		engine_close(&b.e);
	}
}

/* --- SEND with invalidate. */

/* With a message of one packet, and of several. */
static void test_send_with_invalidate_ends_access(void **state)
{
	static const uint32_t lengths[] = {0, 10, 1024, 1025, 5000};
	struct urxe_wc wc;
	struct bench b;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct urxe_seg seg;
		struct urxe_send_wr wr = {.wr_id = 4, .opcode = URXE_WR_SEND_INV, .n_segs = 1};

		open_bench(&b, URXE_QPT_RC, TYPE_2);
		bind_well(&b, W);
		post_recv(&b.e.end[1], 8, 20000, 6000);
		rand_fill(&(struct rand){i}, b.e.a->mem, 6000);
		seg = node_seg(b.e.a, 0, lengths[i]);
		wr.segs = &seg;
		wr.invalidate_key = urxe_mw_key(b.mw);
		assert_int_equal(urxe_post_send(b.e.end[0].qp, &wr), 0);
		pair_settle(b.e.pair);
		assert_int_equal(expect_wc(&b.e.a->send_cq, 4, URXE_WC_SUCCESS).opcode,
				 URXE_WC_SEND);
		wc = expect_wc(&b.e.b->recv_cq, 8, URXE_WC_SUCCESS);
		assert_int_equal(wc.opcode, URXE_WC_RECV);
		assert_int_equal(wc.flags, URXE_WC_WITH_INV);
		assert_int_equal(wc.invalidated_key, wr.invalidate_key);
		assert_int_equal(wc.byte_len, lengths[i]);
		assert_memory_equal(b.e.b->mem + 20000, b.e.a->mem, lengths[i]);
		assert_int_equal(write_at_window(&b), URXE_WC_REM_ACCESS_ERR);
		assert_false(region_is_bound(&b));
		engine_close(&b.e);
	}
}

/*
 * The peer must not invalidate these keys: the receiver's QP fails, and sends no NAK (IBA 9.9.6.3,
 * class J).
 */
static void test_send_invalidate_of_other_keys_fails_the_receiver(void **state)
{
	struct endpoint second[2];
	struct bench b;
	uint64_t sent;
	bool bound;

	(void)state;
	for (enum victim victim = 0; victim < VICTIMS; victim++) {
		uint32_t key;

		open_bench(&b, URXE_QPT_RC, TYPE_2);
		open_second(&b.e, second);
		key = victim_key(&b, victim, second);
		bound = victim == TYPE_1_KEY || victim == OLD_TAG || victim == OTHERS_KEY;
		post_recv(&b.e.end[1], 8, 20000, 6000);
		sent = events(b.e.b, URXE_EVENT_TX_PACKETS);
		assert_int_equal(try_key_wr(b.e.end[0].qp, 4, URXE_WR_SEND_INV, key), 0);
		pair_settle(b.e.pair);
		expect_wc(&b.e.a->send_cq, 4, URXE_WC_RETRY_EXC_ERR);
		assert_int_equal(events(b.e.b, URXE_EVENT_TX_PACKETS), sent);
		assert_int_equal(drops(b.e.b, URXE_DROP_BAD_INVALIDATE), 1);
		expect_wc(&b.e.b->recv_cq, 8, URXE_WC_LOC_ACCESS_ERR);
		expect_none(&b.e.b->recv_cq);
		assert_int_equal(qp_state(&b.e.end[1]), URXE_QPS_ERR);
		assert_int_equal(b.e.b->async[URXE_ASYNC_QP_ACCESS_ERR], 1);
		assert_int_equal(region_is_bound(&b), bound);
		engine_close(&b.e);
	}
}

/* Requests before it arrive in the same burst, and get their answers. */
static void test_requests_before_a_bad_send_invalidate_are_answered(void **state)
{
	static const uint32_t before[] = {URXE_WR_SEND, URXE_WR_RDMA_READ, URXE_WR_FETCH_ADD,
					  URXE_WR_RDMA_WRITE};
	struct bench b;

	(void)state;
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		open_bench(&b, URXE_QPT_RC, TYPE_2);
		post_recv(&b.e.end[1], 7, 20000, 64);
		post_recv(&b.e.end[1], 8, 20064, 64);
		post_send(&b.e, 0,
			  &(struct post){.wr_id = 3,
					 .opcode = before[i],
					 .flags = URXE_SEND_SIGNALED,
					 .length = 8,
					 .rkey = b.e.b->key});
		assert_int_equal(try_key_wr(b.e.end[0].qp, 4, URXE_WR_SEND_INV, urxe_mr_key(b.mr)),
				 0);
		pair_settle(b.e.pair);
		expect_wc(&b.e.a->send_cq, 3, URXE_WC_SUCCESS);
		expect_wc(&b.e.a->send_cq, 4, URXE_WC_RETRY_EXC_ERR);
		assert_int_equal(qp_state(&b.e.end[1]), URXE_QPS_ERR);
		engine_close(&b.e);
	}
}

/* The acknowledgement is lost: the repetition invalidates nothing, and causes no error. */
static void test_repeated_send_invalidate_has_no_effect(void **state)
{
	struct link_loss loss = {.first = 0};
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	bind_well(&b, W);
	post_recv(&b.e.end[1], 8, 20000, 6000);
	b.e.pair->link[1].filter = link_lose_one;
	b.e.pair->link[1].filter_arg = &loss;
	assert_int_equal(try_key_wr(b.e.end[0].qp, 4, URXE_WR_SEND_INV, urxe_mw_key(b.mw)), 0);
	pair_settle(b.e.pair);
	expect_wc(&b.e.a->send_cq, 4, URXE_WC_SUCCESS);
	expect_wc(&b.e.b->recv_cq, 8, URXE_WC_SUCCESS);
	assert_int_equal(events(b.e.b, URXE_EVENT_DUP_REQUEST), 1);
	engine_close(&b.e);
}

/* Keeps a copy of the first frame. */
struct copy {
	uint8_t data[256];
	uint32_t len;
};

static bool keep(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct copy *copy = arg;

	(void)now;
	if (!copy->len && len <= sizeof(copy->data)) {
		memcpy(copy->data, data, len);
		copy->len = len;
	}
	return true;
}

/*
 * The network duplicates a READ whose key has been invalidated since: the responder sends no answer
 * and no error.
 */
static void test_duplicate_read_of_an_invalidated_rkey_is_dropped(void **state)
{
	struct copy copy = {.len = 0};
	struct bench b;
	uint32_t key;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	bind_well(&b, R);
	key = urxe_mw_key(b.mw);
	b.e.pair->link[0].filter = keep;
	b.e.pair->link[0].filter_arg = &copy;
	assert_int_equal(outcome(&b.e, URXE_WR_RDMA_READ, b.e.b->iova + REGION + PART, 8, key),
			 URXE_WC_SUCCESS);
	post_inv(b.e.end[1].qp, 2, key);
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 2, URXE_WC_SUCCESS);
	link_send(&b.e.pair->link[0], b.e.pair->now, copy.data, copy.len);
	pair_settle(b.e.pair);
	assert_int_equal(drops(b.e.b, URXE_DROP_DUPLICATE), 1);
	assert_int_equal(qp_state(&b.e.end[1]), URXE_QPS_RTS);
	assert_int_equal(b.e.b->async[URXE_ASYNC_QP_ACCESS_ERR], 0);
	/* The connection still works. */
	assert_int_equal(outcome(&b.e, URXE_WR_RDMA_READ, b.e.b->iova, 8, b.e.b->key),
			 URXE_WC_SUCCESS);
	engine_close(&b.e);
}

/* --- Order among send requests. */

static void post_write(struct bench *b, uint64_t wr_id, uint32_t flags)
{
	post_send(&b->e, 1,
		  &(struct post){.wr_id = wr_id, .opcode = WRITE, .flags = flags, .length = 100});
}

/* Completions keep the order of posting, and a local request waits for the requests before it. */
static void test_completions_keep_the_order(void **state)
{
	struct urxe_mw_bind bind;
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	bind = bind_to(&b, W);
	post_write(&b, 1, 0);
	post_bind(b.e.end[1].qp, 2, &bind);
	post_inv(b.e.end[1].qp, 3, (bind.mw_key & ~0xffu) | bind.tag);
	post_write(&b, 4, 0);
	pair_step(b.e.pair);
	expect_none(&b.e.b->send_cq);
	pair_settle(b.e.pair);
	for (uint64_t id = 1; id <= 4; id++)
		expect_wc(&b.e.b->send_cq, id, URXE_WC_SUCCESS);
	engine_close(&b.e);
}

/*
 * Unsignaled requests before a signaled local request: the last of them requests an
 * acknowledgement.
 */
static void test_unsignaled_requests_before_a_local_one_are_acknowledged(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_send_wr wr = {
		.wr_id = 2, .opcode = URXE_WR_BIND_MW, .flags = URXE_SEND_SIGNALED};
	struct bench b;

	(void)state;
	conn.sq_sig_all = false;
	engine_open(&b.e, &conn);
	b.mr = node_reg(b.e.b, NODE_PD, LW | BIND, REGION, LENGTH);
	b.mw = alloc_mw(b.e.b, TYPE_2, NODE_PD);
	wr.bind = bind_to(&b, W);
	post_write(&b, 1, 0);
	assert_int_equal(urxe_post_send(b.e.end[1].qp, &wr), 0);
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 2, URXE_WC_SUCCESS);
	expect_none(&b.e.b->send_cq);
	assert_int_equal(events(b.e.b, URXE_EVENT_TIMEOUT), 0);
	engine_close(&b.e);
}

/* A retransmission skips a local request that was executed: a second binding would fail. */
static void test_retransmission_skips_executed_local_requests(void **state)
{
	struct urxe_mw_bind bind;
	struct link_loss loss;
	struct bench b;

	(void)state;
	for (loss.first = 0; loss.first < 3; loss.first++) {
		loss.seen = 0;
		open_bench(&b, URXE_QPT_RC, TYPE_2);
		bind = bind_to(&b, W);
		b.e.pair->link[1].filter = link_lose_one;
		b.e.pair->link[1].filter_arg = &loss;
		post_write(&b, 1, 0);
		post_bind(b.e.end[1].qp, 2, &bind);
		post_write(&b, 3, 0);
		pair_settle(b.e.pair);
		for (uint64_t id = 1; id <= 3; id++)
			expect_wc(&b.e.b->send_cq, id, URXE_WC_SUCCESS);
		assert_int_equal(write_at_window(&b), URXE_WC_SUCCESS);
		engine_close(&b.e);
	}
}

/* An earlier request fails: the local request behind it is flushed without execution. */
static void test_failed_request_flushes_local_requests(void **state)
{
	struct urxe_mw_bind bind;
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	bind = bind_to(&b, W);
	post_send(&b.e, 1, &(struct post){.wr_id = 1, .opcode = WRITE, .length = 8, .lkey = 1});
	post_bind(b.e.end[1].qp, 2, &bind);
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 1, URXE_WC_LOC_PROT_ERR);
	expect_wc(&b.e.b->send_cq, 2, URXE_WC_WR_FLUSH_ERR);
	assert_false(region_is_bound(&b));
	engine_close(&b.e);
}

/*
 * A bad binding behind good requests: the good ones succeed first, requests behind it are flushed.
 */
static void test_bad_bind_fails_behind_earlier_requests(void **state)
{
	struct urxe_mw_bind bind;
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	bind = bind_to(&b, BIND);
	post_write(&b, 1, 0);
	post_bind(b.e.end[1].qp, 2, &bind);
	post_write(&b, 3, 0);
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&b.e.b->send_cq, 2, URXE_WC_MW_BIND_ERR);
	expect_wc(&b.e.b->send_cq, 3, URXE_WC_WR_FLUSH_ERR);
	engine_close(&b.e);
}

/*
 * With a fence a binding waits for outstanding READs, without a fence it does not (IBA 10.8.3.3).
 */
static void test_fenced_bind_waits_for_reads(void **state)
{
	struct bench b;

	(void)state;
	for (int fence = 0; fence < 2; fence++) {
		struct urxe_send_wr wr = {.wr_id = 2, .opcode = URXE_WR_BIND_MW};

		open_bench(&b, URXE_QPT_RC, TYPE_2);
		wr.bind = bind_to(&b, W);
		wr.flags = fence ? URXE_SEND_FENCE : 0;
		post_send(&b.e, 1, &(struct post){.wr_id = 1, .opcode = READ, .length = 100});
		assert_int_equal(urxe_post_send(b.e.end[1].qp, &wr), 0);
		pair_step(b.e.pair);
		assert_int_equal(urxe_mw_key(b.mw) == wr.bind.mw_key, fence);
		pair_settle(b.e.pair);
		expect_wc(&b.e.b->send_cq, 1, URXE_WC_SUCCESS);
		expect_wc(&b.e.b->send_cq, 2, URXE_WC_SUCCESS);
		engine_close(&b.e);
	}
}

static void to_state(struct bench *b, uint8_t state)
{
	const struct urxe_qp_attr attr = {.state = state};

	assert_int_equal(urxe_qp_modify(b->e.end[1].qp, b->e.pair->now, &attr, URXE_QP_STATE), 0);
}

/* In SQD no new request starts, local requests neither (IBA 10.3.1.4). */
static void test_sqd_starts_no_local_request(void **state)
{
	struct urxe_mw_bind bind;
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	bind = bind_to(&b, W);
	to_state(&b, URXE_QPS_SQD);
	post_bind(b.e.end[1].qp, 1, &bind);
	pair_settle(b.e.pair);
	assert_int_equal(urxe_mw_key(b.mw), bind.mw_key);
	to_state(&b, URXE_QPS_RTS);
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_not_equal(urxe_mw_key(b.mw), bind.mw_key);
	engine_close(&b.e);
}

/* The CQ has no room for the completion: the QP ends, and no request behind it is executed. */
static void test_full_cq_ends_the_qp(void **state)
{
	struct urxe_mw_bind bind;
	struct bench b;
	uint32_t key;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	bind = bind_to(&b, W);
	key = (bind.mw_key & ~0xffu) | bind.tag;
	post_bind(b.e.end[1].qp, 1, &bind);
	post_inv(b.e.end[1].qp, 2, key);
	b.e.b->send_cq.depth = 0;
	pair_settle(b.e.pair);
	assert_int_equal(b.e.b->async[URXE_ASYNC_CQ_ERR], 1);
	assert_int_equal(qp_state(&b.e.end[1]), URXE_QPS_ERR);
	assert_true(region_is_bound(&b));
	engine_close(&b.e);
}

/* After RESET a type 2 window still belongs to its QP. */
static void test_window_keeps_its_qp_over_reset(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	bind_well(&b, W);
	for (unsigned side = 0; side < 2; side++) {
		const struct urxe_qp_attr attr = {.state = URXE_QPS_RESET};

		assert_int_equal(
			urxe_qp_modify(b.e.end[side].qp, b.e.pair->now, &attr, URXE_QP_STATE), 0);
	}
	assert_true(region_is_bound(&b));
	for (unsigned side = 0; side < 2; side++)
		conn_bring_up(b.e.pair, &conn, side, &b.e.end[side], &b.e.end[!side]);
	assert_int_equal(write_at_window(&b), URXE_WC_SUCCESS);
	engine_close(&b.e);
}

/* --- Other services. */

/* UC can bind and invalidate, too; a failure does not affect its receive side. */
static void test_failed_bind_on_uc_leaves_receiving_intact(void **state)
{
	struct urxe_mw_bind bind;
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_UC, TYPE_2);
	bind_well(&b, W);
	assert_int_equal(write_at_window(&b), URXE_WC_SUCCESS);
	post_inv(b.e.end[1].qp, 2, urxe_mw_key(b.mw));
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 2, URXE_WC_SUCCESS);
	bind = bind_to(&b, BIND);
	post_bind(b.e.end[1].qp, 3, &bind);
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 3, URXE_WC_MW_BIND_ERR);
	assert_int_equal(qp_state(&b.e.end[1]), URXE_QPS_SQE);
	assert_int_equal(write_at_window(&b), URXE_WC_SUCCESS); /* UC sends no NAK */
	assert_int_equal(drops(b.e.b, URXE_DROP_BAD_REQUEST), 1);
	engine_close(&b.e);
}

static void test_malformed_window_requests_are_refused_at_posting(void **state)
{
	struct bench b;
	struct urxe_mw_bind bind;
	struct urxe_seg seg;
	struct urxe_send_wr wr = {.n_segs = 1, .segs = &seg};

	(void)state;
	open_bench(&b, URXE_QPT_UD, TYPE_2);
	bind = bind_to(&b, W);
	assert_int_equal(try_bind(b.e.end[1].qp, 1, &bind), -EINVAL);
	assert_int_equal(try_key_wr(b.e.end[1].qp, 1, URXE_WR_LOCAL_INV, 5), -EINVAL);
	assert_int_equal(try_key_wr(b.e.end[1].qp, 1, URXE_WR_SEND_INV, 5), -EINVAL);
	engine_close(&b.e);
	/* IBA table 38 has no SEND with invalidate for UC. */
	open_bench(&b, URXE_QPT_UC, TYPE_2);
	assert_int_equal(try_key_wr(b.e.end[1].qp, 1, URXE_WR_SEND_INV, 5), -EINVAL);
	/* They carry nothing. */
	seg = node_seg(b.e.b, 0, 8);
	wr.opcode = URXE_WR_BIND_MW;
	assert_int_equal(urxe_post_send(b.e.end[1].qp, &wr), -EINVAL);
	wr.opcode = URXE_WR_LOCAL_INV;
	assert_int_equal(urxe_post_send(b.e.end[1].qp, &wr), -EINVAL);
	wr.n_segs = 0;
	wr.flags = URXE_SEND_INLINE;
	wr.inline_data = &seg;
	wr.inline_len = 8;
	assert_int_equal(urxe_post_send(b.e.end[1].qp, &wr), -EINVAL);
	engine_close(&b.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_local_invalidate_ends_access),
		cmocka_unit_test(test_local_invalidate_of_other_keys_fails),
		cmocka_unit_test(test_send_with_invalidate_ends_access),
		cmocka_unit_test(test_send_invalidate_of_other_keys_fails_the_receiver),
		cmocka_unit_test(test_requests_before_a_bad_send_invalidate_are_answered),
		cmocka_unit_test(test_repeated_send_invalidate_has_no_effect),
		cmocka_unit_test(test_duplicate_read_of_an_invalidated_rkey_is_dropped),
		cmocka_unit_test(test_completions_keep_the_order),
		cmocka_unit_test(test_unsignaled_requests_before_a_local_one_are_acknowledged),
		cmocka_unit_test(test_retransmission_skips_executed_local_requests),
		cmocka_unit_test(test_failed_request_flushes_local_requests),
		cmocka_unit_test(test_bad_bind_fails_behind_earlier_requests),
		cmocka_unit_test(test_fenced_bind_waits_for_reads),
		cmocka_unit_test(test_sqd_starts_no_local_request),
		cmocka_unit_test(test_full_cq_ends_the_qp),
		cmocka_unit_test(test_window_keeps_its_qp_over_reset),
		cmocka_unit_test(test_failed_bind_on_uc_leaves_receiving_intact),
		cmocka_unit_test(test_malformed_window_requests_are_refused_at_posting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
