/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * SENDs with a payload reference: the receiver copies the payload from the sender's memory. The
 * tests check the copy, and references that have ended.
 */
#include "copy_pair.h"

#include <stdlib.h>

#include <rxe/opcode.h>

#include "rand.h"

#define FROM   4096u
#define TO     704512u /* offset of the receive buffer; the same bytes as at FROM */
#define ROOM   262144u /* size of the receive buffer */
#define LENGTH 40002u

#define FRAMES     40
#define FRAME_ROOM 4300

static uint8_t buffers[FRAMES][FRAME_ROOM];

struct world {
	struct copy_pair d;
	struct node *a, *b;
	struct urxe_frame frames[FRAMES];
	uint32_t n;
};

static void open_conn(struct world *w, enum urxe_qp_type type, uint32_t mtu)
{
	struct conn_attr conn = conn_default(type);

	conn.path_mtu = (uint8_t)mtu;
	copy_pair_open(&w->d, &conn);
	w->a = w->d.e.a;
	w->b = w->d.e.b;
	w->a->references = true;
	fill(w->a->mem, TO, 1);
	memset(w->b->mem + TO, 0, ROOM);
}

static void open_mtu(struct world *w, uint32_t mtu)
{
	open_conn(w, URXE_QPT_RC, mtu);
}

static void open_world(struct world *w)
{
	open_mtu(w, URXE_MTU_4096);
}

static void close_world(struct world *w)
{
	copy_pair_close(&w->d);
}

static void send(struct world *w, uint32_t length)
{
	struct post post = {.wr_id = 5, .opcode = URXE_WR_SEND, .flags = URXE_SEND_SIGNALED};

	post.offset = FROM;
	post.length = length;
	post.lkey = w->a->key;
	post_send(&w->d.e, 0, &post);
}

static void receive(struct world *w, uint32_t room)
{
	post_recv(&w->d.e.end[1], 6, TO, room);
}

/* Passes node 0's frames to node 1 with their references, as the callers of both engines do. */
static void output(struct world *w)
{
	for (int i = 0; i < FRAMES; i++)
		w->frames[i] = (struct urxe_frame){.data = buffers[i], .room = FRAME_ROOM};
	w->n = urxe_output(w->a->dev, w->d.e.pair->now, w->frames, FRAMES);
	for (uint32_t i = 0; i < w->n; i++) {
		w->frames[i].reference.sender = w->a;
		w->frames[i].reference.pieces =
			w->frames[i].data + w->frames[i].len - URXE_ICRC_LEN;
		/* The pieces stand there. */
		w->frames[i].without_icrc = w->frames[i].reference.n_pieces;
	}
	/* The world passes frames without references from here on. */
	w->a->references = false;
}

static void input(struct world *w, uint32_t first, uint32_t n)
{
	urxe_input(w->b->dev, w->d.e.pair->now, w->frames + first, n);
}

/* Passes node 1's frames to node 0. */
static void pass_answers(struct world *w)
{
	static uint8_t data[FRAMES][FRAME_ROOM];
	struct urxe_frame frames[FRAMES];
	uint32_t n;

	for (int i = 0; i < FRAMES; i++)
		frames[i] = (struct urxe_frame){.data = data[i], .room = FRAME_ROOM};
	n = urxe_output(w->b->dev, w->d.e.pair->now, frames, FRAMES);
	urxe_input(w->a->dev, w->d.e.pair->now, frames, n);
}

static void send_reference(struct world *w, uint32_t length)
{
	receive(w, ROOM);
	send(w, length);
	output(w);
	assert_int_equal(w->n, 1);
	assert_int_equal(w->frames[0].reference.length, length);
	assert_int_equal(w->frames[0].reference.src_qpn, w->d.e.end[0].qpn);
	assert_true(w->frames[0].len < 100);
}

static void expect_arrival(struct world *w, uint32_t length)
{
	pair_settle(w->d.e.pair);
	expect_wc(&w->a->send_cq, 5, URXE_WC_SUCCESS);
	assert_int_equal(expect_wc(&w->b->recv_cq, 6, URXE_WC_SUCCESS).byte_len, length);
	assert_memory_equal(w->b->mem + TO, w->a->mem + FROM, length);
	assert_int_equal(w->b->mem[TO + length], 0);
}

