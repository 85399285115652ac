/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Access checks of memory: keys, ranges, rights and protection domains. */
#include <errno.h>
#include <string.h>

#include "engine.h"

#define REGION 4096u /* offset of the region under test */
#define LENGTH 1000u

/*
 * Offset from the region to eight bytes before address 2^64; node b's memory is at 0xabcf00000000.
 */
#define OVER_THE_END (-(int64_t)0xabcf00000000 - (int64_t)REGION - 8)

enum verdict { GOOD, DENIED, UNSUPPORTED };

struct row {
	const char *what;
	uint32_t opcode;
	uint32_t mr_access;
	uint32_t qp_access;
	uint32_t pd;
	int64_t offset; /* relative to the region's first byte */
	uint32_t length;
	uint32_t key_xor;
	enum verdict verdict;
};

#define W     URXE_ACCESS_REMOTE_WRITE
#define R     URXE_ACCESS_REMOTE_READ
#define A     URXE_ACCESS_REMOTE_ATOMIC
#define LW    URXE_ACCESS_LOCAL_WRITE
#define WRITE URXE_WR_RDMA_WRITE
#define READ  URXE_WR_RDMA_READ
#define FAA   URXE_WR_FETCH_ADD
#define CAS   URXE_WR_COMPARE_SWAP

static const struct row rows[] = {
	{"write all", WRITE, LW | W, W, NODE_PD, 0, LENGTH, 0, GOOD},
	{"write last byte", WRITE, LW | W, W, NODE_PD, LENGTH - 1, 1, 0, GOOD},
	{"write one too far", WRITE, LW | W, W, NODE_PD, 1, LENGTH, 0, DENIED},
	{"write behind", WRITE, LW | W, W, NODE_PD, LENGTH, 1, 0, DENIED},
	{"write before", WRITE, LW | W, W, NODE_PD, -1, 2, 0, DENIED},
	{"write longer than the region", WRITE, LW | W, W, NODE_PD, 0, LENGTH + 1, 0, DENIED},
	{"write over the end of the address space", WRITE, LW | W, W, NODE_PD, OVER_THE_END, 16, 0,
	 DENIED},
	{"write without right", WRITE, LW | R | A, W, NODE_PD, 0, 8, 0, DENIED},
	{"write without the QP's right", WRITE, LW | W, R | A, NODE_PD, 0, 8, 0, UNSUPPORTED},
	{"write into another domain", WRITE, LW | W, W, NODE_PD + 1, 0, 8, 0, DENIED},
	{"write with a wrong key", WRITE, LW | W, W, NODE_PD, 0, 8, 1, DENIED},
	{"write with a key's high bits wrong", WRITE, LW | W, W, NODE_PD, 0, 8, 0x80000000, DENIED},
	{"write of nothing without the QP's right", WRITE, LW | W, R | A, NODE_PD, 0, 0, 0,
	 UNSUPPORTED},
	{"write of nothing, wrong key", WRITE, LW | W, W, NODE_PD, 0, 0, 0x5555, GOOD},
	{"write of nothing, out of range", WRITE, LW | W, W, NODE_PD, 1 << 20, 0, 0, GOOD},
	{"read all", READ, R, R, NODE_PD, 0, LENGTH, 0, GOOD},
	{"read one too far", READ, R, R, NODE_PD, 1, LENGTH, 0, DENIED},
	{"read before", READ, R, R, NODE_PD, -8, 8, 0, DENIED},
	{"read without right", READ, LW | W | A, R, NODE_PD, 0, 8, 0, DENIED},
	{"read without the QP's right", READ, R, W | A, NODE_PD, 0, 8, 0, UNSUPPORTED},
	{"read from another domain", READ, R, R, NODE_PD + 1, 0, 8, 0, DENIED},
	{"read with a wrong key", READ, R, R, NODE_PD, 0, 8, 0x100, DENIED},
	{"read of nothing, wrong key", READ, R, R, NODE_PD, 0, 0, 0x5555, GOOD},
	{"add", FAA, LW | A, A, NODE_PD, 992, 8, 0, GOOD},
	{"add one word too far", FAA, LW | A, A, NODE_PD, 1000, 8, 0, DENIED},
	{"add before", FAA, LW | A, A, NODE_PD, -8, 8, 0, DENIED},
	{"add without right", FAA, LW | W | R, A, NODE_PD, 0, 8, 0, DENIED},
	{"add without the QP's right", FAA, LW | A, W | R, NODE_PD, 0, 8, 0, UNSUPPORTED},
	{"add in another domain", FAA, LW | A, A, NODE_PD + 1, 0, 8, 0, DENIED},
	{"swap", CAS, LW | A, A, NODE_PD, 0, 8, 0, GOOD},
	{"swap with a wrong key", CAS, LW | A, A, NODE_PD, 0, 8, 2, DENIED},
};

