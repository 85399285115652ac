/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The direct transport where memory of the responder lies in a window that the requester has
 * mapped: what is reached by that, what is not, and what becomes of it when it is taken out.
 */
#include "engine.h"

#include <string.h>

#include "require.h"

#define REGION 65536u
/* Of the region, what lies in the window, and where there. */
#define FROM   (4 * URXE_DIRECT_PAGE)
#define SHARED (8 * URXE_DIRECT_PAGE)
#define PLACE  (3 * URXE_DIRECT_PAGE)
#define WINDOW (PLACE + SHARED) /* bytes of it */

/* --- Operations within this process. */

struct way {
	struct node *peer;
	bool inside;
	bool refuses;    /* every copy and atomic */
	uint64_t window; /* bytes that can be reached */
	uint32_t by_window, by_call, atomics, calls, awake;
};

static struct way *way_of(void *ctx)
{
	return ((struct node *)ctx)->arg;
}

static const struct urxe_direct_table *enter(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	struct way *way = way_of(ctx);

	(void)qpn;
	require(!memcmp(mac, way->peer->mac, sizeof(way->peer->mac)));
	require(!way->inside);
	way->inside = true;
	return way->peer->table;
}

static void leave(void *ctx)
{
	require(way_of(ctx)->inside);
	way_of(ctx)->inside = false;
}

static uint8_t *mapped(const struct way *way, uint64_t window)
{
	require(window >= PLACE && window < WINDOW);
	return way->peer->mem + FROM + (window - PLACE);
}

static uint32_t copy(void *ctx, const struct urxe_direct_copy *c)
{
	struct way *way = way_of(ctx);
	uint32_t n = 0;

	require(way->inside && c->n_parts);
	way->calls++;
	for (; n < c->n_parts && !way->refuses; n++) {
		const struct urxe_direct_part *part = &c->parts[n];
		uint8_t *there = part->window ? mapped(way, part->window)
					      : (uint8_t *)(uintptr_t)part->remote;

		/* All of a copy goes one way, and both lead to the same byte. */
		require(!part->window == !c->parts[0].window);
		require(there == (uint8_t *)(uintptr_t)part->remote && part->n_local == 1);
		if (c->write)
			memcpy(there, part->local->addr, part->local->length);
		else
			memcpy(part->local->addr, there, part->local->length);
		*(part->window ? &way->by_window : &way->by_call) += 1;
	}
	return n;
}

static uint64_t window(void *ctx)
{
	require(way_of(ctx)->inside);
	return way_of(ctx)->window;
}

static bool atomic(void *ctx, struct urxe_direct_atomic *op)
{
	struct way *way = way_of(ctx);
	uint64_t *word;

	require(way->inside && op->window % 8 == 0);
	if (way->refuses)
		return false;
	way->atomics++;
	word = (uint64_t *)(void *)mapped(way, op->window);
	op->original = *word;
	if (!op->compare_swap)
		*word += op->operand;
	else if (*word == op->compare)
		*word = op->operand;
	return true;
}

static bool awake(void *ctx, uint64_t now)
{
	(void)now;
	way_of(ctx)->awake++;
	return true;
}

static void drain(void *ctx)
{
	(void)ctx;
}

static const struct urxe_direct_ops ops = {
	.enter = enter,
	.leave = leave,
	.copy = copy,
	.window = window,
	.atomic = atomic,
	.awake = awake,
	.drain = drain,
};

/* --- A connection that is proven, and a region of node b that is shared in part. */

struct world {
	struct engine e;
	struct way way[2];
	struct urxe_mr *mr[2];
};

static void share(struct world *w)
{
	urxe_mr_share(w->mr[1], &(struct urxe_shared){w->e.b->mem + FROM, SHARED, PLACE});
}

static struct post a_post(const struct world *w, uint32_t opcode, uint64_t remote, uint32_t length)
{
	return (struct post){
		.wr_id = 5,
		.opcode = opcode,
		.flags = URXE_SEND_SIGNALED,
		.offset = 4096,
		.length = length,
		.remote = remote,
		.rkey = urxe_mr_key(w->mr[1]),
		.lkey = urxe_mr_key(w->mr[0]),
	};
}

