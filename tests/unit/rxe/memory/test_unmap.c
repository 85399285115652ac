/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory unmapped from a region: accesses to it are refused, whatever is mapped there later, and
 * accesses to the rest succeed.
 */
#include <string.h>

#include "window.h"

#define REGION_SIZE 8192u
#define GONE_FROM   2000u /* of the region */
#define GONE_BYTES  3000u

struct unmapped {
	struct engine e;
	struct urxe_mr *mr; /* node b's region, of which a part is unmapped */
};

static void unmap(struct urxe_mr *mr, uint8_t *from, uint64_t length)
{
	assert_int_equal(urxe_mr_unmap(mr, &(struct urxe_extent){from, length}), 0);
}

static void open_unmapped(struct unmapped *u, uint32_t access)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	engine_open(&u->e, &conn);
	memset(u->e.a->mem, 0x77, REGION_SIZE);
	u->mr = node_reg(u->e.b, NODE_PD, access, REGION, REGION_SIZE);
	unmap(u->mr, u->e.b->mem + REGION + GONE_FROM, GONE_BYTES);
}

/* --- Each operation before, within, across the borders of, and behind the unmapped part. */

static const struct row {
	uint32_t offset, length;
	bool refused;
} rows[] = {
	{0, GONE_FROM, false},
	{GONE_FROM - 1, 1, false},
	{GONE_FROM, 8, true},
	{GONE_FROM - 8, 16, true},
	{GONE_FROM + 1000, 1, true},
	{GONE_FROM + GONE_BYTES - 1, 1, true},
	{GONE_FROM + GONE_BYTES - 1, 9, true},
	{GONE_FROM + GONE_BYTES, REGION_SIZE - GONE_FROM - GONE_BYTES, false},
	{0, REGION_SIZE, true},
};

static const struct operation {
	uint32_t opcode;
	unsigned side; /* the side of the region; the other side's memory is whole */
	uint32_t status, recv_status;
} operations[] = {
	{URXE_WR_SEND, 0, URXE_WC_LOC_PROT_ERR, 0},
	{WRITE, 0, URXE_WC_LOC_PROT_ERR, 0},
	{READ, 0, URXE_WC_LOC_PROT_ERR, 0},
	{URXE_WR_SEND, 1, URXE_WC_REM_OP_ERR, URXE_WC_LOC_PROT_ERR},
	{WRITE, 1, URXE_WC_REM_ACCESS_ERR, 0},
	{READ, 1, URXE_WC_REM_ACCESS_ERR, 0},
};

/* Node b owns the region: node b posts the request, or is its responder. */
static void run(const struct operation *o, const struct row *row)
{
	struct unmapped u;
	struct endpoint *owner, *other;
	uint8_t *memory;

	open_unmapped(&u, LW | W | R);
	owner = &u.e.end[1];
	other = &u.e.end[0];
	memory = u.e.b->mem + REGION + GONE_FROM;
	memset(memory, 0x11, GONE_BYTES);
	if (o->opcode == URXE_WR_SEND) {
		struct endpoint *to = o->side ? owner : other;
		struct urxe_seg seg = node_seg(to->node, REGION + row->offset, row->length);
		struct urxe_recv_wr wr = {.wr_id = 7, .segs = &seg, .n_segs = 1};

		seg.lkey = o->side ? urxe_mr_key(u.mr) : seg.lkey;
		assert_int_equal(urxe_post_recv(to->rq, &wr), 0);
	}
	if (o->side)
		post_send(&u.e, 0,
			  &(struct post){.wr_id = 1,
					 .opcode = o->opcode,
					 .length = row->length,
					 .remote = REGION + row->offset,
					 .rkey = urxe_mr_key(u.mr)});
	else
		post_send(&u.e, 1,
			  &(struct post){.wr_id = 1,
					 .opcode = o->opcode,
					 .offset = REGION + row->offset,
					 .length = row->length,
					 .lkey = urxe_mr_key(u.mr)});
	pair_settle(u.e.pair);
	expect_wc(o->side ? &u.e.a->send_cq : &u.e.b->send_cq, 1,
		  row->refused ? o->status : URXE_WC_SUCCESS);
	if (row->refused && o->recv_status)
		expect_wc(&u.e.b->recv_cq, 7, o->recv_status);
	assert_int_equal(events(u.e.b, URXE_EVENT_MEMORY_GONE) > 0, row->refused);
	for (uint32_t i = 0; i < GONE_BYTES; i++)
		assert_int_equal(memory[i], 0x11);
	engine_close(&u.e);
}

