/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory windows: rules for binding, the access that a window grants, its end, and its keys. */
#include "window.h"

/* --- Rules for binding (IBA 10.6.7.2, C10-72 to C10-75). */

struct bind_row {
	const char *what;
	uint8_t type;
	uint32_t mr_access;
	uint32_t mr_pd, mw_pd;
	uint32_t access;
	int64_t offset; /* in the region */
	uint64_t length;
	uint32_t mw_key_xor, mr_key_xor;
	bool good;
};

#define OWN NODE_PD, NODE_PD
#define OUT_OF_WORLD \
	((int64_t)(0 - (0xabcd00000000u + 2 * 0x100000000u + REGION) - 8)) /* 8 before 2^64 */

static const struct bind_row bind_rows[] = {
	{"all rights", TYPE_1, LW | BIND, OWN, W | R | A, 0, LENGTH, 0, 0, true},
	{"all rights, type 2", TYPE_2, LW | BIND, OWN, W | R | A, 0, LENGTH, 0, 0, true},
	{"no rights", TYPE_2, LW | BIND, OWN, 0, 0, LENGTH, 0, 0, true},
	{"last byte", TYPE_2, LW | BIND, OWN, W, LENGTH - 1, 1, 0, 0, true},
	{"read, of a region that nobody writes", TYPE_2, BIND, OWN, R, 0, 8, 0, 0, true},
	{"zero based", TYPE_2, LW | BIND, OWN, W | ZB, 100, 8, 0, 0, true},
	{"unbind", TYPE_1, LW | BIND, OWN, 0, 0, 0, 0, 0, true},
	{"unbind, with no region", TYPE_1, LW | BIND, OWN, 0, 0, 0, 0, 0x10, true},
	{"one too far", TYPE_1, LW | BIND, OWN, W, 1, LENGTH, 0, 0, false},
	{"before", TYPE_2, LW | BIND, OWN, W, -1, 2, 0, 0, false},
	{"behind", TYPE_2, LW | BIND, OWN, W, LENGTH, 1, 0, 0, false},
	{"longer than all memory", TYPE_2, LW | BIND, OWN, W, 1, UINT64_MAX, 0, 0, false},
	{"over the end of the address space", TYPE_2, LW | BIND, OWN, W, OUT_OF_WORLD, 16, 0, 0,
	 false},
	{"no bind access", TYPE_1, LW | W | R | A, OWN, W, 0, 8, 0, 0, false},
	{"no bind access, type 2", TYPE_2, LW | W | R | A, OWN, R, 0, 8, 0, 0, false},
	{"write without local write", TYPE_1, BIND | R, OWN, W, 0, 8, 0, 0, false},
	{"atomic without local write", TYPE_2, BIND | R, OWN, A, 0, 8, 0, 0, false},
	{"a zero based region", TYPE_2, LW | BIND | ZB, OWN, W, 0, 8, 0, 0, false},
	{"zero based type 1", TYPE_1, LW | BIND, OWN, W | ZB, 0, 8, 0, 0, false},
	{"local write", TYPE_1, LW | BIND, OWN, W | LW, 0, 8, 0, 0, true},
	{"local write alone, type 2", TYPE_2, LW | BIND, OWN, LW, 0, 8, 0, 0, true},
	{"bind", TYPE_2, LW | BIND, OWN, W | BIND, 0, 8, 0, 0, false},
	{"unknown right", TYPE_1, LW | BIND, OWN, 1u << 31, 0, 8, 0, 0, false},
	{"type 2 to nothing", TYPE_2, LW | BIND, OWN, 0, 0, 0, 0, 0, false},
	{"region of another domain", TYPE_1, LW | BIND, 9, NODE_PD, W, 0, 8, 0, 0, false},
	{"region of another domain, type 2", TYPE_2, LW | BIND, 9, NODE_PD, W, 0, 8, 0, 0, false},
	{"window of another domain", TYPE_1, LW | BIND, NODE_PD, 9, W, 0, 8, 0, 0, false},
	{"window and region of another", TYPE_1, LW | BIND, 9, 9, W, 0, 8, 0, 0, false},
	{"window and region of another, type 2", TYPE_2, LW | BIND, 9, 9, W, 0, 8, 0, 0, false},
	{"unbind a window of another domain", TYPE_1, LW | BIND, NODE_PD, 9, 0, 0, 0, 0, 0, false},
	{"wrong tag of the window", TYPE_1, LW | BIND, OWN, W, 0, 8, 1, 0, false},
	{"wrong window", TYPE_2, LW | BIND, OWN, W, 0, 8, 0x4000, 0, false},
	{"wrong tag of the region", TYPE_1, LW | BIND, OWN, W, 0, 8, 0, 1, false},
	{"wrong region", TYPE_2, LW | BIND, OWN, W, 0, 8, 0, 0x4000, false},
};