static void run(struct world *w, const struct post *post, uint32_t status)
{
	post_send(&w->e, 0, post);
	pair_settle(w->e.pair);
	expect_wc(&w->e.a->send_cq, post->wr_id, status);
}

static void open_world(struct world *w)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct post post;

	memset(w, 0, sizeof(*w));
	w->e.pair = pair_create(&(struct pair_attr){.seed = 1, .direct = &ops});
	w->e.a = w->e.pair->node[0];
	w->e.b = w->e.pair->node[1];
	for (int i = 0; i < 2; i++) {
		w->way[i].peer = w->e.pair->node[!i];
		w->way[i].window = WINDOW;
		w->e.pair->node[i]->arg = &w->way[i];
		w->mr[i] = node_reg(w->e.pair->node[i], NODE_PD, NODE_ACCESS, 0, REGION);
	}
	share(w);
	conn_open(w->e.pair, &conn, w->e.end);
	post = a_post(w, URXE_WR_RDMA_WRITE, 0, 1);
	run(w, &post, URXE_WC_SUCCESS);
}

static void close_world(struct world *w)
{
	engine_close(&w->e);
}

/* How one request goes. */
static void expect_ways(struct world *w, uint64_t remote, uint32_t length, uint32_t by_window)
{
	struct way before = w->way[0];
	struct post post = a_post(w, URXE_WR_RDMA_WRITE, remote, length);

	memset(w->e.a->mem + 4096, (int)(remote + length) | 1, length);
	run(w, &post, URXE_WC_SUCCESS);
	assert_int_equal(w->way[0].by_window - before.by_window, by_window);
	assert_int_equal(w->way[0].by_call - before.by_call, !by_window);
	assert_memory_equal(w->e.b->mem + remote, w->e.a->mem + 4096, length);
}

/* --- */

static void test_bounds(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	expect_ways(&w, FROM, 1, 1);
	expect_ways(&w, FROM, SHARED, 1);
	expect_ways(&w, FROM + SHARED - 1, 1, 1);
	expect_ways(&w, FROM - 1, 2, 0);
	expect_ways(&w, FROM + SHARED - 1, 2, 0);
	expect_ways(&w, FROM + SHARED, 1, 0);
	assert_int_equal(events(w.e.a, URXE_EVENT_DIRECT_REQUESTS), 6);
	assert_int_equal(events(w.e.a, URXE_EVENT_DIRECT_SHARED), 3);
	/* Which of it can be reached is known here alone. */
	w.way[0].window = WINDOW - 1;
	expect_ways(&w, FROM + SHARED - 1, 1, 0);
	expect_ways(&w, FROM + SHARED - 2, 1, 1);
	w.way[0].window = PLACE;
	expect_ways(&w, FROM, 1, 0);
	w.way[0].window = 0;
	expect_ways(&w, FROM, 1, 0);
	close_world(&w);
}

static void test_read(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	open_world(&w);
	memset(w.e.b->mem + FROM, 0x77, 100);
	post = a_post(&w, URXE_WR_RDMA_READ, FROM, 100);
	run(&w, &post, URXE_WC_SUCCESS);
	assert_memory_equal(w.e.a->mem + 4096, w.e.b->mem + FROM, 100);
	assert_int_equal(w.way[0].by_window, 1);
	close_world(&w);
}

