/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits on outstanding requests and on message length: initiator depth, responder resources,
 * fences, messages of 0 and of 2^31 bytes.
 */
#include <errno.h>
#include <string.h>

#include "by_hand.h"

#define REGION 65536u /* offset in node b's memory */

#define READ         URXE_WR_RDMA_READ
#define FAA          URXE_WR_FETCH_ADD
#define ATOMIC_WRITE URXE_WR_ATOMIC_WRITE
#define FLUSH        URXE_WR_FLUSH
#define SEND         URXE_WR_SEND
#define WRITE        URXE_WR_RDMA_WRITE

/* --- Counts the packets of a connection. */

struct tap {
	unsigned seen[256]; /* by opcode */
	unsigned lose[256]; /* [opcode]: how many packets of that opcode to lose first */
	unsigned requests,
		answers; /* requests that take a responder resource, and the answers that free it */
	unsigned under_way; /* the maximum of outstanding requests */
};

static bool tap(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct tap *t = arg;
	struct urxe_packet p;

	(void)now;
	assert_int_equal(urxe_packet_parse(&p, data, len), URXE_DROP_NONE);
	switch (p.opcode) {
	case 0x0c: /* READ request */
	case 0x13: /* compare-and-swap */
	case 0x14: /* fetch-and-add */
	case 0x1c: /* FLUSH */
	case 0x1d: /* ATOMIC WRITE */ t->requests++; break;
	case 0x0f: /* READ response last */
	case 0x10: /* READ response only */
	case 0x12: /* atomic acknowledge */ t->answers++; break;
	}
	if (t->requests - t->answers > t->under_way)
		t->under_way = t->requests - t->answers;
	return t->seen[p.opcode]++ >= t->lose[p.opcode];
}

static void open_tapped(struct engine *e, const struct conn_attr *conn, struct tap *t)
{
	engine_open(e, conn);
	for (int side = 0; side < 2; side++) {
		e->pair->link[side].filter = tap;
		e->pair->link[side].filter_arg = t;
	}
}

static struct conn_attr with_depth(uint8_t depth)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.rd_atomic = depth;
	conn.cap.max_send_wr = 512;
	conn.access |= URXE_ACCESS_FLUSH_GLOBAL;
	return conn;
}

/* --- Initiator depth. */

/*
 * The requester keeps as many READs outstanding as the initiator depth allows, not fewer and not
 * more.
 */
static void test_reads_fill_the_initiator_depth(void **state)
{
	static const uint8_t depths[] = {1, 2, 3, 16, 127, 128};

	(void)state;
	for (size_t i = 0; i < sizeof(depths); i++) {
		struct conn_attr conn = with_depth(depths[i]);
		uint32_t n = depths[i] * 2u + 3;
		struct tap t = {{0}};
		struct engine e;

		open_tapped(&e, &conn, &t);
		rand_fill(&(struct rand){i}, e.b->mem, n * 64);
		for (uint32_t id = 0; id < n; id++)
			post_send(&e, 0,
				  &(struct post){.wr_id = id,
						 .opcode = READ,
						 .offset = id * 64,
						 .length = 64,
						 .remote = id * 64});
		pair_settle(e.pair);
		for (uint32_t id = 0; id < n; id++)
			expect_wc(&e.a->send_cq, id, URXE_WC_SUCCESS);
		assert_memory_equal(e.a->mem, e.b->mem, n * 64);
		assert_int_equal(t.under_way, depths[i]);
		assert_int_equal(t.requests, n);
		engine_close(&e);
	}
}

static void post_flush(struct engine *e, uint64_t wr_id, uint32_t key)
{
	const struct urxe_send_wr wr = {.wr_id = wr_id,
					.opcode = FLUSH,
					.remote_addr = e->b->iova + REGION,
					.rkey = key,
					.flush = {URXE_FLUSH_GLOBAL, URXE_FLUSH_RANGE, 8}};

	assert_int_equal(urxe_post_send(e->end[0].qp, &wr), 0);
}

/*
 * All kinds of requests that take a responder resource share the depth; a SEND behind them does not
 * wait.
 */
