/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fast registration: REG_MR, LOCAL_INV and SEND with Invalidate of a region of pages; holes. */
#include "window.h"

#define PAGE_SHIFT 8u
#define PAGE       (1u << PAGE_SHIFT)
#define PAGES      3u
#define FIRST      8192u /* offset of the first page in node b's memory */
#define BASE       UINT64_C(0x7000000000000)

struct fast {
	struct engine e;
	struct urxe_fast_mr *mr;
};

static void open_fast(struct fast *f)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	engine_open(&f->e, &conn);
	assert_int_equal(urxe_fast_mr_alloc(f->e.b->dev, NODE_PD, PAGES, &f->mr), 0);
}

static struct urxe_fast_reg request_for(const struct fast *f, uint8_t tag)
{
	return (struct urxe_fast_reg){
		.key = (urxe_fast_mr_key(f->mr) & ~0xffu) | tag,
		.access = LW | W | R,
		.iova = BASE,
		.length = PAGES * PAGE,
		.page_list = FIRST,
		.n_pages = PAGES,
		.page_shift = PAGE_SHIFT,
	};
}

static void post_reg(struct fast *f, uint64_t wr_id, const struct urxe_fast_reg *request)
{
	const struct urxe_send_wr wr = {
		.wr_id = wr_id, .opcode = URXE_WR_REG_MR, .fast_reg = *request};

	assert_int_equal(urxe_post_send(f->e.end[1].qp, &wr), 0);
}

static uint32_t reg_outcome(struct fast *f, const struct urxe_fast_reg *request)
{
	struct urxe_wc wc;

	post_reg(f, 7, request);
	pair_settle(f->e.pair);
	assert_true(node_poll(&f->e.b->send_cq, &wc));
	assert_int_equal(wc.wr_id, 7);
	if (wc.status == URXE_WC_SUCCESS)
		assert_int_equal(wc.opcode, URXE_WC_REG_MR);
	return wc.status;
}

static void test_pages_are_written(void **state)
{
	(void)state;
	struct fast f;
	struct urxe_fast_reg request;

	open_fast(&f);
	request = request_for(&f, 0x11);
	memset(f.e.a->mem, 0xab, PAGES * PAGE);
	memset(f.e.b->mem + FIRST, 0, 2 * PAGES * PAGE);
	assert_int_equal(reg_outcome(&f, &request), URXE_WC_SUCCESS);
	assert_int_equal(urxe_fast_mr_key(f.mr), request.key);
	assert_int_equal(outcome(&f.e, WRITE, BASE, PAGES * PAGE, request.key), URXE_WC_SUCCESS);
	for (uint32_t i = 0; i < 2 * PAGES; i++)
		for (uint32_t j = 0; j < PAGE; j++)
			assert_int_equal(f.e.b->mem[FIRST + i * PAGE + j], i % 2 ? 0 : 0xab);
	engine_close(&f.e);
}

static void test_range_ends_with_the_region(void **state)
{
	(void)state;
	struct fast f;
	struct urxe_fast_reg request;

	open_fast(&f);
	request = request_for(&f, 1);
	assert_int_equal(reg_outcome(&f, &request), URXE_WC_SUCCESS);
	assert_int_equal(outcome(&f.e, WRITE, BASE + 1, PAGES * PAGE, request.key),
			 URXE_WC_REM_ACCESS_ERR);
	engine_close(&f.e);
}

static void test_rkey_grants_nothing_before_registration(void **state)
{
	(void)state;
	struct fast f;

	open_fast(&f);
	assert_null(urxe_fast_mr_region(f.mr));
	assert_int_equal(outcome(&f.e, WRITE, BASE, 8, urxe_fast_mr_key(f.mr)),
			 URXE_WC_REM_ACCESS_ERR);
	engine_close(&f.e);
}

static void test_invalidate_and_reregister_in_one_queue_succeed(void **state)
{
	(void)state;
	struct fast f;
	struct urxe_fast_reg request, again;

	open_fast(&f);
	request = request_for(&f, 1);
	again = request_for(&f, 2);
	post_reg(&f, 1, &request);
	post_inv(f.e.end[1].qp, 2, request.key);
	post_reg(&f, 3, &again);
	pair_settle(f.e.pair);
	assert_int_equal(expect_wc(&f.e.b->send_cq, 1, 0).opcode, URXE_WC_REG_MR);
	assert_int_equal(expect_wc(&f.e.b->send_cq, 2, 0).opcode, URXE_WC_LOCAL_INV);
	assert_int_equal(expect_wc(&f.e.b->send_cq, 3, 0).opcode, URXE_WC_REG_MR);
	assert_int_equal(outcome(&f.e, WRITE, BASE, 8, again.key), URXE_WC_SUCCESS);
	assert_int_equal(outcome(&f.e, WRITE, BASE, 8, request.key), URXE_WC_REM_ACCESS_ERR);
	engine_close(&f.e);
}

