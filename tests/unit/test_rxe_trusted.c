/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets whose payload stays where the program has it, with no ICRC over it: what their receiver
 * does as long as the sender leaves it alone, and once that one has recalled what it has lent.
 */
#include "direct.h"

#include <endian.h>
#include <stdlib.h>

#include <rxe/opcode.h>

#include "rand.h"

#define PLACE  (3 * URXE_DIRECT_PAGE) /* of the region, in the window */
#define FROM   4096u
#define TO     524288u
#define LENGTH 40002u

#define FRAMES 32
#define ROOM   4300

static uint8_t buffers[FRAMES][ROOM];

struct world {
	struct direct d;
	struct node *a, *b;
	struct urxe_frame frames[FRAMES];
	uint32_t n;
};

static void open_conn(struct world *w, enum urxe_qp_type type, uint32_t mtu)
{
	struct conn_attr conn = conn_default(type);

	conn.path_mtu = (uint8_t)mtu;
	direct_open(&w->d, &conn);
	w->a = w->d.e.a;
	w->b = w->d.e.b;
	urxe_mr_share(w->d.mr[0], &(struct urxe_shared){w->a->mem, REGION, PLACE});
	fill(w->a->mem, REGION, 1);
	memset(w->b->mem + TO, 0, REGION);
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
	direct_close(&w->d);
}

static struct post request(const struct world *w, uint32_t opcode, uint32_t length)
{
	struct post post = a_post(&w->d, opcode, 5);

	post.offset = FROM;
	post.length = length;
	post.remote = TO;
	post.rkey = 0;
	return post;
}

/* As the owner of both devices gives them on. */
static void output(struct world *w)
{
	for (int i = 0; i < FRAMES; i++)
		w->frames[i] = (struct urxe_frame){.data = buffers[i], .room = ROOM};
	w->a->lending = URXE_LENDS_TRUSTED;
	w->n = urxe_output(w->a->dev, w->d.e.pair->now, w->frames, FRAMES);
	assert_true(w->n < FRAMES);
	for (uint32_t i = 0; i < w->n; i++) {
		w->frames[i].recalls = &w->a->table->recalls;
		w->frames[i].recalled = w->a->table->recalls;
	}
}

static void input(struct world *w, uint32_t first, uint32_t n)
{
	urxe_input(w->b->dev, w->d.e.pair->now, w->frames + first, n);
}

/* All of a request is on its way, and a receive waits for it: of a SEND several packets together.
 */
static void send_lent(struct world *w, uint32_t opcode, uint32_t length)
{
	const struct post post = request(w, opcode, length);
	const uint32_t most = opcode == URXE_WR_SEND ? URXE_LENT_MAX : 4096;

	post_recv(&w->d.e.end[1], 6, TO, REGION);
	post_send(&w->d.e, 0, &post);
	output(w);
	assert_int_equal(w->n, (length + most - 1) / most);
	for (uint32_t i = 0; i < w->n; i++)
		assert_true(w->frames[i].lent > 0);
}

static void expect_arrival(struct world *w, uint32_t length)
{
	pair_settle(w->d.e.pair);
	expect_wc(&w->a->send_cq, 5, URXE_WC_SUCCESS);
	assert_int_equal(expect_wc(&w->b->recv_cq, 6, URXE_WC_SUCCESS).byte_len, length);
	assert_memory_equal(w->b->mem + TO, w->a->mem + FROM, length);
}

static uint32_t recalled(const struct world *w)
{
	return (uint32_t)drops(w->b, URXE_DROP_RECALLED);
}

static bool is_untouched(const struct world *w)
{
	for (uint32_t i = 0; i < LENGTH; i++)
		if (w->b->mem[TO + i])
			return false;
	return true;
}

/* Each of the two that take a receive. */
static void for_both(void (*test)(struct world *w, uint32_t opcode))
{
	static const uint32_t opcodes[] = {URXE_WR_SEND, URXE_WR_RDMA_WRITE_IMM};
	struct world w;

	for (int i = 0; i < 2; i++) {
		open_world(&w);
		test(&w, opcodes[i]);
		close_world(&w);
	}
}

