/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What repairs loss and reordering beyond go-back-N (docs/recovery.md), seen from the wire. */
#include "by_hand.h"

#define REORDER_NS 2000

static void open_with_memory(struct engine *e, const struct conn_attr *conn, uint32_t size)
{
	e->pair = pair_create(
		&(struct pair_attr){.seed = 1, .reorder_ns = REORDER_NS, .mem_size = size});
	e->a = e->pair->node[0];
	e->b = e->pair->node[1];
	conn_open(e->pair, conn, e->end);
}

static void open_reordering(struct engine *e, const struct conn_attr *conn)
{
	open_with_memory(e, conn, 0);
}

/* A WRITE of one packet, `ahead` PSNs from the expected one, to the same place in b's memory. */
static void inject_write(struct engine *e, const struct conn_attr *conn, uint32_t ahead,
			 uint8_t content)
{
	struct urxe_packet p = from_peer(e, conn, 0x0a);

	memset(payload, content, 64);
	p.psn = (p.psn + ahead) & 0xffffff;
	p.reth.va += (uint64_t)ahead * 64;
	p.reth.length = p.payload_len = 64;
	p.ack_req = true;
	inject(e, &p);
}

static bool written(const struct engine *e, uint32_t ahead, uint8_t content)
{
	for (unsigned i = 0; i < 64; i++) {
		if (e->b->mem[ahead * 64 + i] != content)
			return false;
	}
	return true;
}

/* Early packets wait for the gap, reach memory in order behind it, and are acknowledged as one. */
static void test_gap_fills(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct answers got;
	struct engine e;

	(void)state;
	open_reordering(&e, &conn);
	inject_write(&e, &conn, 2, 0x33);
	inject_write(&e, &conn, 1, 0x22);
	inject_write(&e, &conn, 3, 0x44);
	expect_quiet(&e);
	assert_true(written(&e, 1, 0) && written(&e, 2, 0) && written(&e, 3, 0));
	assert_int_equal(events(e.b, URXE_EVENT_REORDERED), 3);
	inject_write(&e, &conn, 0, 0x11);
	assert_true(written(&e, 0, 0x11) && written(&e, 1, 0x22) && written(&e, 2, 0x33) &&
		    written(&e, 3, 0x44));
	got = answers(&e);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.syndrome >> 5, 0);
	assert_int_equal(got.psn, conn.psn[0] + 3);
	assert_int_equal(got.msn, 4);
	assert_int_equal(all_drops(e.b), 0);
	e.pair->now += 10 * REORDER_NS;
	expect_quiet(&e);
	engine_close(&e);
}

/* A gap that stays gets its one NAK after the reordering time, and no other. */
static void test_gap_stays(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct answers got;
	struct engine e;

	(void)state;
	open_reordering(&e, &conn);
	inject_write(&e, &conn, 1, 0x22);
	assert_true(urxe_next_deadline(e.b->dev) <= e.pair->now + REORDER_NS);
	e.pair->now += REORDER_NS - 1;
	expect_quiet(&e);
	inject_write(&e, &conn, 2, 0x33); /* does not prolong it */
	e.pair->now++;
	got = answers(&e);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.syndrome, 0x60);
	assert_int_equal(got.psn, conn.psn[0]);
	inject_write(&e, &conn, 3, 0x44);
	e.pair->now += 10 * REORDER_NS;
	expect_quiet(&e);
	assert_int_equal(events(e.b, URXE_EVENT_NAK_SEQ_SENT), 1);
	engine_close(&e);
}

/* A NAK or the repair may be lost: the NAK comes three times more, each after twice the time. */
static void test_gap_asked_again(void **state)
{
	(void)state;
	for (unsigned strict = 0; strict < 2; strict++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		uint64_t last = 0, wait[8];
		struct answers got;
		unsigned naks = 0;
		struct engine e;

		e.pair = pair_create(&(struct pair_attr){.seed = 1, .go_back_n = {strict, strict}});
		e.a = e.pair->node[0];
		e.b = e.pair->node[1];
		conn_open(e.pair, &conn, e.end);
		inject_write(&e, &conn, 1, 0x22);
		for (unsigned i = 0; i < 200; i++, e.pair->now += 100000) {
			got = answers(&e);
			if (!got.n)
				continue;
			assert_int_equal(got.syndrome, 0x60);
			assert_int_equal(got.psn, conn.psn[0]);
			wait[naks++] = e.pair->now - last;
			last = e.pair->now;
		}
		assert_int_equal(naks, strict ? 1 : 4);
		if (!strict)
			assert_true(wait[2] >= 2 * wait[1] - 200000 &&
				    wait[3] >= 2 * wait[2] - 200000);
		engine_close(&e);
	}
}