static void test_initiator_depth_is_shared_by_all_kinds(void **state)
{
	struct conn_attr conn = with_depth(2);
	struct tap t = {{0}};
	struct engine e;
	uint32_t key;

	(void)state;
	open_tapped(&e, &conn, &t);
	key = urxe_mr_key(
		node_reg(e.b, NODE_PD, NODE_ACCESS | URXE_ACCESS_FLUSH_GLOBAL, REGION, 64));
	post_recv(&e.end[1], 1, 0, 100);
	for (uint32_t id = 0; id < 16; id += 4) {
		post_send(&e, 0, &(struct post){.wr_id = id, .opcode = READ, .length = 3000});
		post_send(&e, 0,
			  &(struct post){.wr_id = id + 1,
					 .opcode = FAA,
					 .length = 8,
					 .remote = REGION,
					 .compare_add = 1});
		post_flush(&e, id + 2, key);
		post_send(&e, 0,
			  &(struct post){.wr_id = id + 3,
					 .opcode = ATOMIC_WRITE,
					 .length = 8,
					 .remote = REGION + 8});
	}
	post_send(&e, 0, &(struct post){.wr_id = 16, .opcode = SEND, .length = 8});
	pair_settle(e.pair);
	for (uint32_t id = 0; id <= 16; id++)
		expect_wc(&e.a->send_cq, id, URXE_WC_SUCCESS);
	assert_int_equal(t.under_way, 2);
	assert_int_equal(e.b->mem[REGION], 4);
	engine_close(&e);
}

/*
 * The responder refuses a request beyond its resources, and first answers the accepted ones (IBA
 * 9.7.4.1.5, C9-90).
 */
static void test_request_beyond_responder_resources_gets_nak(void **state)
{
	static const uint8_t opcodes[] = {0x0c, 0x14, 0x1d, 0x1c};

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct conn_attr conn = with_depth(2);
		struct answers got;
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		for (unsigned n = 0; n < 3; n++) {
			p = from_peer(&e, &conn, n < 2 ? 0x0c : opcodes[i]);
			p.psn += n;
			p.reth.length = 8;
			p.payload_len = p.opcode == 0x1d ? 8 : 0;
			p.feth.placement = URXE_FLUSH_GLOBAL;
			inject(&e, &p);
		}
		got = answers(&e);
		assert_int_equal(got.n, 3);
		assert_int_equal(got.opcode, 0x11);
		assert_int_equal(got.syndrome, 0x61);
		assert_int_equal(got.psn, p.psn);
		assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
		assert_int_equal(e.b->mem[0], 0);
		engine_close(&e);
	}
}

/*
 * Linux' requesters, rdma_rxe's and those of NICs, round their depth up to a power of two. The
 * responder has as many resources, and refuses the request behind them.
 */
static void test_responder_resources_are_a_power_of_two(void **state)
{
	static const struct {
		uint8_t depth;
		unsigned most;
	} rows[] = {{1, 1}, {3, 4}, {5, 8}, {8, 8}, {65, 128}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conn_attr conn = with_depth(rows[i].depth);
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		p = from_peer(&e, &conn, 0x0c);
		p.reth.length = 64;
		for (unsigned n = 0; n < rows[i].most; n++, p.psn++)
			inject(&e, &p);
		for (unsigned n = 0; n < rows[i].most;) {
			const struct answers got = answers(&e);

			assert_true(got.n);
			assert_int_equal(got.opcode, 0x10);
			n += got.n;
		}
		expect_quiet(&e);
		for (unsigned n = 0; n <= rows[i].most; n++, p.psn++)
			inject(&e, &p);
		assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
		expect_fatal_nak(e.b, NULL, URXE_WC_REM_INV_REQ_ERR);
		engine_close(&e);
	}
}

/* --- Fences (IBA 10.8.3.3). */

/* A request with a fence starts once all earlier READs and atomics are answered. */
static void test_fence_waits_for_reads_and_atomics(void **state)
{
	static const uint32_t opcodes[] = {SEND, WRITE, READ, FAA};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		for (int fence = 0; fence < 2; fence++) {
			struct conn_attr conn = with_depth(4);
			struct tap t = {{0}};
			unsigned before;
			struct engine e;

			open_tapped(&e, &conn, &t);
			post_recv(&e.end[1], 1, 0, 100);
			post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = READ, .length = 8});
			post_send(
				&e, 0,
				&(struct post){
					.wr_id = 2, .opcode = FAA, .length = 8, .remote = REGION});
			post_send(&e, 0,
				  &(struct post){.wr_id = 3,
						 .opcode = opcodes[i],
						 .length = 8,
						 .remote = REGION,
						 .flags = fence ? URXE_SEND_FENCE : 0});
			pair_step(e.pair); /* node a sends everything that it may */
			before = 0;
			for (unsigned opcode = 0; opcode < 256; opcode++)
				before += t.seen[opcode];
			assert_int_equal(before - t.answers, fence ? 2 : 3);
			pair_settle(e.pair);
			for (uint64_t id = 1; id <= 3; id++)
				expect_wc(&e.a->send_cq, id, URXE_WC_SUCCESS);
			engine_close(&e);
		}
	}
}