static bool is_untouched(const struct world *w)
{
	for (uint32_t i = 0; i < ROOM; i++)
		if (w->b->mem[TO + i])
			return false;
	return true;
}

static uint32_t unreadable(const struct world *w)
{
	return (uint32_t)drops(w->b, URXE_DROP_UNREADABLE);
}

static uint32_t generation(const struct world *w)
{
	return w->a->table->references;
}

/* The message needs one frame, and the frame contains no byte of the payload. */
static void test_reference_replaces_the_payload(void **state)
{
	static const uint32_t lengths[] = {URXE_REFERENCE_MIN, URXE_REFERENCE_MIN + 1, LENGTH,
					   65536, URXE_REFERENCE_MAX - 1};

	(void)state;
	for (uint32_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct world w;

		open_world(&w);
		send_reference(&w, lengths[i]);
		input(&w, 0, 1);
		expect_arrival(&w, lengths[i]);
		assert_int_equal(events(w.a, URXE_EVENT_RETRANSMIT), 0);
		close_world(&w);
	}
}

static void test_short_has_no_reference(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	receive(&w, ROOM);
	send(&w, URXE_REFERENCE_MIN - 1);
	output(&w);
	assert_int_equal(w.n, 2);
	assert_int_equal(w.frames[0].reference.length, 0);
	input(&w, 0, w.n);
	expect_arrival(&w, URXE_REFERENCE_MIN - 1);
	close_world(&w);
}

/* A message longer than one reference may be. */
static void test_long_message_has_several_references(void **state)
{
	const uint32_t length = URXE_REFERENCE_MAX + 50000;
	struct world w;

	(void)state;
	open_world(&w);
	post_recv(&w.d.e.end[1], 6, TO, length);
	send(&w, length);
	output(&w);
	assert_int_equal(w.n, 2);
	assert_int_equal(w.frames[0].reference.length, URXE_REFERENCE_MAX);
	assert_int_equal(w.frames[1].reference.length, 50000);
	input(&w, 0, 2);
	pair_settle(w.d.e.pair);
	expect_wc(&w.a->send_cq, 5, URXE_WC_SUCCESS);
	assert_int_equal(expect_wc(&w.b->recv_cq, 6, URXE_WC_SUCCESS).byte_len, length);
	assert_memory_equal(w.b->mem + TO, w.a->mem + FROM, length);
	close_world(&w);
}

/* A reference takes as many PSNs as its message has packets of the path MTU. */
static void test_reference_takes_the_psns_of_its_packets(void **state)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	struct world w;
	uint32_t psn;

	(void)state;
	for (uint32_t mtu = URXE_MTU_256; mtu <= URXE_MTU_4096; mtu++) {
		open_mtu(&w, mtu);
		urxe_qp_query(w.d.e.end[1].qp, &attr, &init);
		psn = attr.rq_psn;
		send_reference(&w, LENGTH);
		input(&w, 0, 1);
		expect_arrival(&w, LENGTH);
		urxe_qp_query(w.d.e.end[1].qp, &attr, &init);
		assert_int_equal(attr.rq_psn, psn + (LENGTH + (128 << mtu) - 1) / (128 << mtu));
		close_world(&w);
	}
}

static void send_many(struct world *w, uint32_t n, uint32_t length)
{
	for (uint32_t i = 0; i < n; i++) {
		receive(w, ROOM);
		send(w, length);
	}
}

static void expect_many(struct world *w, uint32_t n)
{
	pair_settle(w->d.e.pair);
	for (uint32_t i = 0; i < n; i++) {
		expect_wc(&w->a->send_cq, 5, URXE_WC_SUCCESS);
		expect_wc(&w->b->recv_cq, 6, URXE_WC_SUCCESS);
	}
}

/* A reference is one frame for all packets of its payload: the window of 128 packets of 4 KiB lets
 * 128 such frames go, up to 2,048 packets. */
static void test_window_counts_references_as_frames(void **state)
{
	static const struct {
		uint32_t n, length, sent;
	} rows[] = {{16, 65536, 16}, {36, 65536, 36}, {36, URXE_REFERENCE_MAX, 32}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;

		open_world(&w);
		send_many(&w, rows[i].n, rows[i].length);
		output(&w);
		assert_int_equal(w.n, rows[i].sent);
		input(&w, 0, w.n);
		expect_many(&w, rows[i].n);
		close_world(&w);
	}
}

