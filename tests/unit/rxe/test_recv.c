/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets of a broken or hostile peer: the responder drops each with a named reason, or refuses it
 * with the NAK that the specification demands.
 */
#include <errno.h>
#include <string.h>

#include "by_hand.h"

struct drop_row {
	const char *what;
	uint8_t type;
	uint8_t opcode;
	void (*spoil)(struct urxe_packet *p);
	enum urxe_drop drop;
};

static void no_change(struct urxe_packet *p)
{
	(void)p;
}

static void other_dgid(struct urxe_packet *p)
{
	p->dgid.raw[15] = 77;
}

static void other_sgid(struct urxe_packet *p)
{
	p->sgid.raw[15] = 77;
}

static void other_qpn(struct urxe_packet *p)
{
	p->dest_qpn ^= 0x800;
}

static void qp0(struct urxe_packet *p)
{
	p->dest_qpn = 0;
}

static void other_pkey(struct urxe_packet *p)
{
	p->pkey = 0x8001;
}

static void other_qkey(struct urxe_packet *p)
{
	p->deth.qkey ^= 1;
}

static void multicast_qpn(struct urxe_packet *p)
{
	p->dest_qpn = 0xffffff;
}

static void multicast_gid(struct urxe_packet *p)
{
	p->dgid.raw[12] = 224;
}

static void psn_far_ahead(struct urxe_packet *p)
{
	p->psn = (p->psn + 256) & 0xffffff;
}

static const struct drop_row drop_rows[] = {
	{"unknown destination", URXE_QPT_RC, 0x04, other_dgid, URXE_DROP_BAD_DGID},
	{"unknown source", URXE_QPT_RC, 0x04, other_sgid, URXE_DROP_BAD_SGID},
	{"unknown source", URXE_QPT_UC, 0x24, other_sgid, URXE_DROP_BAD_SGID},
	{"unknown QPN", URXE_QPT_RC, 0x04, other_qpn, URXE_DROP_BAD_QPN},
	{"QP 0", URXE_QPT_UD, 0x64, qp0, URXE_DROP_BAD_QPN},
	{"UC to RC", URXE_QPT_RC, 0x24, no_change, URXE_DROP_BAD_SERVICE},
	{"UD to RC", URXE_QPT_RC, 0x64, no_change, URXE_DROP_BAD_SERVICE},
	{"RC to UC", URXE_QPT_UC, 0x04, no_change, URXE_DROP_BAD_SERVICE},
	{"acknowledgement to UC", URXE_QPT_UC, 0x11, no_change, URXE_DROP_BAD_SERVICE},
	{"RC to UD", URXE_QPT_UD, 0x04, no_change, URXE_DROP_BAD_SERVICE},
	{"foreign partition", URXE_QPT_RC, 0x04, other_pkey, URXE_DROP_BAD_PKEY},
	{"foreign partition", URXE_QPT_UD, 0x64, other_pkey, URXE_DROP_BAD_PKEY},
	{"foreign Q_Key", URXE_QPT_UD, 0x64, other_qkey, URXE_DROP_BAD_QKEY},
	{"multicast QPN", URXE_QPT_UD, 0x64, multicast_qpn, URXE_DROP_BAD_MULTICAST},
	{"multicast address", URXE_QPT_UD, 0x64, multicast_gid, URXE_DROP_BAD_MULTICAST},
	{"no opcode", URXE_QPT_RC, 0x1f, no_change, URXE_DROP_BAD_OPCODE},
	{"PSN far ahead", URXE_QPT_RC, 0x04, psn_far_ahead, URXE_DROP_OUT_OF_SEQUENCE},
	{"middle without first", URXE_QPT_UC, 0x21, no_change, URXE_DROP_UC_SEQUENCE},
	{"no receive request", URXE_QPT_UC, 0x24, no_change, URXE_DROP_NO_RECV},
	{"acknowledgement of nothing", URXE_QPT_RC, 0x11, no_change, URXE_DROP_STALE_ACK},
	{"READ response to nothing", URXE_QPT_RC, 0x10, no_change, URXE_DROP_STALE_ACK},
	{"atomic response to nothing", URXE_QPT_RC, 0x12, no_change, URXE_DROP_STALE_ACK},
};

