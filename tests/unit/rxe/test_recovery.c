/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that a responder keeps and acknowledges beyond go-back-N (docs/recovery.md), observed as
 * frames.
 */
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

/*
 * Early packets wait until the gap is filled, are executed in order, and get one acknowledgement.
 */
static void test_filled_gap_gets_one_ack(void **state)
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

/* A lasting gap causes one NAK after the reordering time, and no second one. */
static void test_lasting_gap_gets_one_nak(void **state)
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
	inject_write(&e, &conn, 2, 0x33); /* does not prolong the reordering time */
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

/*
 * The NAK or the repaired packet may be lost: the responder repeats the NAK three times, each after
 * twice the time.
 */
static void test_nak_of_a_gap_is_repeated_three_times(void **state)
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

#define STOP_NS 3600000000000

/* The responder's process was stopped between the NAK and the repaired packet. */
static void test_stop_in_a_repair_delays_no_later_nak(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	unsigned naks = 0;
	struct engine e;

	(void)state;
	open_reordering(&e, &conn);
	inject_write(&e, &conn, 1, 0x22);
	e.pair->now += REORDER_NS;
	assert_int_equal(answers(&e).syndrome, 0x60);
	e.pair->now += STOP_NS;
	inject_write(&e, &conn, 0, 0x11);
	assert_true(written(&e, 1, 0x22));
	inject_write(&e, &conn, 3, 0x44);
	for (unsigned i = 0; i < 200; i++, e.pair->now += 100000)
		naks += answers(&e).syndrome == 0x60;
	assert_int_equal(naks, 4);
	engine_close(&e);
}

/* A gap that is filled `took` after it appeared. Returns the number of its NAKs. */
static unsigned naks_of_gap(struct engine *e, const struct conn_attr *conn, uint32_t ahead,
			    uint64_t took)
{
	const uint64_t end = e->pair->now + took;
	unsigned naks = 0;

	inject_write(e, conn, ahead + 1, 0x22);
	for (; e->pair->now < end; e->pair->now += 5000)
		naks += answers(e).syndrome == 0x60;
	inject_write(e, conn, ahead, 0x11);
	answers(e);
	return naks;
}

/* The peer's repairs become slower, then faster, than they were: each time the responder soon
 * sends one NAK for each gap again. */
static void test_slower_repairs_cause_no_lasting_naks(void **state)
{
	static const uint64_t took[] = {20000, 900000, 6000000, 20000};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint32_t ahead = 0;
	struct engine e;

	(void)state;
	open_reordering(&e, &conn);
	for (unsigned i = 0; i < 4; i++) {
		unsigned naks = 0;

		for (unsigned gap = 0; gap < 50; gap++, ahead += 2)
			naks = naks_of_gap(&e, &conn, ahead, took[i]);
		assert_int_equal(naks, 1);
	}
	engine_close(&e);
}

/* Behind a filled gap lies a second one: the reordering time for it has passed already. */
static void test_second_gap_needs_no_further_wait(void **state)
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

/*
 * Of two packets with one PSN the first one counts, and a repetition of a kept packet is not
 * executed.
 */
static void test_first_of_two_equal_packets_counts(void **state)
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

/* The responder keeps packets of a bounded range of PSNs; it drops and counts packets beyond. */
static void test_kept_packets_are_bounded(void **state)
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

/* A NAK ends the connection; the kept packets behind the refused one are never executed. */
static void test_packets_kept_behind_an_error_are_not_executed(void **state)
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

/* RNR NAK for the first message: the kept packets behind it are executed when it comes again. */
static void test_packets_kept_behind_rnr_are_executed_later(void **state)
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
	expect_quiet(&e); /* no further answer until the message comes again */
	post_recv(&e.end[1], 5, 4096, 64);
	inject(&e, &send);
	expect_wc(&e.b->recv_cq, 5, URXE_WC_SUCCESS);
	assert_true(written(&e, 1, 0x22));
	got = answers(&e);
	assert_int_equal(got.psn, conn.psn[0] + 1);
	assert_int_equal(got.msn, 2);
	engine_close(&e);
}