/* Behind a filled gap another one may lie: it has been waited for already. */
static void test_second_gap(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct answers got;
	struct engine e;

	(void)state;
	open_reordering(&e, &conn);
	inject_write(&e, &conn, 1, 0x22);
	inject_write(&e, &conn, 3, 0x44);
	e.pair->now += REORDER_NS;
	assert_int_equal(answers(&e).psn, conn.psn[0]);
	inject_write(&e, &conn, 0, 0x11);
	got = answers(&e);
	assert_int_equal(got.syndrome, 0x60);
	assert_int_equal(got.psn, conn.psn[0] + 2);
	assert_true(written(&e, 1, 0x22) && written(&e, 3, 0));
	inject_write(&e, &conn, 2, 0x33);
	got = answers(&e);
	assert_int_equal(got.syndrome >> 5, 0);
	assert_int_equal(got.psn, conn.psn[0] + 3);
	assert_true(written(&e, 2, 0x33) && written(&e, 3, 0x44));
	engine_close(&e);
}

/* Of two packets with one PSN the first counts, and a kept one that came again is not executed
 * twice. */
static void test_kept_twice(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	open_reordering(&e, &conn);
	inject_write(&e, &conn, 1, 0x22);
	inject_write(&e, &conn, 1, 0x99);
	inject_write(&e, &conn, 0, 0x11);
	assert_true(written(&e, 0, 0x11) && written(&e, 1, 0x22));
	inject_write(&e, &conn, 1, 0x77);
	assert_true(written(&e, 1, 0x22));
	assert_int_equal(answers(&e).msn, 2);
	engine_close(&e);
}

/* The buffer is bounded by PSNs; what lies beyond is dropped by name. */
static void test_window(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct answers got;
	struct engine e;

	(void)state;
	open_reordering(&e, &conn);
	for (uint32_t ahead = 1; ahead < 300; ahead++)
		inject_write(&e, &conn, ahead, (uint8_t)ahead);
	assert_int_equal(events(e.b, URXE_EVENT_REORDERED), 255);
	assert_int_equal(drops(e.b, URXE_DROP_OUT_OF_SEQUENCE), 299 - 255);
	inject_write(&e, &conn, 0, 0);
	for (uint32_t ahead = 0; ahead < 256; ahead++)
		assert_true(written(&e, ahead, (uint8_t)ahead));
	assert_true(written(&e, 256, 0));
	got = answers(&e);
	assert_int_equal(got.psn, conn.psn[0] + 255);
	assert_int_equal(got.msn, 256);
	engine_close(&e);
}

/* A refused packet ends the connection; what was kept behind it is never executed. */
static void test_kept_behind_error(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	open_reordering(&e, &conn);
	inject_write(&e, &conn, 1, 0x22);
	p = from_peer(&e, &conn, 0x0a);
	p.reth.rkey ^= 0x100;
	p.reth.length = p.payload_len = 64;
	inject(&e, &p);
	assert_int_equal(answers(&e).syndrome, 0x62);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	assert_true(written(&e, 1, 0));
	e.pair->now += 10 * REORDER_NS;
	expect_quiet(&e);
	engine_close(&e);
}

/* Not ready for the message in front: what came behind it is there once it comes again. */
static void test_kept_behind_rnr(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet send;
	struct answers got;
	struct engine e;

	(void)state;
	open_reordering(&e, &conn);
	send = from_peer(&e, &conn, 0x04);
	send.payload_len = 8;
	inject(&e, &send);
	assert_int_equal(answers(&e).syndrome >> 5, 1);
	inject_write(&e, &conn, 1, 0x22);
	e.pair->now += 10 * REORDER_NS;
	expect_quiet(&e); /* the RNR NAK is the answer until the message comes */
	post_recv(&e.end[1], 5, 4096, 64);
	inject(&e, &send);
	expect_wc(&e.b->recv_cq, 5, URXE_WC_SUCCESS);
	assert_true(written(&e, 1, 0x22));
	got = answers(&e);
	assert_int_equal(got.psn, conn.psn[0] + 1);
	assert_int_equal(got.msn, 2);
	engine_close(&e);
}