/* Behind references for more packets than the window, one packet with a payload goes, and asks for
 * an acknowledgement. */
static void test_window_counts_payloads_as_packets(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	send_many(&w, 16, 65536);
	send_many(&w, 2, 100);
	output(&w);
	assert_int_equal(w.n, 17);
	assert_int_equal(w.frames[16].reference.length, 0);
	input(&w, 0, w.n);
	expect_many(&w, 18);
	assert_int_equal(events(w.a, URXE_EVENT_PROBE), 0);
	close_world(&w);
}

/* Takes the frames of node 0, and loses them; returns their number. */
static uint32_t lose_output(struct world *w)
{
	static uint8_t data[FRAME_ROOM];
	struct urxe_frame frame;
	uint32_t n = 0;

	for (;; n++) {
		frame = (struct urxe_frame){.data = data, .room = sizeof(data)};
		if (!urxe_output(w->a->dev, w->d.e.pair->now, &frame, 1))
			return n;
	}
}

/* All references are lost. Their packets follow with payloads, a window of them at a time. */
static void test_lost_references_are_repeated_by_windows(void **state)
{
	struct world w;
	uint32_t n;

	(void)state;
	open_world(&w);
	send_many(&w, 36, 65536);
	output(&w);
	assert_int_equal(w.n, 36);
	do {
		w.d.e.pair->now = urxe_next_deadline(w.a->dev);
		n = lose_output(&w);
		assert_in_range(n, 1, 128);
	} while (n < 128);
	expect_many(&w, 36);
	close_world(&w);
}

/*
 * Two QPs with different path MTUs count different numbers of packets: the receiver refuses the
 * message.
 */
static void disagree(uint32_t mtu, uint32_t peer_mtu)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_qp_attr attr = {.state = URXE_QPS_RESET};
	struct world w;

	open_mtu(&w, mtu);
	urxe_qp_modify(w.d.e.end[1].qp, w.d.e.pair->now, &attr, URXE_QP_STATE);
	conn.path_mtu = (uint8_t)peer_mtu;
	conn_bring_up(w.d.e.pair, &conn, 1, &w.d.e.end[1], &w.d.e.end[0]);
	send_reference(&w, LENGTH);
	input(&w, 0, 1);
	pair_settle(w.d.e.pair);
	expect_wc(&w.a->send_cq, 5, URXE_WC_REM_INV_REQ_ERR);
	expect_wc(&w.b->recv_cq, 6, URXE_WC_WR_FLUSH_ERR);
	assert_true(is_untouched(&w));
	close_world(&w);
}

static void test_different_path_mtus_are_refused(void **state)
{
	(void)state;
	disagree(URXE_MTU_4096, URXE_MTU_1024);
	disagree(URXE_MTU_1024, URXE_MTU_4096);
}

/* The sender's memory and the receive buffer may have several pieces. */
static void test_references_scatter_to_segments(void **state)
{
	struct urxe_seg from[2], to[2];
	const struct urxe_send_wr wr = {.wr_id = 5,
					.flags = URXE_SEND_SIGNALED,
					.segs = from,
					.n_segs = 2,
					.opcode = URXE_WR_SEND};
	const struct urxe_recv_wr recv = {.wr_id = 6, .segs = to, .n_segs = 2};
	struct world w;

	(void)state;
	open_world(&w);
	for (uint32_t i = 0; i < 2; i++) {
		from[i] = node_seg(w.a, FROM + i * LENGTH / 2, LENGTH / 2);
		to[i] = node_seg(w.b, TO + i * LENGTH / 4, i ? ROOM - LENGTH / 4 : LENGTH / 4);
	}
	assert_int_equal(urxe_post_recv(urxe_qp_rq(w.d.e.end[1].qp), &recv), 0);
	assert_int_equal(urxe_post_send(w.d.e.end[0].qp, &wr), 0);
	output(&w);
	assert_int_equal(w.n, 1);
	assert_int_equal(w.frames[0].reference.length, LENGTH);
	assert_int_equal(w.frames[0].reference.n_pieces, 2);
	input(&w, 0, w.n);
	expect_arrival(&w, LENGTH);

	w.a->references = true;
	assert_int_equal(urxe_post_recv(urxe_qp_rq(w.d.e.end[1].qp), &recv), 0);
	memset(w.b->mem + TO, 0, ROOM);
	send(&w, LENGTH);
	output(&w);
	assert_int_equal(w.n, 1);
	input(&w, 0, 1);
	expect_arrival(&w, LENGTH);
	close_world(&w);
}

