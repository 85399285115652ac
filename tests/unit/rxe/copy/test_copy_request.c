/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The copy transport: the requester executes requests on the responder's memory, by the table
 * that the responder publishes. Everything else goes in packets, with the same results.
 */
#include "copy_pair.h"

/* --- Requests that go directly. */

static void test_write_and_read_are_copied_without_packets(void **state)
{
	struct copy_pair d;
	struct post post;
	struct urxe_wc wc;
	uint64_t sent;

	(void)state;
	setup_proven(&d);
	sent = packets(d.e.a);
	fill(d.e.a->mem + 4096, 100, 3);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	wc = run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(wc.opcode, URXE_WC_RDMA_WRITE);
	assert_memory_equal(d.e.b->mem + 8192, d.e.a->mem + 4096, 100);
	fill(d.e.b->mem + 8192, 100, 99);
	post = a_post(&d, URXE_WR_RDMA_READ, 3);
	wc = run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(wc.opcode, URXE_WC_RDMA_READ);
	assert_int_equal(wc.byte_len, 100);
	assert_memory_equal(d.e.a->mem + 4096, d.e.b->mem + 8192, 100);
	assert_int_equal(packets(d.e.a), sent);
	assert_int_equal(events(d.e.a, URXE_EVENT_COPY_REQUESTS), 2);
	assert_int_equal(events(d.e.a, URXE_EVENT_COPY_BYTES), 200);
	assert_int_equal(events(d.e.a, URXE_EVENT_COPY_DECLINED), 0);
	copy_pair_close(&d);
}

/*
 * The engine copies at once, without a call of urxe_output. Requests in packets wait for
 * urxe_output.
 */
static void test_copies_do_not_wait_for_urxe_output(void **state)
{
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	post_send(&d.e, 0, &post);
	urxe_qp_execute(d.e.end[0].qp, d.e.pair->now);
	expect_wc(&d.e.a->send_cq, 2, URXE_WC_SUCCESS);
	assert_true(urxe_next_deadline(d.e.a->dev) > d.e.pair->now);
	post_recv(&d.e.end[1], 9, 20000, 100);
	post_send(&d.e, 0, &post);
	post.opcode = URXE_WR_SEND;
	post_send(&d.e, 0, &post);
	urxe_qp_execute(d.e.end[0].qp, d.e.pair->now);
	expect_wc(&d.e.a->send_cq, 2, URXE_WC_SUCCESS);
	expect_none(&d.e.a->send_cq);
	assert_int_equal(urxe_next_deadline(d.e.a->dev), 0);
	pair_settle(d.e.pair);
	expect_wc(&d.e.a->send_cq, 2, URXE_WC_SUCCESS);
	copy_pair_close(&d);
}

static void test_inline_data_and_segments_are_copied(void **state)
{
	static const char text[] = "inline";
	struct copy_pair d;
	struct urxe_seg segs[3];
	struct urxe_send_wr wr = {
		.wr_id = 2,
		.opcode = URXE_WR_RDMA_WRITE,
		.flags = URXE_SEND_INLINE | URXE_SEND_SIGNALED,
		.inline_data = text,
		.inline_len = sizeof(text),
	};

	(void)state;
	setup_proven(&d);
	wr.remote_addr = d.e.b->iova + 100;
	wr.rkey = d.key[1];
	assert_int_equal(urxe_post_send(d.e.end[0].qp, &wr), 0);
	pair_settle(d.e.pair);
	expect_wc(&d.e.a->send_cq, 2, URXE_WC_SUCCESS);
	assert_string_equal((char *)d.e.b->mem + 100, text);

	fill(d.e.a->mem, 4096, 1);
	for (uint32_t i = 0; i < 3; i++) {
		segs[i] = node_seg(d.e.a, i * 1000, i == 1 ? 0 : 10 + i);
		segs[i].lkey = d.key[0];
	}
	wr.flags = URXE_SEND_SIGNALED;
	wr.segs = segs;
	wr.n_segs = 3;
	assert_int_equal(urxe_post_send(d.e.end[0].qp, &wr), 0);
	pair_settle(d.e.pair);
	expect_wc(&d.e.a->send_cq, 2, URXE_WC_SUCCESS);
	assert_memory_equal(d.e.b->mem + 100, d.e.a->mem, 10);
	assert_memory_equal(d.e.b->mem + 110, d.e.a->mem + 2000, 12);
	assert_int_equal(d.way[0].copies, 2);
	copy_pair_close(&d);
}

/*
 * The PSNs of both ends stay in step, and a request in packets behind a copy is executed after it.
 */