/* A reset drops the kept packets: the next connection does not see them. */
static void test_reset_drops_kept_packets(void **state)
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
	inject_write(&e, &conn, 2, 0x33); /* kept until the device is destroyed, which frees it */
	engine_close(&e);
}

/* --- Repeated requests, whose last packet requests an acknowledgement. */

#define MESSAGE_PACKETS 5
#define QUIET_NS        20000000
#define SILENT_NS       4000000

/* Packet i of a SEND, whose last packet requests an acknowledgement. */
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

/* Node b has received the whole SEND. */
static void open_with_message(struct engine *e, const struct conn_attr *conn)
{
	open_reordering(e, conn);
	post_recv(&e->end[1], 1, 0, MESSAGE_PACKETS * 1024);
	inject_sends(e, conn, MESSAGE_PACKETS - 1);
	inject_send(e, conn, MESSAGE_PACKETS - 1);
	assert_int_equal(answers(e).n, 1);
	expect_wc(&e->b->recv_cq, 1, URXE_WC_SUCCESS);
}

/* The last but one packet of the SEND is missing. */
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

/* The acknowledgement comes once more after the quiet time, and then never again. */
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
 * The acknowledgement was lost, and the requester repeats everything: the responder answers the
 * packet that requests an acknowledgement, and once more after the quiet time. Linux' rxe does not
 * complete a request that is acknowledged in the middle of its repetition; it needs another
 * acknowledgement.
 */
static void test_full_repetition_is_acknowledged_twice(void **state)
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

/*
 * The packet that requests an acknowledgement is lost: the responder answers when the repetition
 * stops.
 */
static void test_partial_repetition_is_acknowledged_when_it_stops(void **state)
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

/* The PSN and MSN of the one ACK; then silence. */
static void expect_ack_of(struct engine *e, uint32_t psn, uint32_t msn)
{
	struct answers got = answers(e);

	assert_int_equal(got.n, 1);
	assert_int_equal(got.syndrome >> 5, 0);
	assert_int_equal(got.psn, psn & 0xffffff);
	assert_int_equal(got.msn, msn);
	expect_quiet(e);
}

/* Packets of the first message have come again, and `n` packets of the second one have come.
 * conn->psn[0]: the second message's. */
static void open_in_second_message(struct engine *e, struct conn_attr *conn, uint32_t n)
{
	*conn = message_conn();
	open_with_message(e, conn);
	post_recv(&e->end[1], 2, 0, MESSAGE_PACKETS * 1024);
	assert_int_equal(answers(e).n, 1); /* of the credit */
	inject_send(e, conn, 0);
	conn->psn[0] = (conn->psn[0] + MESSAGE_PACKETS) & 0xffffff;
	inject_sends(e, conn, n);
}

static void finish_second_message(struct engine *e, const struct conn_attr *conn, uint32_t n)
{
	for (uint32_t i = n; i < MESSAGE_PACKETS; i++)
		inject_send(e, conn, i);
	expect_ack_of(e, conn->psn[0] + MESSAGE_PACKETS - 1, 2);
	expect_wc(&e->b->recv_cq, 2, URXE_WC_SUCCESS);
	engine_close(e);
}

/*
 * The next message has begun. Linux' rxe may stop in the middle of it until its timeout, and goes
 * on then only if a packet is not acknowledged: the ACK leaves out the newest packet.
 */
static void test_begun_message_is_acknowledged_but_for_its_newest_packet(void **state)
{
	struct conn_attr conn;
	struct engine e;

	(void)state;
	for (uint32_t n = 1; n <= 3; n++) {
		open_in_second_message(&e, &conn, n);
		e.pair->now += QUIET_NS - 1;
		expect_quiet(&e);
		e.pair->now++;
		expect_ack_of(&e, conn.psn[0] + n - 2, 1);
		e.pair->now += 10 * QUIET_NS;
		expect_quiet(&e);
		finish_second_message(&e, &conn, n);
	}
}

