/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The copy transport on regions of several pieces, as those of virtual machines are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "copy_pair.h"

#define PAGE  4096u
#define PAGES (REGION / PAGE)

/* A region of the node's memory whose pages are in reverse order, at the node's usual address. */
static struct urxe_mr *reg_reversed(struct node *node)
{
	struct urxe_extent extents[PAGES];
	const struct urxe_mr_attr attr = {
		.pd = NODE_PD,
		.access = NODE_ACCESS,
		.iova = node->iova,
		.length = REGION,
		.extents = extents,
		.n_extents = PAGES,
	};
	struct urxe_mr *mr;

	for (uint32_t i = 0; i < PAGES; i++)
		extents[i] = (struct urxe_extent){node->mem + (PAGES - 1 - i) * PAGE, PAGE};
	require(!urxe_mr_reg(node->dev, &attr, &mr));
	return mr;
}

/* The byte of the reversed region at an offset. */
static uint8_t *at(const struct node *node, uint32_t offset)
{
	return node->mem + (PAGES - 1 - offset / PAGE) * PAGE + offset % PAGE;
}

static void expect_equal(const struct copy_pair *d, const struct post *post)
{
	for (uint32_t i = 0; i < post->length; i++)
		assert_int_equal(*at(d->e.a, post->offset + i), *at(d->e.b, post->remote + i));
}

/* Requests that begin and end anywhere in pieces, at both ends. */
static void test_copies_cross_piece_boundaries_anywhere(void **state)
{
	static const struct {
		uint32_t local, remote, length;
	} rows[] = {
		{0, 0, 1},
		{PAGE - 1, 5, 2},
		{7, PAGE - 1, 2},
		{PAGE, 2 * PAGE, PAGE},
		{100, 3 * PAGE - 3, 3 * PAGE},
		{PAGE + 1, PAGE + 1, 9 * PAGE},
		{0, 0, REGION},
		{REGION - 9, 0, 9},
		{0, REGION - 9, 9},
	};
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	d.key[0] = urxe_mr_key(reg_reversed(d.e.a));
	d.key[1] = urxe_mr_key(reg_reversed(d.e.b));
	for (uint32_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		post = a_post(&d, i % 2 ? URXE_WR_RDMA_READ : URXE_WR_RDMA_WRITE, i);
		post.offset = rows[i / 2].local;
		post.remote = rows[i / 2].remote;
		post.length = rows[i / 2].length;
		fill(d.e.a->mem, REGION, (uint8_t)i);
		fill(d.e.b->mem, REGION, (uint8_t)(100 + i));
		run(&d, &post, URXE_WC_SUCCESS);
		assert_int_equal(d.way[0].copies, i + 1);
		expect_equal(&d, &post);
	}
	/* One byte too many at either end of the responder's region. */
	post.length = REGION;
	post.remote = post.offset = 1;
	post.lkey = urxe_mr_key(node_reg(d.e.a, NODE_PD, NODE_ACCESS, 0, REGION + 1));
	run(&d, &post, URXE_WC_REM_ACCESS_ERR);
	copy_pair_close(&d);
}

/* A hole, a page, a hole and two pages. */
static struct urxe_mr *reg_holes(struct node *node)
{
	const struct urxe_extent extents[] = {
		{NULL, PAGE}, {node->mem, PAGE}, {NULL, PAGE}, {node->mem + 4 * PAGE, 2 * PAGE}};
	const struct urxe_mr_attr attr = {
		.pd = NODE_PD,
		.access = NODE_ACCESS,
		.iova = node->iova,
		.length = 5 * PAGE,
		.extents = extents,
		.n_extents = 4,
	};
	struct urxe_mr *mr;

	require(!urxe_mr_reg(node->dev, &attr, &mr));
	return mr;
}

/* A region with holes, as that of all memory of a guest is: requests outside the holes are copied,
 * and others fail as in packets. */
static void test_copies_outside_holes_succeed_and_inside_fail(void **state)
{
	static const struct {
		uint32_t offset, length;
		bool hole;
	} rows[] = {
		{PAGE, PAGE, false},
		{3 * PAGE, 2 * PAGE, false},
		{4 * PAGE - 1, 2, false},
		{0, 8, true},
		{PAGE - 1, 2, true},
		{2 * PAGE - 1, 2, true},
		{2 * PAGE + 5, PAGE - 5, true},
		{3 * PAGE - 1, 2, true},
	};

	(void)state;
	for (uint32_t i = 0; i < 4 * sizeof(rows) / sizeof(rows[0]); i++) {
		const uint32_t row = i / 4;
		const bool read = i % 2, local = i % 4 > 1;
		struct copy_pair d;
		struct post post;

		setup_proven(&d);
		d.key[!local] = urxe_mr_key(reg_holes(local ? d.e.a : d.e.b));
		post = a_post(&d, read ? URXE_WR_RDMA_READ : URXE_WR_RDMA_WRITE, i);
		post.length = rows[row].length;
		if (local)
			post.offset = rows[row].offset;
		else
			post.remote = rows[row].offset;
		run(&d, &post,
		    !rows[row].hole ? URXE_WC_SUCCESS
		    : local         ? URXE_WC_LOC_PROT_ERR
				    : URXE_WC_REM_ACCESS_ERR);
		assert_int_equal(d.way[0].copies, !rows[row].hole);
		copy_pair_close(&d);
	}
}