static void test_duplicate_reference_is_not_copied_again(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	send_reference(&w, LENGTH);
	input(&w, 0, 1);
	expect_arrival(&w, LENGTH);
	memset(w.b->mem + TO, 0, ROOM);
	input(&w, 0, 1);
	pair_settle(w.d.e.pair);
	assert_int_equal(events(w.b, URXE_EVENT_DUP_REQUEST), 1);
	assert_true(is_untouched(&w));
	expect_none(&w.b->recv_cq);
	close_world(&w);
}

static void test_too_long_reference_is_refused(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	receive(&w, LENGTH - 1);
	send(&w, LENGTH);
	output(&w);
	input(&w, 0, w.n);
	pair_settle(w.d.e.pair);
	expect_wc(&w.b->recv_cq, 6, URXE_WC_LOC_LEN_ERR);
	expect_wc(&w.a->send_cq, 5, URXE_WC_REM_INV_REQ_ERR);
	assert_true(is_untouched(&w));
	close_world(&w);
}

/*
 * The receiver drops an early frame with a reference: the sender repeats its message in packets
 * with payload.
 */
static void test_early_reference_is_dropped_and_repeated_in_packets(void **state)
{
	const uint32_t length = URXE_REFERENCE_MAX + 50000;
	struct world w;

	(void)state;
	open_world(&w);
	post_recv(&w.d.e.end[1], 6, TO, length);
	send(&w, length);
	output(&w);
	assert_int_equal(w.n, 2);
	input(&w, 1, 1);
	assert_int_equal(drops(w.b, URXE_DROP_OUT_OF_SEQUENCE), 1);
	input(&w, 0, 1);
	pair_settle(w.d.e.pair);
	expect_wc(&w.a->send_cq, 5, URXE_WC_SUCCESS);
	expect_wc(&w.b->recv_cq, 6, URXE_WC_SUCCESS);
	assert_memory_equal(w.b->mem + TO, w.a->mem + FROM, length);
	assert_true(events(w.a, URXE_EVENT_RETRANSMIT) > 0);
	close_world(&w);
}

/*
 * The receiver cannot read the payload: the sender repeats the message, and messages behind it, in
 * packets with payload.
 */
static void test_unreadable_payload_is_repeated_in_packets(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	send_reference(&w, LENGTH);
	w.b->memory_gone = true;
	input(&w, 0, 1);
	assert_int_equal(unreadable(&w), 1);
	expect_none(&w.b->recv_cq);
	w.b->memory_gone = false;
	expect_arrival(&w, LENGTH);
	assert_true(events(w.a, URXE_EVENT_RETRANSMIT) > 0);
	w.a->references = true;
	memset(w.b->mem + TO, 0, ROOM);
	receive(&w, ROOM);
	send(&w, LENGTH);
	output(&w);
	assert_int_equal(w.frames[0].reference.length, 0);
	input(&w, 0, w.n);
	expect_arrival(&w, LENGTH);
	close_world(&w);
}

/* The receiver has no receive request: the sender repeats references, not payloads. */
static void test_rnr_repeats_references(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	send(&w, LENGTH);
	send(&w, LENGTH);
	for (int i = 0; i < 2; i++) {
		output(&w);
		assert_int_equal(w.n, 2);
		assert_int_equal(w.frames[0].reference.length, LENGTH);
		assert_int_equal(w.frames[1].reference.length, LENGTH);
		input(&w, 0, 2);
		if (i)
			break;
		assert_int_equal(events(w.b, URXE_EVENT_NAK_RNR_SENT), 1);
		receive(&w, ROOM);
		receive(&w, ROOM);
		/* The RNR NAK, and then the ACK that tells of the receive requests. */
		w.a->references = true;
		pass_answers(&w);
	}
	expect_arrival(&w, LENGTH);
	expect_wc(&w.a->send_cq, 5, URXE_WC_SUCCESS);
	expect_wc(&w.b->recv_cq, 6, URXE_WC_SUCCESS);
	assert_int_equal(events(w.a, URXE_EVENT_RETRANSMIT), 2);
	assert_int_equal(unreadable(&w), 0);
	close_world(&w);
}