/* The ACK of all but the newest packet changes nothing for a duplicate that asks for its ACK. */
static void test_probe_after_the_repeated_ack_gets_the_newest_one(void **state)
{
	struct conn_attr conn;
	struct urxe_packet p;
	struct engine e;

	(void)state;
	open_in_second_message(&e, &conn, 2);
	e.pair->now += QUIET_NS;
	expect_ack_of(&e, conn.psn[0], 1);
	p = from_peer(&e, &conn, 0x01);
	p.psn = (p.psn + 1) & 0xffffff;
	p.payload_len = 1024;
	p.ack_req = true;
	inject(&e, &p);
	expect_ack_of(&e, conn.psn[0] + 1, 1);
	finish_second_message(&e, &conn, 2);
}

/* If Linux' rxe has stopped in a repetition, it may not have sent the newest packets again, and
 * any ACK may be too new. */
static void test_message_in_repetition_gets_no_repeated_ack(void **state)
{
	struct conn_attr conn;
	struct engine e;

	(void)state;
	open_in_second_message(&e, &conn, 2);
	inject_send(&e, &conn, 0);
	e.pair->now += 10 * QUIET_NS;
	expect_quiet(&e);
	/* The repetition has got beyond the newest packet. */
	inject_send(&e, &conn, 0);
	inject_send(&e, &conn, 2);
	e.pair->now += QUIET_NS;
	expect_ack_of(&e, conn.psn[0] + 1, 1);
	finish_second_message(&e, &conn, 3);
}

/* A request executed behind the SEND: its response is its only answer. */
static void inject_behind(struct engine *e, const struct conn_attr *conn, uint8_t opcode)
{
	struct urxe_packet p = from_peer(e, conn, opcode);

	p.psn = (p.psn + MESSAGE_PACKETS) & 0xffffff;
	p.reth.length = 64;
	inject(e, &p);
	assert_int_equal(answers(e).n, 1);
}

/* Linux' rxe would take an ACK with the PSN of the READ for its response. */
static void test_begun_message_behind_a_read_gets_no_repeated_ack(void **state)
{
	struct conn_attr conn = message_conn();
	struct engine e;

	(void)state;
	open_with_message(&e, &conn);
	post_recv(&e.end[1], 2, 0, MESSAGE_PACKETS * 1024);
	assert_int_equal(answers(&e).n, 1); /* of the credit */
	inject_behind(&e, &conn, 0x0c);
	inject_send(&e, &conn, 0);
	conn.psn[0] = (conn.psn[0] + MESSAGE_PACKETS + 1) & 0xffffff;
	inject_send(&e, &conn, 0);
	e.pair->now += 10 * QUIET_NS;
	expect_quiet(&e);
	for (uint32_t i = 1; i < MESSAGE_PACKETS; i++)
		inject_send(&e, &conn, i);
	expect_ack_of(&e, conn.psn[0] + MESSAGE_PACKETS - 1, 3);
	engine_close(&e);
}

/* Packet i of a WRITE of MESSAGE_PACKETS. */
static void inject_long_write(struct engine *e, const struct conn_attr *conn, uint32_t i)
{
	struct urxe_packet p = from_peer(e, conn, i ? 0x07 : 0x06);

	p.psn = (p.psn + i) & 0xffffff;
	p.reth.length = MESSAGE_PACKETS * 1024;
	p.payload_len = 1024;
	inject(e, &p);
}

static void test_begun_write_is_acknowledged_but_for_its_newest_packet(void **state)
{
	struct conn_attr conn = message_conn();
	struct engine e;

	(void)state;
	open_with_message(&e, &conn);
	inject_send(&e, &conn, 0);
	conn.psn[0] = (conn.psn[0] + MESSAGE_PACKETS) & 0xffffff;
	inject_long_write(&e, &conn, 0);
	inject_long_write(&e, &conn, 1);
	e.pair->now += QUIET_NS;
	expect_ack_of(&e, conn.psn[0], 1);
	engine_close(&e);
}