static void test_bad_packets_are_dropped_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(drop_rows) / sizeof(drop_rows[0]); i++) {
		const struct drop_row *row = &drop_rows[i];
		struct conn_attr conn = conn_default(row->type);
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		p = from_peer(&e, &conn, row->opcode);
		if (row->opcode == 0x21)
			p.payload_len = PAYLOAD;
		row->spoil(&p);
		inject(&e, &p);
		if (drops(e.b, row->drop) != 1 || all_drops(e.b) != 1)
			fail_msg("%s: not dropped as %s", row->what, urxe_drop_name(row->drop));
		expect_none(&e.b->recv_cq);
		expect_quiet(&e);
		engine_close(&e);
	}
}

static void test_bad_icrc_is_dropped(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame = {.data = data, .room = sizeof(data)};
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_recv(&e.end[1], 1, 0, 100);
	p = from_peer(&e, &conn, 0x04);
	p.payload_len = 8;
	frame.len = craft_frame(data, &p);
	data[frame.len - 5] ^= 1;
	urxe_input(e.b->dev, e.pair->now, &frame, 1);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_ICRC), 1);
	expect_none(&e.b->recv_cq);
	expect_quiet(&e);
	data[frame.len - 5] ^= 1;
	urxe_input(e.b->dev, e.pair->now, &frame, 1);
	expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
	engine_close(&e);
}

/* States and what they receive (IBA 10.3.1): before RTR and in ERR a QP receives nothing. */
static void test_states_decide_reception(void **state)
{
	(void)state;
	for (uint8_t stop = URXE_QPS_RESET; stop <= URXE_QPS_ERR; stop++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct engine e = {.pair = pair_create(&(struct pair_attr){.seed = 1})};
		bool receives = stop >= URXE_QPS_RTR && stop <= URXE_QPS_SQD;
		struct urxe_qp_attr attr;
		struct urxe_packet p;

		if (stop == URXE_QPS_SQE) { /* RC QPs have no SQE state */
			pair_destroy(e.pair);
			continue;
		}
		e.a = e.pair->node[0];
		e.b = e.pair->node[1];
		for (unsigned side = 0; side < 2; side++)
			conn_create(e.pair, &conn, side, &e.end[side]);
		attr = conn_qp_attr(&conn, 1, e.a, e.end[0].qpn);
		for (uint8_t to = 1; to <= stop; to++) {
			if (to == URXE_QPS_SQE)
				continue;
			attr.state = to;
			assert_int_equal(
				urxe_qp_modify(e.end[1].qp, 1, &attr, conn_mask(URXE_QPT_RC, to)),
				0);
		}
		p = from_peer(&e, &conn, 0x0a);
		p.reth.length = p.payload_len = 8;
		memset(payload, 0x99, 8);
		inject(&e, &p);
		assert_int_equal(drops(e.b, URXE_DROP_BAD_STATE), !receives);
		assert_int_equal(e.b->mem[0], receives ? 0x99 : 0);
		assert_int_equal(e.b->async[URXE_ASYNC_COMM_EST], stop == URXE_QPS_RTR);
		pair_destroy(e.pair);
	}
}

struct nak_row {
	const char *what;
	uint8_t first; /* opcode of a packet to send first; 0xff = none */
	uint8_t opcode;
	uint16_t payload_len;
	uint32_t reth_length;
	uint8_t syndrome;
};

#define NONE    0xff
#define INVALID 0x61
#define DENIED  0x62