/* A request of node b whose memory is the start of the region. */
static void post_from_region(struct fast *f, uint64_t wr_id, uint32_t opcode)
{
	struct urxe_seg seg = {BASE, PAGE, urxe_fast_mr_key(f->mr)};
	const struct urxe_send_wr wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.segs = &seg,
		.n_segs = 1,
		.remote_addr = f->e.a->iova,
		.rkey = f->e.a->key,
	};

	assert_int_equal(urxe_post_send(f->e.end[1].qp, &wr), 0);
}

/* The region serves requests before the invalidation until they complete, also if their first
 * packet is lost. */
static void test_invalidation_waits_for_earlier_requests(void **state)
{
	(void)state;
	static const uint32_t opcodes[] = {READ, WRITE, URXE_WR_SEND};
	struct urxe_fast_reg request, again;
	struct fast f;

	for (unsigned i = 0; i < 2 * sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		struct link_loss loss = {.first = 0};

		open_fast(&f);
		request = request_for(&f, 1);
		again = request_for(&f, 2);
		post_recv(&f.e.end[0], 9, 0, PAGE);
		assert_int_equal(reg_outcome(&f, &request), URXE_WC_SUCCESS);
		if (i % 2) {
			f.e.pair->link[1].filter = link_lose_one;
			f.e.pair->link[1].filter_arg = &loss;
		}
		post_from_region(&f, 1, opcodes[i / 2]);
		post_inv(f.e.end[1].qp, 2, request.key);
		post_reg(&f, 3, &again);
		pair_settle(f.e.pair);
		for (uint64_t wr_id = 1; wr_id <= 3; wr_id++)
			expect_wc(&f.e.b->send_cq, wr_id, URXE_WC_SUCCESS);
		assert_int_equal(loss.seen != 0, i % 2);
		assert_int_equal(urxe_fast_mr_key(f.mr), again.key);
		engine_close(&f.e);
	}
}

static void test_send_with_invalidate_ends_a_fast_mr(void **state)
{
	(void)state;
	struct fast f;
	struct urxe_fast_reg request;
	struct urxe_send_wr wr = {.wr_id = 5, .opcode = URXE_WR_SEND_INV};
	struct urxe_wc wc;

	open_fast(&f);
	request = request_for(&f, 1);
	assert_int_equal(reg_outcome(&f, &request), URXE_WC_SUCCESS);
	post_recv(&f.e.end[1], 9, 0, 64);
	wr.invalidate_key = request.key;
	assert_int_equal(urxe_post_send(f.e.end[0].qp, &wr), 0);
	pair_settle(f.e.pair);
	expect_wc(&f.e.a->send_cq, 5, URXE_WC_SUCCESS);
	wc = expect_wc(&f.e.b->recv_cq, 9, URXE_WC_SUCCESS);
	assert_int_equal(wc.invalidated_key, request.key);
	assert_null(urxe_fast_mr_region(f.mr));
	assert_int_equal(outcome(&f.e, WRITE, BASE, 8, request.key), URXE_WC_REM_ACCESS_ERR);
	engine_close(&f.e);
}

/* Each row violates one rule; the request ends in an error, and the key grants nothing. */
static void test_bad_fast_registration_fails_and_grants_nothing(void **state)
{
	(void)state;
	enum {
		REGISTERED,
		NO_OBJECT,
		BAD_LIST,
		MORE_PAGES,
		TOO_LONG,
		NO_LENGTH,
		WRAPS,
		NO_LOCAL_WRITE,
		ROWS
	};

	for (int row = 0; row < ROWS; row++) {
		struct fast f;
		struct urxe_fast_reg request;

		open_fast(&f);
		request = request_for(&f, 1);
		switch (row) {
		case REGISTERED: assert_int_equal(reg_outcome(&f, &request), 0); break;
		case NO_OBJECT: request.key ^= 0x80000000; break;
		case BAD_LIST: request.n_pages = NODE_PAGES + 1; break;
		case MORE_PAGES: request.length = ++request.n_pages * PAGE; break;
		case TOO_LONG: request.length++; break;
		case NO_LENGTH: request.length = request.n_pages = 0; break;
		case WRAPS: request.iova = UINT64_MAX - 8; break;
		case NO_LOCAL_WRITE: request.access = W; break;
		default: break;
		}
		assert_int_equal(reg_outcome(&f, &request), URXE_WC_LOC_QP_OP_ERR);
		assert_int_equal(!!urxe_fast_mr_region(f.mr), row == REGISTERED);
		engine_close(&f.e);
	}
}

static void test_fast_registration_of_another_pd_fails(void **state)
{
	(void)state;
	struct fast f;
	struct urxe_fast_mr *other;
	struct urxe_fast_reg request;

	open_fast(&f);
	assert_int_equal(urxe_fast_mr_alloc(f.e.b->dev, NODE_PD + 1, PAGES, &other), 0);
	request = request_for(&f, 1);
	request.key = urxe_fast_mr_key(other);
	assert_int_equal(reg_outcome(&f, &request), URXE_WC_LOC_QP_OP_ERR);
	assert_null(urxe_fast_mr_region(other));
	engine_close(&f.e);
}