static void arrive(uint32_t opcode, uint32_t length)
{
	struct world w;

	open_world(&w);
	send_lent(&w, opcode, length);
	input(&w, 0, w.n);
	expect_arrival(&w, length);
	assert_int_equal(w.b->mem[TO + length], 0);
	assert_int_equal(events(w.a, URXE_EVENT_RETRANSMIT), 0);
	close_world(&w);
}

static void test_arrives(void **state)
{
	static const uint32_t lengths[] = {1024,  1025,  4096,         5120,
					   32767, 32768, 32768 + 1024, LENGTH};

	(void)state;
	for (uint32_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		arrive(URXE_WR_SEND, lengths[i]);
		arrive(URXE_WR_RDMA_WRITE_IMM, lengths[i]);
	}
}

/* --- Packets that go together. */

/* As many PSNs as they are packets, of whatever path MTU. */
static void test_together(void **state)
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
		send_lent(&w, URXE_WR_SEND, LENGTH);
		input(&w, 0, w.n);
		expect_arrival(&w, LENGTH);
		urxe_qp_query(w.d.e.end[1].qp, &attr, &init);
		assert_int_equal(attr.rq_psn, psn + (LENGTH + (128 << mtu) - 1) / (128 << mtu));
		assert_int_equal(events(w.a, URXE_EVENT_RETRANSMIT), 0);
		close_world(&w);
	}
}

/*
 * Two that were told different path MTUs count different packets: what goes together is refused as
 * one that is too long or too short, and no later message is taken for one that has come already.
 */
static void disagree(uint32_t mtu, uint32_t peer_mtu)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_qp_attr attr = {.state = URXE_QPS_RESET};
	struct post post;
	struct world w;

	open_mtu(&w, mtu);
	urxe_qp_modify(w.d.e.end[1].qp, w.d.e.pair->now, &attr, URXE_QP_STATE);
	conn.path_mtu = (uint8_t)peer_mtu;
	conn_bring_up(w.d.e.pair, &conn, 1, &w.d.e.end[1], &w.d.e.end[0]);
	post = request(&w, URXE_WR_SEND, 4096);
	for (uint32_t i = 0; i < 4; i++) {
		post_recv(&w.d.e.end[1], 6, TO, REGION);
		post_send(&w.d.e, 0, &post);
	}
	output(&w);
	assert_int_equal(w.n, 4);
	input(&w, 0, w.n);
	pair_settle(w.d.e.pair);
	expect_wc(&w.a->send_cq, 5, URXE_WC_REM_INV_REQ_ERR);
	expect_wc(&w.b->recv_cq, 6, URXE_WC_WR_FLUSH_ERR);
	assert_true(is_untouched(&w));
	close_world(&w);
}

static void test_disagree(void **state)
{
	(void)state;
	disagree(URXE_MTU_4096, URXE_MTU_1024);
	disagree(URXE_MTU_1024, URXE_MTU_4096);
}

/* No more than the window has room for, nor than lie in one segment. */
static void test_not_together(void **state)
{
	struct urxe_seg segs[2];
	const struct urxe_send_wr wr = {.wr_id = 5,
					.flags = URXE_SEND_SIGNALED,
					.segs = segs,
					.n_segs = 2,
					.opcode = URXE_WR_SEND};
	struct world w;

	(void)state;
	open_world(&w);
	post_recv(&w.d.e.end[1], 6, TO, REGION);
	for (uint32_t i = 0; i < 2; i++) {
		segs[i] = node_seg(w.a, FROM + i * 6000, 6000);
		segs[i].lkey = w.d.key[0];
	}
	assert_int_equal(urxe_post_send(w.d.e.end[0].qp, &wr), 0);
	output(&w);
	assert_int_equal(w.n, 3);
	assert_int_equal(w.frames[0].lent, 4096);
	assert_int_equal(w.frames[1].lent, 0); /* has some of both */
	assert_int_equal(w.frames[2].lent, 12000 - 8192);
	input(&w, 0, 3);
	expect_arrival(&w, 12000);
	close_world(&w);
}