/* Reset forgets what was kept: the next connection starts clean. */
static void test_kept_and_reset(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	open_reordering(&e, &conn);
	inject_write(&e, &conn, 1, 0x22);
	assert_int_equal(urxe_qp_modify(e.end[1].qp, e.pair->now,
					&(struct urxe_qp_attr){.state = URXE_QPS_RESET},
					URXE_QP_STATE),
			 0);
	conn_bring_up(e.pair, &conn, 1, &e.end[1], &e.end[0]);
	inject_write(&e, &conn, 0, 0x11);
	assert_true(written(&e, 0, 0x11) && written(&e, 1, 0));
	assert_int_equal(answers(&e).psn, conn.psn[0]);
	inject_write(&e, &conn, 2, 0x33); /* kept until the end: the device frees it */
	engine_close(&e);
}

/* --- Repeated requests, of which the last one asks for an acknowledgement. */

#define MESSAGE_PACKETS 5
#define QUIET_NS        20000000
#define SILENT_NS       4000000

/* Packet i of a SEND, whose last one asks for an acknowledgement. */
static void inject_send(struct engine *e, const struct conn_attr *conn, uint32_t i)
{
	bool last = i == MESSAGE_PACKETS - 1;
	struct urxe_packet p = from_peer(e, conn, last ? 0x02 : i ? 0x01 : 0x00);

	p.psn = (p.psn + i) & 0xffffff;
	p.payload_len = 1024;
	p.ack_req = last;
	inject(e, &p);
}

static void inject_sends(struct engine *e, const struct conn_attr *conn, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		inject_send(e, conn, i);
		expect_quiet(e);
	}
}

/* Node b has all of the SEND. */
static void open_with_message(struct engine *e, const struct conn_attr *conn)
{
	open_reordering(e, conn);
	post_recv(&e->end[1], 1, 0, MESSAGE_PACKETS * 1024);
	inject_sends(e, conn, MESSAGE_PACKETS - 1);
	inject_send(e, conn, MESSAGE_PACKETS - 1);
	assert_int_equal(answers(e).n, 1);
	expect_wc(&e->b->recv_cq, 1, URXE_WC_SUCCESS);
}

/* Of the SEND, the last packet but one is missing. */
static void open_with_gap(struct engine *e, const struct conn_attr *conn)
{
	open_reordering(e, conn);
	post_recv(&e->end[1], 1, 0, MESSAGE_PACKETS * 1024);
	inject_sends(e, conn, MESSAGE_PACKETS - 2);
	inject_send(e, conn, MESSAGE_PACKETS - 1);
}

static struct conn_attr message_conn(void)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.path_mtu = URXE_MTU_1024;
	return conn;
}

static void expect_ack(struct engine *e, const struct conn_attr *conn)
{
	struct answers got = answers(e);

	assert_int_equal(got.n, 1);
	assert_int_equal(got.syndrome >> 5, 0);
	assert_int_equal(got.psn, (conn->psn[0] + MESSAGE_PACKETS - 1) & 0xffffff);
	assert_int_equal(got.msn, 1);
}

/* When nothing has come for long enough, and then never again. */
static void expect_ack_once_more(struct engine *e, const struct conn_attr *conn)
{
	e->pair->now += QUIET_NS - 1;
	expect_quiet(e);
	e->pair->now++;
	expect_ack(e, conn);
	e->pair->now += 10 * QUIET_NS;
	expect_quiet(e);
}

/*
 * The acknowledgement was lost, and all is sent again: the answer waits for the packet that asks,
 * and comes once more behind it. Linux' rxe does not end a request that is acknowledged amid its
 * repetition before it hears of it again.
 */
static void test_repeated_to_the_end(void **state)
{
	struct conn_attr conn = message_conn();
	struct engine e;

	(void)state;
	open_with_message(&e, &conn);
	for (unsigned round = 0; round < 3; round++) {
		inject_sends(&e, &conn, MESSAGE_PACKETS - 1);
		inject_send(&e, &conn, MESSAGE_PACKETS - 1);
		expect_ack(&e, &conn);
		expect_ack_once_more(&e, &conn);
	}
	assert_int_equal(events(e.b, URXE_EVENT_DUP_REQUEST), 3 * MESSAGE_PACKETS);
	engine_close(&e);
}

/* The packet that asks is lost, or there is none: the others are answered when no more come. */
static void test_repeated_in_part(void **state)
{
	struct conn_attr conn = message_conn();
	struct engine e;

	(void)state;
	open_with_message(&e, &conn);
	inject_send(&e, &conn, 0);
	expect_quiet(&e);
	e.pair->now += SILENT_NS - 1;
	inject_send(&e, &conn, 1);
	e.pair->now += QUIET_NS - 1;
	expect_quiet(&e);
	assert_true(urxe_next_deadline(e.b->dev) <= e.pair->now + 1);
	e.pair->now++;
	expect_ack(&e, &conn);
	e.pair->now += 10 * QUIET_NS;
	expect_quiet(&e);
	engine_close(&e);
}