static void run_bind_row(const struct bind_row *row)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_mw_bind bind;
	struct bench b;
	uint32_t key;

	engine_open(&b.e, &conn);
	b.mr = node_reg(b.e.b, row->mr_pd, row->mr_access, REGION, LENGTH);
	b.mw = alloc_mw(b.e.b, row->type, row->mw_pd);
	key = urxe_mw_key(b.mw);
	bind = bind_to(&b, row->access);
	bind.addr = b.e.b->iova + REGION + (uint64_t)row->offset;
	bind.length = row->length;
	bind.mw_key ^= row->mw_key_xor;
	bind.mr_key ^= row->mr_key_xor;
	post_bind(b.e.end[1].qp, 5, &bind);
	pair_settle(b.e.pair);
	if (b.e.b->send_cq.ring[0].status != (row->good ? URXE_WC_SUCCESS : URXE_WC_MW_BIND_ERR))
		fail_msg("%s: status %u", row->what, b.e.b->send_cq.ring[0].status);
	if (row->good) {
		expect_wc(&b.e.b->send_cq, 5, URXE_WC_SUCCESS);
		assert_int_equal(urxe_mw_key(b.mw), (key & ~0xffu) | ((key + 1) & 0xff));
		assert_int_equal(region_is_bound(&b), row->length > 0);
	} else {
		expect_wc(&b.e.b->send_cq, 5, URXE_WC_MW_BIND_ERR);
		assert_int_equal(urxe_mw_key(b.mw), key);
		assert_false(region_is_bound(&b));
		assert_int_equal(qp_state(&b.e.end[1]), URXE_QPS_ERR);
		assert_int_equal(events(b.e.b, URXE_EVENT_LOCAL_ERROR), 1);
	}
	expect_none(&b.e.b->send_cq);
	engine_close(&b.e);
}

static void test_bind_checks_rights_range_and_pd(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bind_rows) / sizeof(bind_rows[0]); i++)
		run_bind_row(&bind_rows[i]);
}

/* A bound type 2 window must be invalidated before it is bound again (o10-37.2.30). */
static void test_bound_type_2_window_cannot_be_bound(void **state)
{
	struct urxe_mw_bind bind;
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	bind_well(&b, W);
	bind = bind_to(&b, W);
	post_bind(b.e.end[1].qp, 2, &bind);
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 2, URXE_WC_MW_BIND_ERR);
	assert_int_equal(urxe_mw_key(b.mw), bind.mw_key);
	engine_close(&b.e);
}

/* --- The access that a window grants. */

struct grant_row {
	const char *what;
	uint32_t opcode;
	uint32_t access;
	int64_t offset; /* relative to the window's first byte */
	uint32_t length;
	uint32_t key_xor;
	bool good;
};

static const struct grant_row grant_rows[] = {
	{"write all", WRITE, W, 0, SIZE, 0, true},
	{"write last byte", WRITE, W, SIZE - 1, 1, 0, true},
	{"write one too far", WRITE, W, 1, SIZE, 0, false},
	{"write before", WRITE, W, -1, 2, 0, false},
	{"write behind", WRITE, W, SIZE, 1, 0, false},
	{"write without right", WRITE, R | A, 0, 8, 0, false},
	{"write with a wrong tag", WRITE, W, 0, 8, 1, false},
	{"write of nothing", WRITE, W, 0, 0, 0x55, true},
	{"read all", READ, R, 0, SIZE, 0, true},
	{"read one too far", READ, R, 1, SIZE, 0, false},
	{"read without right", READ, W | A, 0, 8, 0, false},
	{"add", FAA, A, SIZE - 8, 8, 0, true},
	{"add behind", FAA, A, SIZE, 8, 0, false},
	{"add without right", FAA, W | R, 0, 8, 0, false},
	{"swap", CAS, A, 0, 8, 0, true},
};