/* They may have come already, one by one. */
static void test_duplicates(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	send_lent(&w, URXE_WR_SEND, LENGTH);
	input(&w, 0, w.n);
	expect_arrival(&w, LENGTH);
	memset(w.b->mem + TO, 0, REGION);
	input(&w, 0, w.n);
	pair_settle(w.d.e.pair);
	assert_int_equal(events(w.b, URXE_EVENT_DUP_REQUEST), w.n);
	assert_true(is_untouched(&w));
	expect_none(&w.b->recv_cq);
	close_world(&w);
}

/* A receive buffer that is too short for them all. */
static void test_too_long(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	open_world(&w);
	post = request(&w, URXE_WR_SEND, LENGTH);
	post_recv(&w.d.e.end[1], 6, TO, URXE_LENT_MAX - 1);
	post_send(&w.d.e, 0, &post);
	output(&w);
	input(&w, 0, w.n);
	pair_settle(w.d.e.pair);
	expect_wc(&w.b->recv_cq, 6, URXE_WC_LOC_LEN_ERR);
	expect_wc(&w.a->send_cq, 5, URXE_WC_REM_INV_REQ_ERR);
	assert_true(is_untouched(&w));
	close_world(&w);
}

/* --- What has been recalled is as good as lost. */

static void recall(struct world *w, uint32_t opcode)
{
	send_lent(w, opcode, LENGTH);
	urxe_direct_recall(w->a->table);
	memset(w->a->mem + FROM, 0xee, LENGTH);
	input(w, 0, w->n);
	assert_true(recalled(w) > 0);
	expect_none(&w->b->recv_cq);
	/* Receive buffers alone may have anything in them. */
	assert_true(opcode == URXE_WR_SEND || is_untouched(w));
	fill(w->a->mem, REGION, 1);
	expect_arrival(w, LENGTH);
	assert_true(events(w->a, URXE_EVENT_RETRANSMIT) > 0);
}

static void test_recalled(void **state)
{
	(void)state;
	for_both(recall);
}

static void recall_midway(struct world *w, uint32_t opcode)
{
	send_lent(w, opcode, LENGTH);
	input(w, 0, 1);
	urxe_direct_recall(w->a->table);
	input(w, 1, w->n - 1);
	assert_true(recalled(w) > 0);
	expect_arrival(w, LENGTH);
}

static void test_recalled_midway(void **state)
{
	(void)state;
	for_both(recall_midway);
}

/* What comes before its turn is read at once, and kept; of several together the first is missed. */
static void disorder(struct world *w, uint32_t opcode)
{
	send_lent(w, opcode, LENGTH);
	input(w, 1, w->n - 1);
	assert_int_equal(drops(w->b, URXE_DROP_OUT_OF_SEQUENCE), opcode == URXE_WR_SEND);
	urxe_direct_recall(w->a->table);
	w->frames[0].recalled++;
	input(w, 0, 1);
	assert_int_equal(recalled(w), 0);
	expect_arrival(w, LENGTH);
	assert_int_equal(events(w->a, URXE_EVENT_RETRANSMIT) > 0, opcode == URXE_WR_SEND);
}

static void test_out_of_order(void **state)
{
	(void)state;
	for_both(disorder);
}

/* Nor are they kept where they are no more than one packet may be. */
static void test_short_out_of_order(void **state)
{
	const uint32_t length = URXE_LENT_MAX + 2048;
	struct world w;

	(void)state;
	open_mtu(&w, URXE_MTU_1024);
	send_lent(&w, URXE_WR_SEND, length);
	input(&w, 1, 1);
	assert_int_equal(drops(w.b, URXE_DROP_OUT_OF_SEQUENCE), 1);
	input(&w, 0, 1);
	expect_arrival(&w, length);
	close_world(&w);
}

static void lose(struct world *w, uint32_t opcode)
{
	send_lent(w, opcode, 4096);
	w->b->memory_gone = true;
	input(w, 0, 1);
	assert_int_equal(recalled(w), 1);
	expect_none(&w->b->recv_cq);
	w->b->memory_gone = false;
	expect_arrival(w, 4096);
}

static void test_gone(void **state)
{
	(void)state;
	for_both(lose);
}

/* The receive buffer has gone, too, when it comes again: that is an error as any. */
static void test_no_buffer(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	send_lent(&w, URXE_WR_SEND, 4096);
	w.b->memory_gone = true;
	input(&w, 0, 1);
	pair_settle(w.d.e.pair);
	expect_wc(&w.b->recv_cq, 6, URXE_WC_LOC_PROT_ERR);
	expect_wc(&w.a->send_cq, 5, URXE_WC_REM_OP_ERR);
	close_world(&w);
}