/* For each verdict: the completion status of the requester, and the event at the responder. */
static const uint32_t statuses[] = {URXE_WC_SUCCESS, URXE_WC_REM_ACCESS_ERR,
				    URXE_WC_REM_INV_REQ_ERR};
static const enum urxe_async asyncs[] = {
	[DENIED] = URXE_ASYNC_QP_ACCESS_ERR, [UNSUPPORTED] = URXE_ASYNC_QP_REQ_ERR};

/* The region under test is on node b. The bytes around the region must not change. */
static void run_row(const struct row *row)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	static uint8_t before[1 << 20];
	struct engine e;
	struct urxe_mr *mr;

	conn.access = row->qp_access;
	engine_open(&e, &conn);
	memset(e.a->mem, 0x77, 2 * LENGTH);
	mr = node_reg(e.b, row->pd, row->mr_access, REGION, LENGTH);
	memcpy(before, e.b->mem, e.b->mem_size);
	post_send(&e, 0,
		  &(struct post){.wr_id = 1,
				 .opcode = row->opcode,
				 .length = row->length,
				 .remote = REGION + (uint64_t)row->offset,
				 .rkey = urxe_mr_key(mr) ^ row->key_xor,
				 .compare_add = 1});
	pair_settle(e.pair);
	if (e.a->send_cq.ring[0].status != statuses[row->verdict])
		fail_msg("%s: status %u", row->what, e.a->send_cq.ring[0].status);
	expect_wc(&e.a->send_cq, 1, statuses[row->verdict]);
	if (row->verdict == GOOD) {
		assert_int_equal(qp_state(&e.end[1]), URXE_QPS_RTS);
	} else {
		assert_int_equal(qp_state(&e.end[0]), URXE_QPS_ERR);
		assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
		assert_memory_equal(before, e.b->mem, e.b->mem_size);
		expect_fatal_nak(e.b, e.a, statuses[row->verdict]);
		assert_int_equal(e.b->async[asyncs[row->verdict]], 1);
		assert_ptr_equal(e.b->async_obj[asyncs[row->verdict]], &e.end[1].queue);
	}
	expect_none(&e.a->send_cq);
	engine_close(&e);
}

static void test_remote_access_is_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		run_row(&rows[i]);
	}
}

/* IBA C9-78: an atomic's address is a multiple of eight. */
static void test_unaligned_atomics_are_refused(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	(void)state;
	for (uint32_t offset = 1; offset < 8; offset++) {
		struct engine e;

		engine_open(&e, &conn);
		post_send(&e, 0,
			  &(struct post){.opcode = URXE_WR_FETCH_ADD,
					 .length = 8,
					 .remote = REGION + offset,
					 .compare_add = 1});
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, 0, URXE_WC_REM_INV_REQ_ERR);
		for (uint32_t i = 0; i < 16; i++)
			assert_int_equal(e.b->mem[REGION + i], 0);
		/* IBA 11.6.3.2: a local access violation. */
		assert_int_equal(e.b->async[URXE_ASYNC_QP_ACCESS_ERR], 1);
		assert_int_equal(e.b->async[URXE_ASYNC_QP_REQ_ERR], 0);
		engine_close(&e);
	}
}

/*
 * Checks of the sender's own lkeys. A failed request moves the QP to the error state; no packet
 * tells the peer.
 */