/* The receive buffer is not mapped: the repeated packets find the error. */
static void test_unmapped_receive_buffer_fails(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	send_reference(&w, LENGTH);
	w.b->memory_gone = true;
	input(&w, 0, 1);
	pair_settle(w.d.e.pair);
	expect_wc(&w.b->recv_cq, 6, URXE_WC_LOC_PROT_ERR);
	expect_wc(&w.a->send_cq, 5, URXE_WC_REM_OP_ERR);
	close_world(&w);
}

/* --- References end before the program gets its memory back. */

static void to_state(struct world *w, uint8_t state)
{
	struct urxe_qp_attr attr = {.state = state};

	assert_int_equal(urxe_qp_modify(w->d.e.end[0].qp, w->d.e.pair->now, &attr, URXE_QP_STATE),
			 0);
}

static void end_in_error(struct world *w)
{
	to_state(w, URXE_QPS_ERR);
	expect_wc(&w->a->send_cq, 5, URXE_WC_WR_FLUSH_ERR);
}

static void end_in_reset(struct world *w)
{
	to_state(w, URXE_QPS_RESET);
}

static void end_destroyed(struct world *w)
{
	urxe_qp_destroy(w->d.e.end[0].qp);
}

/* The peer is silent until the retries are used up. */
static void end_unheard(struct world *w)
{
	struct urxe_frame lost[FRAMES];
	struct urxe_wc wc;

	while (!node_poll(&w->a->send_cq, &wc)) {
		uint64_t due = urxe_next_deadline(w->a->dev);

		assert_true(due != URXE_NEVER);
		if (due > w->d.e.pair->now)
			w->d.e.pair->now = due;
		for (int i = 0; i < FRAMES; i++)
			lost[i] =
				(struct urxe_frame){.data = malloc(FRAME_ROOM), .room = FRAME_ROOM};
		urxe_output(w->a->dev, w->d.e.pair->now, lost, FRAMES);
		for (int i = 0; i < FRAMES; i++)
			free(lost[i].data);
	}
	assert_int_equal(wc.status, URXE_WC_RETRY_EXC_ERR);
}

static void test_ended_request_invalidates_references(void **state)
{
	void (*const ends[])(struct world *) = {end_in_error, end_in_reset, end_destroyed,
						end_unheard};
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		open_world(&w);
		send_reference(&w, LENGTH);
		assert_int_equal(generation(&w), 0);
		ends[i](&w);
		assert_int_equal(generation(&w), 1);
		memset(w.a->mem + FROM, 0xee, LENGTH);
		input(&w, 0, 1);
		expect_none(&w.b->recv_cq);
		assert_int_equal(unreadable(&w), 1);
		close_world(&w);
	}
}

/* The receiver has copied an acknowledged payload: its end does not invalidate other references. */
static void test_acknowledged_request_keeps_other_references(void **state)
{
	void (*const ends[])(struct world *) = {end_in_reset, end_destroyed};
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		open_world(&w);
		send_reference(&w, LENGTH);
		input(&w, 0, 1);
		expect_arrival(&w, LENGTH);
		ends[i](&w);
		assert_int_equal(generation(&w), 0);
		close_world(&w);
	}
}

static void test_request_without_reference_invalidates_none(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	receive(&w, ROOM);
	send(&w, 1000);
	output(&w);
	end_in_error(&w);
	assert_int_equal(generation(&w), 0);
	close_world(&w);
}

/* --- References end when their memory is registered no longer. */

/* The region at the beginning of the node's memory; the region of all memory stays registered. */
static void post_from_region(struct world *w, uint64_t wr_id)
{
	post_send(&w->d.e, 0,
		  &(struct post){.wr_id = wr_id,
				 .opcode = URXE_WR_SEND,
				 .flags = URXE_SEND_SIGNALED,
				 .offset = FROM,
				 .length = LENGTH,
				 .lkey = w->d.key[0]});
}

