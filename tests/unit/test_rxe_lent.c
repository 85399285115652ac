/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets whose payload stays where the program has it: which those are, that they are the same
 * packets, and what a receiver does with one that is not what it says.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#include "rand.h"

#define REGION 65536u
/* Of the region, what lies in the window, and where there. */
#define FROM   (4 * URXE_DIRECT_PAGE)
#define SHARED (8 * URXE_DIRECT_PAGE)
#define PLACE  (3 * URXE_DIRECT_PAGE)
#define TO     524288u /* in the peer's memory */

#define FRAMES 32
#define ROOM   4300

static uint8_t buffers[FRAMES][ROOM];

struct world {
	struct engine e;
	struct urxe_mr *mr; /* node a's */
	struct urxe_frame frames[FRAMES];
	uint32_t n;
};

static void open_conn(struct world *w, struct conn_attr conn)
{
	conn.path_mtu = URXE_MTU_4096;
	engine_open(&w->e, &conn);
	w->mr = node_reg(w->e.a, NODE_PD, NODE_ACCESS, 0, REGION);
	urxe_mr_share(w->mr, &(struct urxe_shared){w->e.a->mem + FROM, SHARED, PLACE});
	for (uint32_t i = 0; i < REGION; i++)
		w->e.a->mem[i] = (uint8_t)(i * 7 + i / 256);
}

static void open_world(struct world *w, enum urxe_qp_type type)
{
	open_conn(w, conn_default(type));
}

static void close_world(struct world *w)
{
	engine_close(&w->e);
}

static struct post a_write(const struct world *w, uint32_t offset, uint32_t length)
{
	return (struct post){
		.wr_id = 5,
		.opcode = URXE_WR_RDMA_WRITE,
		.flags = URXE_SEND_SIGNALED,
		.offset = offset,
		.length = length,
		.remote = TO,
		.lkey = urxe_mr_key(w->mr),
	};
}

static void output(struct world *w, unsigned side, bool may_lend)
{
	for (int i = 0; i < FRAMES; i++)
		w->frames[i] = (struct urxe_frame){.data = buffers[i], .room = ROOM};
	w->e.pair->node[side]->lending = may_lend ? URXE_LENDS_CHECKED : URXE_LENDS_NOT;
	w->n = urxe_output(w->e.pair->node[side]->dev, w->e.pair->now, w->frames, FRAMES);
	assert_true(w->n < FRAMES);
}

static void input(struct world *w, unsigned side)
{
	urxe_input(w->e.pair->node[side]->dev, w->e.pair->now, w->frames, w->n);
}

static uint32_t lent(const struct world *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n; i++)
		n += w->frames[i].lent;
	return n;
}

/* The frame is the packet that it would be in one piece. */
static void expect_packet(const struct urxe_frame *frame)
{
	uint8_t whole[ROOM];
	uint32_t here = frame->len - frame->lent, behind = URXE_ICRC_LEN + (-frame->lent & 3);
	struct urxe_packet p;

	memcpy(whole, frame->data, here - behind);
	memcpy(whole + here - behind, frame->payload, frame->lent);
	memcpy(whole + frame->len - behind, frame->data + here - behind, behind);
	assert_int_equal(urxe_packet_parse(&p, whole, frame->len), URXE_DROP_NONE);
	assert_true(urxe_packet_icrc_ok(&p));
	assert_int_equal(p.payload_len, frame->lent);
}

/* --- What is lent. */

static void test_request(struct world *w, const struct post *post)
{
	const uint8_t *bytes = w->e.a->mem + post->offset;
	uint32_t at = 0;

	post_send(&w->e, 0, post);
	output(w, 0, true);
	for (uint32_t i = 0; i < w->n; i++) {
		const struct urxe_frame *frame = &w->frames[i];

		assert_ptr_equal(frame->payload, bytes + at);
		assert_int_equal(frame->window, PLACE + post->offset - FROM + at);
		expect_packet(frame);
		at += frame->lent;
	}
	assert_int_equal(at, post->length);
	input(w, 1);
	pair_settle(w->e.pair);
	expect_wc(&w->e.a->send_cq, post->wr_id, URXE_WC_SUCCESS);
}