static void test_copies_and_packets_stay_in_order(void **state)
{
	struct copy_pair d;
	struct post write, send;

	(void)state;
	setup_proven(&d);
	for (uint32_t i = 0; i < 50; i++) {
		uint8_t *data = d.e.a->mem + 4096;

		post_recv(&d.e.end[1], i, 20000, 100);
		write = a_post(&d, URXE_WR_RDMA_WRITE, i);
		send = a_post(&d, URXE_WR_SEND, i);
		fill(data, 100, (uint8_t)i);
		post_send(&d.e, 0, &write);
		post_send(&d.e, 0, &send);
		/* Behind an outstanding SEND the WRITE goes in a packet. */
		post_send(&d.e, 0, &write);
		pair_settle(d.e.pair);
		for (int n = 0; n < 3; n++)
			expect_wc(&d.e.a->send_cq, i, URXE_WC_SUCCESS);
		expect_wc(&d.e.b->recv_cq, i, URXE_WC_SUCCESS);
		assert_memory_equal(d.e.b->mem + 8192, data, 100);
		assert_memory_equal(d.e.b->mem + 20000, data, 100);
		assert_int_equal(d.way[0].copies, i + 1);
	}
	copy_pair_close(&d);
}

/*
 * The program posts faster than the peer acknowledges packets: later requests wait for the
 * acknowledgements, and are then copied.
 */
static void test_stream_waits_for_acks_before_copies(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct copy_pair d;
	struct post post;
	uint64_t sent;

	(void)state;
	copy_pair_open(&d, &conn);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 1);
	post.flags = 0;
	for (int i = 0; i < 8; i++)
		post_send(&d.e, 0, &post);
	pair_step(d.e.pair); /* they leave */
	sent = packets(d.e.a);
	for (int i = 0; i < 8; i++)
		post_send(&d.e, 0, &post);
	pair_settle(d.e.pair);
	post.flags = URXE_SEND_SIGNALED;
	run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(sent, 8);
	assert_int_equal(
		packets(d.e.a),
		sent + 8); /* the peer had not answered any request when the test posted these */
	assert_int_equal(d.way[0].copies, 1);
	for (int i = 0; i < 8; i++) {
		/* The peer's answer to a READ arrives later than the next post. */
		post.opcode = i % 2 ? URXE_WR_RDMA_READ : URXE_WR_RDMA_WRITE;
		post_send(&d.e, 0, &post);
	}
	pair_settle(d.e.pair);
	for (int i = 0; i < 8; i++)
		expect_wc(&d.e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(packets(d.e.a), sent + 8);
	assert_int_equal(d.way[0].copies, 9);
	copy_pair_close(&d);
}

/*
 * The first acknowledgement arrives behind a packet without AckReq. So the next WRITE goes in a
 * packet, which has AckReq, and the last one is copied. Nothing waits for a timer.
 */
static void test_first_copy_follows_a_packet_with_ack_request(void **state)
{
	static uint8_t room[3][4300], ack_room[4300];
	struct urxe_frame ack = {.data = ack_room, .room = sizeof(ack_room)}, frames[3];
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct copy_pair d;
	struct post post;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		frames[i] = (struct urxe_frame){.data = room[i], .room = sizeof(room[i])};
	conn.sq_sig_all = false;
	conn.psn[0] = 30; /* the packet with PSN 31 has AckReq */
	copy_pair_open(&d, &conn);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 1);
	for (unsigned i = 0; i < 5; i++) {
		post.flags = i == 4 ? URXE_SEND_SIGNALED : 0;
		post_send(&d.e, 0, &post);
	}
	assert_int_equal(urxe_output(d.e.a->dev, d.e.pair->now, frames, 3), 3);
	urxe_input(d.e.b->dev, d.e.pair->now, frames, 2);
	assert_int_equal(urxe_output(d.e.b->dev, d.e.pair->now, &ack, 1), 1);
	urxe_input(d.e.b->dev, d.e.pair->now, &frames[2], 1);
	urxe_input(d.e.a->dev, d.e.pair->now, &ack, 1);
	pair_settle(d.e.pair);
	expect_wc(&d.e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(d.way[0].copies, 1);
	assert_int_equal(packets(d.e.a), 4);
	assert_int_equal(events(d.e.a, URXE_EVENT_RETRANSMIT), 0);
	copy_pair_close(&d);
}

/*
 * Behind a SEND a short request goes in a packet, and a long request waits for its copy; without a
 * same-host path none waits.
 */
static void test_short_requests_do_not_wait_for_copies(void **state)
{
	static const struct {
		uint32_t length;
		bool closed;
		uint32_t copies;
	} rows[] = {{100, false, 0}, {32768, false, 1}, {32768, true, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct copy_pair d;
		struct post post;

		setup_proven(&d);
		d.way[0].closed = rows[i].closed;
		post_recv(&d.e.end[1], 9, 60000, 100);
		post = a_post(&d, URXE_WR_SEND, 2);
		post_send(&d.e, 0, &post);
		post = a_post(&d, URXE_WR_RDMA_WRITE, 3);
		post.length = rows[i].length;
		fill(d.e.a->mem + 4096, post.length, (uint8_t)i);
		post_send(&d.e, 0, &post);
		pair_settle(d.e.pair);
		expect_wc(&d.e.a->send_cq, 2, URXE_WC_SUCCESS);
		expect_wc(&d.e.a->send_cq, 3, URXE_WC_SUCCESS);
		assert_memory_equal(d.e.b->mem + 8192, d.e.a->mem + 4096, post.length);
		assert_int_equal(d.way[0].copies, rows[i].copies);
		copy_pair_close(&d);
	}
}

/* --- Requests that go in packets because the peer's engine is awake. */

/* The QP completes only requests that ask for a completion. */
static void setup_streaming(struct copy_pair *d)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.sq_sig_all = false;
	copy_pair_open(d, &conn);
	prove(d);
}