static void send_from_region(struct world *w)
{
	receive(w, ROOM);
	post_from_region(w, 5);
	output(w);
	assert_int_equal(w->n, 1);
	assert_int_equal(w->frames[0].reference.length, LENGTH);
}

static void deregister(struct world *w)
{
	assert_int_equal(urxe_mr_dereg(w->d.mr[0]), 0);
}

/* The key grants memory in front of the payload. */
static void reregister(struct world *w)
{
	const struct urxe_extent extent = {w->a->mem, FROM};
	const struct urxe_mr_attr attr = {.pd = NODE_PD,
					  .access = NODE_ACCESS,
					  .iova = w->a->iova,
					  .length = FROM,
					  .extents = &extent,
					  .n_extents = 1};

	assert_int_equal(urxe_mr_rereg(&w->d.mr[0], &attr), 0);
}

static void begin_unmap(struct world *w)
{
	const struct urxe_extent bytes = {w->a->mem + FROM + LENGTH - 1, 1};

	assert_int_equal(urxe_mr_unmap(w->d.mr[0], &bytes), 0);
}

static void end_unmap(struct world *w, bool done)
{
	const struct urxe_extent bytes = {w->a->mem + FROM + LENGTH - 1, 1};

	urxe_mr_unmapped(w->d.mr[0], &bytes, done);
}

static void unmap_last_byte(struct world *w)
{
	begin_unmap(w);
	end_unmap(w, true);
}

static void unmap_all(struct world *w)
{
	urxe_mr_unmap_all(w->d.mr[0]);
}

static void (*const withdrawals[])(struct world *) = {deregister, reregister, unmap_last_byte,
						      unmap_all};

#define WITHDRAWALS (sizeof(withdrawals) / sizeof(*withdrawals))

static void test_withdrawn_memory_ends_references(void **state)
{
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < WITHDRAWALS; i++) {
		open_world(&w);
		prove(&w.d); /* the sender knows the round trip */
		send_from_region(&w);
		withdrawals[i](&w);
		assert_int_equal(generation(&w), 1);
		memset(w.a->mem + FROM, 0xee, LENGTH);
		input(&w, 0, 1);
		assert_int_equal(unreadable(&w), 1);
		/* The request is repeated in packets, and finds the error. */
		w.a->references = true;
		pair_settle(w.d.e.pair);
		expect_wc(&w.a->send_cq, 5, URXE_WC_LOC_PROT_ERR);
		expect_none(&w.b->recv_cq);
		assert_int_equal(events(w.a, URXE_EVENT_TIMEOUT), 0);
		/* The error ends no reference any more. */
		assert_int_equal(generation(&w), 1);
		close_world(&w);
	}
}

/* The rest of the message is not sent yet: its first references end. */
static void test_withdrawn_memory_ends_references_of_a_partial_message(void **state)
{
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < WITHDRAWALS; i++) {
		open_world(&w);
		receive(&w, ROOM);
		post_from_region(&w, 5);
		w.frames[0] = (struct urxe_frame){.data = buffers[0], .room = FRAME_ROOM};
		assert_int_equal(urxe_output(w.a->dev, w.d.e.pair->now, w.frames, 1), 1);
		withdrawals[i](&w);
		assert_int_equal(generation(&w), 1);
		close_world(&w);
	}
}

/* The call that unmaps fails: the message is repeated in packets with payload. */
static void test_failed_unmap_repeats_in_packets(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	send_from_region(&w);
	begin_unmap(&w);
	assert_int_equal(generation(&w), 1);
	end_unmap(&w, false);
	input(&w, 0, 1);
	assert_int_equal(unreadable(&w), 1);
	expect_arrival(&w, LENGTH);
	close_world(&w);
}

/* A message from other memory is repeated in packets, and arrives. */
static void test_other_messages_are_repeated(void **state)
{
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < WITHDRAWALS; i++) {
		open_world(&w);
		receive(&w, ROOM);
		receive(&w, ROOM);
		send(&w, LENGTH);
		post_from_region(&w, 7);
		output(&w);
		assert_int_equal(w.n, 2);
		withdrawals[i](&w);
		input(&w, 0, 2);
		expect_arrival(&w, LENGTH);
		expect_wc(&w.a->send_cq, 7, URXE_WC_LOC_PROT_ERR);
		expect_none(&w.b->recv_cq);
		assert_int_equal(generation(&w), 1);
		close_world(&w);
	}
}