/*
 * The same, and the requester has a short timeout: it is never quiet, but not left without an
 * answer either. One that gets its answers gets no more of them.
 */
static void test_repeated_without_pause(void **state)
{
	struct conn_attr conn = message_conn();
	struct engine e;

	(void)state;
	open_with_message(&e, &conn);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 4; i++) {
			inject_send(&e, &conn, i);
			expect_quiet(&e);
			e.pair->now += SILENT_NS / 4;
		}
		inject_send(&e, &conn, 0);
		expect_ack(&e, &conn);
		e.pair->now += SILENT_NS - 1;
	}
	for (unsigned round = 0; round < 10; round++) {
		inject_sends(&e, &conn, MESSAGE_PACKETS - 1);
		inject_send(&e, &conn, MESSAGE_PACKETS - 1);
		expect_ack(&e, &conn);
		e.pair->now += SILENT_NS - 1;
	}
	e.pair->now += QUIET_NS - SILENT_NS;
	expect_quiet(&e);
	e.pair->now++;
	expect_ack(&e, &conn);
	e.pair->now += 10 * QUIET_NS;
	expect_quiet(&e);
	engine_close(&e);
}

/* The queue pair is to end before that: the acknowledgement need not wait for the quiet. */
static void test_repeated_at_the_end(void **state)
{
	struct conn_attr conn = message_conn();
	struct engine e;

	(void)state;
	open_with_message(&e, &conn);
	assert_false(urxe_qp_settle(e.end[1].qp));
	inject_sends(&e, &conn, MESSAGE_PACKETS - 1);
	inject_send(&e, &conn, MESSAGE_PACKETS - 1);
	expect_ack(&e, &conn);
	assert_true(urxe_qp_settle(e.end[1].qp));
	expect_ack(&e, &conn);
	assert_false(urxe_qp_settle(e.end[1].qp));
	e.pair->now += 10 * QUIET_NS;
	expect_quiet(&e);
	engine_close(&e);
}

/*
 * What a NAK has asked for comes, and the rest was kept: all is acknowledged. A strict requester
 * has the rest to send again nevertheless, and that may be lost: it hears of it once more.
 */
static void test_repaired(void **state)
{
	struct conn_attr conn = message_conn();
	struct engine e;

	(void)state;
	open_with_gap(&e, &conn);
	e.pair->now += REORDER_NS;
	assert_int_equal(answers(&e).syndrome, 0x60);
	inject_send(&e, &conn, MESSAGE_PACKETS - 2);
	expect_ack(&e, &conn);
	expect_ack_once_more(&e, &conn);
	engine_close(&e);
}

/* A gap that filled by itself, by packets that came late, is nothing that was sent again. */
static void test_reordered(void **state)
{
	struct conn_attr conn = message_conn();
	struct engine e;

	(void)state;
	open_with_gap(&e, &conn);
	inject_send(&e, &conn, MESSAGE_PACKETS - 2);
	expect_ack(&e, &conn);
	e.pair->now += 10 * QUIET_NS;
	expect_quiet(&e);
	engine_close(&e);
}

/* One that was executed behind the SEND: its response is its only answer. */
static void inject_behind(struct engine *e, const struct conn_attr *conn, uint8_t opcode)
{
	struct urxe_packet p = from_peer(e, conn, opcode);

	p.psn = (p.psn + MESSAGE_PACKETS) & 0xffffff;
	p.reth.length = 64;
	inject(e, &p);
	assert_int_equal(answers(e).n, 1);
}

/*
 * The responses of a READ or atomic may be lost, and an ACK is none: what acknowledges the SEND
 * before it says nothing of it. Linux' rxe would take the READ for done.
 */
static void test_repeated_before_response(void **state)
{
	static const uint8_t opcodes[] = {0x0c, 0x13, 0x14}; /* READ, CmpSwap, FetchAdd */
	struct conn_attr conn = message_conn();

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct engine e;

		open_with_message(&e, &conn);
		inject_behind(&e, &conn, opcodes[i]);
		inject_sends(&e, &conn, MESSAGE_PACKETS - 1);
		inject_send(&e, &conn, MESSAGE_PACKETS - 1);
		expect_ack(&e, &conn);
		e.pair->now += QUIET_NS;
		expect_ack(&e, &conn);
		engine_close(&e);
	}
}

/* Bytes of a READ of 2^22 packets; three of them take the PSNs more than half round. */
#define LONG_READ (UINT32_C(1) << 30)