#define ALWAYS UINT32_MAX
#define MANY   60u
#define FIRST  16u /* copies before the engine takes the program for a streaming one */
#define LOOK   16u /* packets between two looks at the peer's state */

/*
 * Posts many requests that write to the same place. Only the last one is signaled. `on_the_way`:
 * the first one is still outstanding when the others are posted.
 */
static void post_many(struct copy_pair *d, bool on_the_way)
{
	struct post post = a_post(d, URXE_WR_RDMA_WRITE, 2);

	post.length = 8;
	for (uint32_t i = 1; i <= MANY; i++) {
		post.offset = 4096 + i * 8;
		memset(d->e.a->mem + post.offset, (int)i, 8);
		post.flags = i == MANY ? URXE_SEND_SIGNALED : 0;
		post_send(&d->e, 0, &post);
		if (!on_the_way || i <= FIRST)
			pair_settle(d->e.pair);
		else if (i == FIRST + 1)
			pair_step(d->e.pair);
	}
	pair_settle(d->e.pair);
	expect_wc(&d->e.a->send_cq, 2, URXE_WC_SUCCESS);
	expect_none(&d->e.a->send_cq);
	assert_memory_equal(d->e.b->mem + 8192, d->e.a->mem + 4096 + MANY * 8, 8);
}

static void test_stream_to_an_awake_peer_goes_in_packets(void **state)
{
	static const struct {
		uint32_t awake;
		bool on_the_way;
		uint32_t copies;
	} rows[] = {
		{0, false, MANY},
		{ALWAYS, false, FIRST},
		{0, true, MANY},
		{ALWAYS, true, FIRST},
		/*
		 * The peer falls asleep: the requester waits for the packets on their way and
		 * copies the rest.
		 */
		{1, true, MANY - 1 - LOOK},
		{2, true, MANY - 1 - 2 * LOOK},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct copy_pair d;
		uint64_t sent;

		setup_streaming(&d);
		sent = packets(d.e.a);
		d.way[0].awake = rows[i].awake;
		post_many(&d, rows[i].on_the_way);
		assert_int_equal(d.way[0].copies, rows[i].copies);
		assert_int_equal(packets(d.e.a), sent + MANY - rows[i].copies);
		assert_int_equal(events(d.e.a, URXE_EVENT_PROBE), 0);
		assert_int_equal(events(d.e.a, URXE_EVENT_COPY_DECLINED), 0);
		copy_pair_close(&d);
	}
}

/*
 * A program that waits for each completion before its next request gets copies only, whether the
 * peer sleeps or not.
 */
static void test_requests_one_at_a_time_are_always_copied(void **state)
{
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	d.way[0].awake = ALWAYS;
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	for (uint32_t i = 1; i <= MANY; i++) {
		run(&d, &post, URXE_WC_SUCCESS);
		assert_int_equal(d.way[0].copies, i);
	}
	/* A program that leaves its completions in the CQ does not wait for them. */
	post.cqes_unpolled = true;
	for (uint32_t i = 0; i < MANY; i++)
		run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d.way[0].copies, MANY + FIRST - 1);
	copy_pair_close(&d);
}