static void test_withdrawn_memory_keeps_other_references(void **state)
{
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < WITHDRAWALS; i++) {
		open_world(&w);
		send_reference(&w, LENGTH);
		withdrawals[i](&w);
		assert_int_equal(generation(&w), 0);
		input(&w, 0, 1);
		expect_arrival(&w, LENGTH);
		assert_int_equal(events(w.a, URXE_EVENT_RETRANSMIT), 0);
		close_world(&w);
	}
}

/* A payload that the receiver has not copied yet is repeated in packets; one that it has copied is
 * not. */
static void test_withdrawn_rights_repeat_payloads_not_yet_copied(void **state)
{
	struct world w;

	(void)state;
	for (uint32_t copied = 0; copied < 2; copied++) {
		open_world(&w);
		send_reference(&w, LENGTH);
		if (!copied)
			urxe_copy_rights_withdraw(w.a->dev);
		input(&w, 0, 1);
		expect_arrival(&w, LENGTH);
		if (copied)
			urxe_copy_rights_withdraw(w.a->dev);
		assert_int_equal(generation(&w), !copied);
		close_world(&w);
	}
}

/* The receiver has copied the payload: other references stay. */
static void test_withdrawal_after_the_ack_keeps_other_references(void **state)
{
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < WITHDRAWALS; i++) {
		open_world(&w);
		send_from_region(&w);
		input(&w, 0, 1);
		expect_arrival(&w, LENGTH);
		withdrawals[i](&w);
		assert_int_equal(generation(&w), 0);
		close_world(&w);
	}
}

/* --- References that do not fit their frames. */

static struct urxe_packet parse(const struct urxe_frame *frame)
{
	struct urxe_packet p;

	assert_int_equal(urxe_packet_parse(&p, frame->data, frame->len), URXE_DROP_NONE);
	return p;
}

/* The first frame again, with another opcode. */
static struct urxe_frame forge(const struct world *w, uint8_t opcode, uint8_t data[CRAFT_MAX])
{
	struct urxe_frame frame = w->frames[0];
	struct urxe_packet p = parse(&frame);

	p.opcode = opcode;
	p.reth.va = w->b->iova + TO;
	p.reth.rkey = w->b->key;
	p.reth.length = frame.reference.length;
	frame.data = data;
	frame.len = craft_frame(data, &p);
	return frame;
}

static void test_wrong_lengths_are_dropped(void **state)
{
	static const struct {
		uint32_t length, packets;
	} rows[] = {{LENGTH, 0},
		    {LENGTH, 1},
		    {LENGTH, 9},
		    {LENGTH, 11},
		    {LENGTH, UINT32_MAX},
		    {URXE_REFERENCE_MAX + 1, 65},
		    {UINT32_MAX, UINT32_MAX / 4096 + 1}};

	(void)state;
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct urxe_wc wc;
		struct world w;

		open_world(&w);
		send_reference(&w, LENGTH);
		w.frames[0].reference.length = rows[i].length;
		w.frames[0].reference.packets = rows[i].packets;
		input(&w, 0, 1);
		assert_true(is_untouched(&w));
		assert_true(!node_poll(&w.b->recv_cq, &wc) || wc.status == URXE_WC_WR_FLUSH_ERR);
		close_world(&w);
	}
}

/* Only a SEND of a reliable connection has a reference. */
static void test_only_rc_sends_have_references(void **state)
{
	static const uint8_t opcodes[] = {
		URXE_SERVICE_RC | URXE_OP_WRITE_ONLY,         URXE_SERVICE_RC | URXE_OP_WRITE_FIRST,
		URXE_SERVICE_RC | URXE_OP_READ_RESPONSE_ONLY, URXE_SERVICE_RC | URXE_OP_ACKNOWLEDGE,
		URXE_SERVICE_UC | URXE_OP_SEND_ONLY,          URXE_SERVICE_UD | URXE_OP_SEND_ONLY,
	};
	uint8_t data[CRAFT_MAX];

	(void)state;
	for (uint32_t i = 0; i < sizeof(opcodes); i++) {
		struct urxe_frame frame;
		struct world w;

		open_world(&w);
		send_reference(&w, LENGTH);
		frame = forge(&w, opcodes[i], data);
		urxe_input(w.b->dev, w.d.e.pair->now, &frame, 1);
		assert_true(is_untouched(&w));
		expect_none(&w.b->recv_cq);
		input(&w, 0, 1);
		expect_arrival(&w, LENGTH);
		close_world(&w);
	}
}