/* A fence does not wait for WRITEs and SENDs. */
static void test_fence_does_not_wait_for_writes(void **state)
{
	struct conn_attr conn = with_depth(4);
	struct tap t = {{0}};
	struct engine e;

	(void)state;
	open_tapped(&e, &conn, &t);
	post_send(&e, 0, &(struct post){.wr_id = 1, .opcode = WRITE, .length = 8});
	post_send(
		&e, 0,
		&(struct post){.wr_id = 2, .opcode = WRITE, .length = 8, .flags = URXE_SEND_FENCE});
	pair_step(e.pair);
	assert_int_equal(t.seen[0x0a], 2);
	engine_close(&e);
}

/* --- Lost answers with all resources in use (IBA 9.7.5.1.5). */

/* Each fetch-and-add happens once and returns the value before it, whatever packet was lost. */
static void test_lost_fetch_and_adds_execute_once(void **state)
{
	static const uint8_t depths[] = {1, 2, 16, 128};

	(void)state;
	for (size_t i = 0; i < sizeof(depths); i++) {
		struct conn_attr conn = with_depth(depths[i]);
		struct tap t = {.lose = {[0x12] = depths[i]}};
		struct engine e;
		uint64_t value;

		open_tapped(&e, &conn, &t);
		for (uint32_t id = 0; id < depths[i]; id++)
			post_send(&e, 0,
				  &(struct post){.wr_id = id,
						 .opcode = FAA,
						 .offset = id * 8,
						 .length = 8,
						 .remote = REGION,
						 .compare_add = id + 1});
		pair_settle(e.pair);
		for (uint32_t id = 0; id < depths[i]; id++) {
			expect_wc(&e.a->send_cq, id, URXE_WC_SUCCESS);
			memcpy(&value, e.a->mem + id * 8, 8);
			assert_int_equal(value, id * (id + 1) / 2);
		}
		memcpy(&value, e.b->mem + REGION, 8);
		assert_int_equal(value, depths[i] * (depths[i] + 1u) / 2);
		assert_true(events(e.b, URXE_EVENT_DUP_REQUEST) >= depths[i]);
		assert_int_equal(all_drops(e.b), 0);
		engine_close(&e);
	}
}

/*
 * Each compare-and-swap depends on the previous one: a repetition that compared again would return
 * another value.
 */
static void test_lost_compare_and_swaps_execute_once(void **state)
{
	struct conn_attr conn = with_depth(8);
	struct tap t = {.lose = {[0x12] = 11}};
	struct engine e;
	uint64_t value;

	(void)state;
	open_tapped(&e, &conn, &t);
	for (uint32_t id = 0; id < 8; id++)
		post_send(&e, 0,
			  &(struct post){.wr_id = id,
					 .opcode = URXE_WR_COMPARE_SWAP,
					 .offset = id * 8,
					 .length = 8,
					 .remote = REGION,
					 .compare_add = id,
					 .swap = id + 1});
	pair_settle(e.pair);
	for (uint32_t id = 0; id < 8; id++) {
		expect_wc(&e.a->send_cq, id, URXE_WC_SUCCESS);
		memcpy(&value, e.a->mem + id * 8, 8);
		assert_int_equal(value, id);
	}
	assert_int_equal(e.b->mem[REGION], 8);
	engine_close(&e);
}