/* A stream of READs behaves as a stream of WRITEs; longer requests are copied. */
static void test_stream_leaves_copies_by_length_and_mtu(void **state)
{
	static const struct {
		uint32_t opcode, path_mtu, length;
		uint32_t copies;
	} rows[] = {
		{URXE_WR_RDMA_READ, URXE_MTU_4096, 2048, FIRST - 1},
		{URXE_WR_RDMA_READ, URXE_MTU_4096, 2049, MANY},
		{URXE_WR_RDMA_WRITE, URXE_MTU_4096, 2048, FIRST - 1},
		{URXE_WR_RDMA_WRITE, URXE_MTU_4096, 2049, MANY},
		{URXE_WR_RDMA_WRITE, URXE_MTU_256, 256, FIRST - 1},
		{URXE_WR_RDMA_WRITE, URXE_MTU_256, 257, MANY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct copy_pair d;
		struct post post;

		conn.path_mtu = (uint8_t)rows[i].path_mtu;
		copy_pair_open(&d, &conn);
		prove(&d);
		d.way[0].awake = ALWAYS;
		post = a_post(&d, rows[i].opcode, 2);
		post.length = rows[i].length;
		post.cqes_unpolled = true;
		fill(d.e.a->mem + 4096, post.length, 1);
		fill(d.e.b->mem + 8192, post.length, 2);
		for (uint32_t n = 0; n < MANY; n++)
			run(&d, &post, URXE_WC_SUCCESS);
		assert_memory_equal(d.e.a->mem + 4096, d.e.b->mem + 8192, post.length);
		assert_int_equal(d.way[0].copies, rows[i].copies);
		copy_pair_close(&d);
	}
}

/* A long WRITE behind the stream waits for all packets before it, and then is copied at once. */
static void test_long_write_behind_a_stream_is_copied(void **state)
{
	struct copy_pair d;
	struct post post;
	uint32_t copies;

	(void)state;
	setup_streaming(&d);
	d.way[0].awake = ALWAYS;
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	post.flags = 0;
	for (uint32_t i = 0; i < FIRST; i++) {
		post_send(&d.e, 0, &post);
		pair_settle(d.e.pair);
	}
	copies = d.way[0].copies;
	post_send(&d.e, 0, &post);
	pair_step(d.e.pair);
	for (uint32_t i = 0; i < MANY; i++)
		post_send(&d.e, 0, &post);
	fill(d.e.a->mem + 20000, 20000, 3);
	post.offset = 20000;
	post.length = 20000;
	post.flags = URXE_SEND_SIGNALED;
	run(&d, &post, URXE_WC_SUCCESS);
	assert_memory_equal(d.e.b->mem + 8192, d.e.a->mem + 20000, 20000);
	assert_int_equal(d.way[0].copies, copies + 1);
	assert_int_equal(events(d.e.a, URXE_EVENT_PROBE), 0);
	copy_pair_close(&d);
}

/* --- Requests of one list of work requests. */

/* A list of WRITEs or READs of 100 bytes, each at its own address. */
static void post_list(struct copy_pair *d, uint32_t opcode, uint32_t n)
{
	struct post post = a_post(d, opcode, 0);

	fill(d->e.a->mem + 4096, n * post.length, 3);
	fill(d->e.b->mem + 20000, n * post.length, 9);
	for (post.offset = 4096, post.remote = 20000; post.wr_id < n; post.wr_id++) {
		post_send(&d->e, 0, &post);
		post.offset += post.length;
		post.remote += post.length;
	}
	pair_settle(d->e.pair);
	for (uint32_t i = 0; i < n; i++)
		expect_wc(&d->e.a->send_cq, i, URXE_WC_SUCCESS);
	assert_memory_equal(d->e.b->mem + 20000, d->e.a->mem + 4096, n * post.length);
}

/* The list needs few copies. The counters count each request. */
static void test_request_list_needs_few_copies(void **state)
{
	static const uint32_t opcodes[] = {URXE_WR_RDMA_WRITE, URXE_WR_RDMA_READ};

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		struct copy_pair d;
		uint64_t sent;

		setup_proven(&d);
		sent = packets(d.e.a);
		post_list(&d, opcodes[i], 40);
		assert_int_equal(d.way[0].copies, 40);
		assert_int_equal(d.way[0].calls, (40 + URXE_COPY_PARTS - 1) / URXE_COPY_PARTS);
		assert_int_equal(packets(d.e.a), sent);
		assert_int_equal(events(d.e.a, URXE_EVENT_COPY_REQUESTS), 40);
		assert_int_equal(events(d.e.a, URXE_EVENT_COPY_BYTES), 4000);
		copy_pair_close(&d);
	}
}

/* After a copy that ended early, the rest of the list is copied with the failed request. */
static void test_copying_goes_on_after_a_partial_list(void **state)
{
	struct copy_pair d;

	(void)state;
	setup_proven(&d);
	d.way[0].stops = true;
	d.way[0].stops_behind = 3;
	post_list(&d, URXE_WR_RDMA_WRITE, 8);
	assert_int_equal(d.way[0].copies, 8);
	assert_int_equal(d.way[0].calls, 3);
	copy_pair_close(&d);
}

/* The peer refuses the third request: the first two are executed, and the rest has no effect. */
static void test_refused_copy_flushes_the_requests_behind_it(void **state)
{
	struct copy_pair d;
	struct post post;
	uint32_t last;

	(void)state;
	setup_proven(&d);
	fill(d.e.a->mem + 4096, 100, 3);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 0);
	for (; post.wr_id < 6; post.wr_id++) {
		post.rkey = d.key[1] ^ (post.wr_id == 2);
		post.remote = 20000 + 100 * (uint32_t)post.wr_id;
		post_send(&d.e, 0, &post);
	}
	pair_settle(d.e.pair);
	for (uint32_t i = 0; i < 6; i++)
		expect_wc(&d.e.a->send_cq, i,
			  i < 2    ? URXE_WC_SUCCESS
			  : i == 2 ? URXE_WC_REM_ACCESS_ERR
				   : URXE_WC_WR_FLUSH_ERR);
	assert_memory_equal(d.e.b->mem + 20100, d.e.a->mem + 4096, 100);
	memcpy(&last, d.e.b->mem + 20300, sizeof(last));
	assert_int_equal(last, 0);
	assert_int_equal(d.way[0].copies, 2);
	copy_pair_close(&d);
}