static void inject_read(struct engine *e, const struct conn_attr *conn, uint32_t ahead,
			uint32_t offset, uint32_t length)
{
	struct urxe_packet p = from_peer(e, conn, 0x0c);

	p.psn = (p.psn + ahead) & 0xffffff;
	p.reth.va += offset;
	p.reth.length = length;
	inject(e, &p);
}

/* Its last packet is asked for again at once, so that the others need not be made. */
static void inject_long_read(struct engine *e, const struct conn_attr *conn, uint32_t ahead)
{
	inject_read(e, conn, ahead, 0, LONG_READ);
	inject_read(e, conn, ahead + LONG_READ / 256 - 1, LONG_READ - 256, 256);
	assert_int_equal(answers(e).n, 1);
}

/*
 * So far behind READs that its PSN is one that is to come, a WRITE is not acknowledged any more:
 * Linux' rxe would take that for an answer to what it has yet to hear of.
 */
static void test_repaired_far_behind(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint32_t ahead = 1;
	struct engine e;

	(void)state;
	conn.path_mtu = URXE_MTU_256;
	open_with_memory(&e, &conn, LONG_READ);
	inject_write(&e, &conn, 0, 0x11);
	assert_int_equal(answers(&e).psn, conn.psn[0]);
	for (unsigned i = 0; i < 3; i++, ahead += LONG_READ / 256)
		inject_long_read(&e, &conn, ahead);
	inject_read(&e, &conn, ahead + 1, 0, 64);
	e.pair->now += REORDER_NS;
	assert_int_equal(answers(&e).syndrome, 0x60);
	inject_read(&e, &conn, ahead, 0, 64);
	assert_int_equal(answers(&e).n, 2);
	e.pair->now += 10 * QUIET_NS;
	expect_quiet(&e);
	/* The next one is, as ever. */
	inject_write(&e, &conn, ahead + 2, 0x22);
	assert_int_equal(answers(&e).psn, (conn.psn[0] + ahead + 2) & 0xffffff);
	engine_close(&e);
}

/* An answer that waits ends with the connection. */
static void test_repeated_and_reset(void **state)
{
	struct conn_attr conn = message_conn();

	(void)state;
	for (enum urxe_qp_state to = URXE_QPS_RESET; to <= URXE_QPS_ERR; to += URXE_QPS_ERR) {
		struct engine e;

		open_with_message(&e, &conn);
		inject_send(&e, &conn, 0);
		expect_quiet(&e);
		assert_int_equal(urxe_qp_modify(e.end[1].qp, e.pair->now,
						&(struct urxe_qp_attr){.state = to}, URXE_QP_STATE),
				 0);
		e.pair->now += 10 * QUIET_NS;
		expect_quiet(&e);
		engine_close(&e);
	}
}

/* A strict responder has nothing that waits. */
static void test_repeated_strict(void **state)
{
	struct conn_attr conn = message_conn();
	struct engine e;

	(void)state;
	e.pair = pair_create(&(struct pair_attr){.seed = 1, .go_back_n = {true, true}});
	e.a = e.pair->node[0];
	e.b = e.pair->node[1];
	conn_open(e.pair, &conn, e.end);
	post_recv(&e.end[1], 1, 0, MESSAGE_PACKETS * 1024);
	for (uint32_t i = 0; i < MESSAGE_PACKETS; i++)
		inject_send(&e, &conn, i);
	expect_ack(&e, &conn);
	for (uint32_t i = 0; i < MESSAGE_PACKETS; i++) {
		inject_send(&e, &conn, i);
		expect_ack(&e, &conn);
	}
	engine_close(&e);
}

/* --- The requester: what it sends again, over a cable that loses chosen frames. */

#define MTU_PACKETS 1024 /* bytes of a packet in the connections below */

struct losses {
	uint64_t lost; /* bit n: the n-th frame of the direction is lost */
	bool all;
	unsigned seen;
};

static bool lose(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct losses *losses = arg;
	unsigned n = losses->seen++;

	(void)now, (void)data, (void)len;
	return !losses->all && (n >= 64 || !(losses->lost >> n & 1));
}

struct lossy {
	struct engine e;
	struct losses losses[2]; /* [i]: of what node i sends */
};

static void open_lossy(struct lossy *l, bool strict_a, bool strict_b)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	*l = (struct lossy){0};
	l->e.pair = pair_create(&(struct pair_attr){
		.seed = 1, .mem_size = 4 << 20, .go_back_n = {strict_a, strict_b}});
	l->e.a = l->e.pair->node[0];
	l->e.b = l->e.pair->node[1];
	conn.path_mtu = URXE_MTU_1024;
	conn_open(l->e.pair, &conn, l->e.end);
	for (unsigned i = 0; i < 2; i++) {
		l->e.pair->link[i].filter = lose;
		l->e.pair->link[i].filter_arg = &l->losses[i];
	}
}