/* The responder keeps the oldest resource in use until the last repetition of its request. */
static void test_oldest_resource_is_kept_for_repetitions(void **state)
{
	struct conn_attr conn = with_depth(4);
	struct urxe_packet p[5];
	struct answers got;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	for (unsigned n = 0; n < 5; n++) {
		p[n] = from_peer(&e, &conn, 0x14);
		p[n].psn += n;
	}
	for (unsigned n = 0; n < 4; n++) {
		inject(&e, &p[n]);
		assert_int_equal(answers(&e).n, 1);
	}
	inject(&e, &p[0]);
	got = answers(&e);
	assert_int_equal(got.opcode, 0x12);
	assert_int_equal(got.psn, p[0].psn);
	assert_int_equal(e.b->mem[0], 4);
	/*
	 * A fifth request proves that the first was answered, so it takes the first one's resource.
	 */
	inject(&e, &p[4]);
	assert_int_equal(answers(&e).opcode, 0x12);
	inject(&e, &p[0]);
	expect_quiet(&e);
	assert_int_equal(drops(e.b, URXE_DROP_DUPLICATE), 1);
	assert_int_equal(e.b->mem[0], 5);
	engine_close(&e);
}

/* --- Messages of 0 bytes: they need no key on either side (IBA 9.7.4.1.5, C9-88). */

struct nothing_row {
	uint8_t type;
	uint32_t opcode;
	uint8_t on_wire;
	bool receives;
};

static const struct nothing_row nothing_rows[] = {
	{URXE_QPT_RC, SEND, 0x04, true},
	{URXE_QPT_RC, URXE_WR_SEND_IMM, 0x05, true},
	{URXE_QPT_RC, WRITE, 0x0a, false},
	{URXE_QPT_RC, URXE_WR_RDMA_WRITE_IMM, 0x0b, true},
	{URXE_QPT_RC, READ, 0x0c, false},
	{URXE_QPT_UC, SEND, 0x24, true},
	{URXE_QPT_UC, URXE_WR_SEND_IMM, 0x25, true},
	{URXE_QPT_UC, WRITE, 0x2a, false},
	{URXE_QPT_UC, URXE_WR_RDMA_WRITE_IMM, 0x2b, true},
};

static void run_nothing(const struct nothing_row *row)
{
	struct conn_attr conn = conn_default(row->type);
	struct tap t = {{0}};
	struct engine e;

	open_tapped(&e, &conn, &t);
	post_recv(&e.end[1], 9, 0, 100);
	memset(e.b->mem, 0xee, 64);
	post_send(&e, 0,
		  &(struct post){.wr_id = 1,
				 .opcode = row->opcode,
				 .lkey = 0x666,
				 .rkey = 0x667,
				 .remote = UINT64_MAX / 2,
				 .imm = 0x01020304});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(t.seen[row->on_wire], 1);
	if (row->receives)
		assert_int_equal(expect_wc(&e.b->recv_cq, 9, URXE_WC_SUCCESS).byte_len, 0);
	else
		expect_none(&e.b->recv_cq);
	for (int at = 0; at < 64; at++)
		assert_int_equal(e.b->mem[at], 0xee);
	assert_int_equal(all_drops(e.b), 0);
	engine_close(&e);
}

static void test_messages_of_length_zero_complete(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(nothing_rows) / sizeof(nothing_rows[0]); i++)
		run_nothing(&nothing_rows[i]);
}

/* --- The longest message: 2^31 bytes (IBA 9.7.7.1), repeatedly over the same memory. */

#define CHUNK  (64u << 20)
#define CHUNKS (URXE_MAX_MSG / CHUNK)

static uint32_t reg_all(struct node *node)
{
	struct urxe_extent extents[CHUNKS + 1];
	const struct urxe_mr_attr attr = {.pd = NODE_PD,
					  .access = NODE_ACCESS,
					  .length = (uint64_t)URXE_MAX_MSG + 1,
					  .extents = extents,
					  .n_extents = CHUNKS + 1};
	struct urxe_mr *mr;

	for (uint32_t i = 0; i < CHUNKS; i++)
		extents[i] = (struct urxe_extent){node->mem, CHUNK};
	extents[CHUNKS] = (struct urxe_extent){node->mem, 1};
	assert_int_equal(urxe_mr_reg(node->dev, &attr, &mr), 0);
	return urxe_mr_key(mr);
}