static void test_operations_on_unmapped_memory_are_refused(void **state)
{
	(void)state;
	for (size_t o = 0; o < sizeof(operations) / sizeof(operations[0]); o++)
		for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
			run(&operations[o], &rows[r]);
}

static void test_atomics_on_unmapped_memory_are_refused(void **state)
{
	static const uint32_t opcodes[] = {FAA, CAS, URXE_WR_ATOMIC_WRITE};

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		bool refused = i % 2;
		struct unmapped u;

		open_unmapped(&u, LW | W | A);
		post_send(&u.e, 0,
			  &(struct post){.wr_id = 1,
					 .opcode = opcodes[i / 2],
					 .length = 8,
					 .remote = REGION + GONE_FROM - (refused ? 0 : 8),
					 .rkey = urxe_mr_key(u.mr)});
		pair_settle(u.e.pair);
		expect_wc(&u.e.a->send_cq, 1, refused ? URXE_WC_REM_ACCESS_ERR : URXE_WC_SUCCESS);
		engine_close(&u.e);
	}
}

/* A request that waits in a queue, and a request that has sent some of its packets. */
static void test_queued_requests_find_the_memory_unmapped(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;
	struct urxe_mr *mr;

	(void)state;
	engine_open(&e, &conn);
	mr = node_reg(e.a, NODE_PD, LW, REGION, 1 << 19);
	for (uint64_t i = 0; i < 2; i++)
		post_send(&e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = WRITE,
					 .offset = REGION,
					 .length = 1 << 19,
					 .lkey = urxe_mr_key(mr)});
	pair_step(e.pair);
	unmap(mr, e.a->mem + REGION + (1 << 18), 1 << 18);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, URXE_WC_LOC_PROT_ERR);
	expect_wc(&e.a->send_cq, 1, URXE_WC_WR_FLUSH_ERR);
	engine_close(&e);
}

/*
 * --- The response of a READ was lost and its memory unmapped: the responder drops the repetition,
 * as it does for an invalid key.
 */

static bool lose_one(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	bool *lost = arg, passes = *lost;

	(void)now;
	(void)data;
	(void)len;
	*lost = true;
	return passes;
}

static void test_repeated_read_of_unmapped_memory_is_refused(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;
	struct urxe_mr *mr;
	bool lost = false;

	(void)state;
	engine_open(&e, &conn);
	mr = node_reg(e.b, NODE_PD, R, REGION, LENGTH);
	e.pair->link[1].filter = lose_one;
	e.pair->link[1].filter_arg = &lost;
	post_send(&e, 0,
		  &(struct post){.wr_id = 1,
				 .opcode = READ,
				 .length = LENGTH,
				 .remote = REGION,
				 .rkey = urxe_mr_key(mr)});
	while (!lost)
		assert_true(pair_run(e.pair, pair_next(e.pair)) != PAIR_STUCK);
	unmap(mr, e.b->mem + REGION, LENGTH);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_RETRY_EXC_ERR);
	assert_true(events(e.b, URXE_EVENT_MEMORY_GONE) > 0);
	engine_close(&e);
}

/* --- Windows of the region, and its reregistration. */