/* A READ returns the bytes of the WRITE before it; long requests are copied alone. */
static void test_copied_read_sees_the_write_before_it(void **state)
{
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	fill(d.e.a->mem + 4096, 100, 3);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 0);
	post_send(&d.e, 0, &post);
	post.opcode = URXE_WR_RDMA_READ;
	post.offset = 30000;
	post_send(&d.e, 0, &post);
	post.offset = 0;
	post.remote = 0;
	post.length = REGION;
	for (uint32_t i = 0; i < 5; i++)
		post_send(&d.e, 0, &post);
	pair_settle(d.e.pair);
	for (uint32_t i = 0; i < 7; i++)
		expect_wc(&d.e.a->send_cq, 0, URXE_WC_SUCCESS);
	assert_memory_equal(d.e.a->mem, d.e.b->mem, REGION);
	assert_memory_equal(d.e.a->mem + 8192, d.e.b->mem + 8192, 100);
	assert_int_equal(d.way[0].copies, 7);
	/*
	 * One copy of the WRITE, one of the short READ with three long ones, and one of the other
	 * two.
	 */
	assert_int_equal(d.way[0].calls, 3);
	copy_pair_close(&d);
}

/* A type 2 window of 100 bytes that node b has bound. */
static struct urxe_mw *bind_window(struct copy_pair *d)
{
	const struct urxe_mw_attr attr = {.pd = NODE_PD, .type = URXE_MW_TYPE_2};
	struct urxe_send_wr bind = {.opcode = URXE_WR_BIND_MW, .flags = URXE_SEND_SIGNALED};
	struct urxe_mr *region;
	struct urxe_mw *mw;

	region = node_reg(d->e.b, NODE_PD, NODE_ACCESS | URXE_ACCESS_MW_BIND, 0, REGION);
	assert_int_equal(urxe_mw_alloc(d->e.b->dev, &attr, &mw), 0);
	bind.bind = (struct urxe_mw_bind){
		.mw_key = urxe_mw_key(mw),
		.tag = 5,
		.mr_key = urxe_mr_key(region),
		.access = URXE_ACCESS_REMOTE_WRITE,
		.addr = d->e.b->iova + 8192,
		.length = 100,
	};
	assert_int_equal(urxe_post_send(d->e.end[1].qp, &bind), 0);
	pair_settle(d->e.pair);
	expect_wc(&d->e.b->send_cq, 0, URXE_WC_SUCCESS);
	return mw;
}

static struct urxe_send_wr local_invalidate(const struct urxe_mw *mw)
{
	return (struct urxe_send_wr){
		.opcode = URXE_WR_LOCAL_INV,
		.flags = URXE_SEND_SIGNALED,
		.invalidate_key = urxe_mw_key(mw),
	};
}

static void test_window_grants_copies(void **state)
{
	struct copy_pair d;
	struct urxe_send_wr invalidate;
	struct urxe_mw *mw;
	struct post post;
	uint32_t copies;

	(void)state;
	setup_proven(&d);
	mw = bind_window(&d);
	fill(d.e.a->mem + 4096, 100, 77);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	post.rkey = urxe_mw_key(mw);
	copies = d.way[0].copies;
	run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d.way[0].copies, copies + 1);
	assert_memory_equal(d.e.b->mem + 8192, d.e.a->mem + 4096, 100);

	invalidate = local_invalidate(mw);
	assert_int_equal(urxe_post_send(d.e.end[1].qp, &invalidate), 0);
	pair_settle(d.e.pair);
	expect_wc(&d.e.b->send_cq, 0, URXE_WC_SUCCESS);
	assert_true(d.way[1].withdrawals > 0);
	run(&d, &post, URXE_WC_REM_ACCESS_ERR);
	assert_int_equal(d.way[0].copies, copies + 1);
	copy_pair_close(&d);
}

/* The window keeps its binding, so peers may still copy. A bound window of type 2 is not bound
 * anew. */
static void test_refused_bind_keeps_the_grant(void **state)
{
	struct urxe_send_wr bind = {.opcode = URXE_WR_BIND_MW, .flags = URXE_SEND_SIGNALED};
	struct copy_pair d;
	struct urxe_mw *mw;
	uint32_t key;

	(void)state;
	setup_proven(&d);
	mw = bind_window(&d);
	key = urxe_mw_key(mw);
	bind.bind = (struct urxe_mw_bind){.mw_key = key, .tag = 6, .length = 100};
	assert_int_equal(urxe_post_send(d.e.end[1].qp, &bind), 0);
	pair_settle(d.e.pair);
	expect_wc(&d.e.b->send_cq, 0, URXE_WC_MW_BIND_ERR);
	assert_int_equal(d.e.b->table->grants[(key >> 8) % URXE_COPY_GRANTS].key, key);
	copy_pair_close(&d);
}