static void run_grant_row(const struct grant_row *row, uint8_t type, uint32_t zero_based)
{
	uint8_t expected[LENGTH] = {0};
	struct bench b;
	uint64_t start;
	uint32_t status;

	open_bench(&b, URXE_QPT_RC, type);
	memset(b.e.a->mem, 0x77, SIZE + 8);
	bind_well(&b, row->access | zero_based);
	start = zero_based ? 0 : b.e.b->iova + REGION + PART;
	status = outcome(&b.e, row->opcode, start + (uint64_t)row->offset, row->length,
			 urxe_mw_key(b.mw) ^ row->key_xor);
	if (status != (row->good ? URXE_WC_SUCCESS : URXE_WC_REM_ACCESS_ERR))
		fail_msg("%s, type %u: status %u", row->what, type, status);
	if (row->good && row->opcode == WRITE)
		memset(expected + PART + row->offset, 0x77, row->length);
	if (row->good && row->opcode == FAA)
		expected[PART + row->offset] = 1;
	if (!row->good || row->opcode != CAS)
		assert_memory_equal(b.e.b->mem + REGION, expected, LENGTH);
	engine_close(&b.e);
}

static void test_window_grants_its_range_and_rights(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(grant_rows) / sizeof(grant_rows[0]); i++) {
		run_grant_row(&grant_rows[i], TYPE_1, 0);
		run_grant_row(&grant_rows[i], TYPE_2, 0);
		run_grant_row(&grant_rows[i], TYPE_2, ZB);
	}
}

/* A request needs the right of the QP as well. */
static void test_qp_right_is_needed_too(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct bench b;

	(void)state;
	conn.access = R | A;
	engine_open(&b.e, &conn);
	b.mr = node_reg(b.e.b, NODE_PD, LW | BIND, REGION, LENGTH);
	b.mw = alloc_mw(b.e.b, TYPE_1, NODE_PD);
	bind_well(&b, W);
	assert_int_equal(write_at_window(&b), URXE_WC_REM_INV_REQ_ERR);
	engine_close(&b.e);
}

/* A window that is unbound, or was never bound, grants nothing. */
static void test_unbound_window_grants_nothing(void **state)
{
	struct urxe_mw_bind unbind;
	struct bench b;

	(void)state;
	for (uint8_t type = TYPE_1; type <= TYPE_2; type++) {
		open_bench(&b, URXE_QPT_RC, type);
		assert_int_equal(write_at_window(&b), URXE_WC_REM_ACCESS_ERR);
		engine_close(&b.e);
	}
	open_bench(&b, URXE_QPT_RC, TYPE_1);
	bind_well(&b, W);
	assert_int_equal(write_at_window(&b), URXE_WC_SUCCESS);
	unbind = bind_to(&b, 0);
	unbind.length = 0;
	post_bind(b.e.end[1].qp, 2, &unbind);
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 2, URXE_WC_SUCCESS);
	assert_int_equal(write_at_window(&b), URXE_WC_REM_ACCESS_ERR);
	assert_false(region_is_bound(&b));
	engine_close(&b.e);
}

/* A type 1 window may be bound again at any time; the key of the old binding becomes invalid. */
static void test_rebound_type_1_window_changes_its_key(void **state)
{
	struct urxe_mw_bind bind;
	struct bench b;
	uint32_t old;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_1);
	bind_well(&b, W);
	old = urxe_mw_key(b.mw);
	bind = bind_to(&b, W);
	bind.addr -= PART;
	bind.length = 16;
	post_bind(b.e.end[1].qp, 2, &bind);
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 2, URXE_WC_SUCCESS);
	assert_int_equal(outcome(&b.e, WRITE, bind.addr, 16, urxe_mw_key(b.mw)), URXE_WC_SUCCESS);
	assert_int_equal(outcome(&b.e, WRITE, bind.addr, 16, old), URXE_WC_REM_ACCESS_ERR);
	assert_true(region_is_bound(&b));
	engine_close(&b.e);
}