/* The queue pair ends, or fails, in the middle of a message. */
static void test_ending_qp_acknowledges_but_for_the_newest_packet(void **state)
{
	struct conn_attr conn;
	struct engine e;

	(void)state;
	open_in_second_message(&e, &conn, 2);
	assert_true(urxe_qp_flush_acks(e.end[1].qp));
	expect_ack_of(&e, conn.psn[0], 1);
	engine_close(&e);

	open_in_second_message(&e, &conn, 2);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_SEND, .lkey = 0xbad, .length = 1});
	expect_quiet(&e);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	assert_true(urxe_qp_has_answers(e.end[1].qp));
	assert_true(urxe_next_deadline(e.b->dev) <= e.pair->now);
	expect_ack_of(&e, conn.psn[0], 1);
	assert_false(urxe_qp_has_answers(e.end[1].qp));
	engine_close(&e);
}

/*
 * A requester with a short timeout never pauses in its repetitions: the responder answers it, too.
 * After an answer the responder sends no more.
 */
static void test_repetition_without_pause_is_acknowledged(void **state)
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

/* The QP's timeout ends before the quiet time: the acknowledgement does not wait. */
static void test_flush_acks_sends_the_repeated_ack_at_once(void **state)
{
	struct conn_attr conn = message_conn();
	struct engine e;

	(void)state;
	open_with_message(&e, &conn);
	assert_false(urxe_qp_flush_acks(e.end[1].qp));
	inject_sends(&e, &conn, MESSAGE_PACKETS - 1);
	inject_send(&e, &conn, MESSAGE_PACKETS - 1);
	expect_ack(&e, &conn);
	assert_true(urxe_qp_flush_acks(e.end[1].qp));
	expect_ack(&e, &conn);
	assert_false(urxe_qp_flush_acks(e.end[1].qp));
	e.pair->now += 10 * QUIET_NS;
	expect_quiet(&e);
	engine_close(&e);
}

/* Behind at most one request of the QP, and before the packets of a QP that was ready earlier. */
static void test_flushed_ack_precedes_packets_of_other_qps(void **state)
{
	const struct post write = {.opcode = URXE_WR_RDMA_WRITE, .length = 8 * PAYLOAD};

	(void)state;
	for (unsigned sends = 0; sends < 2; sends++) {
		struct conn_attr conn = message_conn();
		static uint8_t data[2][4300];
		struct urxe_frame frames[2] = {{.data = data[0], .room = sizeof(data[0])},
					       {.data = data[1], .room = sizeof(data[1])}};
		struct endpoint end[2];
		struct engine e;

		open_reordering(&e, &conn);
		memcpy(end, e.end, sizeof(end));
		conn_open(e.pair, &conn, e.end);
		expect_quiet(&e);
		post_send(&e, 1, &write);
		memcpy(e.end, end, sizeof(end));
		if (sends)
			post_send(&e, 1, &write);
		inject_write(&e, &conn, 0, 0x11);
		assert_true(urxe_qp_flush_acks(e.end[1].qp));
		assert_int_equal(urxe_output(e.b->dev, e.pair->now, frames, 2), 2);
		assert_int_equal(frames[sends].dest_qpn, e.end[0].qpn);
		assert_true(frames[sends].acknowledges);
		assert_false(urxe_qp_flush_acks(e.end[1].qp));
		engine_close(&e);
	}
}

/*
 * The repaired packet arrives, and the responder had kept the rest: it acknowledges everything. A
 * strict requester repeats the rest nevertheless, and may lose the acknowledgement: the responder
 * sends it once more.
 */
static void test_repaired_gap_acknowledges_everything(void **state)
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

