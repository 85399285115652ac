/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory placement extensions (Annex A19): FLUSH and ATOMIC WRITE. */
#include <errno.h>
#include <string.h>

#include "by_hand.h"

#define REGION 4096u /* offset of the region under test, in node b's memory */
#define LENGTH 1000u

#define FLUSH        0x1c /* opcodes on the wire */
#define ATOMIC_WRITE 0x1d
#define RESPONSE     0x10 /* READ response only */
#define INVALID      0x61
#define DENIED       0x62

#define W      URXE_ACCESS_REMOTE_WRITE
#define LW     URXE_ACCESS_LOCAL_WRITE
#define G      URXE_ACCESS_FLUSH_GLOBAL
#define P      URXE_ACCESS_FLUSH_PERSISTENT
#define GLOBAL URXE_FLUSH_GLOBAL
#define LAST   URXE_FLUSH_PERSISTENT

static void open_durable(struct engine *e, uint32_t qp_access)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.access = qp_access;
	e->pair = pair_create(&(struct pair_attr){.seed = 1, .durable = true});
	e->a = e->pair->node[0];
	e->b = e->pair->node[1];
	conn_open(e->pair, &conn, e->end);
}

static int try_flush(struct engine *e, uint64_t wr_id, uint32_t rkey, uint64_t offset,
		     struct urxe_flush flush)
{
	const struct urxe_send_wr wr = {
		.wr_id = wr_id,
		.opcode = URXE_WR_FLUSH,
		.remote_addr = e->b->iova + offset,
		.rkey = rkey,
		.flush = flush,
	};

	return urxe_post_send(e->end[0].qp, &wr);
}

static void post_flush(struct engine *e, uint64_t wr_id, uint32_t rkey, uint64_t offset,
		       struct urxe_flush flush)
{
	assert_int_equal(try_flush(e, wr_id, rkey, offset, flush), 0);
}

/* --- FLUSH: rights and ranges. */

struct flush_row {
	const char *what;
	uint32_t mr_access, qp_access;
	uint32_t pd;
	int64_t offset; /* relative to the region's first byte */
	struct urxe_flush flush;
	uint32_t key_xor;
	uint32_t persisted; /* bytes */
	uint32_t status;
};

#define OK  URXE_WC_SUCCESS
#define ACC URXE_WC_REM_ACCESS_ERR
#define REQ URXE_WC_REM_INV_REQ_ERR

static const struct flush_row flush_rows[] = {
	{"global", G, G, NODE_PD, 0, {GLOBAL, 0, LENGTH}, 0, 0, OK},
	{"persistent", P, P, NODE_PD, 0, {LAST, 0, LENGTH}, 0, LENGTH, OK},
	{"both", G | P, G | P, NODE_PD, 10, {GLOBAL | LAST, 0, 20}, 0, 20, OK},
	{"last byte", P, P, NODE_PD, LENGTH - 1, {LAST, 0, 1}, 0, 1, OK},
	{"nothing", P, P, NODE_PD, 0, {LAST, 0, 0}, 0, 0, OK},
	{"all that the key grants", P, P, NODE_PD, 1 << 20, {LAST, 1, 77}, 0, LENGTH, OK},
	{"one too far", P, P, NODE_PD, 1, {LAST, 0, LENGTH}, 0, 0, ACC},
	{"before", G, G, NODE_PD, -1, {GLOBAL, 0, 2}, 0, 0, ACC},
	{"nothing by a wrong key", G, G, NODE_PD, 0, {GLOBAL, 0, 0}, 1, 0, ACC},
	{"all by a wrong key", G, G, NODE_PD, 0, {GLOBAL, 1, 0}, 1, 0, ACC},
	{"global without right", P, G | P, NODE_PD, 0, {GLOBAL, 0, 8}, 0, 0, ACC},
	{"persistent without right", G, G | P, NODE_PD, 0, {LAST, 0, 8}, 0, 0, ACC},
	{"both with one right", P, G | P, NODE_PD, 0, {GLOBAL | LAST, 0, 8}, 0, 0, ACC},
	{"all without right", LW | W, G | P, NODE_PD, 0, {LAST, 1, 0}, 0, 0, ACC},
	{"global without the QP's right", G | P, P | W, NODE_PD, 0, {GLOBAL, 0, 8}, 0, 0, REQ},
	{"persistent without the QP's right", G | P, G, NODE_PD, 0, {LAST, 0, 8}, 0, 0, REQ},
	{"another domain", G, G, NODE_PD + 1, 0, {GLOBAL, 0, 8}, 0, 0, ACC},
};