static void post_local(struct copy_pair *d, const struct urxe_send_wr *wr, uint32_t status)
{
	assert_int_equal(urxe_post_send(d->e.end[1].qp, wr), 0);
	pair_settle(d->e.pair);
	expect_wc(&d->e.b->send_cq, 0, status);
}

/* The key of a fast registration of node b, to which a window is bound. */
static uint32_t register_fast(struct copy_pair *d)
{
	struct urxe_send_wr wr = {.opcode = URXE_WR_REG_MR, .flags = URXE_SEND_SIGNALED};
	const struct urxe_mw_attr attr = {.pd = NODE_PD, .type = URXE_MW_TYPE_2};
	struct urxe_fast_mr *fast;
	struct urxe_mw *mw;
	uint32_t key;

	assert_int_equal(urxe_fast_mr_alloc(d->e.b->dev, NODE_PD, 1, &fast), 0);
	key = urxe_fast_mr_key(fast);
	wr.fast_reg = (struct urxe_fast_reg){.key = key,
					     .access = NODE_ACCESS | URXE_ACCESS_MW_BIND,
					     .length = 4096,
					     .n_pages = 1,
					     .page_shift = 12};
	post_local(d, &wr, URXE_WC_SUCCESS);
	assert_int_equal(urxe_mw_alloc(d->e.b->dev, &attr, &mw), 0);
	wr.opcode = URXE_WR_BIND_MW;
	wr.bind = (struct urxe_mw_bind){.mw_key = urxe_mw_key(mw), .mr_key = key, .length = 100};
	post_local(d, &wr, URXE_WC_SUCCESS);
	return key;
}

/* Neither an invalidation, because of the window, nor a bind changes the region. */
static void test_refused_request_keeps_the_grant_of_a_fast_registration(void **state)
{
	(void)state;
	for (unsigned bind = 0; bind < 2; bind++) {
		struct urxe_send_wr wr = {.opcode = URXE_WR_LOCAL_INV, .flags = URXE_SEND_SIGNALED};
		struct copy_pair d;
		uint32_t key;

		setup_proven(&d);
		key = register_fast(&d);
		if (bind) {
			wr.opcode = URXE_WR_BIND_MW;
			wr.bind = (struct urxe_mw_bind){.mw_key = key, .mr_key = key, .length = 1};
		} else {
			wr.invalidate_key = key;
		}
		post_local(&d, &wr, bind ? URXE_WC_MW_BIND_ERR : URXE_WC_LOC_QP_OP_ERR);
		assert_int_equal(d.e.b->table->grants[(key >> 8) % URXE_COPY_GRANTS].key, key);
		copy_pair_close(&d);
	}
}

/* A peer copies by the key: the invalidation waits for the end of that copy. */
static void test_invalidation_waits_for_copies(void **state)
{
	struct copy_pair d;
	struct urxe_send_wr invalidate;
	struct urxe_mw *mw;
	struct post post;
	uint64_t from;

	(void)state;
	setup_proven(&d);
	mw = bind_window(&d);
	invalidate = local_invalidate(mw);
	from = d.e.pair->now;
	d.way[1].unsettled = 5;
	assert_int_equal(urxe_post_send(d.e.end[1].qp, &invalidate), 0);
	/* Meanwhile the key still grants access to requests in packets. */
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	post.rkey = urxe_mw_key(mw);
	pair_step(d.e.pair);
	expect_none(&d.e.b->send_cq);
	pair_settle(d.e.pair);
	expect_wc(&d.e.b->send_cq, 0, URXE_WC_SUCCESS);
	assert_int_equal(d.way[1].unsettled, 0);
	assert_true(d.e.pair->now > from);
	run(&d, &post, URXE_WC_REM_ACCESS_ERR);
	copy_pair_close(&d);
}

/*
 * The same for a SEND with invalidate from the peer: the responder keeps the packet, and those
 * behind it, so the requester repeats nothing.
 */
static void test_remote_invalidation_waits(void **state)
{
	struct copy_pair d;
	struct urxe_send_wr wr = {.opcode = URXE_WR_SEND_INV, .flags = URXE_SEND_SIGNALED};
	struct urxe_mw *mw;
	struct urxe_wc wc;
	uint64_t from;

	(void)state;
	setup_proven(&d);
	mw = bind_window(&d);
	wr.invalidate_key = urxe_mw_key(mw);
	post_recv(&d.e.end[1], 9, 20000, 100);
	post_recv(&d.e.end[1], 10, 20000, 100);
	d.way[1].unsettled = 5;
	from = d.e.pair->now;
	assert_int_equal(urxe_post_send(d.e.end[0].qp, &wr), 0);
	wr = (struct urxe_send_wr){.wr_id = 1, .opcode = URXE_WR_SEND, .flags = wr.flags};
	assert_int_equal(urxe_post_send(d.e.end[0].qp, &wr), 0);
	pair_settle(d.e.pair);
	assert_true(d.e.pair->now - from < 1000000);
	expect_wc(&d.e.a->send_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&d.e.a->send_cq, 1, URXE_WC_SUCCESS);
	wc = expect_wc(&d.e.b->recv_cq, 9, URXE_WC_SUCCESS);
	assert_int_equal(wc.invalidated_key, urxe_mw_key(mw));
	expect_wc(&d.e.b->recv_cq, 10, URXE_WC_SUCCESS);
	assert_int_equal(drops(d.e.b, URXE_DROP_KEY_IN_USE), 0);
	assert_int_equal(events(d.e.a, URXE_EVENT_NAK_SEQ_RCVD), 0);
	copy_pair_close(&d);
}