static const struct nak_row nak_rows[] = {
	{"middle without first", NONE, 0x01, PAYLOAD, 0, INVALID},
	{"last without first", NONE, 0x02, 8, 0, INVALID},
	{"WRITE middle without first", NONE, 0x07, PAYLOAD, 0, INVALID},
	{"WRITE last without first", NONE, 0x08, 8, 0, INVALID},
	{"first within a message", 0x00, 0x00, PAYLOAD, 0, INVALID},
	{"only within a message", 0x00, 0x04, 8, 0, INVALID},
	{"WRITE within a SEND", 0x00, 0x0a, 8, 8, INVALID},
	{"WRITE middle within a SEND", 0x00, 0x07, PAYLOAD, 0, INVALID},
	{"SEND middle within a WRITE", 0x06, 0x01, PAYLOAD, 0, INVALID},
	{"READ within a SEND", 0x00, 0x0c, 0, 8, INVALID},
	{"atomic within a WRITE", 0x06, 0x14, 0, 0, INVALID},
	{"short first", NONE, 0x00, PAYLOAD - 4, 0, INVALID},
	{"long first", NONE, 0x00, PAYLOAD + 4, 0, INVALID},
	{"short middle", 0x00, 0x01, PAYLOAD - 4, 0, INVALID},
	{"empty last", 0x00, 0x02, 0, 0, INVALID},
	{"long last", 0x00, 0x02, PAYLOAD + 4, 0, INVALID},
	{"long only", NONE, 0x04, PAYLOAD + 4, 0, INVALID},
	{"WRITE shorter than it says", NONE, 0x0a, 8, 12, INVALID},
	{"WRITE longer than it says", NONE, 0x0a, 8, 4, INVALID},
	{"WRITE last longer than said", 0x06, 0x08, PAYLOAD, 0, INVALID},
	{"WRITE last shorter than said", 0x06, 0x08, 4, 0, INVALID},
	{"WRITE of more than 2 GiB", NONE, 0x06, PAYLOAD, 0x80000001, INVALID},
	{"READ of more than 2 GiB", NONE, 0x0c, 0, 0x80000001, INVALID},
	{"READ past the region", NONE, 0x0c, 0, 0x80000000, DENIED},
	{"WRITE past the region", NONE, 0x06, PAYLOAD, 0x80000000, DENIED},
};

/* The completion status of the peer's request after a NAK. */
static uint32_t nak_status(uint8_t syndrome)
{
	switch (syndrome) {
	case 0x61: return URXE_WC_REM_INV_REQ_ERR;
	case 0x62: return URXE_WC_REM_ACCESS_ERR;
	default: return URXE_WC_REM_OP_ERR;
	}
}

/* The NAK has the right PSN, the QP ends, and no byte changes. */
static void test_refused_requests_get_the_right_nak(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(nak_rows) / sizeof(nak_rows[0]); i++) {
		const struct nak_row *row = &nak_rows[i];
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_packet p;
		struct answers got;
		struct engine e;

		engine_open(&e, &conn);
		post_recv(&e.end[1], 1, 0, 65536);
		if (row->first != NONE) {
			p = from_peer(&e, &conn, row->first);
			p.payload_len = PAYLOAD;
			p.reth.length = PAYLOAD + 8;
			inject(&e, &p);
			assert_int_equal(all_drops(e.b), 0);
		}
		p = from_peer(&e, &conn, row->opcode);
		p.psn += row->first != NONE;
		p.payload_len = row->payload_len;
		p.reth.length = row->reth_length;
		inject(&e, &p);
		got = answers(&e);
		if (got.n != 1 || got.opcode != 0x11 || got.syndrome != row->syndrome ||
		    got.psn != p.psn)
			fail_msg("%s: %u answers, opcode %02x, syndrome %02x, psn %06x", row->what,
				 got.n, got.opcode, got.syndrome, got.psn);
		assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
		expect_fatal_nak(e.b, NULL, nak_status(row->syndrome));
		engine_close(&e);
	}
}

/*
 * The responder answers a gap by one NAK, not by one for each packet behind it (IBA 9.7.4.1.2);
 * with strict recovery it does so at once.
 */
static void test_gap_gets_one_nak(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct answers got;
	struct engine e;

	(void)state;
	e.pair = pair_create(&(struct pair_attr){.seed = 1, .go_back_n = {true, true}});
	e.a = e.pair->node[0];
	e.b = e.pair->node[1];
	conn_open(e.pair, &conn, e.end);
	post_recv(&e.end[1], 1, 0, 100);
	for (unsigned i = 1; i < 6; i++) {
		p = from_peer(&e, &conn, 0x04);
		p.psn += i;
		inject(&e, &p);
	}
	got = answers(&e);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.syndrome, 0x60);
	assert_int_equal(got.psn, conn.psn[0]);
	assert_int_equal(got.msn, 0);
	assert_int_equal(drops(e.b, URXE_DROP_OUT_OF_SEQUENCE), 5);
	p = from_peer(&e, &conn, 0x04);
	p.ack_req = true;
	inject(&e, &p);
	expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
	got = answers(&e);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.syndrome >> 5, 0);
	assert_int_equal(got.psn, conn.psn[0]);
	assert_int_equal(got.msn, 1);
	engine_close(&e);
}