static void test_uc_has_no_references(void **state)
{
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame;
	struct world w;

	(void)state;
	open_conn(&w, URXE_QPT_UC, URXE_MTU_1024);
	receive(&w, ROOM);
	send(&w, LENGTH);
	output(&w);
	assert_int_equal(w.frames[0].reference.length, 0);
	w.frames[0].reference = (struct urxe_reference){
		.address = (uintptr_t)w.a->mem, .length = 1024, .packets = 1, .sender = w.a};
	frame = forge(&w, URXE_SERVICE_UC | URXE_OP_SEND_ONLY, data);
	urxe_input(w.b->dev, w.d.e.pair->now, &frame, 1);
	assert_true(is_untouched(&w));
	expect_none(&w.b->recv_cq);
	close_world(&w);
}

static void test_damaged_headers_are_dropped(void **state)
{
	struct rand rand = {3};
	struct world w;

	(void)state;
	open_world(&w);
	send_reference(&w, LENGTH);
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t at = 12 + rand_below(&rand, w.frames[0].len - 12);
		uint8_t before = w.frames[0].data[at];

		/* Fields that routers may change are not protected. */
		if (at == 15 || at == 22 || at == 24 || at == 25 || at == 40 || at == 41 ||
		    at == 46)
			continue;
		w.frames[0].data[at] ^= (uint8_t)(1 + rand_below(&rand, 255));
		input(&w, 0, 1);
		assert_int_equal(events(w.b, URXE_EVENT_RX_PACKETS), 0);
		w.frames[0].data[at] = before;
	}
	input(&w, 0, 1);
	expect_arrival(&w, LENGTH);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference_replaces_the_payload),
		cmocka_unit_test(test_short_has_no_reference),
		cmocka_unit_test(test_long_message_has_several_references),
		cmocka_unit_test(test_reference_takes_the_psns_of_its_packets),
		cmocka_unit_test(test_window_counts_references_as_frames),
		cmocka_unit_test(test_window_counts_payloads_as_packets),
		cmocka_unit_test(test_lost_references_are_repeated_by_windows),
		cmocka_unit_test(test_different_path_mtus_are_refused),
		cmocka_unit_test(test_references_scatter_to_segments),
		cmocka_unit_test(test_duplicate_reference_is_not_copied_again),
		cmocka_unit_test(test_too_long_reference_is_refused),
		cmocka_unit_test(test_early_reference_is_dropped_and_repeated_in_packets),
		cmocka_unit_test(test_unreadable_payload_is_repeated_in_packets),
		cmocka_unit_test(test_rnr_repeats_references),
		cmocka_unit_test(test_unmapped_receive_buffer_fails),
		cmocka_unit_test(test_ended_request_invalidates_references),
		cmocka_unit_test(test_acknowledged_request_keeps_other_references),
		cmocka_unit_test(test_request_without_reference_invalidates_none),
		cmocka_unit_test(test_withdrawn_memory_ends_references),
		cmocka_unit_test(test_withdrawn_memory_ends_references_of_a_partial_message),
		cmocka_unit_test(test_failed_unmap_repeats_in_packets),
		cmocka_unit_test(test_other_messages_are_repeated),
		cmocka_unit_test(test_withdrawn_memory_keeps_other_references),
		cmocka_unit_test(test_withdrawn_rights_repeat_payloads_not_yet_copied),
		cmocka_unit_test(test_withdrawal_after_the_ack_keeps_other_references),
		cmocka_unit_test(test_wrong_lengths_are_dropped),
		cmocka_unit_test(test_only_rc_sends_have_references),
		cmocka_unit_test(test_uc_has_no_references),
		cmocka_unit_test(test_damaged_headers_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