/* --- When all is recalled: before the program has its memory again. */

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

/* Whoever sends for nothing gives it up. */
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
			lost[i] = (struct urxe_frame){.data = malloc(ROOM), .room = ROOM};
		urxe_output(w->a->dev, w->d.e.pair->now, lost, FRAMES);
		for (int i = 0; i < FRAMES; i++)
			free(lost[i].data);
	}
	assert_int_equal(wc.status, URXE_WC_RETRY_EXC_ERR);
}

static void test_ends(void **state)
{
	void (*const ends[])(struct world *) = {end_in_error, end_in_reset, end_destroyed,
						end_unheard};
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		open_world(&w);
		send_lent(&w, URXE_WR_SEND, 4096);
		assert_int_equal(w.a->table->recalls, 0);
		ends[i](&w);
		assert_int_equal(w.a->table->recalls, 1);
		memset(w.a->mem + FROM, 0xee, 4096);
		input(&w, 0, 1);
		expect_none(&w.b->recv_cq);
		assert_int_equal(recalled(&w), 1);
		close_world(&w);
	}
}

/* What was acknowledged has been read: others need not lose what they have lent. */
static void test_ends_acknowledged(void **state)
{
	void (*const ends[])(struct world *) = {end_in_reset, end_destroyed};
	struct world w;

	(void)state;
	for (uint32_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		open_world(&w);
		send_lent(&w, URXE_WR_SEND, LENGTH);
		input(&w, 0, w.n);
		expect_arrival(&w, LENGTH);
		ends[i](&w);
		assert_int_equal(w.a->table->recalls, 0);
		close_world(&w);
	}
}

/* Who has lent nothing takes nothing back from the others. */
static void test_ends_without(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	open_world(&w);
	post = request(&w, URXE_WR_SEND, 1023);
	post_recv(&w.d.e.end[1], 6, TO, REGION);
	post_send(&w.d.e, 0, &post);
	output(&w);
	end_in_error(&w);
	assert_int_equal(w.a->table->recalls, 0);
	close_world(&w);
}

/* --- Who says something else than the packet does. */

static void expect_refused(struct world *w, const struct urxe_frame *frame)
{
	uint64_t before = events(w->b, URXE_EVENT_RX_PACKETS);
	uint32_t here = frame->len - frame->lent;
	struct urxe_frame copy = *frame;
	uint8_t *data = malloc(here ? here : 1);

	/* Where nothing but what is said to be there may be read. */
	memcpy(data, frame->data, here);
	copy.data = data;
	urxe_input(w->b->dev, w->d.e.pair->now, &copy, 1);
	assert_int_equal(events(w->b, URXE_EVENT_RX_PACKETS), before);
	free(data);
}

static void test_hostile(void **state)
{
	static const uint32_t wrong[] = {1, 4, 1023, 4092, 4095, 5120, 4100, 65535};
	struct rand rand = {3};
	struct world w;
	uint32_t here;

	(void)state;
	open_world(&w);
	send_lent(&w, URXE_WR_SEND, 4096);
	here = w.frames[0].len - w.frames[0].lent;
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct urxe_frame frame = w.frames[0];

		frame.lent = wrong[i];
		frame.len = here + wrong[i];
		expect_refused(&w, &frame);
	}
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t at = 12 + rand_below(&rand, here - 12);
		uint8_t before = w.frames[0].data[at];

		/* Not what routers may change. */
		if (at == 15 || at == 22 || at == 24 || at == 25 || at == 40 || at == 41 ||
		    at == 46)
			continue;
		w.frames[0].data[at] ^= (uint8_t)(1 + rand_below(&rand, 255));
		expect_refused(&w, &w.frames[0]);
		w.frames[0].data[at] = before;
	}
	input(&w, 0, 1);
	expect_arrival(&w, 4096);
	close_world(&w);
}

/* What the headers of a lent frame say. */
static struct urxe_packet parse(const struct urxe_frame *frame)
{
	static uint8_t whole[ROOM + URXE_LENT_MAX];
	const uint32_t behind = URXE_ICRC_LEN + (-frame->lent & 3);
	struct urxe_packet p;