static void test_writes(void **state)
{
	static const uint32_t lengths[] = {
		1024, 4096, 4096 + 1024, 3 * 4096, 2 * 4096 + 1025, 4096 + 1026, 4096 + 1027};
	struct world w;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	for (uint32_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct post post = a_write(&w, FROM + i, lengths[i]);

		memset(w.e.b->mem + TO, 0, REGION);
		test_request(&w, &post);
		assert_memory_equal(w.e.b->mem + TO, w.e.a->mem + post.offset, post.length);
		assert_int_equal(w.e.b->mem[TO + post.length], 0);
	}
	assert_int_equal(events(w.e.a, URXE_EVENT_RETRANSMIT), 0);
	close_world(&w);
}

static void test_sends(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	post_recv(&w.e.end[1], 6, TO, 8192);
	post = a_write(&w, FROM + 8, 4096 + 1030);
	post.opcode = URXE_WR_SEND_IMM;
	test_request(&w, &post);
	assert_int_equal(expect_wc(&w.e.b->recv_cq, 6, URXE_WC_SUCCESS).byte_len, post.length);
	assert_memory_equal(w.e.b->mem + TO, w.e.a->mem + post.offset, post.length);
	close_world(&w);
}

/* A message goes to the pieces that are there for it, wherever its packets end. */
static void test_scattered(void **state)
{
	struct world w;
	struct urxe_seg segs[3];
	struct urxe_recv_wr wr = {.wr_id = 6, .segs = segs, .n_segs = 3};
	struct post post;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	segs[0] = node_seg(w.e.b, TO, 1);
	segs[1] = node_seg(w.e.b, TO + 100, 6000);
	segs[2] = node_seg(w.e.b, TO + 8000, 10000);
	assert_int_equal(urxe_post_recv(w.e.end[1].rq, &wr), 0);
	post = a_write(&w, FROM, 3 * 4096);
	post.opcode = URXE_WR_SEND;
	test_request(&w, &post);
	expect_wc(&w.e.b->recv_cq, 6, URXE_WC_SUCCESS);
	assert_int_equal(w.e.b->mem[TO], w.e.a->mem[FROM]);
	assert_int_equal(w.e.b->mem[TO + 1], 0);
	assert_memory_equal(w.e.b->mem + TO + 100, w.e.a->mem + FROM + 1, 6000);
	assert_int_equal(w.e.b->mem[TO + 6100], 0);
	assert_memory_equal(w.e.b->mem + TO + 8000, w.e.a->mem + FROM + 6001, 3 * 4096 - 6001);
	assert_int_equal(w.e.b->mem[TO + 8000 + 3 * 4096 - 6001], 0);
	close_world(&w);
}

static void test_pieces(void **state)
{
	struct world w;
	struct urxe_extent extents[2];
	struct urxe_mr_attr attr = {.pd = NODE_PD,
				    .access = NODE_ACCESS,
				    .length = 3 * 4096,
				    .extents = extents,
				    .n_extents = 2};
	struct urxe_mr *mr;
	struct post post;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	extents[0] = (struct urxe_extent){w.e.b->mem + TO + 8000, 6000};
	extents[1] = (struct urxe_extent){w.e.b->mem + TO, 3 * 4096 - 6000};
	attr.iova = w.e.b->iova + TO;
	assert_int_equal(urxe_mr_reg(w.e.b->dev, &attr, &mr), 0);
	post = a_write(&w, FROM, 3 * 4096);
	post.rkey = urxe_mr_key(mr);
	test_request(&w, &post);
	assert_memory_equal(w.e.b->mem + TO + 8000, w.e.a->mem + FROM, 6000);
	assert_memory_equal(w.e.b->mem + TO, w.e.a->mem + FROM + 6000, 3 * 4096 - 6000);
	assert_int_equal(events(w.e.a, URXE_EVENT_RETRANSMIT), 0);
	close_world(&w);
}

