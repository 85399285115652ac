/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What repairs loss and reordering beyond go-back-N (docs/recovery.md), seen from the wire. */
#include "peer.h"

#define REORDER_NS 2000

static void open_reordering(struct engine *e, const struct conn_attr *conn)
{
	e->pair = pair_create(&(struct pair_attr){.seed = 1, .reorder_ns = REORDER_NS});
	e->a = e->pair->node[0];
	e->b = e->pair->node[1];
	conn_open(e->pair, conn, e->end);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gap_fills),       cmocka_unit_test(test_gap_stays),
		cmocka_unit_test(test_second_gap),      cmocka_unit_test(test_kept_twice),
		cmocka_unit_test(test_window),          cmocka_unit_test(test_kept_behind_error),
		cmocka_unit_test(test_kept_behind_rnr), cmocka_unit_test(test_kept_and_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