static void run_flush_row(const struct flush_row *row)
{
	struct urxe_wc wc = {0};
	uint64_t persisted = 0;
	struct urxe_mr *mr;
	struct engine e;

	open_durable(&e, row->qp_access);
	mr = node_reg(e.b, row->pd, row->mr_access, REGION, LENGTH);
	post_flush(&e, 3, urxe_mr_key(mr) ^ row->key_xor, REGION + (uint64_t)row->offset,
		   row->flush);
	pair_settle(e.pair);
	assert_true(node_poll(&e.a->send_cq, &wc));
	if (wc.status != row->status)
		fail_msg("%s: status %u", row->what, wc.status);
	if (!row->status)
		assert_int_equal(wc.opcode, URXE_WC_FLUSH);
	for (uint32_t i = 0; i < e.b->n_persisted; i++)
		persisted += e.b->persisted[i].length;
	assert_int_equal(persisted, row->persisted);
	if (persisted && row->flush.selectivity == URXE_FLUSH_RANGE)
		assert_ptr_equal(e.b->persisted[0].addr, e.b->mem + REGION + row->offset);
	assert_int_equal(e.b->async[URXE_ASYNC_QP_ACCESS_ERR], row->status == ACC);
	engine_close(&e);
}

static void test_flush_checks_rights_and_range(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(flush_rows) / sizeof(flush_rows[0]); i++)
		run_flush_row(&flush_rows[i]);
}

/* FLUSH persists each piece of memory in its range, and no byte beside it. */
static void test_flush_persists_each_piece(void **state)
{
	struct urxe_extent extents[3];
	struct urxe_mr_attr attr = {.pd = NODE_PD,
				    .access = P,
				    .iova = 0x1000,
				    .length = 300,
				    .extents = extents,
				    .n_extents = 3};
	struct urxe_mr *mr;
	struct engine e;

	(void)state;
	open_durable(&e, P);
	extents[0] = (struct urxe_extent){e.b->mem + 500, 100};
	extents[1] = (struct urxe_extent){e.b->mem + 100, 100};
	extents[2] = (struct urxe_extent){e.b->mem + 900, 100};
	assert_int_equal(urxe_mr_reg(e.b->dev, &attr, &mr), 0);
	post_flush(&e, 1, urxe_mr_key(mr), 0x1000 + 90 - e.b->iova,
		   (struct urxe_flush){LAST, URXE_FLUSH_RANGE, 115});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(e.b->n_persisted, 3);
	assert_ptr_equal(e.b->persisted[0].addr, e.b->mem + 590);
	assert_int_equal(e.b->persisted[0].length, 10);
	assert_ptr_equal(e.b->persisted[1].addr, e.b->mem + 100);
	assert_int_equal(e.b->persisted[1].length, 100);
	assert_ptr_equal(e.b->persisted[2].addr, e.b->mem + 900);
	assert_int_equal(e.b->persisted[2].length, 5);
	engine_close(&e);
}

/* The caller cannot persist the memory: the peer gets a remote operational error. */
static void test_failed_persistence_is_a_remote_error(void **state)
{
	struct urxe_mr *mr;
	struct engine e;

	(void)state;
	open_durable(&e, P);
	mr = node_reg(e.b, NODE_PD, P, REGION, LENGTH);
	e.b->persist_fails = true;
	post_flush(&e, 1, urxe_mr_key(mr), REGION, (struct urxe_flush){LAST, 0, 8});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_REM_OP_ERR);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	engine_close(&e);
}

/* On a device without persistent memory, no region can be registered for it. */
static void test_device_without_persistence_refuses_registration(void **state)
{
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	struct node *node = pair->node[0];
	const struct urxe_extent extent = {node->mem, 100};
	struct urxe_mr_attr attr = {
		.pd = NODE_PD, .access = P, .length = 100, .extents = &extent, .n_extents = 1};
	struct urxe_mr *mr;

	(void)state;
	assert_int_equal(urxe_mr_reg(node->dev, &attr, &mr), -EOPNOTSUPP);
	attr.access = G;
	assert_int_equal(urxe_mr_reg(node->dev, &attr, &mr), 0);
	attr.access = G | 128; /* an unknown right */
	assert_int_equal(urxe_mr_reg(node->dev, &attr, &mr), -EINVAL);
	pair_destroy(pair);
}

