/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rules about sequence numbers: the regions of the PSN space and its wrap, MSNs, coalesced and
 * implicit acknowledgements, the local ACK timeout, and packets that do not fit the path MTU.
 */
#include <string.h>

#include "by_hand.h"

#define PSN_MASK 0xffffffu
#define HALF     0x800000u

/* PSNs that reveal arithmetic of a wrong width. */
static const uint32_t corners[] = {0,        1,        2,        0x7ffffe, 0x7fffff,
				   0x800000, 0x800001, 0xfffffd, 0xfffffe, 0xffffff};
#define CORNERS (sizeof(corners) / sizeof(corners[0]))

/*
 * IBA 9.7.4.1.2: half of the PSN space lies ahead of the expected PSN (packets were lost), and half
 * behind it (duplicates).
 */
static void test_psn_space_has_two_halves(void **state)
{
	static const uint32_t ahead[] = {1, 2, 127, HALF - 2, HALF - 1};
	static const uint32_t behind[] = {1, 2, 127, HALF - 1, HALF};

	(void)state;
	for (size_t c = 0; c < CORNERS; c++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_packet p;
		struct answers got;
		struct engine e;

		conn.psn[0] = corners[c];
		engine_open(&e, &conn);
		p = from_peer(&e, &conn, 0x0a);
		p.ack_req = true;
		for (size_t i = 0; i < 5; i++) {
			p.psn = (corners[c] - behind[i]) & PSN_MASK;
			inject(&e, &p);
			got = answers(&e);
			assert_int_equal(events(e.b, URXE_EVENT_DUP_REQUEST), i + 1);
			assert_int_equal(got.n, 1);
			assert_int_equal(got.syndrome >> 5, 0);
			assert_int_equal(got.psn, (corners[c] - 1) & PSN_MASK);
		}
		for (size_t i = 0; i < 5; i++) {
			uint64_t early = drops(e.b, URXE_DROP_OUT_OF_SEQUENCE) +
					 events(e.b, URXE_EVENT_REORDERED);

			p.psn = (corners[c] + ahead[i]) & PSN_MASK;
			inject(&e, &p);
			assert_int_equal(drops(e.b, URXE_DROP_OUT_OF_SEQUENCE) +
						 events(e.b, URXE_EVENT_REORDERED),
					 early + 1);
		}
		assert_int_equal(events(e.b, URXE_EVENT_DUP_REQUEST), 5);
		assert_int_equal(qp_state(&e.end[1]), URXE_QPS_RTS);
		engine_close(&e);
	}
}

/* Every PSN around the wrap as the expected one, and every distance up to 16 from it. */
static void test_psns_wrap(void **state)
{
	(void)state;
	for (uint32_t start = 0xfffff0; start <= 0x1000010; start++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct urxe_packet p;
		struct engine e;

		conn.psn[0] = start & PSN_MASK;
		engine_open(&e, &conn);
		post_recv(&e.end[1], 1, 0, 64);
		p = from_peer(&e, &conn, 0x04);
		for (int distance = -16; distance < 0; distance++) {
			p.psn = (start + (uint32_t)distance) & PSN_MASK;
			inject(&e, &p);
			expect_none(&e.b->recv_cq);
		}
		/* The early packets wait until the gap is filled, and are executed in order. */
		for (uint32_t distance = 16; distance > 0; distance--) {
			p.psn = (start + distance) & PSN_MASK;
			inject(&e, &p);
			expect_none(&e.b->recv_cq);
		}
		for (uint64_t i = 2; i <= 17; i++)
			post_recv(&e.end[1], i, 0, 64);
		p.psn = start & PSN_MASK;
		inject(&e, &p);
		for (uint64_t i = 1; i <= 17; i++)
			expect_wc(&e.b->recv_cq, i, URXE_WC_SUCCESS);
		expect_none(&e.b->recv_cq);
		engine_close(&e);
	}
}

/* Long messages of every kind across the wrap, on a network that loses and duplicates packets. */
static void test_messages_arrive_across_the_psn_wrap(void **state)
{
	(void)state;
	for (uint32_t start = 0xffffe8; start <= PSN_MASK; start++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		uint64_t word = 41;
		struct engine e;

		conn.psn[0] = conn.psn[1] = start;
		engine_open(&e, &conn);
		for (unsigned i = 0; i < 2; i++)
			e.pair->link[i].faults = (struct link_faults){
				.drop = 0.05, .duplicate = 0.05, .reorder = 0.05, .max_losses = 3};
		rand_fill(&(struct rand){start}, e.a->mem, 20000);
		rand_fill(&(struct rand){start + 1}, e.b->mem + 65536, 20000);
		memcpy(e.b->mem + 131072, &word, 8);
		post_recv(&e.end[1], 9, 32768, 8000);
		post_send(&e, 0,
			  &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE, .length = 8000});
		post_send(&e, 0,
			  &(struct post){.wr_id = 2, .opcode = URXE_WR_SEND, .length = 8000});
		post_send(&e, 0,
			  &(struct post){.wr_id = 3,
					 .opcode = URXE_WR_RDMA_READ,
					 .offset = 65536,
					 .remote = 65536,
					 .length = 20000});
		post_send(&e, 0,
			  &(struct post){.wr_id = 4,
					 .opcode = URXE_WR_FETCH_ADD,
					 .offset = 131072,
					 .remote = 131072,
					 .length = 8,
					 .compare_add = 1});
		pair_settle(e.pair);
		for (uint64_t i = 1; i <= 4; i++)
			expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
		expect_wc(&e.b->recv_cq, 9, URXE_WC_SUCCESS);
		assert_memory_equal(e.b->mem, e.a->mem, 8000);
		assert_memory_equal(e.b->mem + 32768, e.a->mem, 8000);
		assert_memory_equal(e.a->mem + 65536, e.b->mem + 65536, 20000);
		memcpy(&word, e.b->mem + 131072, 8);
		assert_true(word == 42);
		engine_close(&e);
	}
}