/* Nothing of the region is mapped: it is not published. */
static void test_unmapped_region_is_not_published(void **state)
{
	const struct urxe_extent hole = {NULL, PAGE};
	const struct urxe_mr_attr attr = {.pd = NODE_PD,
					  .access = NODE_ACCESS,
					  .length = PAGE,
					  .extents = &hole,
					  .n_extents = 1};
	struct urxe_mr *mr;
	struct copy_pair d;

	(void)state;
	setup_proven(&d);
	assert_int_equal(urxe_mr_reg(d.e.b->dev, &attr, &mr), 0);
	assert_int_equal(d.e.b->table->grants[(urxe_mr_key(mr) >> 8) % URXE_COPY_GRANTS].key, 0);
	copy_pair_close(&d);
}

/* A region of n pieces of one byte, all the same byte. */
static struct urxe_mr *reg_bytes(struct node *node, uint32_t n)
{
	struct urxe_extent *extents = malloc(n * sizeof(*extents));
	const struct urxe_mr_attr attr = {
		.pd = NODE_PD,
		.access = NODE_ACCESS,
		.iova = node->iova,
		.length = n,
		.extents = extents,
		.n_extents = n,
	};
	struct urxe_mr *mr;

	require(extents);
	for (uint32_t i = 0; i < n; i++)
		extents[i] = (struct urxe_extent){node->mem, 1};
	require(!urxe_mr_reg(node->dev, &attr, &mr));
	free(extents);
	return mr;
}

/* Whether a WRITE of `length` bytes to the region is copied; in packets it succeeds as well. */
static bool is_copied(struct copy_pair *d, const struct urxe_mr *mr, uint32_t length)
{
	const uint32_t before = d->way[0].copies;
	struct post post = a_post(d, URXE_WR_RDMA_WRITE, 3);

	post.remote = 0;
	post.rkey = urxe_mr_key(mr);
	post.length = length;
	fill(d->e.a->mem + post.offset, length, (uint8_t)(before + 1));
	run(d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d->e.b->mem[0], d->e.a->mem[post.offset + length - 1]);
	return d->way[0].copies > before;
}

static void test_copies_need_free_piece_entries(void **state)
{
	/* A region of the nodes' own has some pieces, too. */
	enum { MOST = URXE_COPY_GRANT_PIECES, REGIONS = URXE_COPY_PIECES / MOST - 1 };
	struct urxe_mr *mr[REGIONS], *more;
	struct copy_pair d;

	(void)state;
	setup_proven(&d);
	more = reg_bytes(d.e.b, MOST + 1);
	assert_false(is_copied(&d, more, 1));
	for (uint32_t i = 0; i < REGIONS; i++)
		mr[i] = reg_bytes(d.e.b, MOST);
	for (uint32_t i = 0; i < REGIONS; i++)
		assert_true(is_copied(&d, mr[i], 1));
	/* There is no further run of that length, until a region gives its entries back. */
	more = reg_bytes(d.e.b, MOST);
	assert_false(is_copied(&d, more, 1));
	assert_int_equal(urxe_mr_dereg(more), 0);
	assert_int_equal(urxe_mr_dereg(mr[1]), 0);
	more = reg_bytes(d.e.b, MOST);
	assert_true(is_copied(&d, more, 2));
	/* Of one copy. */
	assert_true(is_copied(&d, mr[0], URXE_COPY_EXTENTS));
	assert_false(is_copied(&d, mr[0], URXE_COPY_EXTENTS + 1));
	copy_pair_close(&d);
}

/* The peer writes nonsense to its table: the request goes in packets. */
static void test_damaged_piece_list_of_the_peer_causes_packets(void **state)
{
	struct urxe_copy_grant *grant, good;
	struct urxe_copy_piece *pieces;
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	d.key[1] = urxe_mr_key(reg_reversed(d.e.b));
	grant = &d.e.b->table->grants[(d.key[1] >> 8) % URXE_COPY_GRANTS];
	good = *grant;
	pieces = &d.e.b->table->pieces[grant->pieces];
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	post.offset = post.remote = 0;
	post.length = 3 * PAGE;
	for (uint32_t i = 0; i < 6; i++) {
		*grant = good;
		for (uint32_t k = 0; k < PAGES; k++)
			pieces[k].offset = k * PAGE;
		switch (i) {
		case 0: pieces[1].offset = 2 * PAGE; break; /* the third piece is empty */
		case 1: pieces[2].offset = 1; break;
		case 2: pieces[0].offset = 1; break;
		case 3: grant->n_pieces = 0; break;
		case 4: grant->n_pieces = UINT32_MAX; break;
		case 5: grant->pieces = URXE_COPY_PIECES - PAGES + 1; break;
		}
		fill(d.e.a->mem, post.length, (uint8_t)(i + 1));
		run(&d, &post, URXE_WC_SUCCESS);
		assert_int_equal(d.way[0].copies, 0);
		for (uint32_t k = 0; k < post.length; k++)
			assert_int_equal(*at(d.e.b, k), d.e.a->mem[k]);
	}
	*grant = good;
	pieces[0].offset = 0;
	run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d.way[0].copies, 1);
	copy_pair_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies_cross_piece_boundaries_anywhere),
		cmocka_unit_test(test_copies_outside_holes_succeed_and_inside_fail),
		cmocka_unit_test(test_unmapped_region_is_not_published),
		cmocka_unit_test(test_copies_need_free_piece_entries),
		cmocka_unit_test(test_damaged_piece_list_of_the_peer_causes_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