/* --- What is not. */

static void expect_whole(struct world *w, const struct post *post, bool may_lend)
{
	post_send(&w->e, 0, post);
	output(w, 0, may_lend);
	assert_true(w->n > 0);
	assert_int_equal(lent(w), 0);
	input(w, 1);
	pair_settle(w->e.pair);
	expect_wc(&w->e.a->send_cq, post->wr_id, URXE_WC_SUCCESS);
	assert_memory_equal(w->e.b->mem + TO, w->e.a->mem + post->offset, post->length);
}

static void test_not_lent(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	post = a_write(&w, FROM, 4096);
	expect_whole(&w, &post, false);
	post = a_write(&w, FROM, 1023);
	expect_whole(&w, &post, true);
	post = a_write(&w, FROM - 1, 4096); /* the first byte is not shared */
	expect_whole(&w, &post, true);
	post = a_write(&w, FROM + SHARED - 4095, 4096); /* nor the last one */
	expect_whole(&w, &post, true);
	post = a_write(&w, FROM, 4096);
	post.lkey = w.e.a->key; /* a region of the same memory, of which nothing is */
	expect_whole(&w, &post, true);
	urxe_mr_share(w.mr, NULL);
	post = a_write(&w, FROM, 4096);
	expect_whole(&w, &post, true);
	close_world(&w);
}

/* Two pieces that lie side by side are two. */
static void test_segments(void **state)
{
	struct world w;
	struct urxe_seg segs[2];
	struct urxe_send_wr wr = {
		.wr_id = 5,
		.opcode = URXE_WR_RDMA_WRITE,
		.flags = URXE_SEND_SIGNALED,
		.segs = segs,
		.n_segs = 2,
	};

	(void)state;
	open_world(&w, URXE_QPT_RC);
	wr.remote_addr = w.e.b->iova + TO;
	wr.rkey = w.e.b->key;
	for (uint32_t i = 0; i < 2; i++) {
		segs[i] = node_seg(w.e.a, FROM + i * 6000, 6000);
		segs[i].lkey = urxe_mr_key(w.mr);
	}
	assert_int_equal(urxe_post_send(w.e.end[0].qp, &wr), 0);
	output(&w, 0, true);
	assert_int_equal(w.n, 3);
	assert_int_equal(w.frames[0].lent, 4096);
	assert_int_equal(w.frames[1].lent, 0); /* has some of both */
	assert_int_equal(w.frames[2].lent, 12000 - 8192);
	input(&w, 1);
	pair_settle(w.e.pair);
	expect_wc(&w.e.a->send_cq, 5, URXE_WC_SUCCESS);
	assert_memory_equal(w.e.b->mem + TO, w.e.a->mem + FROM, 12000);
	close_world(&w);
}

/* A request that nobody acknowledges is complete when it is sent: its memory is the program's. */
static void test_unreliable(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	open_world(&w, URXE_QPT_UC);
	post = a_write(&w, FROM, 4096);
	expect_whole(&w, &post, true);
	close_world(&w);
}

/* Nothing is lost that nobody would send again. */
static void test_unrepeated(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);

		*(i ? &conn.retry_cnt : &conn.timeout) = 0;
		open_conn(&w, conn);
		post = a_write(&w, FROM, 4096);
		expect_whole(&w, &post, true);
		close_world(&w);
	}
}

/* What a READ brings may be changed at any time. */
static void test_read_response(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	post = (struct post){
		.wr_id = 5,
		.opcode = URXE_WR_RDMA_READ,
		.offset = TO,
		.length = 4096,
		.remote = FROM,
		.rkey = urxe_mr_key(w.mr),
	};
	post_send(&w.e, 1, &post);
	output(&w, 1, true);
	input(&w, 0);
	output(&w, 0, true);
	assert_true(w.n > 0);
	assert_int_equal(lent(&w), 0);
	close_world(&w);
}