/* The MSN counts messages when their last packet is executed (IBA 9.7.7.1). */
static void test_msn_counts_executed_messages(void **state)
{
	static const struct {
		uint8_t opcode;
		uint16_t payload_len;
		uint32_t reth_length;
		uint8_t ends;
	} rows[] = {
		{0x00, PAYLOAD, 0, 0},
		{0x01, PAYLOAD, 0, 0},
		{0x02, 8, 0, 1},
		{0x04, 0, 0, 1},
		{0x06, PAYLOAD, PAYLOAD + 4, 0},
		{0x08, 4, 0, 1},
		{0x0a, 0, 0, 1},
		{0x0c, 0, 8, 1},
		{0x14, 0, 0, 1},
		{0x0b, 4, 4, 1},
	};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint32_t psn = 0xfffffc, msn = 0;
	struct engine e;

	(void)state;
	conn.psn[0] = psn;
	engine_open(&e, &conn);
	for (uint64_t i = 0; i < 4; i++)
		post_recv(&e.end[1], i, 0, 8192);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct urxe_packet p = from_peer(&e, &conn, rows[i].opcode);
		struct answers got;

		p.psn = psn;
		p.payload_len = rows[i].payload_len;
		p.reth.length = rows[i].reth_length;
		p.ack_req = true;
		inject(&e, &p);
		got = answers(&e);
		msn += rows[i].ends;
		assert_int_equal(got.n, 1);
		assert_int_equal(got.psn, psn);
		assert_int_equal(got.msn, msn);
		psn = (psn + 1) & PSN_MASK;
	}
	engine_close(&e);
}

/* --- The requester: node a sends, and the test builds node b's answers. */

static void hear(struct engine *e, const struct conn_attr *conn, uint8_t opcode, uint8_t syndrome,
		 uint32_t psn)
{
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame = {.data = data, .room = sizeof(data)};
	struct urxe_packet p = from_peer(e, conn, opcode);
	struct urxe_gid gid = p.sgid;

	p.sgid = p.dgid;
	p.dgid = gid;
	memcpy(p.dmac, e->a->mac, 6);
	memcpy(p.smac, e->b->mac, 6);
	p.dest_qpn = e->end[0].qpn;
	p.psn = psn & PSN_MASK;
	p.aeth.syndrome = syndrome;
	if (opcode == 0x10)
		p.payload_len = 8;
	frame.len = craft_frame(data, &p);
	urxe_input(e->a->dev, e->pair->now, &frame, 1);
}

static bool lose_all(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return false;
}

static void open_mute(struct engine *e, struct conn_attr *conn, uint32_t psn)
{
	*conn = conn_default(URXE_QPT_RC);
	conn->psn[0] = psn;
	conn->timeout = 0;
	engine_open(e, conn);
	e->pair->link[0].filter = lose_all;
}

static void post_writes(struct engine *e, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		post_send(e, 0,
			  &(struct post){.wr_id = i, .opcode = URXE_WR_RDMA_WRITE, .length = 8});
	pair_settle(e->pair);
}

/* An ACK acknowledges all earlier PSNs and its own; a NAK acknowledges the PSNs before its own. */
static void test_ack_covers_earlier_psns(void **state)
{
	(void)state;
	for (size_t c = 0; c < CORNERS; c++) {
		struct conn_attr conn;
		struct engine e;

		open_mute(&e, &conn, corners[c]);
		post_writes(&e, 8);
		hear(&e, &conn, 0x11, 0x1f, corners[c] + 2);
		for (uint64_t i = 0; i < 3; i++)
			expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
		expect_none(&e.a->send_cq);
		hear(&e, &conn, 0x11, 0x60, corners[c] + 5);
		for (uint64_t i = 3; i < 5; i++)
			expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
		expect_none(&e.a->send_cq);
		hear(&e, &conn, 0x11, 0x1f, corners[c] + 7);
		for (uint64_t i = 5; i < 8; i++)
			expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
		engine_close(&e);
	}
}