/* One request of n packets, from the beginning of one memory to that of the other. */
static void transfer(struct lossy *l, uint32_t opcode, uint32_t n, uint64_t lost,
		     uint64_t lost_back)
{
	struct engine *e = &l->e;
	bool read = opcode == URXE_WR_RDMA_READ;
	uint8_t *from = read ? e->b->mem : e->a->mem, *to = read ? e->a->mem : e->b->mem;
	uint32_t length = n * MTU_PACKETS;

	l->losses[0] = (struct losses){.lost = lost};
	l->losses[1] = (struct losses){.lost = lost_back};
	rand_fill(&(struct rand){lost + lost_back + n}, from, length);
	post_send(e, 0, &(struct post){.opcode = opcode, .length = length});
	pair_settle(e->pair);
	expect_wc(&e->a->send_cq, 0, URXE_WC_SUCCESS);
	assert_memory_equal(from, to, length);
}

/* A short exchange without loss: the requester has a round trip to go by. */
static void measure(struct lossy *l)
{
	transfer(l, URXE_WR_RDMA_WRITE, 1, 0, 0);
}

static void expect_again(const struct lossy *l, uint64_t packets)
{
	assert_int_equal(events(l->e.a, URXE_EVENT_RETRANSMIT), packets);
	assert_int_equal(events(l->e.a, URXE_EVENT_TIMEOUT), 0);
}

/* Separate gaps cost a packet each. */
static void test_gaps_alone(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3 | 1 << 9 | 1 << 17, 0);
	expect_again(&l, 3);
	assert_int_equal(drops(l.e.b, URXE_DROP_OUT_OF_SEQUENCE), 0);
	assert_int_equal(events(l.e.b, URXE_EVENT_DUP_REQUEST), 0);
	engine_close(&l.e);
}

/* A burst is made up for by one packet, two, four: not by one each round trip. */
static void test_burst(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3, 0); /* shows that the peer keeps */
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 0x7f << 8, 0);
	expect_again(&l, 1 + 7);
	assert_int_equal(events(l.e.a, URXE_EVENT_NAK_SEQ_RCVD), 1 + 3);
	engine_close(&l.e);
}

/* A peer that keeps nothing is found out by its second NAK, and then gets all at once. */
static void test_strict_peer(void **state)
{
	uint64_t naks;
	struct lossy l;

	(void)state;
	open_lossy(&l, false, true);
	measure(&l);
	transfer(&l, URXE_WR_RDMA_WRITE, 400, 1 << 3, 0);
	naks = events(l.e.a, URXE_EVENT_NAK_SEQ_RCVD);
	assert_true(naks <= 2);
	transfer(&l, URXE_WR_RDMA_WRITE, 400, 1 << 9, 0);
	assert_int_equal(events(l.e.a, URXE_EVENT_NAK_SEQ_RCVD), naks + 1);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&l.e);
}

/* A strict requester starts over at the gap; what its peer kept, it need not send. */
static void test_strict_requester(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, true, true);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3, 0);
	expect_again(&l, 57);
	engine_close(&l.e);
}

/* Of a READ, missing responses are asked for alone. */
static void test_read_gap(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_READ, 40, 0, 3 << 20);
	expect_again(&l, 1);
	assert_int_equal(l.losses[1].seen, 40 + 2);
	engine_close(&l.e);
}

/* arg: where the last READ request began. */
static bool never_back(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	uint64_t *begin = arg;
	struct urxe_packet p;

	(void)now;
	assert_int_equal(urxe_packet_parse(&p, data, len), URXE_DROP_NONE);
	assert_int_equal(p.opcode, 0x0c);
	assert_true(p.reth.va >= *begin);
	*begin = p.reth.va;
	return true;
}

/*
 * Responders are known (Linux' rxe) that answer no repetition which begins before the one that
 * came last: with two gaps, the first may have to be asked for once more.
 */
static void test_read_gaps(void **state)
{
	(void)state;
	for (unsigned n = 22; n < 60; n++) {
		uint64_t begin = 0;
		struct lossy l;

		open_lossy(&l, false, false);
		l.e.pair->link[0].filter = never_back;
		l.e.pair->link[0].filter_arg = &begin;
		transfer(&l, URXE_WR_RDMA_READ, 40, 0, 1 << 3 | 3 << 20 | UINT64_C(1) << n);
		engine_close(&l.e);
	}
}