/*
 * The responder acknowledges a repeated request again and does not execute it again (IBA
 * 9.7.5.1.4).
 */
static void test_duplicates_are_acknowledged_only(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_recv(&e.end[1], 1, 0, 100);
	post_recv(&e.end[1], 2, 0, 100);
	p = from_peer(&e, &conn, 0x04);
	p.payload_len = 4;
	p.ack_req = true;
	memset(payload, 1, 4);
	inject(&e, &p);
	assert_int_equal(answers(&e).n, 1);
	memset(payload, 2, 4);
	inject(&e, &p);
	assert_int_equal(answers(&e).psn, p.psn);
	expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
	expect_none(&e.b->recv_cq);
	assert_int_equal(e.b->mem[0], 1);
	assert_int_equal(events(e.b, URXE_EVENT_DUP_REQUEST), 1);
	engine_close(&e);
}

/*
 * The response to a READ or atomic is its acknowledgement, even if the request has the AckReq bit
 * (IBA 9.7.5.1.2).
 */
static void test_read_or_atomic_response_replaces_the_ack(void **state)
{
	static const uint8_t opcodes[] = {0x0c, 0x13, 0x14};

	(void)state;
	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct answers got;
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		p = from_peer(&e, &conn, opcodes[i]);
		p.reth.length = opcodes[i] == 0x0c ? 8 : 0;
		p.ack_req = true;
		inject(&e, &p);
		got = answers(&e);
		assert_int_equal(got.n, 1);
		assert_int_equal(got.opcode, opcodes[i] == 0x0c ? 0x10 : 0x12);
		engine_close(&e);
	}
}

/*
 * A repeated READ may request the end of the original READ only; the responder silently drops other
 * ones.
 */
static void test_repeated_read_must_match_the_original(void **state)
{
	static const struct {
		uint32_t psn, va, length;
		bool good;
	} rows[] = {
		{0, 0, 4000, true},           {1, 1024, 2976, true},  {3, 3072, 928, true},
		{0, 0, 1024, true},           {0, 0, 4001, false},    {1, 0, 4000, false},
		{1, 1024, 2977, false},       {2, 1024, 1952, false}, {0, 8, 100, false},
		{3, 3072, 0xffffffff, false},
	};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	p = from_peer(&e, &conn, 0x0c);
	p.reth.length = 4000;
	inject(&e, &p);
	assert_int_equal(answers(&e).n, 4);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t dropped = drops(e.b, URXE_DROP_DUPLICATE);

		p = from_peer(&e, &conn, 0x0c);
		p.psn += rows[i].psn;
		p.reth.va += rows[i].va;
		p.reth.length = rows[i].length;
		inject(&e, &p);
		assert_int_equal(answers(&e).n, rows[i].good ? (rows[i].length + 1023) / 1024 : 0);
		assert_int_equal(drops(e.b, URXE_DROP_DUPLICATE) - dropped, !rows[i].good);
	}
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_RTS);
	engine_close(&e);
}

/* The responder refuses more outstanding READs than agreed (IBA 9.7.4.1.5, C9-90). */
static void test_read_beyond_the_depth_gets_nak_invalid_request(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	conn.rd_atomic = 2;
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 3; i++) {
		p = from_peer(&e, &conn, 0x0c);
		p.psn += i;
		p.reth.length = 8;
		inject(&e, &p);
	}
	expect_fatal_nak(e.b, NULL, URXE_WC_REM_INV_REQ_ERR);
	assert_int_equal(answers(&e).syndrome, INVALID);
	assert_int_equal(e.b->async[URXE_ASYNC_QP_ACCESS_ERR], 1);
	assert_int_equal(e.b->async[URXE_ASYNC_QP_REQ_ERR], 0);
	engine_close(&e);
}