	memcpy(whole, frame->data, frame->len - frame->lent - behind);
	assert_int_equal(urxe_packet_parse(&p, whole, frame->len), URXE_DROP_NONE);
	return p;
}

/* The same with another opcode, its payload elsewhere. */
static struct urxe_frame forge(const struct world *w, uint8_t opcode, uint8_t data[CRAFT_MAX])
{
	static uint8_t payload[4096] = {1};
	struct urxe_packet p = parse(&w->frames[0]);
	struct urxe_frame frame = {
		.data = data,
		.lent = sizeof(payload),
		.payload = payload,
		.trusted = true,
		.recalls = &w->a->table->recalls,
	};
	uint32_t icrc;

	p.opcode = opcode;
	p.payload = payload;
	p.payload_len = sizeof(payload);
	p.reth.va = w->b->iova + TO;
	p.reth.rkey = w->b->key;
	p.reth.length = frame.lent;
	frame.len = craft_frame(data, &p);
	assert_int_equal(urxe_packet_parse(&p, data, frame.len), URXE_DROP_NONE);
	((uint8_t *)p.bth)[8] |= 3; /* of 1024 bytes, more behind the first */
	icrc = htole32(craft_icrc(p.net, p.l3, p.payload));
	memcpy((uint8_t *)p.payload, &icrc, sizeof(icrc));
	return frame;
}

/* Of what is no SEND of a reliable connection no packets go together. */
static void test_hostile_together(void **state)
{
	static const uint8_t opcodes[] = {
		URXE_SERVICE_RC | URXE_OP_WRITE_ONLY,
		URXE_SERVICE_RC | URXE_OP_WRITE_FIRST,
		URXE_SERVICE_RC | URXE_OP_READ_RESPONSE_ONLY,
	};
	uint8_t data[CRAFT_MAX];

	(void)state;
	for (uint32_t i = 0; i < sizeof(opcodes); i++) {
		struct urxe_frame frame;
		struct urxe_wc wc;
		struct world w;

		open_mtu(&w, URXE_MTU_1024);
		send_lent(&w, URXE_WR_SEND, 4096);
		frame = forge(&w, opcodes[i], data);
		urxe_input(w.b->dev, w.d.e.pair->now, &frame, 1);
		assert_true(is_untouched(&w));
		assert_true(!node_poll(&w.b->recv_cq, &wc) || wc.status == URXE_WC_WR_FLUSH_ERR);
		close_world(&w);
	}
}

static void test_hostile_unreliable(void **state)
{
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame;
	struct world w;
	struct post post;

	(void)state;
	open_conn(&w, URXE_QPT_UC, URXE_MTU_1024);
	post = request(&w, URXE_WR_SEND, 1024);
	post_recv(&w.d.e.end[1], 6, TO, REGION);
	post_send(&w.d.e, 0, &post);
	output(&w);
	frame = forge(&w, URXE_SERVICE_UC | URXE_OP_SEND_ONLY, data);
	urxe_input(w.b->dev, w.d.e.pair->now, &frame, 1);
	assert_true(is_untouched(&w));
	expect_none(&w.b->recv_cq);
	close_world(&w);
}

/* The same forgery of a SEND is one: what is refused above is not refused for its making. */
static void test_forged(void **state)
{
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame;
	struct world w;

	(void)state;
	open_mtu(&w, URXE_MTU_1024);
	send_lent(&w, URXE_WR_SEND, 4096);
	frame = forge(&w, URXE_SERVICE_RC | URXE_OP_SEND_ONLY, data);
	urxe_input(w.b->dev, w.d.e.pair->now, &frame, 1);
	assert_int_equal(expect_wc(&w.b->recv_cq, 6, URXE_WC_SUCCESS).byte_len, 4096);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrives),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_disagree),
		cmocka_unit_test(test_not_together),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_recalled),
		cmocka_unit_test(test_recalled_midway),
		cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_short_out_of_order),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_no_buffer),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_ends_acknowledged),
		cmocka_unit_test(test_ends_without),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_hostile_together),
		cmocka_unit_test(test_hostile_unreliable),
		cmocka_unit_test(test_forged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