/* Passes node a's frames with their references to node b, as the callers of both engines do. */
static void pass_references(struct copy_pair *d)
{
	static uint8_t buffer[4300];
	struct urxe_frame frame = {.data = buffer, .room = sizeof(buffer)};

	d->e.a->references = true;
	while (urxe_output(d->e.a->dev, d->e.pair->now, &frame, 1)) {
		frame.reference.sender = d->e.a;
		urxe_input(d->e.b->dev, d->e.pair->now, &frame, 1);
		frame = (struct urxe_frame){.data = buffer, .room = sizeof(buffer)};
	}
	d->e.a->references = false;
}

/*
 * The responder cannot keep a packet with a reference, and drops the packet. After the invalidation
 * the responder asks for it, so the requester needs no timeout.
 */
static void test_reference_behind_a_waiting_invalidation_is_requested(void **state)
{
	struct urxe_send_wr wr = {.opcode = URXE_WR_SEND_INV, .flags = URXE_SEND_SIGNALED};
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct copy_pair d;
	struct post post;

	(void)state;
	copy_pair_open(&d, &conn);
	post_recv(&d.e.end[1], 9, 0, 100);
	post_recv(&d.e.end[1], 10, 20000, 10000);
	prove(&d);
	wr.invalidate_key = urxe_mw_key(bind_window(&d));
	d.way[1].unsettled = 5;
	post = a_post(&d, URXE_WR_SEND, 1);
	post.length = 10000;
	assert_int_equal(urxe_post_send(d.e.end[0].qp, &wr), 0);
	post_send(&d.e, 0, &post);
	pass_references(&d);
	/* The timeout is 1 ms. */
	pair_run(d.e.pair, d.e.pair->now + 900000);
	assert_int_equal(drops(d.e.b, URXE_DROP_OUT_OF_SEQUENCE), 1);
	assert_int_equal(events(d.e.a, URXE_EVENT_NAK_SEQ_RCVD), 1);
	expect_wc(&d.e.b->recv_cq, 9, URXE_WC_SUCCESS);
	expect_wc(&d.e.b->recv_cq, 10, URXE_WC_SUCCESS);
	copy_pair_close(&d);
}

/* The queue pair is reset while it keeps the packet. */
static void test_reset_forgets_a_waiting_invalidation(void **state)
{
	struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	struct copy_pair d;
	struct urxe_send_wr wr = {.opcode = URXE_WR_SEND_INV};

	(void)state;
	setup_proven(&d);
	wr.invalidate_key = urxe_mw_key(bind_window(&d));
	post_recv(&d.e.end[1], 9, 20000, 100);
	d.way[1].unsettled = 2;
	assert_int_equal(urxe_post_send(d.e.end[0].qp, &wr), 0);
	while (d.way[1].unsettled == 2)
		pair_run(d.e.pair, d.e.pair->now + 1000);
	assert_int_equal(urxe_qp_modify(d.e.end[0].qp, d.e.pair->now, &reset, URXE_QP_STATE), 0);
	assert_int_equal(urxe_qp_modify(d.e.end[1].qp, d.e.pair->now, &reset, URXE_QP_STATE), 0);
	pair_settle(d.e.pair);
	expect_none(&d.e.b->recv_cq);
	assert_int_equal(d.way[1].unsettled, 1);
	copy_pair_close(&d);
}

/* --- Requests that go in packets because the copy transport cannot execute them. */