/* --- What is not what it was, when it is read. */

/* A request of one packet, whose payload stays where it is. */
static void send_lent(struct world *w, uint32_t opcode)
{
	struct post post = a_write(w, FROM, 4096);

	post.opcode = opcode;
	post_send(&w->e, 0, &post);
	output(w, 0, true);
	assert_int_equal(w->n, 1);
	assert_int_equal(lent(w), 4096);
}

/* Sends until something is on its way, as late as it takes. */
static void output_in_time(struct world *w, unsigned side)
{
	for (;;) {
		uint64_t due;

		output(w, side, true);
		if (w->n)
			return;
		due = urxe_next_deadline(w->e.pair->node[side]->dev);
		assert_true(due != URXE_NEVER);
		if (due > w->e.pair->now)
			w->e.pair->now = due;
	}
}

/* It is sent again, in one piece. */
static void expect_repetition(struct world *w)
{
	output_in_time(w, 0);
	assert_int_equal(lent(w), 0);
	input(w, 1);
	pair_settle(w->e.pair);
	expect_wc(&w->e.a->send_cq, 5, URXE_WC_SUCCESS);
	assert_memory_equal(w->e.b->mem + TO, w->e.a->mem + FROM, 4096);
	assert_int_equal(w->e.b->mem[TO + 4096], 0);
}

/* The bytes by which a program knows that a message is there, the last ones, are not. */
static void test_changed(void **state)
{
	static const uint32_t opcodes[] = {URXE_WR_RDMA_WRITE, URXE_WR_RDMA_WRITE_IMM,
					   URXE_WR_SEND},
			      places[] = {0, 4031, 4032, 4095};
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		uint32_t opcode = opcodes[i / 4], place = places[i % 4];

		open_world(&w, URXE_QPT_RC);
		post_recv(&w.e.end[1], 6, TO, 8192);
		send_lent(&w, opcode);
		memset(w.e.b->mem + TO, 0, 8192);
		w.e.a->mem[FROM + place] ^= 1;
		input(&w, 1);
		assert_int_equal(drops(w.e.b, URXE_DROP_BAD_ICRC), 1);
		for (uint32_t at = 4096 - 64; at < 8192; at++)
			assert_int_equal(w.e.b->mem[TO + at], 0);
		w.e.a->mem[FROM + place] ^= 1;
		expect_repetition(&w);
		if (opcode != URXE_WR_RDMA_WRITE)
			expect_wc(&w.e.b->recv_cq, 6, URXE_WC_SUCCESS);
		close_world(&w);
	}
}

/* Whichever packet of a message it is, it comes again, and what came behind it is not lost. */
static void test_changed_in_message(void **state)
{
	static const uint32_t opcodes[] = {URXE_WR_RDMA_WRITE, URXE_WR_RDMA_WRITE_IMM,
					   URXE_WR_SEND_IMM};
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		uint32_t which = i % 4, length = 4 * 4096 - 10;
		struct post post;

		open_world(&w, URXE_QPT_RC);
		post = a_write(&w, FROM, length);
		post.opcode = opcodes[i / 4];
		post_recv(&w.e.end[1], 6, TO, REGION);
		post_send(&w.e, 0, &post);
		output(&w, 0, true);
		assert_int_equal(w.n, 4);
		assert_int_equal(lent(&w), length);
		memset(w.e.b->mem + TO, 0, REGION);
		w.e.a->mem[FROM + which * 4096 + 5] ^= 1;
		input(&w, 1);
		assert_int_equal(drops(w.e.b, URXE_DROP_BAD_ICRC), 1);
		w.e.a->mem[FROM + which * 4096 + 5] ^= 1;
		pair_settle(w.e.pair);
		expect_wc(&w.e.a->send_cq, 5, URXE_WC_SUCCESS);
		if (opcodes[i / 4] != URXE_WR_RDMA_WRITE)
			expect_wc(&w.e.b->recv_cq, 6, URXE_WC_SUCCESS);
		assert_int_equal(events(w.e.b, URXE_EVENT_REORDERED), 3 - which);
		assert_memory_equal(w.e.b->mem + TO, w.e.a->mem + FROM, length);
		assert_int_equal(w.e.b->mem[TO + length], 0);
		close_world(&w);
	}
}

