/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SENDs with a reference to a payload of several pieces, as those of virtual machines are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "copy_pair.h"

#define PAGE   4096u
#define PAGES  80u /* of the regions */
#define SIZE   (PAGES * PAGE)
#define FRAMES 64
#define ROOM   4300u

static uint8_t buffers[FRAMES][ROOM];

struct world {
	struct copy_pair d;
	struct node *a, *b;
	uint32_t key[2]; /* of the regions */
	struct urxe_frame frames[FRAMES];
	uint32_t n, room; /* frames, and the size of each */
};

/* A region of `n` pieces of `size` bytes at the node's usual address, the last piece first in
 * memory. */
static struct urxe_mr *reg_reversed(struct node *node, uint32_t n, uint32_t size)
{
	struct urxe_extent *extents = malloc(n * sizeof(*extents));
	const struct urxe_mr_attr attr = {
		.pd = NODE_PD,
		.access = NODE_ACCESS,
		.iova = node->iova,
		.length = (uint64_t)n * size,
		.extents = extents,
		.n_extents = n,
	};
	struct urxe_mr *mr;

	require(extents);
	for (uint32_t i = 0; i < n; i++)
		extents[i] = (struct urxe_extent){node->mem + (size_t)(n - 1 - i) * size, size};
	require(!urxe_mr_reg(node->dev, &attr, &mr));
	free(extents);
	return mr;
}

/* The byte of a region of pages at an offset. */
static uint8_t byte_at(const struct node *node, uint32_t offset)
{
	return node->mem[(PAGES - 1 - offset / PAGE) * PAGE + offset % PAGE];
}

static void open_world(struct world *w)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.path_mtu = URXE_MTU_4096;
	copy_pair_open(&w->d, &conn);
	w->a = w->d.e.a;
	w->b = w->d.e.b;
	w->room = ROOM;
	w->key[0] = urxe_mr_key(reg_reversed(w->a, PAGES, PAGE));
	w->key[1] = urxe_mr_key(reg_reversed(w->b, PAGES, PAGE));
	fill(w->a->mem, SIZE, 3);
	memset(w->b->mem, 0, SIZE);
}

static void close_world(struct world *w)
{
	copy_pair_close(&w->d);
}

static void receive(struct world *w, uint32_t offset, uint32_t length)
{
	const struct urxe_seg seg = {w->b->iova + offset, length, w->key[1]};
	const struct urxe_recv_wr wr = {.wr_id = 6, .segs = &seg, .n_segs = 1};

	assert_int_equal(urxe_post_recv(urxe_qp_rq(w->d.e.end[1].qp), &wr), 0);
}

static void send(struct world *w, uint32_t offset, uint32_t length)
{
	const struct urxe_seg seg = {w->a->iova + offset, length, w->key[0]};
	const struct urxe_send_wr wr = {.wr_id = 5,
					.flags = URXE_SEND_SIGNALED,
					.segs = &seg,
					.n_segs = 1,
					.opcode = URXE_WR_SEND};

	assert_int_equal(urxe_post_send(w->d.e.end[0].qp, &wr), 0);
}

/* Passes node 0's frames to node 1 with their references, as the callers of both engines do. */
static void pass_frames(struct world *w)
{
	w->a->references = true;
	for (int i = 0; i < FRAMES; i++)
		w->frames[i] = (struct urxe_frame){.data = buffers[i], .room = w->room};
	w->n = urxe_output(w->a->dev, w->d.e.pair->now, w->frames, FRAMES);
	for (uint32_t i = 0; i < w->n; i++) {
		struct urxe_frame *frame = &w->frames[i];

		frame->reference.sender = w->a;
		frame->reference.pieces = frame->data + frame->len - URXE_ICRC_LEN;
		/* The pieces stand there. */
		frame->without_icrc = frame->reference.n_pieces;
	}
	w->a->references = false;
	urxe_input(w->b->dev, w->d.e.pair->now, w->frames, w->n);
	pair_settle(w->d.e.pair);
}

static void expect_arrival(struct world *w, uint32_t from, uint32_t to, uint32_t length)
{
	expect_wc(&w->a->send_cq, 5, URXE_WC_SUCCESS);
	assert_int_equal(expect_wc(&w->b->recv_cq, 6, URXE_WC_SUCCESS).byte_len, length);
	for (uint32_t i = 0; i < length; i++)
		assert_int_equal(byte_at(w->b, to + i), byte_at(w->a, from + i));
	assert_int_equal(byte_at(w->b, to + length), 0);
	assert_int_equal(events(w->a, URXE_EVENT_RETRANSMIT), 0);
}