/* Through a window: within the window's range, and only if the region allows FLUSH as well. */
static void test_flush_needs_rights_of_window_and_region(void **state)
{
	static const struct {
		uint32_t mr_access, mw_access;
		uint32_t bind_status, flush_status;
		struct urxe_flush flush;
		uint32_t persisted;
	} rows[] = {
		{P, P, OK, OK, {LAST, 0, 100}, 100},
		{P, P, OK, OK, {LAST, 1, 0}, 100},
		{P, P, OK, ACC, {LAST, 0, 101}, 0},
		{P, URXE_ACCESS_REMOTE_READ, OK, ACC, {LAST, 0, 8}, 0},
		{P, URXE_ACCESS_REMOTE_READ, OK, ACC, {LAST, 1, 0}, 0},
		{G, P, URXE_WC_MW_BIND_ERR, 0, {0, 0, 0}, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct urxe_mw_attr attr = {.pd = NODE_PD, .type = URXE_MW_TYPE_2};
		struct urxe_send_wr bind = {.wr_id = 1, .opcode = URXE_WR_BIND_MW};
		struct urxe_mr *mr;
		struct urxe_mw *mw;
		struct engine e;

		open_durable(&e, G | P);
		mr = node_reg(e.b, NODE_PD, rows[i].mr_access | URXE_ACCESS_MW_BIND, REGION,
			      LENGTH);
		assert_int_equal(urxe_mw_alloc(e.b->dev, &attr, &mw), 0);
		bind.bind = (struct urxe_mw_bind){.mw_key = urxe_mw_key(mw),
						  .mr_key = urxe_mr_key(mr),
						  .access = rows[i].mw_access,
						  .addr = e.b->iova + REGION + 50,
						  .length = 100};
		assert_int_equal(urxe_post_send(e.end[1].qp, &bind), 0);
		pair_settle(e.pair);
		expect_wc(&e.b->send_cq, 1, rows[i].bind_status);
		if (!rows[i].bind_status) {
			post_flush(&e, 2, urxe_mw_key(mw), REGION + 50, rows[i].flush);
			pair_settle(e.pair);
			expect_wc(&e.a->send_cq, 2, rows[i].flush_status);
			assert_int_equal(e.b->n_persisted, rows[i].persisted > 0);
			if (rows[i].persisted)
				assert_int_equal(e.b->persisted[0].length, rows[i].persisted);
		}
		engine_close(&e);
	}
}

/* The engine refuses malformed requests when they are posted. */
static void test_malformed_flush_is_refused_at_posting(void **state)
{
	struct urxe_seg seg;
	struct urxe_send_wr wr = {
		.opcode = URXE_WR_FLUSH, .flush = {GLOBAL, 0, 8}, .n_segs = 1, .segs = &seg};
	struct engine e;

	(void)state;
	open_durable(&e, G);
	assert_int_equal(try_flush(&e, 1, 1, 0, (struct urxe_flush){0, 0, 8}), -EINVAL);
	assert_int_equal(try_flush(&e, 1, 1, 0, (struct urxe_flush){4, 0, 8}), -EINVAL);
	assert_int_equal(try_flush(&e, 1, 1, 0, (struct urxe_flush){GLOBAL, 2, 8}), -EINVAL);
	assert_int_equal(try_flush(&e, 1, 1, 0, (struct urxe_flush){GLOBAL, 0, 0x80000001}),
			 -EINVAL);
	seg = node_seg(e.a, 0, 8);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), -EINVAL); /* it carries nothing */
	wr.opcode = URXE_WR_ATOMIC_WRITE;
	for (uint32_t length = 0; length <= 16; length++) {
		seg.length = length;
		if (length != 8)
			assert_int_equal(urxe_post_send(e.end[0].qp, &wr), -EINVAL);
	}
	engine_close(&e);
	for (int type = URXE_QPT_UC; type <= URXE_QPT_UD; type++) {
		struct conn_attr conn = conn_default(type);

		engine_open(&e, &conn);
		seg.length = 8;
		wr.opcode = URXE_WR_ATOMIC_WRITE;
		assert_int_equal(urxe_post_send(e.end[0].qp, &wr), -EINVAL);
		assert_int_equal(try_flush(&e, 1, 1, 0, (struct urxe_flush){GLOBAL, 0, 8}),
				 -EINVAL);
		engine_close(&e);
	}
	{
		struct conn_attr conn = conn_default(URXE_QPT_RC);

		conn.rd_atomic = 0; /* FLUSH and ATOMIC WRITE need the peer's responder resources */
		engine_open(&e, &conn);
		assert_int_equal(urxe_post_send(e.end[0].qp, &wr), -EINVAL);
		assert_int_equal(try_flush(&e, 1, 1, 0, (struct urxe_flush){GLOBAL, 0, 8}),
				 -EINVAL);
		engine_close(&e);
	}
}