/* Whatever stands in the table: nothing outside of the window is touched. */
static void test_spoilt_table(void **state)
{
	static const struct urxe_direct_grant values[] = {
		{.shared_addr = 0, .shared_length = UINT32_MAX, .shared_page = UINT32_MAX},
		{.shared_addr = 1, .shared_length = UINT32_MAX, .shared_page = 1},
		{.shared_addr = UINT64_MAX, .shared_length = 1, .shared_page = 3},
		{.shared_addr = 0, .shared_length = 0, .shared_page = 3},
	};
	struct urxe_direct_grant *grant;
	struct world w;

	(void)state;
	open_world(&w);
	grant = &w.e.b->table->grants[(urxe_mr_key(w.mr[1]) >> 8) % URXE_DIRECT_GRANTS];
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		grant->shared_addr = values[i].shared_addr;
		grant->shared_length = values[i].shared_length;
		grant->shared_page = values[i].shared_page;
		expect_ways(&w, FROM, 8, 0);
	}
	grant->shared_addr = (uintptr_t)w.e.b->mem + FROM;
	grant->shared_length = UINT32_MAX;
	grant->shared_page = PLACE / URXE_DIRECT_PAGE;
	expect_ways(&w, FROM, SHARED, 1);
	expect_ways(&w, FROM + 8, SHARED, 0);
	close_world(&w);
}

static void test_taken_out(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	expect_ways(&w, FROM, 8, 1);
	urxe_mr_share(w.mr[1], NULL);
	expect_ways(&w, FROM, 8, 0);
	share(&w);
	expect_ways(&w, FROM, 8, 1);
	close_world(&w);
}

/* A stream goes on as it is: nobody asks whether the peer is awake. */
static void test_stream(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	open_world(&w);
	post = a_post(&w, URXE_WR_RDMA_WRITE, FROM, 8);
	post.flags = 0;
	post.unseen = true;
	for (int i = 0; i < 100; i++) {
		post_send(&w.e, 0, &post);
		pair_settle(w.e.pair);
	}
	assert_int_equal(w.way[0].by_window, 100);
	assert_int_equal(w.way[0].awake, 0);
	/* What is not shared does go in packets. */
	post.remote = 0;
	post_send(&w.e, 0, &post);
	pair_settle(w.e.pair);
	assert_int_equal(w.way[0].awake, 1);
	close_world(&w);
}

static void test_list(void **state)
{
	static const uint64_t remotes[] = {FROM, FROM + 8, 0, 8, FROM};
	const uint32_t n = sizeof(remotes) / sizeof(remotes[0]);
	struct urxe_send_wr wrs[5];
	struct urxe_seg seg;
	struct world w;

	(void)state;
	open_world(&w);
	seg = node_seg(w.e.a, 4096, 8);
	seg.lkey = urxe_mr_key(w.mr[0]);
	for (uint32_t i = 0; i < n; i++) {
		wrs[i] = (struct urxe_send_wr){.wr_id = i,
					       .opcode = URXE_WR_RDMA_WRITE,
					       .flags = URXE_SEND_SIGNALED,
					       .n_segs = 1,
					       .segs = &seg,
					       .rkey = urxe_mr_key(w.mr[1]),
					       .remote_addr = w.e.b->iova + remotes[i]};
		assert_int_equal(urxe_post_send(w.e.end[0].qp, &wrs[i]), 0);
	}
	pair_settle(w.e.pair);
	for (uint32_t i = 0; i < n; i++)
		expect_wc(&w.e.a->send_cq, i, URXE_WC_SUCCESS);
	assert_int_equal(w.way[0].by_window, 3);
	assert_int_equal(w.way[0].by_call, 2);
	assert_int_equal(w.way[0].calls, 3);
	close_world(&w);
}

/* What cannot be done goes in packets, and is done once. */
static void test_refused(void **state)
{
	struct world w;
	struct post post;
	uint64_t *word, was;

	(void)state;
	open_world(&w);
	w.way[0].refuses = true;
	memset(w.e.a->mem + 4096, 0x31, 100);
	post = a_post(&w, URXE_WR_RDMA_WRITE, FROM, 100);
	run(&w, &post, URXE_WC_SUCCESS);
	assert_memory_equal(w.e.b->mem + FROM, w.e.a->mem + 4096, 100);
	word = (uint64_t *)(void *)(w.e.b->mem + FROM);
	was = *word;
	post = a_post(&w, URXE_WR_FETCH_ADD, FROM, 8);
	post.compare_add = 3;
	run(&w, &post, URXE_WC_SUCCESS);
	assert_int_equal(*word, was + 3);
	assert_int_equal(w.way[0].atomics, 0);
	close_world(&w);
}