static void test_normal_region_cannot_be_invalidated(void **state)
{
	(void)state;
	struct fast f;

	open_fast(&f);
	post_inv(f.e.end[1].qp, 1, f.e.b->key);
	pair_settle(f.e.pair);
	expect_wc(&f.e.b->send_cq, 1, URXE_WC_LOC_QP_OP_ERR);
	engine_close(&f.e);
}

static void test_keys_are_owned(void **state)
{
	(void)state;
	struct fast f;
	struct urxe_extent extent;
	struct urxe_mr_attr attr = {.pd = NODE_PD, .extents = &extent, .n_extents = 1};
	struct urxe_mr *mr;

	open_fast(&f);
	extent = (struct urxe_extent){f.e.b->mem, attr.length = 8};
	attr.key = urxe_fast_mr_key(f.mr) ^ 0x55;
	assert_int_equal(urxe_mr_reg(f.e.b->dev, &attr, &mr), -EEXIST);
	assert_int_equal(urxe_fast_mr_free(f.mr), 0);
	assert_int_equal(urxe_mr_reg(f.e.b->dev, &attr, &mr), 0);
	engine_close(&f.e);
}

static void test_free_ends_the_rights(void **state)
{
	(void)state;
	struct fast f;
	struct urxe_fast_reg request;

	open_fast(&f);
	request = request_for(&f, 1);
	assert_int_equal(reg_outcome(&f, &request), URXE_WC_SUCCESS);
	assert_int_equal(urxe_fast_mr_free(f.mr), 0);
	assert_int_equal(outcome(&f.e, READ, BASE, 8, request.key), URXE_WC_REM_ACCESS_ERR);
	engine_close(&f.e);
}

/* A device whose owner resolves no page lists. */
static void test_device_without_page_lists_refuses_reg_mr(void **state)
{
	(void)state;
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1, .durable = true});
	const struct urxe_send_wr wr = {.opcode = URXE_WR_REG_MR};
	struct endpoint end[2];

	conn_open(pair, &conn, end);
	assert_int_equal(urxe_post_send(end[0].qp, &wr), -EINVAL);
	pair_destroy(pair);
}

/* A region with a hole between two pieces of memory, and later memory in place of the hole. */
static void test_access_into_a_hole_is_refused_until_reregistration(void **state)
{
	(void)state;
	struct fast f;
	struct urxe_extent extents[3];
	struct urxe_mr_attr attr = {.pd = NODE_PD,
				    .access = LW | W | R,
				    .iova = BASE,
				    .length = 3 * PAGE,
				    .extents = extents,
				    .n_extents = 3};
	struct urxe_mr *mr;

	for (int filled = 0; filled < 2; filled++) {
		open_fast(&f);
		for (int i = 0; i < 3; i++)
			extents[i] = (struct urxe_extent){f.e.b->mem + FIRST + i * PAGE, PAGE};
		extents[1].addr = NULL;
		assert_int_equal(urxe_mr_reg(f.e.b->dev, &attr, &mr), 0);
		assert_int_equal(outcome(&f.e, WRITE, BASE, PAGE, urxe_mr_key(mr)), 0);
		assert_int_equal(outcome(&f.e, WRITE, BASE + 2 * PAGE, PAGE, urxe_mr_key(mr)), 0);
		extents[1].addr = f.e.b->mem;
		if (filled)
			assert_int_equal(urxe_mr_rereg(&mr, &attr), 0);
		assert_int_equal(outcome(&f.e, WRITE, BASE, 2 * PAGE, urxe_mr_key(mr)),
				 filled ? URXE_WC_SUCCESS : URXE_WC_REM_ACCESS_ERR);
		engine_close(&f.e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_are_written),
		cmocka_unit_test(test_range_ends_with_the_region),
		cmocka_unit_test(test_rkey_grants_nothing_before_registration),
		cmocka_unit_test(test_invalidate_and_reregister_in_one_queue_succeed),
		cmocka_unit_test(test_invalidation_waits_for_earlier_requests),
		cmocka_unit_test(test_send_with_invalidate_ends_a_fast_mr),
		cmocka_unit_test(test_bad_fast_registration_fails_and_grants_nothing),
		cmocka_unit_test(test_fast_registration_of_another_pd_fails),
		cmocka_unit_test(test_normal_region_cannot_be_invalidated),
		cmocka_unit_test(test_keys_are_owned),
		cmocka_unit_test(test_free_ends_the_rights),
		cmocka_unit_test(test_device_without_page_lists_refuses_reg_mr),
		cmocka_unit_test(test_access_into_a_hole_is_refused_until_reregistration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