static void test_window_on_unmapped_memory_is_refused(void **state)
{
	static const struct {
		uint32_t from; /* of the window */
		uint32_t status;
	} cases[] = {{0, URXE_WC_SUCCESS}, {SIZE / 2, URXE_WC_REM_ACCESS_ERR}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct urxe_mw_bind bind;
		struct bench b;

		open_bench(&b, URXE_QPT_RC, TYPE_1);
		bind = bind_to(&b, W);
		post_bind(b.e.end[1].qp, 5, &bind);
		pair_settle(b.e.pair);
		expect_wc(&b.e.b->send_cq, 5, URXE_WC_SUCCESS);
		unmap(b.mr, b.e.b->mem + REGION + PART + SIZE / 2, SIZE / 2);
		post_send(&b.e, 0,
			  &(struct post){.wr_id = 1,
					 .opcode = WRITE,
					 .length = SIZE / 2,
					 .remote = REGION + PART + cases[i].from,
					 .rkey = urxe_mw_key(b.mw)});
		pair_settle(b.e.pair);
		expect_wc(&b.e.a->send_cq, 1, cases[i].status);
		assert_int_equal(urxe_mr_dereg(b.mr), -EBUSY);
		engine_close(&b.e);
	}
}

static void write_all(struct unmapped *u, struct urxe_mr *mr, uint32_t status)
{
	post_send(&u->e, 0,
		  &(struct post){.wr_id = 1,
				 .opcode = WRITE,
				 .length = REGION_SIZE,
				 .remote = REGION,
				 .rkey = urxe_mr_key(mr)});
	pair_settle(u->e.pair);
	expect_wc(&u->e.a->send_cq, 1, status);
}

/*
 * Another region of the same memory keeps all its pages, and a new registration has all pages, too.
 */
static void test_other_regions_keep_the_pages(void **state)
{
	struct urxe_extent extent = {.length = REGION_SIZE};
	struct urxe_mr_attr attr = {.pd = NODE_PD,
				    .access = LW | W,
				    .length = REGION_SIZE,
				    .extents = &extent,
				    .n_extents = 1};
	struct unmapped u;

	(void)state;
	open_unmapped(&u, LW | W);
	write_all(&u, node_reg(u.e.b, NODE_PD, LW | W, REGION, REGION_SIZE), URXE_WC_SUCCESS);
	extent.addr = u.e.b->mem + REGION;
	attr.iova = u.e.b->iova + REGION;
	assert_int_equal(urxe_mr_rereg(&u.mr, &attr), 0);
	write_all(&u, u.mr, URXE_WC_SUCCESS);
	/* A range beside the region, and an empty range. */
	unmap(u.mr, u.e.b->mem, REGION);
	unmap(u.mr, u.e.b->mem + REGION + REGION_SIZE, REGION_SIZE);
	unmap(u.mr, u.e.b->mem + REGION, 0);
	write_all(&u, u.mr, URXE_WC_SUCCESS);
	urxe_mr_unmap_all(u.mr);
	write_all(&u, u.mr, URXE_WC_REM_ACCESS_ERR);
	assert_int_equal(urxe_mr_dereg(u.mr), 0);
	engine_close(&u.e);
}

/*
 * --- Overlapping calls, some of which fail: the region gets back the pages that all calls leave
 * mapped.
 */

static void test_failed_unmap_calls_restore_the_region(void **state)
{
	struct urxe_extent calls[2];
	struct unmapped u;

	(void)state;
	for (unsigned int done = 0; done < 4; done++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);

		engine_open(&u.e, &conn);
		u.mr = node_reg(u.e.b, NODE_PD, LW | W, REGION, REGION_SIZE);
		calls[0] = (struct urxe_extent){u.e.b->mem + REGION + 1000, 3000};
		calls[1] = (struct urxe_extent){u.e.b->mem + REGION + 3000, 3000};
		unmap(u.mr, calls[0].addr, calls[0].length);
		unmap(u.mr, calls[1].addr, calls[1].length);
		urxe_mr_unmapped(u.mr, &calls[0], done & 1);
		urxe_mr_unmapped(u.mr, &calls[1], done & 2);
		write_all(&u, u.mr, done ? URXE_WC_REM_ACCESS_ERR : URXE_WC_SUCCESS);
		engine_close(&u.e);
	}
}