/* --- ATOMIC WRITE. */

/*
 * From memory and inline: the eight bytes arrive in one piece, and the bytes beside them do not
 * change.
 */
static void test_atomic_write_stores_eight_bytes(void **state)
{
	uint64_t around[3];
	struct engine e;

	(void)state;
	for (int is_inline = 0; is_inline < 2; is_inline++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_seg seg;
		struct urxe_send_wr wr = {.wr_id = 1, .opcode = URXE_WR_ATOMIC_WRITE};

		engine_open(&e, &conn);
		memcpy(e.a->mem, "\1\2\3\4\5\6\7\10", 8);
		memset(e.b->mem + REGION, 0xee, 24);
		seg = node_seg(e.a, 0, 8);
		wr.segs = &seg;
		wr.n_segs = !is_inline;
		wr.inline_data = e.a->mem;
		wr.inline_len = 8;
		wr.flags = is_inline ? URXE_SEND_INLINE : 0;
		wr.remote_addr = e.b->iova + REGION + 8;
		wr.rkey = urxe_mr_key(node_reg(e.b, NODE_PD, LW | W, REGION, 24));
		assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
		pair_settle(e.pair);
		assert_int_equal(expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS).opcode,
				 URXE_WC_ATOMIC_WRITE);
		memset(around, 0xee, sizeof(around));
		memcpy(&around[1], e.a->mem, 8);
		assert_memory_equal(e.b->mem + REGION, around, 24);
		engine_close(&e);
	}
}

/* --- Requests that the test builds. */

struct hand_row {
	const char *what;
	uint8_t opcode;
	uint32_t mr_access, qp_access;
	uint32_t offset, length, payload_len;
	uint8_t placement, selectivity;
	uint8_t syndrome;
};

#define FL(what, placement, selectivity, length, syndrome)                                \
	{                                                                                 \
		what, FLUSH, G | P, G | P, 0, length, 0, placement, selectivity, syndrome \
	}
#define AW(what, access, offset, length, payload_len, syndrome)                                \
	{                                                                                      \
		what, ATOMIC_WRITE, access, W | G, offset, length, payload_len, 0, 0, syndrome \
	}

static const struct hand_row hand_rows[] = {
	FL("flush", 3, 0, 8, 0),
	FL("flush of all", 1, 1, 0, 0),
	FL("flush without a placement", 0, 0, 8, INVALID),
	FL("flush, reserved placement", 4, 0, 8, INVALID),
	FL("flush, reserved placement beside", 9, 0, 8, INVALID),
	FL("flush, reserved selectivity", 1, 2, 8, INVALID),
	FL("flush, reserved selectivity", 1, 3, 8, INVALID),
	FL("flush of more than 2 GiB", 1, 0, 0x80000001, INVALID),
	FL("flush past the region", 1, 0, 0x80000000, DENIED),
	AW("atomic write", LW | W, 0, 8, 8, 0),
	AW("atomic write at the end", LW | W, LENGTH - 8, 8, 8, 0),
	AW("atomic write behind", LW | W, LENGTH, 8, 8, DENIED),
	AW("atomic write without right", LW | G, 0, 8, 8, DENIED),
	AW("atomic write, shorter than said", LW | W, 0, 8, 4, INVALID),
	AW("atomic write, longer than said", LW | W, 0, 8, 12, INVALID),
	AW("atomic write of 4", LW | W, 0, 4, 4, INVALID),
	AW("atomic write of 16", LW | W, 0, 16, 16, INVALID),
	AW("atomic write, 8 of 4", LW | W, 0, 4, 8, INVALID),
	AW("atomic write, 8 of 16", LW | W, 0, 16, 8, INVALID),
	AW("atomic write of nothing", LW | W, 0, 0, 0, INVALID),
	AW("atomic write at an odd place", LW | W, 1, 8, 8, INVALID),
	AW("atomic write at an odd place", LW | W, 4, 8, 8, INVALID),
	{"atomic write without the QP's right", ATOMIC_WRITE, LW | W, G, 0, 8, 8, 0, 0, INVALID},
};

