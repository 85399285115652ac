/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * End-to-end flow control (IBA 9.7.7.2): what a responder promises, and what a
 * requester makes of promises.
 */
#include <string.h>

#include "engine.h"

#define SEND_FIRST   0x00
#define WRITE_ONLY   0x0a
#define READ_REQUEST 0x0c
#define FETCH_ADD    0x14
#define ACK          0x11
#define NO_CREDITS   0x1f
#define FRAME_ROOM   4300

struct world {
	struct engine e;
	struct conn_attr conn;
	uint32_t psn; /* of the next packet by hand */
	uint32_t receives;
};

static const uint8_t payload[1024];

static void open_world(struct world *w, uint32_t max_recv_wr)
{
	*w = (struct world){.conn = conn_default(URXE_QPT_RC)};
	w->conn.cap.max_recv_wr = max_recv_wr;
	w->psn = w->conn.psn[0];
	engine_open(&w->e, &w->conn);
}

static void close_world(struct world *w)
{
	engine_close(&w->e);
}

static void receive(struct world *w, uint32_t n)
{
	while (n--)
		post_recv(&w->e.end[1], w->receives++, 0, 4096);
}

/* --- The responder. */

static struct urxe_packet packet(const struct world *w, unsigned from, uint8_t opcode)
{
	struct urxe_packet p = {
		.net = w->conn.net,
		.hop_limit = 64,
		.udp_sport = 0xc123,
		.sgid = craft_gid(w->conn.net, (uint8_t)(from + 1)),
		.dgid = craft_gid(w->conn.net, (uint8_t)(!from + 1)),
		.opcode = opcode,
		.pkey = 0xffff,
		.dest_qpn = w->e.end[!from].qpn,
	};

	memcpy(p.smac, w->e.end[from].node->mac, 6);
	memcpy(p.dmac, w->e.end[!from].node->mac, 6);
	return p;
}

static void inject(struct world *w, unsigned to, const struct urxe_packet *p)
{
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame = {data, craft_frame(data, p), sizeof(data)};

	urxe_input(w->e.pair->node[to]->dev, w->e.pair->now, &frame, 1);
}

/* Takes the next packet that the side sends; false where there is none. */
static bool take(struct world *w, unsigned side, struct urxe_packet *p)
{
	static uint8_t data[FRAME_ROOM];
	struct urxe_frame frame = {data, 0, sizeof(data)};

	if (!urxe_output(w->e.pair->node[side]->dev, w->e.pair->now, &frame, 1))
		return false;
	assert_int_equal(urxe_packet_parse(p, data, frame.len), URXE_DROP_NONE);
	return true;
}

/* The syndrome that answers a request with the opcode, of which `len` bytes are sent. */
static uint8_t ask(struct world *w, uint8_t opcode, uint32_t len)
{
	struct urxe_packet p = packet(w, 0, opcode);

	p.psn = w->psn++;
	p.ack_req = true;
	p.payload = payload;
	p.payload_len = len;
	p.reth.va = p.atomic.va = w->e.b->iova;
	p.reth.rkey = p.atomic.rkey = w->e.b->key;
	inject(w, 1, &p);
	assert_true(take(w, 1, &p));
	return p.aeth.syndrome;
}

/* Codes as the specification lists them. */
static const uint32_t codes[] = {
	0,    1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
	48,   64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

static void test_codes(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, 32768);
	for (uint8_t code = 0; code < sizeof(codes) / sizeof(codes[0]); code++) {
		receive(&w, codes[code] - w.receives);
		assert_int_equal(ask(&w, WRITE_ONLY, 0), code);
		if (code < 4 || code == 30)
			continue;
		receive(&w, codes[code + 1] - w.receives - 1);
		assert_int_equal(ask(&w, WRITE_ONLY, 0), code);
	}
	close_world(&w);
}

static void test_every_response(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, 64);
	receive(&w, 13);
	assert_int_equal(ask(&w, READ_REQUEST, 0), 7); /* 12 */
	assert_int_equal(ask(&w, FETCH_ADD, 0), 7);
	close_world(&w);
}

/* The message in progress is promised its receive until the MSN covers it. */
static void test_message_in_progress(void **state)
{
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_world(&w, 64);
	receive(&w, 3);
	assert_int_equal(ask(&w, SEND_FIRST, 1024), 3);
	assert_int_equal(ask(&w, SEND_FIRST + 2, 4), 2); /* the last packet */
	p = packet(&w, 0, SEND_FIRST + 4);
	p.psn = w.psn++;
	inject(&w, 1, &p);
	p.psn = w.psn++;
	inject(&w, 1, &p);
	assert_int_equal(ask(&w, WRITE_ONLY, 0), 0);
	close_world(&w);
}

static void queue_more(struct node_queue *queue)
{
	struct world *w = queue->arg;

	while (w->receives < 50)
		receive(w, 1);
}

/* What the application has queued counts, although the engine has not taken it yet. */
static void test_refill(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, 64);
	receive(&w, 2);
	w.e.end[1].queue.arg = &w;
	w.e.end[1].queue.refill = queue_more;
	assert_int_equal(ask(&w, WRITE_ONLY, 0), 11); /* 48 */
	close_world(&w);
}

static void test_srq_promises_nothing(void **state)
{
	const struct urxe_rq_attr attr = {.max_wr = 64, .max_sge = 1, .pd = NODE_PD};
	struct world w = {.conn = conn_default(URXE_QPT_RC)};

	(void)state;
	w.psn = w.conn.psn[0];
	w.e.pair = pair_create(&(struct pair_attr){.seed = 1});
	w.e.a = w.e.pair->node[0];
	w.e.b = w.e.pair->node[1];
	assert_int_equal(urxe_srq_create(w.e.b->dev, &attr, &w.conn.srq[1]), 0);
	conn_open(w.e.pair, &w.conn, w.e.end);
	receive(&w, 5);
	assert_int_equal(ask(&w, WRITE_ONLY, 0), NO_CREDITS);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_every_response),
		cmocka_unit_test(test_message_in_progress),
		cmocka_unit_test(test_refill),
		cmocka_unit_test(test_srq_promises_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