/* UC: a gap loses its message; the next complete message arrives (IBA 9.8.2.2). */
static void test_uc_gap_loses_one_message(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t psn;
	} rows[] = {{0x20, 0}, {0x21, 1}, {0x22, 3}, {0x20, 4}, {0x22, 6}, {0x20, 7}, {0x22, 8}};
	struct conn_attr conn = conn_default(URXE_QPT_UC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_recv(&e.end[1], 1, 0, 8192);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct urxe_packet p = from_peer(&e, &conn, rows[i].opcode);

		memset(payload, (int)i + 1, PAYLOAD);
		p.psn += rows[i].psn;
		p.payload_len = PAYLOAD;
		inject(&e, &p);
	}
	assert_int_equal(expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS).byte_len, 2 * PAYLOAD);
	assert_int_equal(e.b->mem[0], 6);
	assert_int_equal(e.b->mem[PAYLOAD], 7);
	assert_int_equal(e.b->mem[2 * PAYLOAD], 0);
	assert_int_equal(drops(e.b, URXE_DROP_UC_SEQUENCE), 2);
	expect_quiet(&e);
	engine_close(&e);
}

/* The receiver counts a CNP; congestion control is off here, so the rate does not change. */
static void test_cnp_is_counted(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	p = from_peer(&e, &conn, 0x81);
	p.payload_len = 16;
	p.mig_req = false;
	p.becn = true;
	memset(payload, 0, 16);
	inject(&e, &p);
	assert_int_equal(events(e.b, URXE_EVENT_CNP_RCVD), 1);
	assert_int_equal(all_drops(e.b), 0);
	engine_close(&e);
}

/* Responses that do not fit their request: wrong kind, wrong size, PSN not yet sent. */
static void test_unfit_responses_are_dropped(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t psn, payload_len, status;
		enum urxe_drop drop;
	} rows[] = {
		{0x10, 0, 7, URXE_WC_BAD_RESP_ERR, URXE_DROP_BAD_RESPONSE},
		{0x10, 0, 9, URXE_WC_BAD_RESP_ERR, URXE_DROP_BAD_RESPONSE},
		{0x12, 0, 0, 0, URXE_DROP_BAD_RESPONSE},
		{0x10, 1, 8, 0, URXE_DROP_STALE_ACK},
		{0x11, 1, 0, 0, URXE_DROP_STALE_ACK},
		{0x11, 0xffffff, 0, 0, URXE_DROP_STALE_ACK},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		post_send(&e, 1,
			  &(struct post){.wr_id = 3, .opcode = URXE_WR_RDMA_READ, .length = 8});
		assert_int_equal(answers(&e).opcode, 0x0c);
		p = from_peer(&e, &conn, rows[i].opcode);
		p.psn = (conn.psn[1] + rows[i].psn) & 0xffffff;
		p.payload_len = rows[i].payload_len;
		p.pad = -p.payload_len & 3;
		inject(&e, &p);
		assert_int_equal(drops(e.b, rows[i].drop), 1);
		if (rows[i].status)
			expect_wc(&e.b->send_cq, 3, rows[i].status);
		else
			expect_none(&e.b->send_cq);
		engine_close(&e);
	}
}