/* The application may choose the same tag again. */
static void test_same_tag_may_be_chosen_again(void **state)
{
	struct urxe_mw_bind bind;
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	for (uint32_t tag = 0; tag < 256; tag += 51) {
		bind = bind_to(&b, W);
		bind.tag = (uint8_t)tag;
		post_bind(b.e.end[1].qp, tag, &bind);
		post_inv(b.e.end[1].qp, 1000 + tag, (bind.mw_key & ~0xffu) | tag);
		pair_settle(b.e.pair);
		expect_wc(&b.e.b->send_cq, tag, URXE_WC_SUCCESS);
		expect_wc(&b.e.b->send_cq, 1000 + tag, URXE_WC_SUCCESS);
		assert_int_equal(urxe_mw_key(b.mw) & 0xff, tag);
	}
	engine_close(&b.e);
}

static uint32_t write_by(struct bench *b, struct endpoint *from)
{
	struct urxe_seg seg = node_seg(b->e.a, 0, 8);
	const struct urxe_send_wr wr = {.opcode = WRITE,
					.n_segs = 1,
					.segs = &seg,
					.remote_addr = b->e.b->iova + REGION + PART,
					.rkey = urxe_mw_key(b->mw)};
	struct urxe_wc wc;

	assert_int_equal(urxe_post_send(from->qp, &wr), 0);
	pair_settle(b->e.pair);
	assert_true(node_poll(&b->e.a->send_cq, &wc));
	return wc.status;
}

/*
 * A type 2B window serves the QP that bound it; a type 1 window serves every QP of its protection
 * domain.
 */
static void test_type_2_window_belongs_to_its_qp(void **state)
{
	struct endpoint second[2];
	struct bench b;

	(void)state;
	for (uint8_t type = TYPE_1; type <= TYPE_2; type++) {
		open_bench(&b, URXE_QPT_RC, type);
		open_second(&b.e, second);
		bind_well(&b, W);
		assert_int_equal(write_by(&b, &second[0]),
				 type == TYPE_1 ? URXE_WC_SUCCESS : URXE_WC_REM_ACCESS_ERR);
		assert_int_equal(write_by(&b, &b.e.end[0]), URXE_WC_SUCCESS);
		engine_close(&b.e);
	}
}

/* A type 1 window does not serve a QP of another protection domain. */
static void test_window_does_not_serve_other_domains(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_qp_init init = {.type = URXE_QPT_RC, .pd = NODE_PD + 1, .cap = conn.cap};
	struct endpoint second[2];
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_1);
	bind_well(&b, W);
	conn_create(b.e.pair, &conn, 0, &second[0]);
	second[1] = (struct endpoint){.queue.node = b.e.b, .node = b.e.b};
	init.ctx = &second[1].queue;
	init.send_cq = b.e.b->send_cq.cq;
	init.recv_cq = b.e.b->recv_cq.cq;
	assert_int_equal(urxe_qp_create(b.e.b->dev, &init, &second[1].qp), 0);
	second[1].qpn = urxe_qp_qpn(second[1].qp);
	conn_bring_up(b.e.pair, &conn, 0, &second[0], &second[1]);
	conn_bring_up(b.e.pair, &conn, 1, &second[1], &second[0]);
	assert_int_equal(write_by(&b, &second[0]), URXE_WC_REM_ACCESS_ERR);
	engine_close(&b.e);
}

/* The owner's own requests cannot use a window's key as lkey. */
static void test_window_rkey_is_refused_as_lkey(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t opcode = WRITE; opcode <= READ; opcode += READ - WRITE) {
		open_bench(&b, URXE_QPT_RC, TYPE_1);
		bind_well(&b, LW | W | R | A);
		post_send(&b.e, 1,
			  &(struct post){.wr_id = 3,
					 .opcode = opcode,
					 .offset = REGION + PART,
					 .length = 8,
					 .lkey = urxe_mw_key(b.mw)});
		pair_settle(b.e.pair);
		expect_wc(&b.e.b->send_cq, 3, URXE_WC_LOC_PROT_ERR);
		engine_close(&b.e);
	}
}