static void test_local_keys_are_checked(void **state)
{
	static const struct {
		uint32_t opcode;
		uint32_t access, pd;
		int64_t offset;
		uint32_t length, key_xor;
		bool good;
	} local[] = {
		{URXE_WR_SEND, 0, NODE_PD, 0, LENGTH, 0, true},
		{URXE_WR_SEND, 0, NODE_PD, 1, LENGTH, 0, false},
		{URXE_WR_SEND, 0, NODE_PD, -1, 8, 0, false},
		{URXE_WR_SEND, 0, NODE_PD + 1, 0, 8, 0, false},
		{URXE_WR_SEND, 0, NODE_PD, 0, 8, 1, false},
		{URXE_WR_RDMA_WRITE, 0, NODE_PD, 0, LENGTH + 1, 0, false},
		{URXE_WR_RDMA_READ, LW, NODE_PD, 0, LENGTH, 0, true},
		{URXE_WR_RDMA_READ, 0, NODE_PD, 0, LENGTH, 0,
		 false}, /* the region has no local write right */
		{URXE_WR_FETCH_ADD, LW, NODE_PD, 0, 8, 0, true},
		{URXE_WR_FETCH_ADD, 0, NODE_PD, 0, 8, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct engine e;
		struct urxe_mr *mr;

		engine_open(&e, &conn);
		mr = node_reg(e.a, local[i].pd, local[i].access, REGION, LENGTH);
		post_recv(&e.end[1], 1, 0, 2 * LENGTH);
		post_send(&e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = local[i].opcode,
					 .offset = (uint32_t)(REGION + local[i].offset),
					 .length = local[i].length,
					 .lkey = urxe_mr_key(mr) ^ local[i].key_xor});
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, i, local[i].good ? URXE_WC_SUCCESS : URXE_WC_LOC_PROT_ERR);
		assert_int_equal(qp_state(&e.end[0]), local[i].good ? URXE_QPS_RTS : URXE_QPS_ERR);
		assert_int_equal(events(e.a, URXE_EVENT_LOCAL_ERROR), !local[i].good);
		engine_close(&e);
	}
}

/* A receive buffer without local write right: both QPs end in the error state. */
static void test_receive_buffer_needs_write_access(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_recv_wr recv = {.wr_id = 3, .n_segs = 1};
	struct urxe_seg seg;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	seg = node_seg(e.b, REGION, LENGTH);
	seg.lkey = urxe_mr_key(node_reg(e.b, NODE_PD, URXE_ACCESS_REMOTE_READ, REGION, LENGTH));
	recv.segs = &seg;
	assert_int_equal(urxe_post_recv(e.end[1].rq, &recv), 0);
	memset(e.a->mem, 0x33, 100);
	post_send(&e, 0, &(struct post){.wr_id = 4, .opcode = URXE_WR_SEND, .length = 100});
	pair_settle(e.pair);
	expect_wc(&e.b->recv_cq, 3, URXE_WC_LOC_PROT_ERR);
	expect_wc(&e.a->send_cq, 4, URXE_WC_REM_OP_ERR);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	assert_int_equal(e.b->mem[REGION], 0);
	engine_close(&e);
}

/*
 * Registered memory that the program has unmapped: the owner gets a protection error, and the peer
 * a NAK for its request.
 */