/* The next packet waits for its time by the rate while a response is found missing. */
static void test_missing_while_held(void **state)
{
	struct urxe_qp_attr limit = {.rate_limit = 1000}; /* kb/s */
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	assert_int_equal(urxe_qp_modify(l.e.end[0].qp, l.e.pair->now, &limit, URXE_QP_RATE_LIMIT),
			 0);
	l.losses[1].lost = 1 << 3;
	post_send(&l.e, 0, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 40 * 1024});
	post_send(&l.e, 0,
		  &(struct post){.wr_id = 1,
				 .opcode = URXE_WR_RDMA_WRITE,
				 .offset = 65536,
				 .remote = 65536,
				 .length = 8 * 1024});
	pair_settle(l.e.pair);
	expect_wc(&l.e.a->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&l.e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_IMPLIED_NAK), 1);
	engine_close(&l.e);
}

/* A READ that nothing came of is repeated as it was: else what follows lies outside its range. */
static void test_read_request_lost(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	measure(&l);
	transfer(&l, URXE_WR_RDMA_READ, 100, 1, 1 << 5 | 1 << 9);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	assert_int_equal(drops(l.e.b, URXE_DROP_DUPLICATE), 0);
	engine_close(&l.e);
}

/* A lost NAK, or a repair that was lost in its turn, costs a strict requester no timeout either. */
static void test_repair_lost(void **state)
{
	(void)state;
	for (unsigned strict = 0; strict < 2; strict++)
		for (unsigned back = 0; back < 2; back++) {
			struct lossy l;

			open_lossy(&l, strict, false);
			measure(&l);
			/* 60 packets, of which one is lost; the frame after them is its repair. */
			transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3 | (uint64_t)!back << 60, back);
			assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
			engine_close(&l.e);
		}
}

/* The last packet, or its acknowledgement, is missed after a few round trips. */
static void test_tail(void **state)
{
	(void)state;
	for (unsigned back = 0; back < 2; back++) {
		struct lossy l;

		open_lossy(&l, false, false);
		measure(&l);
		if (back)
			transfer(&l, URXE_WR_RDMA_WRITE, 10, 0, 1);
		else
			transfer(&l, URXE_WR_RDMA_WRITE, 10, 3 << 8, 0);
		assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
		assert_true(events(l.e.a, URXE_EVENT_PROBE) >= 1);
		assert_true(events(l.e.a, URXE_EVENT_RETRANSMIT) <= 3);
		engine_close(&l.e);
	}
}

/*
 * A NAK had the gap repaired, and the peer had kept nothing of what followed: as the answer to an
 * atomic says so little, probes have to send the rest.
 */
static void test_silence_behind_repair(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, true);
	measure(&l);
	l.losses[0] = (struct losses){.lost = 1};
	for (unsigned i = 0; i < 4; i++)
		post_send(&l.e, 0,
			  &(struct post){.wr_id = i, .opcode = URXE_WR_FETCH_ADD, .length = 8});
	pair_settle(l.e.pair);
	for (unsigned i = 0; i < 4; i++)
		expect_wc(&l.e.a->send_cq, i, URXE_WC_SUCCESS);
	assert_int_equal(events(l.e.a, URXE_EVENT_NAK_SEQ_RCVD), 1);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), 0);
	engine_close(&l.e);
}

/* Before any round trip is known, the first probe waits for a part of a long timeout. */
static void test_first_probe(void **state)
{
	struct lossy l;

	(void)state;
	for (unsigned probes = 0; probes < 2; probes++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);

		open_lossy(&l, false, false);
		if (probes) {
			conn.timeout = 14; /* 201 ms by our clock; conn_default has 3 ms */
			conn_open(l.e.pair, &conn, l.e.end);
		}
		transfer(&l, URXE_WR_RDMA_WRITE, 4, 0xf, 0);
		assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT), !probes);
		assert_true(!events(l.e.a, URXE_EVENT_PROBE) == !probes);
		engine_close(&l.e);
	}
}

/* Nobody answers: six probes, then the timeouts of the retry count, then the error. */
static void test_silence(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	measure(&l);
	l.losses[0].all = true;
	post_send(&l.e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
	pair_settle(l.e.pair);
	expect_wc(&l.e.a->send_cq, 0, URXE_WC_RETRY_EXC_ERR);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), 6);
	assert_int_equal(events(l.e.a, URXE_EVENT_TIMEOUT),
			 conn_default(URXE_QPT_RC).retry_cnt + 1);
	engine_close(&l.e);
}