/* It is no less missing than before: who knows that asks for it. */
static void test_changed_before_a_gap(void **state)
{
	struct world w;
	struct post post;
	struct urxe_frame first;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	post = a_write(&w, FROM, 2 * 4096);
	post_send(&w.e, 0, &post);
	output(&w, 0, true);
	assert_int_equal(w.n, 2);
	first = w.frames[0];
	urxe_input(w.e.b->dev, w.e.pair->now, &w.frames[1], 1);
	w.e.a->mem[FROM] ^= 1;
	urxe_input(w.e.b->dev, w.e.pair->now, &first, 1);
	assert_int_equal(drops(w.e.b, URXE_DROP_BAD_ICRC), 1);
	output_in_time(&w, 1);
	assert_int_equal(events(w.e.b, URXE_EVENT_NAK_SEQ_SENT), 1);
	input(&w, 0);
	pair_settle(w.e.pair);
	expect_wc(&w.e.a->send_cq, 5, URXE_WC_SUCCESS);
	assert_memory_equal(w.e.b->mem + TO, w.e.a->mem + FROM, 2 * 4096);
	close_world(&w);
}

/* Where the message is to go is read from headers that are right, or not at all. */
static void test_changed_address(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	send_lent(&w, URXE_WR_RDMA_WRITE);
	memset(w.e.b->mem, 0, w.e.b->mem_size);
	w.frames[0].data[14 + 20 + 8 + 12 + 6] ^= 0x10; /* 4 KiB on */
	input(&w, 1);
	assert_int_equal(drops(w.e.b, URXE_DROP_BAD_ICRC), 1);
	for (uint32_t at = 0; at < w.e.b->mem_size; at++)
		assert_int_equal(w.e.b->mem[at], 0);
	expect_repetition(&w);
	close_world(&w);
}

/* A program that changes what is sent, while it is sent, has few messages wait for that. */
static void test_restless(void **state)
{
	uint32_t n_lent = 0;
	struct world w;
	struct post post;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	post = a_write(&w, FROM, 4096);
	for (int i = 0; i < 1000; i++) {
		post_send(&w.e, 0, &post);
		output(&w, 0, true);
		n_lent += lent(&w) / 4096;
		w.e.a->mem[FROM]++;
		input(&w, 1);
		if (lent(&w)) {
			output_in_time(&w, 0);
			assert_int_equal(lent(&w), 0);
			input(&w, 1);
		}
		pair_settle(w.e.pair);
		expect_wc(&w.e.a->send_cq, 5, URXE_WC_SUCCESS);
	}
	assert_in_range(n_lent, 2, 8);
	close_world(&w);
}

static void test_gone(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	send_lent(&w, URXE_WR_RDMA_WRITE);
	w.e.b->byte_gone = w.e.a->mem + FROM + 4000;
	input(&w, 1);
	assert_int_equal(drops(w.e.b, URXE_DROP_BAD_ICRC), 1);
	expect_repetition(&w);
	close_world(&w);
}

/* No loss, but an error as of any other packet. */
static void test_target_gone(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	send_lent(&w, URXE_WR_RDMA_WRITE);
	w.e.b->byte_gone = w.e.b->mem + TO + 4000;
	input(&w, 1);
	assert_int_equal(all_drops(w.e.b), 0);
	assert_int_equal(events(w.e.b, URXE_EVENT_MEMORY_GONE), 1);
	pair_settle(w.e.pair);
	expect_wc(&w.e.a->send_cq, 5, URXE_WC_REM_ACCESS_ERR);
	close_world(&w);
}