/* Payloads that begin and end anywhere in pages, at both ends, need one frame. */
static void test_scattered_payload_needs_one_frame(void **state)
{
	static const struct {
		uint32_t from, to, length;
	} rows[] = {
		{0, 0, URXE_REFERENCE_MIN},
		{1, 0, URXE_REFERENCE_MIN},
		{0, PAGE - 1, URXE_REFERENCE_MIN + 1},
		{PAGE - 1, 7, 65536},
		{100, 3 * PAGE + 5, 3 * PAGE},
		{5, 4, URXE_REFERENCE_MAX - 1},
		{PAGE - 1, 1, URXE_REFERENCE_MAX},
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;

		open_world(&w);
		receive(&w, rows[i].to, rows[i].length);
		send(&w, rows[i].from, rows[i].length);
		pass_frames(&w);
		assert_int_equal(w.n, 1);
		assert_int_equal(w.frames[0].reference.length, rows[i].length);
		assert_true(w.frames[0].len < 100);
		expect_arrival(&w, rows[i].from, rows[i].to, rows[i].length);
		close_world(&w);
	}
}

/* Frames that have room for few pieces reference fewer packets each. */
static void test_short_piece_lists_reference_fewer_packets(void **state)
{
	const uint32_t length = 30 * PAGE;
	struct world w;

	(void)state;
	open_world(&w);
	w.room = URXE_REFERENCE_ROOM + 10 * (uint32_t)sizeof(struct urxe_reference_piece);
	receive(&w, 0, length);
	send(&w, 1, length);
	pass_frames(&w);
	/* Ten pieces begin with a page but for one byte, so they contain nine packets. */
	assert_int_equal(w.n, 4);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(w.frames[i].reference.length, 9 * PAGE);
	assert_int_equal(w.frames[3].reference.length, 3 * PAGE);
	expect_arrival(&w, 1, 0, length);
	close_world(&w);
}

/* One frame lists 128 pieces at most, and references whole packets. */
static void test_frame_references_at_most_128_pieces(void **state)
{
	static const struct {
		uint32_t size, reference, pieces;
	} rows[] = {{63, 0, 0}, {64, 2 * PAGE, 128}, {65, 2 * PAGE, 127}};
	const uint32_t length = 3 * PAGE + 5;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct world w;

		open_world(&w);
		w.key[0] = urxe_mr_key(reg_reversed(w.a, SIZE / rows[i].size, rows[i].size));
		receive(&w, 0, length);
		send(&w, 0, length);
		pass_frames(&w);
		assert_int_equal(w.frames[0].reference.length, rows[i].reference);
		if (rows[i].reference)
			assert_int_equal(w.frames[0].reference.n_pieces, rows[i].pieces);
		assert_int_equal(w.frames[1].reference.length, 0);
		expect_wc(&w.a->send_cq, 5, URXE_WC_SUCCESS);
		expect_wc(&w.b->recv_cq, 6, URXE_WC_SUCCESS);
		close_world(&w);
	}
}

/* A page of the payload is unmapped: the request fails, and no reference names the rest. */
static void test_unmapped_payload_is_not_referenced(void **state)
{
	struct urxe_mr *mr;
	struct world w;

	(void)state;
	open_world(&w);
	mr = reg_reversed(w.a, PAGES, PAGE);
	w.key[0] = urxe_mr_key(mr);
	assert_int_equal(urxe_mr_unmap(mr, &(struct urxe_extent){w.a->mem + (PAGES - 4) * PAGE, 1}),
			 0);
	receive(&w, 0, 65536);
	send(&w, 0, 65536);
	pass_frames(&w);
	for (uint32_t i = 0; i < w.n; i++)
		assert_int_equal(w.frames[i].reference.length, 0);
	expect_wc(&w.a->send_cq, 5, URXE_WC_LOC_PROT_ERR);
	close_world(&w);
}

/* The receive buffer has more pieces than one copy may have: packets bring the payload. */
static void test_too_scattered_receive_buffer_gets_packets(void **state)
{
	const uint32_t length = 3 * PAGE;
	struct world w;

	(void)state;
	open_world(&w);
	w.key[1] = urxe_mr_key(reg_reversed(w.b, SIZE / 64, 64));
	receive(&w, 0, length);
	send(&w, 0, length);
	pass_frames(&w);
	assert_int_equal(w.frames[0].reference.length, length);
	assert_int_equal(drops(w.b, URXE_DROP_UNREADABLE), 1);
	expect_wc(&w.a->send_cq, 5, URXE_WC_SUCCESS);
	assert_int_equal(expect_wc(&w.b->recv_cq, 6, URXE_WC_SUCCESS).byte_len, length);
	for (uint32_t i = 0; i < length; i++)
		assert_int_equal(w.b->mem[(SIZE / 64 - 1 - i / 64) * 64 + i % 64], byte_at(w.a, i));
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scattered_payload_needs_one_frame),
		cmocka_unit_test(test_short_piece_lists_reference_fewer_packets),
		cmocka_unit_test(test_frame_references_at_most_128_pieces),
		cmocka_unit_test(test_unmapped_payload_is_not_referenced),
		cmocka_unit_test(test_too_scattered_receive_buffer_gets_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