static void run_longest(uint32_t opcode)
{
	struct conn_attr conn = with_depth(4);
	struct urxe_seg seg = {.length = URXE_MAX_MSG};
	struct urxe_send_wr wr = {.wr_id = 1, .opcode = opcode, .segs = &seg, .n_segs = 1};
	struct urxe_seg more[2];
	struct engine e;

	conn.path_mtu = URXE_MTU_4096;
	e.pair =
		pair_create(&(struct pair_attr){.seed = 1, .mem_size = CHUNK, .max_packets = 4096});
	e.a = e.pair->node[0];
	e.b = e.pair->node[1];
	conn_open(e.pair, &conn, e.end);
	seg.lkey = reg_all(e.a);
	wr.rkey = reg_all(e.b);
	memset(e.a->mem + CHUNK - 8, 0x31, 8);
	memset(e.b->mem + CHUNK - 8, opcode == READ ? 0x32 : 0, 8);
	more[0] = more[1] = seg;
	more[1].length = 1;
	wr.segs = more;
	wr.n_segs = 2;
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), -EMSGSIZE); /* one byte more */
	wr.n_segs = 1;
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	pair_settle(e.pair);
	assert_int_equal(expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS).byte_len, URXE_MAX_MSG);
	assert_memory_equal(e.a->mem + CHUNK - 8, e.b->mem + CHUNK - 8, 8);
	/* The PSNs continue after the long message: the next message is executed. */
	post_send(&e, 0, &(struct post){.wr_id = 3, .opcode = FAA, .length = 8});
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 3, URXE_WC_SUCCESS);
	engine_close(&e);
}

static void test_messages_of_2_gib_complete(void **state)
{
	(void)state;
	run_longest(WRITE);
	run_longest(READ);
}

/* Changes the last packet of a SEND into a middle packet. */
static bool never_last(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	uint8_t *opcode = data + 14 + 20 + 8; /* after Ethernet, IPv4 and UDP */

	(void)arg, (void)now;
	if (*opcode == 0x02) {
		*opcode = 0x01;
		assert_true(craft_seal(data, len));
	}
	return true;
}

/*
 * The responder refuses a SEND longer than 2^31 bytes, even if the receive request has room (IBA
 * 9.7.7.1).
 */
static void test_too_long_send_is_refused(void **state)
{
	struct conn_attr conn = with_depth(4);
	struct urxe_seg seg = {.length = URXE_MAX_MSG}, room = {.length = URXE_MAX_MSG + 1};
	struct urxe_send_wr wr = {.wr_id = 1, .opcode = URXE_WR_SEND, .segs = &seg, .n_segs = 1};
	struct urxe_recv_wr recv = {.wr_id = 2, .segs = &room, .n_segs = 1};
	struct urxe_packet p;
	struct engine e;

	(void)state;
	conn.path_mtu = URXE_MTU_4096;
	e.pair =
		pair_create(&(struct pair_attr){.seed = 1, .mem_size = CHUNK, .max_packets = 4096});
	e.a = e.pair->node[0];
	e.b = e.pair->node[1];
	conn_open(e.pair, &conn, e.end);
	seg.lkey = reg_all(e.a);
	room.lkey = reg_all(e.b);
	e.pair->link[0].filter = never_last;
	assert_int_equal(urxe_post_recv(e.end[1].rq, &recv), 0);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	pair_settle(e.pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	expect_none(&e.b->recv_cq);
	p = from_peer(&e, &conn, 0x02);
	p.psn = (p.psn + URXE_MAX_MSG / 4096) & 0xffffff;
	p.payload_len = 1;
	p.pad = 3;
	inject(&e, &p);
	expect_wc(&e.b->recv_cq, 2, URXE_WC_LOC_LEN_ERR);
	assert_int_equal(answers(&e).syndrome, 0x61);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_fill_the_initiator_depth),
		cmocka_unit_test(test_initiator_depth_is_shared_by_all_kinds),
		cmocka_unit_test(test_request_beyond_responder_resources_gets_nak),
		cmocka_unit_test(test_responder_resources_are_a_power_of_two),
		cmocka_unit_test(test_fence_waits_for_reads_and_atomics),
		cmocka_unit_test(test_fence_does_not_wait_for_writes),
		cmocka_unit_test(test_lost_fetch_and_adds_execute_once),
		cmocka_unit_test(test_lost_compare_and_swaps_execute_once),
		cmocka_unit_test(test_oldest_resource_is_kept_for_repetitions),
		cmocka_unit_test(test_messages_of_length_zero_complete),
		cmocka_unit_test(test_messages_of_2_gib_complete),
		cmocka_unit_test(test_too_long_send_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