/* A response of the wrong kind does not complete the request and changes no memory. */
static void test_response_of_wrong_kind_changes_nothing(void **state)
{
	static const struct {
		uint32_t request;
		uint8_t answer, others[2];
		uint32_t payload_len;
	} rows[] = {
		{URXE_WR_RDMA_READ, 0x10, {0x12, 0x12}, 8},
		{URXE_WR_FETCH_ADD, 0x12, {0x10, 0x0d}, 0},
		{URXE_WR_ATOMIC_WRITE, 0x10, {0x12, 0x0f}, 0},
		{URXE_WR_RDMA_WRITE, 0x11, {0x10, 0x12}, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		post_send(&e, 1,
			  &(struct post){.wr_id = 3, .opcode = rows[i].request, .length = 8});
		assert_int_equal(answers(&e).n, 1);
		memset(payload, 0x44, 8);
		for (int n = 0; n < 2; n++) {
			p = from_peer(&e, &conn, rows[i].others[n]);
			p.psn = conn.psn[1];
			p.aeth.syndrome = 0x1f;
			p.atomic_ack = UINT64_MAX;
			inject(&e, &p);
			assert_int_equal(drops(e.b, URXE_DROP_BAD_RESPONSE), n + 1);
		}
		expect_none(&e.b->send_cq);
		assert_int_equal(e.b->mem[0], 0);
		p = from_peer(&e, &conn, rows[i].answer);
		p.psn = conn.psn[1];
		p.aeth.syndrome = 0x1f;
		p.payload_len = rows[i].payload_len;
		inject(&e, &p);
		expect_wc(&e.b->send_cq, 3, URXE_WC_SUCCESS);
		engine_close(&e);
	}
}

/* READ responses end with their request: a MIDDLE packet is no answer to the last PSN. */
static void test_read_response_ends_with_its_request(void **state)
{
	static const uint8_t opcodes[] = {0x0d, 0x0e};

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = PAYLOAD});
		assert_int_equal(answers(&e).opcode, 0x0c);
		p = from_peer(&e, &conn, opcodes[i]);
		p.psn = conn.psn[1];
		p.payload_len = PAYLOAD;
		inject(&e, &p);
		expect_wc(&e.b->send_cq, 0, URXE_WC_BAD_RESP_ERR);
		engine_close(&e);
	}
}

/* A repeated READ that still waits for its response gives up its resource for a new READ. */
static void test_repeated_read_frees_its_resource_for_a_new_one(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	conn.rd_atomic = 1;
	engine_open(&e, &conn);
	p = from_peer(&e, &conn, 0x0c);
	p.reth.length = 8;
	inject(&e, &p);
	assert_int_equal(answers(&e).psn, conn.psn[0]);
	inject(&e, &p);
	p.psn++;
	inject(&e, &p);
	assert_int_equal(answers(&e).psn, conn.psn[0] + 1);
	expect_fatal_nak(e.b, NULL, URXE_WC_SUCCESS);
	engine_close(&e);
}

/*
 * In SQD the number of responder resources may change, but not during a response; answered requests
 * stay known.
 */
static void test_resources_change_in_sqd_only(void **state)
{
	struct urxe_qp_attr attr = {.state = URXE_QPS_SQD, .max_dest_rd_atomic = 3};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	assert_int_equal(urxe_qp_modify(e.end[1].qp, 0, &attr, URXE_QP_STATE), 0);
	p = from_peer(&e, &conn, 0x14);
	inject(&e, &p);
	assert_int_equal(urxe_qp_modify(e.end[1].qp, 0, &attr, URXE_QP_MAX_DEST_RD_ATOMIC), -EBUSY);
	assert_int_equal(answers(&e).opcode, 0x12);
	assert_int_equal(urxe_qp_modify(e.end[1].qp, 0, &attr, URXE_QP_MAX_DEST_RD_ATOMIC), 0);
	inject(&e, &p);
	assert_int_equal(answers(&e).opcode, 0x12);
	assert_int_equal(e.b->mem[0], 1); /* added once */
	engine_close(&e);
}

/*
 * The network duplicates NAKs: the copies use up no repetitions (one of each kind is allowed here).
 */
static void test_nak_copies_use_no_retries(void **state)
{
	static const uint8_t syndromes[] = {0x60, 0x2e};

	(void)state;
	for (size_t i = 0; i < sizeof(syndromes); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_packet p;
		struct engine e;

		conn.retry_cnt = conn.rnr_retry = 1;
		engine_open(&e, &conn);
		post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
		assert_int_equal(answers(&e).opcode, 0x0a);
		p = from_peer(&e, &conn, 0x11);
		p.psn = conn.psn[1];
		p.aeth.syndrome = syndromes[i];
		for (unsigned n = 0; n < 3; n++)
			inject(&e, &p);
		expect_none(&e.b->send_cq);
		assert_int_equal(drops(e.b, URXE_DROP_STALE_ACK), 2);
		engine_close(&e);
	}
}