/* --- The end of a window. */

/* A region cannot be deregistered while a window is bound to it (IBA 10.6.7.2.6). */
static void test_region_with_bound_window_stays(void **state)
{
	struct urxe_extent extent;
	struct urxe_mr_attr attr;
	struct bench b;

	(void)state;
	for (uint8_t type = TYPE_1; type <= TYPE_2; type++) {
		open_bench(&b, URXE_QPT_RC, type);
		bind_well(&b, W);
		assert_int_equal(urxe_mr_dereg(b.mr), -EBUSY);
		urxe_mr_query(b.mr, &attr);
		extent = (struct urxe_extent){b.e.b->mem, attr.length};
		attr.extents = &extent;
		attr.n_extents = 1;
		assert_int_equal(urxe_mr_rereg(&b.mr, &attr), -EBUSY);
		assert_int_equal(write_at_window(&b), URXE_WC_SUCCESS); /* unharmed */
		urxe_mw_dealloc(b.mw);
		assert_int_equal(urxe_mr_dereg(b.mr), 0);
		engine_close(&b.e);
	}
}

static void test_deallocated_window_grants_nothing(void **state)
{
	struct bench b;
	uint32_t key;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_1);
	bind_well(&b, W);
	key = urxe_mw_key(b.mw);
	urxe_mw_dealloc(b.mw);
	assert_int_equal(outcome(&b.e, WRITE, b.e.b->iova + REGION + PART, 8, key),
			 URXE_WC_REM_ACCESS_ERR);
	engine_close(&b.e);
}

/* Destroying a QP unbinds its windows: a new QP with the same number gets no access by them. */
static void test_destroyed_qp_unbinds_its_windows(void **state)
{
	struct endpoint second[2];
	struct urxe_mw_bind bind;
	struct bench b;

	(void)state;
	open_bench(&b, URXE_QPT_RC, TYPE_2);
	open_second(&b.e, second);
	bind_well(&b, W);
	urxe_qp_destroy(b.e.end[1].qp);
	bind = bind_to(&b, W);
	post_bind(second[1].qp, 2, &bind); /* free again */
	pair_settle(b.e.pair);
	expect_wc(&b.e.b->send_cq, 2, URXE_WC_SUCCESS);
	assert_int_equal(write_by(&b, &second[0]), URXE_WC_SUCCESS);
	urxe_qp_destroy(second[1].qp);
	assert_int_equal(urxe_mr_dereg(b.mr), 0);
	engine_close(&b.e);
}

/* --- Keys. */

static void test_dictated_window_keys_are_checked(void **state)
{
	struct urxe_mw_attr attr = {.pd = NODE_PD, .type = TYPE_1, .key = 0x12345678};
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	struct node *node = pair->node[0];
	struct urxe_extent extent = {node->mem, 100};
	struct urxe_mr_attr region = {
		.pd = NODE_PD, .length = 100, .extents = &extent, .n_extents = 1};
	struct urxe_mr *mr;
	struct urxe_mw *mw, *second;

	(void)state;
	assert_int_equal(urxe_mw_alloc(node->dev, &attr, &mw), 0);
	assert_int_equal(urxe_mw_key(mw), 0x12345678);
	/* All 256 keys with this index belong to the window. */
	attr.key = 0x123456ff;
	assert_int_equal(urxe_mw_alloc(node->dev, &attr, &second), -EEXIST);
	region.key = 0x12345600;
	assert_int_equal(urxe_mr_reg(node->dev, &region, &mr), -EEXIST);
	urxe_mw_dealloc(mw);
	assert_int_equal(urxe_mr_reg(node->dev, &region, &mr), 0);
	assert_int_equal(urxe_mw_alloc(node->dev, &attr, &mw), -EEXIST);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	assert_int_equal(urxe_mw_alloc(node->dev, &attr, &mw), 0);
	attr.key = 0;
	attr.type = 0;
	assert_int_equal(urxe_mw_alloc(node->dev, &attr, &second), -EINVAL);
	attr.type = 3;
	assert_int_equal(urxe_mw_alloc(node->dev, &attr, &second), -EINVAL);
	pair_destroy(pair);
}