/* A local error, as where it is copied. */
static void test_own_gone(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	post = a_write(&w, FROM, 4096);
	post_send(&w.e, 0, &post);
	w.e.a->memory_gone = true;
	output(&w, 0, true);
	assert_int_equal(w.n, 0);
	expect_wc(&w.e.a->send_cq, 5, URXE_WC_LOC_PROT_ERR);
	close_world(&w);
}

/* --- Who says something else than the packet does. */

static uint64_t received(const struct world *w)
{
	return urxe_dev_counters(w->e.b->dev)->event[URXE_EVENT_RX_PACKETS];
}

/* As one drop, and nothing of it is complete. */
static void expect_dropped(struct world *w, struct urxe_frame frame)
{
	uint64_t before = all_drops(w->e.b);

	/* Where nothing but what is said to be there may be read. */
	uint32_t here = frame.len - frame.lent;
	uint8_t *data = malloc(here ? here : 1), *payload = malloc(frame.lent);

	memcpy(data, frame.data, here);
	memset(payload, 1, frame.lent);
	memcpy(payload, frame.payload, frame.lent < 4096 ? frame.lent : 4096);
	frame.data = data;
	frame.payload = payload;
	urxe_input(w->e.b->dev, w->e.pair->now, &frame, 1);
	assert_int_equal(all_drops(w->e.b), before + 1);
	assert_int_equal(w->e.b->mem[TO + 4095], 0);
	free(data);
	free(payload);
}

static void expect_refused(struct world *w, struct urxe_frame frame)
{
	uint64_t before = received(w);

	expect_dropped(w, frame);
	assert_int_equal(received(w), before);
}

static void test_hostile(void **state)
{
	static const uint32_t wrong[] = {1, 2, 4, 1023, 4092, 4095, 4097, 4100, 65536};
	struct world w;
	uint32_t here;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	send_lent(&w, URXE_WR_RDMA_WRITE);
	here = w.frames[0].len - w.frames[0].lent;
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct urxe_frame frame = w.frames[0];

		frame.lent = wrong[i];
		frame.len = here + wrong[i];
		expect_refused(&w, frame);
	}
	for (uint32_t other = 0; other < 300; other++) {
		struct urxe_frame frame = w.frames[0];

		frame.len = other + frame.lent;
		if (other != here)
			expect_refused(&w, frame);
	}
	input(&w, 1);
	pair_settle(w.e.pair);
	expect_wc(&w.e.a->send_cq, 5, URXE_WC_SUCCESS);
	close_world(&w);
}

/* Headers that are another packet's. */
static void test_damaged(void **state)
{
	struct rand rand = {3};
	struct world w;
	uint32_t here;

	(void)state;
	open_world(&w, URXE_QPT_RC);
	send_lent(&w, URXE_WR_RDMA_WRITE);
	here = w.frames[0].len - w.frames[0].lent;
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t at = 12 + rand_below(&rand, here - 12);
		uint8_t before = w.frames[0].data[at];

		/* Not what routers may change. */
		if (at == 15 || at == 22 || at == 24 || at == 25 || at == 40 || at == 41 ||
		    at == 46)
			continue;
		w.frames[0].data[at] ^= (uint8_t)(1 + rand_below(&rand, 255));
		/* Of the ICRC alone nobody knows before the payload is read. */
		if (at < here - URXE_ICRC_LEN)
			expect_refused(&w, w.frames[0]);
		else
			expect_dropped(&w, w.frames[0]);
		w.frames[0].data[at] = before;
	}
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_sends),
		cmocka_unit_test(test_not_lent),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_unreliable),
		cmocka_unit_test(test_read_response),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_own_gone),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_unrepeated),
		cmocka_unit_test(test_restless),
		cmocka_unit_test(test_changed_address),
		cmocka_unit_test(test_target_gone),
		cmocka_unit_test(test_scattered),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_changed_in_message),
		cmocka_unit_test(test_changed_before_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