/* The response of a READ acknowledges the requests in front of it (IBA 9.7.5.1.2). */
static void test_read_response_acknowledges_earlier_requests(void **state)
{
	(void)state;
	for (size_t c = 0; c < CORNERS; c++) {
		struct conn_attr conn;
		struct engine e;

		open_mute(&e, &conn, corners[c]);
		post_writes(&e, 3);
		post_send(&e, 0,
			  &(struct post){.wr_id = 3, .opcode = URXE_WR_RDMA_READ, .length = 8});
		pair_settle(e.pair);
		hear(&e, &conn, 0x10, 0x1f, corners[c] + 3);
		for (uint64_t i = 0; i < 4; i++)
			expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
		engine_close(&e);
	}
}

/* Acknowledgements of PSNs that are not outstanding have no effect, anywhere in the PSN space. */
static void test_stale_acks_are_ignored(void **state)
{
	static const uint32_t stale[] = {
		(uint32_t)-1, (uint32_t)-2, (uint32_t)-0x400000, 4, 5, 0x400000, HALF - 1, HALF};

	(void)state;
	for (size_t c = 0; c < CORNERS; c++) {
		struct conn_attr conn;
		struct engine e;

		open_mute(&e, &conn, corners[c]);
		post_writes(&e, 4);
		for (size_t i = 0; i < sizeof(stale) / sizeof(stale[0]); i++) {
			static const uint8_t syndromes[] = {0x1f, 0x60, 0x21, 0x62};

			for (size_t s = 0; s < 4; s++)
				hear(&e, &conn, 0x11, syndromes[s], corners[c] + stale[i]);
			assert_int_equal(drops(e.a, URXE_DROP_STALE_ACK), 4 * (i + 1));
		}
		expect_none(&e.a->send_cq);
		assert_int_equal(qp_state(&e.end[0]), URXE_QPS_RTS);
		hear(&e, &conn, 0x11, 0x1f, corners[c] + 3);
		expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
		engine_close(&e);
	}
}

/*
 * IBA 9.7.6.1.3: the timeout is at least 4.096 us << code, at most four times that; code 0 is
 * infinite.
 */
static void test_timeouts_keep_their_bounds(void **state)
{
	(void)state;
	for (uint8_t code = 1; code < 32; code++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		uint64_t least = UINT64_C(4096) << code;
		struct engine e;

		conn.timeout = code;
		conn.retry_cnt = 0;
		engine_open(&e, &conn);
		e.pair->link[0].filter = lose_all;
		post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = URXE_WR_RDMA_WRITE});
		assert_int_equal(pair_run(e.pair, least - 1), PAIR_TIME_UP);
		expect_none(&e.a->send_cq);
		pair_run(e.pair, 4 * least);
		expect_wc(&e.a->send_cq, 1, URXE_WC_RETRY_EXC_ERR);
		engine_close(&e);
	}
}

/*
 * --- The path MTU of services without acknowledgements: the message is lost, and a counter names
 * the reason.
 */

static void test_packets_must_fit_the_path_mtu(void **state)
{
	static const struct {
		uint8_t type, opcode;
		uint16_t payload_len;
		bool good;
	} rows[] = {
		{URXE_QPT_UC, 0x20, PAYLOAD, true},      {URXE_QPT_UC, 0x20, PAYLOAD - 4, false},
		{URXE_QPT_UC, 0x20, PAYLOAD + 4, false}, {URXE_QPT_UC, 0x24, PAYLOAD, true},
		{URXE_QPT_UC, 0x24, PAYLOAD + 4, false}, {URXE_QPT_UD, 0x64, 4096, true},
		{URXE_QPT_UD, 0x64, 4100, false},        {URXE_QPT_UD, 0x64, PAYLOAD + 4, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conn_attr conn = conn_default(rows[i].type);
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		post_recv(&e.end[1], 1, 0, 8192);
		p = from_peer(&e, &conn, rows[i].opcode);
		p.payload = e.a->mem;
		p.payload_len = rows[i].payload_len;
		inject(&e, &p);
		assert_int_equal(drops(e.b, URXE_DROP_BAD_REQUEST), !rows[i].good);
		assert_int_equal(all_drops(e.b), !rows[i].good);
		if (rows[i].good && rows[i].opcode != 0x20)
			expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
		expect_none(&e.b->recv_cq);
		expect_quiet(&e);
		assert_int_equal(qp_state(&e.end[1]), URXE_QPS_RTS);
		engine_close(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_psn_space_has_two_halves),
		cmocka_unit_test(test_psns_wrap),
		cmocka_unit_test(test_messages_arrive_across_the_psn_wrap),
		cmocka_unit_test(test_msn_counts_executed_messages),
		cmocka_unit_test(test_ack_covers_earlier_psns),
		cmocka_unit_test(test_read_response_acknowledges_earlier_requests),
		cmocka_unit_test(test_stale_acks_are_ignored),
		cmocka_unit_test(test_timeouts_keep_their_bounds),
		cmocka_unit_test(test_packets_must_fit_the_path_mtu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