static void test_unmapped_memory_is_refused(void **state)
{
	static const struct {
		uint32_t opcode;
		unsigned side; /* the side whose memory is unmapped */
		uint32_t status;
		uint32_t recv_status;
	} gone[] = {
		{URXE_WR_SEND, 0, URXE_WC_LOC_PROT_ERR, 0},
		{WRITE, 0, URXE_WC_LOC_PROT_ERR, 0},
		{READ, 0, URXE_WC_LOC_PROT_ERR, 0},
		{FAA, 0, URXE_WC_LOC_PROT_ERR, 0},
		{URXE_WR_SEND, 1, URXE_WC_REM_OP_ERR, URXE_WC_LOC_PROT_ERR},
		{WRITE, 1, URXE_WC_REM_ACCESS_ERR, URXE_WC_WR_FLUSH_ERR},
		{READ, 1, URXE_WC_REM_ACCESS_ERR, URXE_WC_WR_FLUSH_ERR},
		{FAA, 1, URXE_WC_REM_ACCESS_ERR, URXE_WC_WR_FLUSH_ERR},
		{CAS, 1, URXE_WC_REM_ACCESS_ERR, URXE_WC_WR_FLUSH_ERR},
		{URXE_WR_ATOMIC_WRITE, 1, URXE_WC_REM_ACCESS_ERR, URXE_WC_WR_FLUSH_ERR},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct engine e;
		struct node *whose;

		engine_open(&e, &conn);
		whose = e.pair->node[gone[i].side];
		whose->memory_gone = true;
		post_recv(&e.end[1], 7, 0, LENGTH);
		post_send(&e, 0, &(struct post){.wr_id = i, .opcode = gone[i].opcode, .length = 8});
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, i, gone[i].status);
		assert_int_equal(qp_state(&e.end[0]), URXE_QPS_ERR);
		if (gone[i].recv_status)
			expect_wc(&e.b->recv_cq, 7, gone[i].recv_status);
		assert_true(events(whose, URXE_EVENT_MEMORY_GONE) > 0);
		assert_int_equal(events(e.pair->node[!gone[i].side], URXE_EVENT_MEMORY_GONE), 0);
		engine_close(&e);
	}
}

/* A region of many pieces is one range of addresses. */
static void test_extents_form_one_range(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;
	struct urxe_extent extents[3];
	struct urxe_mr_attr attr = {.pd = NODE_PD,
				    .access = LW | W | R,
				    .iova = 0x10,
				    .length = 600,
				    .extents = extents,
				    .n_extents = 3};
	struct urxe_send_wr wr = {.opcode = URXE_WR_RDMA_WRITE, .n_segs = 1};
	struct urxe_seg seg;
	struct urxe_mr *mr;

	(void)state;
	engine_open(&e, &conn);
	/* The order of the extents is not the order of their addresses. */
	extents[0] = (struct urxe_extent){e.b->mem + 5000, 1};
	extents[1] = (struct urxe_extent){e.b->mem + 3000, 299};
	extents[2] = (struct urxe_extent){e.b->mem + 1000, 300};
	assert_int_equal(urxe_mr_reg(e.b->dev, &attr, &mr), 0);
	memset(extents, 0, sizeof(extents)); /* copied */
	rand_fill(&(struct rand){1}, e.a->mem, 600);
	seg = node_seg(e.a, 0, 600);
	wr.segs = &seg;
	wr.remote_addr = 0x10;
	wr.rkey = urxe_mr_key(mr);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
	assert_int_equal(e.b->mem[5000], e.a->mem[0]);
	assert_memory_equal(e.b->mem + 3000, e.a->mem + 1, 299);
	assert_memory_equal(e.b->mem + 1000, e.a->mem + 300, 300);
	assert_int_equal(e.b->mem[4999] | e.b->mem[5001] | e.b->mem[3299] | e.b->mem[1300], 0);
	engine_close(&e);
}

static void test_registration_checks_attributes(void **state)
{
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	struct node *node = pair->node[0];
	struct urxe_extent extent = {node->mem, 100};
	struct urxe_mr_attr good = {.pd = NODE_PD,
				    .access = LW,
				    .iova = 0,
				    .length = 100,
				    .extents = &extent,
				    .n_extents = 1,
				    .key = 0x12345678};
	struct urxe_mr_attr bad;
	struct urxe_mr *mr, *second;

	(void)state;
	assert_int_equal(urxe_mr_reg(node->dev, &good, &mr), 0);
	assert_int_equal(urxe_mr_key(mr), 0x12345678);
	assert_true(urxe_mr_reg(node->dev, &good, &second) < 0); /* another region has this key */
	urxe_mr_dereg(mr);
	assert_int_equal(urxe_mr_reg(node->dev, &good, &mr), 0); /* and free again */
	bad = good;
	bad.key = 0;
	bad.iova = UINT64_MAX - 98; /* wraps */
	assert_int_equal(urxe_mr_reg(node->dev, &bad, &second), -EINVAL);
	bad.iova = 0;
	bad.length = 101; /* one byte more than the extents have */
	assert_int_equal(urxe_mr_reg(node->dev, &bad, &second), -EINVAL);
	bad.length = 99;
	assert_int_equal(urxe_mr_reg(node->dev, &bad, &second), -EINVAL);
	bad.length = 100;
	bad.access = W; /* remote write without local write (IBA 10.6.3.1) */
	assert_int_equal(urxe_mr_reg(node->dev, &bad, &second), -EINVAL);
	bad.access = A;
	assert_int_equal(urxe_mr_reg(node->dev, &bad, &second), -EINVAL);
	bad.access = R;
	assert_int_equal(urxe_mr_reg(node->dev, &bad, &second), 0);
	pair_destroy(pair);
}