static struct urxe_packet by_hand(struct engine *e, uint8_t opcode, uint32_t key)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p = from_peer(e, &conn, opcode);

	p.reth.va = e->b->iova + REGION;
	p.reth.rkey = key;
	p.reth.length = 8;
	p.payload_len = opcode == ATOMIC_WRITE ? 8 : 0;
	p.feth.placement = URXE_FLUSH_PERSISTENT;
	p.ack_req = true;
	return p;
}

static void run_hand_row(const struct hand_row *row)
{
	uint8_t before[LENGTH];
	struct urxe_packet p;
	struct answers got;
	struct engine e;

	open_durable(&e, row->qp_access);
	memset(payload, 0x5a, 16);
	memcpy(before, e.b->mem + REGION, LENGTH);
	p = by_hand(&e, row->opcode,
		    urxe_mr_key(node_reg(e.b, NODE_PD, row->mr_access, REGION, LENGTH)));
	p.reth.va += row->offset;
	p.reth.length = row->length;
	p.payload_len = row->payload_len;
	p.feth.placement = row->placement;
	p.feth.selectivity = row->selectivity;
	inject(&e, &p);
	got = answers(&e);
	if (got.n != 1 || got.psn != p.psn || got.payload_len ||
	    got.opcode != (row->syndrome ? 0x11 : RESPONSE) ||
	    (row->syndrome ? got.syndrome != row->syndrome : got.syndrome >> 5))
		fail_msg("%s: %u answers, opcode %02x, syndrome %02x", row->what, got.n, got.opcode,
			 got.syndrome);
	assert_int_equal(got.msn, !row->syndrome);
	if (!row->syndrome && row->opcode == ATOMIC_WRITE)
		memset(before + row->offset, 0x5a, 8);
	assert_memory_equal(e.b->mem + REGION, before, LENGTH);
	engine_close(&e);
}

/* The answer is a READ response without payload; after a NAK no byte has changed. */
static void test_flush_and_atomic_write_answers_have_no_payload(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(hand_rows) / sizeof(hand_rows[0]); i++)
		run_hand_row(&hand_rows[i]);
}

/* The answer is lost: the responder answers the repetition again and does not execute it again. */
static void test_repetition_is_not_executed_again(void **state)
{
	static const uint8_t opcodes[] = {FLUSH, ATOMIC_WRITE};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct urxe_packet p;
		struct answers got;
		struct engine e;

		open_durable(&e, W | P);
		p = by_hand(&e, opcodes[i],
			    urxe_mr_key(node_reg(e.b, NODE_PD, LW | W | P, REGION, LENGTH)));
		memset(payload, 1, 8);
		inject(&e, &p);
		assert_int_equal(answers(&e).opcode, RESPONSE);
		assert_int_equal(e.b->n_persisted, opcodes[i] == FLUSH);
		memset(e.b->mem + REGION, 9, 8); /* another writer changes the bytes meanwhile */
		memset(payload, 2, 8);
		inject(&e, &p);
		got = answers(&e);
		assert_int_equal(got.n, 1);
		assert_int_equal(got.opcode, RESPONSE);
		assert_int_equal(got.psn, p.psn);
		assert_int_equal(got.msn, 1);
		assert_int_equal(e.b->n_persisted, opcodes[i] == FLUSH);
		assert_int_equal(e.b->mem[REGION], 9);
		assert_int_equal(events(e.b, URXE_EVENT_DUP_REQUEST), 1);
		/* Another kind of request with the same PSN is no repetition. */
		p.opcode = opcodes[!i];
		p.payload_len = p.opcode == ATOMIC_WRITE ? 8 : 0;
		inject(&e, &p);
		expect_quiet(&e);
		assert_int_equal(drops(e.b, URXE_DROP_DUPLICATE), 1);
		engine_close(&e);
	}
}