/* --- Random ranges of a region whose pieces lie anywhere and may overlap. */

#define PIECES 4
#define ROOM   512u

static void random_holes(struct rand *rand)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_extent extents[PIECES];
	struct urxe_mr_attr attr = {
		.pd = NODE_PD, .access = LW | W, .extents = extents, .n_extents = PIECES};
	uint8_t *places[PIECES * ROOM];
	bool gone[ROOM] = {false}, refused = false;
	struct engine e;
	struct urxe_send_wr wr = {.opcode = WRITE, .n_segs = 1};
	struct urxe_seg seg;
	struct urxe_mr *mr;
	struct urxe_extent calls[6];
	uint64_t n_calls = rand_below(rand, 6);
	uint32_t from, length;

	engine_open(&e, &conn);
	for (int i = 0; i < PIECES; i++) {
		uint32_t at = (uint32_t)rand_below(rand, ROOM);

		extents[i] = (struct urxe_extent){e.b->mem + at, rand_below(rand, ROOM - at)};
		for (uint64_t n = 0; n < extents[i].length; n++)
			places[attr.length++] = e.b->mem + at + n;
	}
	assert_int_equal(urxe_mr_reg(e.b->dev, &attr, &mr), 0);
	for (uint64_t n = 0; n < n_calls; n++) {
		uint32_t at = (uint32_t)rand_below(rand, ROOM);

		calls[n] = (struct urxe_extent){e.b->mem + at, rand_below(rand, ROOM - at) / 4};
		unmap(mr, calls[n].addr, calls[n].length);
	}
	/* Some calls fail, some succeed, and for some the result never comes. */
	for (uint64_t n = 0; n < n_calls; n++) {
		uint64_t outcome = rand_below(rand, 4);

		if (outcome < 3)
			urxe_mr_unmapped(mr, &calls[n], outcome);
		if (outcome)
			memset(gone + ((uint8_t *)calls[n].addr - e.b->mem), true, calls[n].length);
	}
	from = (uint32_t)rand_below(rand, attr.length + 1);
	length = (uint32_t)rand_below(rand, attr.length - from + 1) / 4;
	for (uint32_t i = from; i < from + length; i++)
		refused |= gone[places[i] - e.b->mem];
	seg = node_seg(e.a, 0, length);
	wr.segs = &seg;
	wr.remote_addr = from;
	wr.rkey = urxe_mr_key(mr);
	memset(e.a->mem, 0x77, length);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 0, refused ? URXE_WC_REM_ACCESS_ERR : URXE_WC_SUCCESS);
	for (uint32_t i = 0; i < ROOM; i++)
		assert_true(!gone[i] || e.b->mem[i] == 0);
	for (uint32_t i = from; i < from + length && !refused; i++)
		assert_int_equal(*places[i], 0x77);
	engine_close(&e);
}

static void test_random_holes_match_a_model(void **state)
{
	struct rand rand = {1};

	(void)state;
	for (int i = 0; i < 300; i++)
		random_holes(&rand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations_on_unmapped_memory_are_refused),
		cmocka_unit_test(test_atomics_on_unmapped_memory_are_refused),
		cmocka_unit_test(test_queued_requests_find_the_memory_unmapped),
		cmocka_unit_test(test_repeated_read_of_unmapped_memory_is_refused),
		cmocka_unit_test(test_window_on_unmapped_memory_is_refused),
		cmocka_unit_test(test_other_regions_keep_the_pages),
		cmocka_unit_test(test_failed_unmap_calls_restore_the_region),
		cmocka_unit_test(test_random_holes_match_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