/* The owner says how long a silence is at least. */
static void test_probe_ns(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct lossy l = {0};
	uint64_t sent;

	(void)state;
	l.e.pair = pair_create(&(struct pair_attr){.seed = 1, .probe_ns = 700000});
	l.e.a = l.e.pair->node[0];
	l.e.b = l.e.pair->node[1];
	conn_open(l.e.pair, &conn, l.e.end);
	l.e.pair->link[0].filter = lose;
	l.e.pair->link[0].filter_arg = &l.losses[0];
	measure(&l);
	sent = l.e.pair->now;
	l.losses[0].all = true;
	post_send(&l.e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
	pair_run(l.e.pair, sent + 699999);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), 0);
	pair_run(l.e.pair, sent + 700001);
	assert_int_equal(events(l.e.a, URXE_EVENT_PROBE), 1);
	engine_close(&l.e);
}

/* How many packets go out before the first acknowledgement. */
static uint64_t window(struct lossy *l)
{
	uint64_t before = events(l->e.a, URXE_EVENT_TX_PACKETS);
	uint64_t again = events(l->e.a, URXE_EVENT_RETRANSMIT);

	l->losses[1] = (struct losses){.all = true};
	post_send(&l->e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 1 << 20});
	pair_run(l->e.pair, l->e.pair->now + 1000000);
	before = events(l->e.a, URXE_EVENT_TX_PACKETS) - before -
		 (events(l->e.a, URXE_EVENT_RETRANSMIT) - again);
	l->losses[1].all = false;
	pair_settle(l->e.pair);
	expect_wc(&l->e.a->send_cq, 0, URXE_WC_SUCCESS);
	return before;
}

/* A loss makes the window smaller, and a window without one gives it back. */
static void test_window_shrinks(void **state)
{
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	assert_int_equal(window(&l), 256);
	engine_close(&l.e);

	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3, 0);
	assert_int_equal(window(&l), 224);
	engine_close(&l.e);

	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3, 0);
	transfer(&l, URXE_WR_RDMA_WRITE, 1000, 0, 0);
	assert_int_equal(window(&l), 256);
	engine_close(&l.e);
}

/* A refused message alone comes again, once the peer has shown to keep what follows. */
static void test_rnr_alone(void **state)
{
	uint64_t again;
	struct lossy l;

	(void)state;
	open_lossy(&l, false, false);
	transfer(&l, URXE_WR_RDMA_WRITE, 60, 1 << 3, 0);
	again = events(l.e.a, URXE_EVENT_RETRANSMIT);
	post_send(&l.e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_SEND, .length = 64});
	post_send(&l.e, 0,
		  &(struct post){.wr_id = 2, .opcode = URXE_WR_RDMA_WRITE, .length = 9000});
	pair_run(l.e.pair, l.e.pair->now + 50000);
	post_recv(&l.e.end[1], 7, 1 << 20, 64);
	pair_settle(l.e.pair);
	expect_wc(&l.e.a->send_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&l.e.a->send_cq, 2, URXE_WC_SUCCESS);
	assert_true(events(l.e.a, URXE_EVENT_NAK_RNR_RCVD) > 0);
	assert_int_equal(events(l.e.a, URXE_EVENT_RETRANSMIT) - again,
			 events(l.e.a, URXE_EVENT_NAK_RNR_RCVD));
	engine_close(&l.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gap_fills),
		cmocka_unit_test(test_gap_stays),
		cmocka_unit_test(test_gap_asked_again),
		cmocka_unit_test(test_repair_lost),
		cmocka_unit_test(test_missing_while_held),
		cmocka_unit_test(test_silence_behind_repair),
		cmocka_unit_test(test_first_probe),
		cmocka_unit_test(test_probe_ns),
		cmocka_unit_test(test_second_gap),
		cmocka_unit_test(test_kept_twice),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_kept_behind_error),
		cmocka_unit_test(test_kept_behind_rnr),
		cmocka_unit_test(test_kept_and_reset),
		cmocka_unit_test(test_repeated_to_the_end),
		cmocka_unit_test(test_repeated_in_part),
		cmocka_unit_test(test_repeated_without_pause),
		cmocka_unit_test(test_repeated_before_response),
		cmocka_unit_test(test_repeated_at_the_end),
		cmocka_unit_test(test_repaired),
		cmocka_unit_test(test_repaired_far_behind),
		cmocka_unit_test(test_reordered),
		cmocka_unit_test(test_repeated_and_reset),
		cmocka_unit_test(test_repeated_strict),
		cmocka_unit_test(test_gaps_alone),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_strict_peer),
		cmocka_unit_test(test_strict_requester),
		cmocka_unit_test(test_read_gap),
		cmocka_unit_test(test_read_gaps),
		cmocka_unit_test(test_read_request_lost),
		cmocka_unit_test(test_tail),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_window_shrinks),
		cmocka_unit_test(test_rnr_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