/* Late packets fill a gap: they are not repetitions, so there is no second acknowledgement. */
static void test_reordered_packets_get_one_ack(void **state)
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

/*
 * A response of a READ or atomic may be lost, and an ACK does not replace it: the acknowledgement
 * repeated for the SEND must end before the READ. Linux' rxe would take the READ for complete.
 */
static void test_repeated_ack_ends_before_an_outstanding_read(void **state)
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

/*
 * Length of a READ of 2^22 packets; three such READs move the PSN by more than half of the PSN
 * space.
 */
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

/* Requests the last packet again at once, so that the test need not take all responses. */
static void inject_long_read(struct engine *e, const struct conn_attr *conn, uint32_t ahead)
{
	inject_read(e, conn, ahead, 0, LONG_READ);
	inject_read(e, conn, ahead + LONG_READ / 256 - 1, LONG_READ - 256, 256);
	assert_int_equal(answers(e).n, 1);
}

/*
 * After READs of more than half of the PSN space, the responder does not repeat the acknowledgement
 * of the WRITE before them: Linux' rxe would take its PSN for a future one.
 */
static void test_ack_half_the_psn_space_behind_is_not_repeated(void **state)
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
	/* The responder acknowledges the next WRITE as usual. */
	inject_write(&e, &conn, ahead + 2, 0x22);
	assert_int_equal(answers(&e).psn, (conn.psn[0] + ahead + 2) & 0xffffff);
	engine_close(&e);
}

/* A pending acknowledgement ends with the connection. */
static void test_reset_or_error_cancels_the_repeated_ack(void **state)
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

/* A strict responder delays no acknowledgement. */
static void test_strict_responder_acks_at_once(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filled_gap_gets_one_ack),
		cmocka_unit_test(test_lasting_gap_gets_one_nak),
		cmocka_unit_test(test_nak_of_a_gap_is_repeated_three_times),
		cmocka_unit_test(test_stop_in_a_repair_delays_no_later_nak),
		cmocka_unit_test(test_slower_repairs_cause_no_lasting_naks),
		cmocka_unit_test(test_second_gap_needs_no_further_wait),
		cmocka_unit_test(test_first_of_two_equal_packets_counts),
		cmocka_unit_test(test_kept_packets_are_bounded),
		cmocka_unit_test(test_packets_kept_behind_an_error_are_not_executed),
		cmocka_unit_test(test_packets_kept_behind_rnr_are_executed_later),
		cmocka_unit_test(test_reset_drops_kept_packets),
		cmocka_unit_test(test_full_repetition_is_acknowledged_twice),
		cmocka_unit_test(test_partial_repetition_is_acknowledged_when_it_stops),
		cmocka_unit_test(test_begun_message_is_acknowledged_but_for_its_newest_packet),
		cmocka_unit_test(test_probe_after_the_repeated_ack_gets_the_newest_one),
		cmocka_unit_test(test_message_in_repetition_gets_no_repeated_ack),
		cmocka_unit_test(test_begun_message_behind_a_read_gets_no_repeated_ack),
		cmocka_unit_test(test_begun_write_is_acknowledged_but_for_its_newest_packet),
		cmocka_unit_test(test_ending_qp_acknowledges_but_for_the_newest_packet),
		cmocka_unit_test(test_repetition_without_pause_is_acknowledged),
		cmocka_unit_test(test_repeated_ack_ends_before_an_outstanding_read),
		cmocka_unit_test(test_flush_acks_sends_the_repeated_ack_at_once),
		cmocka_unit_test(test_flushed_ack_precedes_packets_of_other_qps),
		cmocka_unit_test(test_repaired_gap_acknowledges_everything),
		cmocka_unit_test(test_ack_half_the_psn_space_behind_is_not_repeated),
		cmocka_unit_test(test_reordered_packets_get_one_ack),
		cmocka_unit_test(test_reset_or_error_cancels_the_repeated_ack),
		cmocka_unit_test(test_strict_responder_acks_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