/* Reregistration: afterwards the key leads to the new memory only. */
static void test_reregistration_moves_the_key(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_extent extent;
	struct urxe_mr_attr attr = {
		.pd = NODE_PD, .access = LW | W, .extents = &extent, .n_extents = 1};
	struct urxe_mr_attr bad;
	struct engine e;
	struct urxe_mr *mr;

	(void)state;
	engine_open(&e, &conn);
	mr = node_reg(e.b, NODE_PD, R, 0, 64);
	attr.key = urxe_mr_key(mr);
	attr.iova = e.b->iova + 4096;
	extent = (struct urxe_extent){e.b->mem + 1000, 64};
	attr.length = 64;
	bad = attr;
	bad.access = W;
	assert_int_equal(urxe_mr_rereg(&mr, &bad), -EINVAL);
	bad = attr;
	bad.length = 65;
	assert_int_equal(urxe_mr_rereg(&mr, &bad), -EINVAL);
	post_send(&e, 0,
		  &(struct post){.wr_id = 1, .opcode = READ, .length = 64, .rkey = attr.key});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS); /* the region did not change */
	assert_int_equal(urxe_mr_rereg(&mr, &attr), 0);
	assert_int_equal(urxe_mr_key(mr), attr.key);
	memset(e.a->mem, 0x5a, 64);
	post_send(&e, 0,
		  &(struct post){.wr_id = 2,
				 .opcode = URXE_WR_RDMA_WRITE,
				 .length = 64,
				 .remote = 4096,
				 .rkey = attr.key});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 2, URXE_WC_SUCCESS);
	assert_memory_equal(e.b->mem + 1000, e.a->mem, 64);
	post_send(&e, 0,
		  &(struct post){.wr_id = 3,
				 .opcode = READ,
				 .length = 64,
				 .remote = 4096,
				 .rkey = attr.key});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 3, URXE_WC_REM_ACCESS_ERR);
	engine_close(&e);
}

/* The engine chooses no key twice, and never key 0. */
static void test_chosen_keys_are_unique(void **state)
{
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	uint32_t keys[200];

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		keys[i] = urxe_mr_key(node_reg(pair->node[0], NODE_PD, LW, 0, 64));
		assert_int_not_equal(keys[i], 0);
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(keys[i], keys[j]);
	}
	pair_destroy(pair);
}

/* Deregistration of a region while the responder answers a READ of it: an error, no crash. */
static void test_deregistration_during_a_read_gives_remote_access_error(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;
	struct urxe_mr *mr;

	(void)state;
	engine_open(&e, &conn);
	mr = node_reg(e.b, NODE_PD, R, 0, 65536);
	post_send(&e, 0,
		  &(struct post){
			  .wr_id = 1, .opcode = READ, .length = 65536, .rkey = urxe_mr_key(mr)});
	pair_step(e.pair); /* the request is on its way to the peer */
	urxe_mr_dereg(mr);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_REM_ACCESS_ERR);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remote_access_is_checked),
		cmocka_unit_test(test_unaligned_atomics_are_refused),
		cmocka_unit_test(test_local_keys_are_checked),
		cmocka_unit_test(test_receive_buffer_needs_write_access),
		cmocka_unit_test(test_unmapped_memory_is_refused),
		cmocka_unit_test(test_extents_form_one_range),
		cmocka_unit_test(test_registration_checks_attributes),
		cmocka_unit_test(test_reregistration_moves_the_key),
		cmocka_unit_test(test_chosen_keys_are_unique),
		cmocka_unit_test(test_reregistration_moves_the_key),
		cmocka_unit_test(test_deregistration_during_a_read_gives_remote_access_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