/* A packet with the peer's address from another network type is not from the connected peer. */
static void test_other_network_type_is_not_the_peer(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	conn.net = URXE_NET_IPV6;
	engine_open(&e, &conn);
	p = from_peer(&e, &conn, 0x0a);
	p.net = URXE_NET_ROCEV1;
	inject(&e, &p);
	assert_int_equal(drops(e.b, URXE_DROP_BAD_SGID), 1);
	engine_close(&e);
}

/* A datagram with a wrong Q_Key does not cause the event "communication established". */
static void test_wrong_qkey_does_not_establish(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct urxe_packet p;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	engine_start_anew(&e, &conn, 1);
	p = from_peer(&e, &conn, 0x64);
	p.deth.qkey ^= 1;
	inject(&e, &p);
	assert_int_equal(e.b->async[URXE_ASYNC_COMM_EST], 0);
	p.deth.qkey ^= 1;
	inject(&e, &p); /* no receive request */
	assert_int_equal(e.b->async[URXE_ASYNC_COMM_EST], 0);
	post_recv(&e.end[1], 1, 0, 64);
	inject(&e, &p);
	assert_int_equal(e.b->async[URXE_ASYNC_COMM_EST], 1);
	engine_close(&e);
}

/* A late packet of an earlier connection, or a request that is not executed, does not cause it
 * either. */
static void test_only_executed_packets_establish(void **state)
{
	static const struct {
		uint8_t type, opcode;
		int psn;
		bool recv;
		bool established;
	} rows[] = {
		{URXE_QPT_RC, 0x0a, 0, false, true},   /* WRITE */
		{URXE_QPT_RC, 0x0a, 5, false, false},  /* a gap */
		{URXE_QPT_RC, 0x0a, -5, false, false}, /* a duplicate */
		{URXE_QPT_RC, 0x08, 0, false, false},  /* the last packet of no WRITE */
		{URXE_QPT_RC, 0x04, 0, false, false},  /* SEND: no receive request */
		{URXE_QPT_RC, 0x04, 0, true, true},    {URXE_QPT_UC, 0x24, 0, false, false},
		{URXE_QPT_UC, 0x24, 0, true, true},    {URXE_QPT_UC, 0x22, 0, true, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conn_attr conn = conn_default(rows[i].type);
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		engine_start_anew(&e, &conn, 1);
		if (rows[i].recv)
			post_recv(&e.end[1], 1, 0, 64);
		p = from_peer(&e, &conn, rows[i].opcode);
		p.psn = (p.psn + (uint32_t)rows[i].psn) & 0xffffff;
		inject(&e, &p);
		assert_int_equal(e.b->async[URXE_ASYNC_COMM_EST], rows[i].established);
		engine_close(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_packets_are_dropped_with_a_reason),
		cmocka_unit_test(test_bad_icrc_is_dropped),
		cmocka_unit_test(test_states_decide_reception),
		cmocka_unit_test(test_refused_requests_get_the_right_nak),
		cmocka_unit_test(test_gap_gets_one_nak),
		cmocka_unit_test(test_duplicates_are_acknowledged_only),
		cmocka_unit_test(test_read_or_atomic_response_replaces_the_ack),
		cmocka_unit_test(test_repeated_read_must_match_the_original),
		cmocka_unit_test(test_read_beyond_the_depth_gets_nak_invalid_request),
		cmocka_unit_test(test_uc_gap_loses_one_message),
		cmocka_unit_test(test_cnp_is_counted),
		cmocka_unit_test(test_unfit_responses_are_dropped),
		cmocka_unit_test(test_response_of_wrong_kind_changes_nothing),
		cmocka_unit_test(test_read_response_ends_with_its_request),
		cmocka_unit_test(test_repeated_read_frees_its_resource_for_a_new_one),
		cmocka_unit_test(test_resources_change_in_sqd_only),
		cmocka_unit_test(test_nak_copies_use_no_retries),
		cmocka_unit_test(test_other_network_type_is_not_the_peer),
		cmocka_unit_test(test_wrong_qkey_does_not_establish),
		cmocka_unit_test(test_only_executed_packets_establish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