/* The engine's choices avoid dictated keys: neither kind uses the other's 256 keys. */
static void test_chosen_keys_avoid_dictated_keys(void **state)
{
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	struct node *node = pair->node[0];
	struct urxe_extent extent = {node->mem, 100};
	uint32_t next = urxe_mr_key(node_reg(node, NODE_PD, LW, 0, 64)) >> 8;
	struct urxe_mr_attr region = {.pd = NODE_PD,
				      .length = 100,
				      .extents = &extent,
				      .n_extents = 1,
				      .key = (next + 1) << 8 | 3};
	struct urxe_mw_attr window = {.pd = NODE_PD, .type = TYPE_2, .key = (next + 2) << 8 | 5};
	struct urxe_mr *mr;
	struct urxe_mw *mw;

	(void)state;
	assert_int_equal(urxe_mr_reg(node->dev, &region, &mr), 0);
	assert_int_equal(urxe_mw_alloc(node->dev, &window, &mw), 0);
	assert_int_equal(urxe_mw_key(alloc_mw(node, TYPE_1, NODE_PD)) >> 8, next + 3);
	window.key = (next + 4) << 8;
	assert_int_equal(urxe_mw_alloc(node->dev, &window, &mw), 0);
	assert_int_equal(urxe_mr_key(node_reg(node, NODE_PD, LW, 0, 64)) >> 8, next + 5);
	pair_destroy(pair);
}

#define RUN 64u

/*
 * A program that registers much at first has regions with consecutive keys, which come again after
 * 2^24 registrations. The engine does not look at each of them: with 65,536 that took 0.4 s.
 */
static void test_chosen_keys_leave_a_run_of_keys_in_use(void **state)
{
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	struct node *node = pair->node[0];
	struct urxe_extent extent = {node->mem, 100};
	uint32_t next = urxe_mr_key(node_reg(node, NODE_PD, LW, 0, 64)) >> 8, key;
	struct urxe_mr_attr region = {
		.pd = NODE_PD, .length = 100, .extents = &extent, .n_extents = 1};
	struct urxe_mr *mr;

	(void)state;
	for (uint32_t i = 1; i <= RUN; i++) {
		region.key = (next + i) << 8 | i;
		assert_int_equal(urxe_mr_reg(node->dev, &region, &mr), 0);
	}
	key = urxe_mw_key(alloc_mw(node, TYPE_1, NODE_PD)) >> 8;
	assert_false(key >= next && key <= next + RUN + 1);
	assert_int_equal(urxe_mr_key(node_reg(node, NODE_PD, LW, 0, 64)) >> 8, key + 1);
	pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bind_checks_rights_range_and_pd),
		cmocka_unit_test(test_bound_type_2_window_cannot_be_bound),
		cmocka_unit_test(test_window_grants_its_range_and_rights),
		cmocka_unit_test(test_qp_right_is_needed_too),
		cmocka_unit_test(test_unbound_window_grants_nothing),
		cmocka_unit_test(test_rebound_type_1_window_changes_its_key),
		cmocka_unit_test(test_same_tag_may_be_chosen_again),
		cmocka_unit_test(test_type_2_window_belongs_to_its_qp),
		cmocka_unit_test(test_window_does_not_serve_other_domains),
		cmocka_unit_test(test_window_rkey_is_refused_as_lkey),
		cmocka_unit_test(test_region_with_bound_window_stays),
		cmocka_unit_test(test_deallocated_window_grants_nothing),
		cmocka_unit_test(test_destroyed_qp_unbinds_its_windows),
		cmocka_unit_test(test_dictated_window_keys_are_checked),
		cmocka_unit_test(test_chosen_keys_avoid_dictated_keys),
		cmocka_unit_test(test_chosen_keys_leave_a_run_of_keys_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