/* The peer refuses the request as it refuses it in packets, and no byte changes. */
static void test_copy_without_rights_fails_as_packets_do(void **state)
{
	static const struct {
		uint64_t remote;
		uint32_t access; /* of the region */
		uint32_t pd;
		uint32_t opcode;
		bool wrong_key;
	} rows[] = {
		{8192, NODE_ACCESS, NODE_PD, URXE_WR_RDMA_WRITE, true},
		{REGION - 99, NODE_ACCESS, NODE_PD, URXE_WR_RDMA_WRITE, false},
		{-1ull, NODE_ACCESS, NODE_PD, URXE_WR_RDMA_WRITE, false},
		{8192, NODE_ACCESS & ~URXE_ACCESS_REMOTE_WRITE, NODE_PD, URXE_WR_RDMA_WRITE, false},
		{8192, NODE_ACCESS & ~URXE_ACCESS_REMOTE_READ, NODE_PD, URXE_WR_RDMA_READ, false},
		{8192, NODE_ACCESS, NODE_PD + 1, URXE_WR_RDMA_WRITE, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct copy_pair d;
		struct urxe_mr *region;
		struct post post;

		setup_proven(&d);
		region = node_reg(d.e.b, rows[i].pd, rows[i].access, 0, REGION);
		post = a_post(&d, rows[i].opcode, 2);
		post.remote = rows[i].remote;
		post.rkey = urxe_mr_key(region) ^ rows[i].wrong_key;
		run(&d, &post, URXE_WC_REM_ACCESS_ERR);
		assert_int_equal(d.way[0].copies, 0);
		assert_int_equal(events(d.e.a, URXE_EVENT_COPY_DECLINED), 1);
		copy_pair_close(&d);
	}
}

/* A request that the peer's QP forbids ends with the same error as in packets. */
static void test_qp_rights_apply_to_copies(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct copy_pair d;
	struct post post;

	(void)state;
	conn.access = URXE_ACCESS_REMOTE_WRITE;
	copy_pair_open(&d, &conn);
	prove(&d);
	post = a_post(&d, URXE_WR_RDMA_READ, 2);
	run(&d, &post, URXE_WC_REM_INV_REQ_ERR);
	assert_int_equal(d.way[0].copies, 0);
	copy_pair_close(&d);
}

static void test_own_key_is_wrong(void **state)
{
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	post.lkey = d.key[0] ^ 1;
	run(&d, &post, URXE_WC_LOC_PROT_ERR);
	assert_int_equal(d.way[0].copies, 0);
	copy_pair_close(&d);
}

/* A copy that fails half way has no effect: packets bring the whole message. */
static void test_failed_copy_falls_back_to_packets(void **state)
{
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	d.way[0].stops = true;
	fill(d.e.a->mem + 4096, 100, 5);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	run(&d, &post, URXE_WC_SUCCESS);
	assert_memory_equal(d.e.b->mem + 8192, d.e.a->mem + 4096, 100);
	d.way[0].stops = false;
	d.way[0].closed = true;
	post = a_post(&d, URXE_WR_RDMA_READ, 3);
	run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d.way[0].copies, 0);
	assert_int_equal(events(d.e.a, URXE_EVENT_COPY_DECLINED), 1);
	copy_pair_close(&d);
}

static void test_other_requests_are_packets(void **state)
{
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	post.length = 0;
	run(&d, &post, URXE_WC_SUCCESS);
	post_recv(&d.e.end[1], 9, 20000, 100);
	post = a_post(&d, URXE_WR_RDMA_WRITE_IMM, 3);
	run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(expect_wc(&d.e.b->recv_cq, 9, URXE_WC_SUCCESS).byte_len, 100);
	post = a_post(&d, URXE_WR_FETCH_ADD, 4);
	post.length = 8;
	run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d.way[0].copies, 0);
	assert_int_equal(events(d.e.a, URXE_EVENT_COPY_DECLINED), 0);
	copy_pair_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_and_read_are_copied_without_packets),
		cmocka_unit_test(test_copies_do_not_wait_for_urxe_output),
		cmocka_unit_test(test_inline_data_and_segments_are_copied),
		cmocka_unit_test(test_copies_and_packets_stay_in_order),
		cmocka_unit_test(test_stream_waits_for_acks_before_copies),
		cmocka_unit_test(test_first_copy_follows_a_packet_with_ack_request),
		cmocka_unit_test(test_short_requests_do_not_wait_for_copies),
		cmocka_unit_test(test_stream_to_an_awake_peer_goes_in_packets),
		cmocka_unit_test(test_requests_one_at_a_time_are_always_copied),
		cmocka_unit_test(test_stream_leaves_copies_by_length_and_mtu),
		cmocka_unit_test(test_long_write_behind_a_stream_is_copied),
		cmocka_unit_test(test_request_list_needs_few_copies),
		cmocka_unit_test(test_copying_goes_on_after_a_partial_list),
		cmocka_unit_test(test_refused_copy_flushes_the_requests_behind_it),
		cmocka_unit_test(test_copied_read_sees_the_write_before_it),
		cmocka_unit_test(test_window_grants_copies),
		cmocka_unit_test(test_refused_bind_keeps_the_grant),
		cmocka_unit_test(test_refused_request_keeps_the_grant_of_a_fast_registration),
		cmocka_unit_test(test_invalidation_waits_for_copies),
		cmocka_unit_test(test_remote_invalidation_waits),
		cmocka_unit_test(test_reference_behind_a_waiting_invalidation_is_requested),
		cmocka_unit_test(test_reset_forgets_a_waiting_invalidation),
		cmocka_unit_test(test_copy_without_rights_fails_as_packets_do),
		cmocka_unit_test(test_qp_rights_apply_to_copies),
		cmocka_unit_test(test_own_key_is_wrong),
		cmocka_unit_test(test_failed_copy_falls_back_to_packets),
		cmocka_unit_test(test_other_requests_are_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