/* A responder without resources refuses them, as it refuses READs. */
static void test_requests_need_resources(void **state)
{
	static const uint8_t opcodes[] = {FLUSH, ATOMIC_WRITE};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_packet p;
		struct engine e;

		conn.rd_atomic = 0;
		conn.access = W | G;
		engine_open(&e, &conn);
		p = by_hand(&e, opcodes[i],
			    urxe_mr_key(node_reg(e.b, NODE_PD, LW | W | G, REGION, LENGTH)));
		p.feth.placement = GLOBAL;
		inject(&e, &p);
		assert_int_equal(answers(&e).syndrome, INVALID);
		engine_close(&e);
	}
}

static void post_among_others(struct engine *e, uint32_t key)
{
	post_send(e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = 3000});
	post_flush(e, 2, key, REGION, (struct urxe_flush){GLOBAL | LAST, 0, LENGTH});
	post_send(e, 0,
		  &(struct post){.wr_id = 3,
				 .opcode = URXE_WR_ATOMIC_WRITE,
				 .length = 8,
				 .remote = REGION,
				 .rkey = key});
	post_send(e, 0, &(struct post){.wr_id = 4, .opcode = URXE_WR_RDMA_READ, .length = 3000});
	post_flush(e, 5, key, REGION, (struct urxe_flush){GLOBAL, URXE_FLUSH_KEY, 0});
}

/* Among other requests on a network with losses: each is executed once, in its order. */
static void test_losses_do_not_repeat_execution(void **state)
{
	(void)state;
	for (int side = 0; side < 2; side++) {
		for (unsigned first = 0; first < 8; first++) {
			struct link_loss loss = {.first = first};
			struct engine e;

			open_durable(&e, W | G | P | URXE_ACCESS_REMOTE_READ);
			e.pair->link[side].filter = link_lose_one;
			e.pair->link[side].filter_arg = &loss;
			rand_fill(&(struct rand){first}, e.a->mem, 3000);
			post_among_others(&e, urxe_mr_key(node_reg(e.b, NODE_PD, LW | W | G | P,
								   REGION, LENGTH)));
			pair_settle(e.pair);
			for (uint64_t id = 1; id <= 5; id++)
				expect_wc(&e.a->send_cq, id, URXE_WC_SUCCESS);
			assert_memory_equal(e.b->mem, e.a->mem, 3000);
			assert_memory_equal(e.b->mem + REGION, e.a->mem, 8);
			assert_int_equal(e.b->n_persisted,
					 1); /* persisted once, and in one piece */
			engine_close(&e);
		}
	}
}

/*
 * A plain ACK does not complete these requests, and a READ response with a payload does not,
 * either.
 */
static void test_wrong_answers_complete_nothing(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct urxe_seg seg;
	struct urxe_send_wr wr = {.wr_id = 1, .opcode = URXE_WR_ATOMIC_WRITE, .n_segs = 1};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	seg = node_seg(e.b, 0, 8);
	wr.segs = &seg;
	assert_int_equal(urxe_post_send(e.end[1].qp, &wr), 0);
	assert_int_equal(answers(&e).opcode, ATOMIC_WRITE);
	p = from_peer(&e, &conn, RESPONSE);
	p.psn = conn.psn[1];
	p.aeth.syndrome = 0x1f;
	p.payload_len = 8;
	inject(&e, &p);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_RESPONSE), 1);
	expect_none(&e.b->send_cq);
	p.opcode = 0x12;
	p.payload_len = 0;
	inject(&e, &p);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_RESPONSE), 2);
	p.opcode = 0x11;
	inject(&e, &p);
	expect_none(&e.b->send_cq);
	p.opcode = RESPONSE;
	inject(&e, &p);
	expect_wc(&e.b->send_cq, 1, URXE_WC_SUCCESS);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flush_checks_rights_and_range),
		cmocka_unit_test(test_flush_persists_each_piece),
		cmocka_unit_test(test_failed_persistence_is_a_remote_error),
		cmocka_unit_test(test_device_without_persistence_refuses_registration),
		cmocka_unit_test(test_flush_needs_rights_of_window_and_region),
		cmocka_unit_test(test_malformed_flush_is_refused_at_posting),
		cmocka_unit_test(test_atomic_write_stores_eight_bytes),
		cmocka_unit_test(test_flush_and_atomic_write_answers_have_no_payload),
		cmocka_unit_test(test_repetition_is_not_executed_again),
		cmocka_unit_test(test_requests_need_resources),
		cmocka_unit_test(test_losses_do_not_repeat_execution),
		cmocka_unit_test(test_wrong_answers_complete_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