/* --- Atomics. */

static uint64_t original(const struct world *w)
{
	uint64_t value;

	memcpy(&value, w->e.a->mem + 4096, sizeof(value));
	return value;
}

static void test_atomics(void **state)
{
	struct world w;
	struct post post;
	uint64_t *word, sent;

	(void)state;
	open_world(&w);
	word = (uint64_t *)(void *)(w.e.b->mem + FROM + 8);
	sent = events(w.e.a, URXE_EVENT_TX_PACKETS);
	*word = 40;
	post = a_post(&w, URXE_WR_FETCH_ADD, FROM + 8, 8);
	post.compare_add = 2;
	run(&w, &post, URXE_WC_SUCCESS);
	assert_int_equal(original(&w), 40);
	assert_int_equal(*word, 42);
	post = a_post(&w, URXE_WR_COMPARE_SWAP, FROM + 8, 8);
	post.compare_add = 41;
	post.swap = 7;
	run(&w, &post, URXE_WC_SUCCESS);
	assert_int_equal(original(&w), 42);
	assert_int_equal(*word, 42);
	post.compare_add = 42;
	run(&w, &post, URXE_WC_SUCCESS);
	assert_int_equal(*word, 7);
	assert_int_equal(w.way[0].atomics, 3);
	assert_int_equal(events(w.e.a, URXE_EVENT_TX_PACKETS), sent);
	close_world(&w);
}

/* They need packets where nothing is shared, and are refused there where they are not aligned. */
static void test_atomics_elsewhere(void **state)
{
	struct world w;
	struct post post;

	(void)state;
	open_world(&w);
	post = a_post(&w, URXE_WR_FETCH_ADD, 0, 8);
	post.compare_add = 2;
	run(&w, &post, URXE_WC_SUCCESS);
	assert_int_equal(w.way[0].atomics, 0);
	post.remote = FROM + 4;
	run(&w, &post, URXE_WC_REM_INV_REQ_ERR);
	assert_int_equal(w.way[0].atomics, 0);
	close_world(&w);
}

/* Behind requests in packets they wait for those, and then need none. */
static void test_atomics_behind_packets(void **state)
{
	struct world w;
	struct post send, add;

	(void)state;
	open_world(&w);
	post_recv(&w.e.end[1], 1, 20000, 100);
	*(uint64_t *)(void *)(w.e.b->mem + FROM) = 0;
	send = a_post(&w, URXE_WR_SEND, 0, 8);
	add = a_post(&w, URXE_WR_FETCH_ADD, FROM, 8);
	add.compare_add = 1;
	post_send(&w.e, 0, &send);
	for (int i = 0; i < 3; i++)
		post_send(&w.e, 0, &add);
	pair_settle(w.e.pair);
	for (int i = 0; i < 4; i++)
		expect_wc(&w.e.a->send_cq, 5, URXE_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)(void *)(w.e.b->mem + FROM), 3);
	close_world(&w);
}

/* No right to count there: the responder says so. */
static void test_atomics_not_allowed(void **state)
{
	struct world w;
	struct urxe_mr *mr;
	struct post post;

	(void)state;
	open_world(&w);
	mr = node_reg(w.e.b, NODE_PD, URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_WRITE, 0,
		      REGION);
	urxe_mr_share(mr, &(struct urxe_shared){w.e.b->mem + FROM, SHARED, PLACE});
	post = a_post(&w, URXE_WR_FETCH_ADD, FROM, 8);
	post.rkey = urxe_mr_key(mr);
	run(&w, &post, URXE_WC_REM_ACCESS_ERR);
	assert_int_equal(w.way[0].atomics, 0);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_spoilt_table),
		cmocka_unit_test(test_taken_out),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_atomics_elsewhere),
		cmocka_unit_test(test_atomics_behind_packets),
		cmocka_unit_test(test_atomics_not_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
