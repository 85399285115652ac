/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices in many states: a restored device is the saved one, byte for byte, and goes on to the
 * same completions, events and memory as a device that was not moved.
 */
#include <string.h>

#include "engine.h"
#include "move.h"
#include "require.h"
#include "scene.h"

/* Restores the node of a side in the same memory. */
static void restore_in_place(struct scene *s, unsigned side, const uint8_t *stream, size_t length)
{
	struct node *node = s->pair->node[side];

	urxe_dev_destroy(node->dev);
	node->old_mem = (uintptr_t)node->mem;
	assert_int_equal(move_restore(node, s->pair->now, stream, length, NULL, NULL), 0);
}

static void test_restored_device_saves_the_same_stream(void **state)
{
	struct scene *s;

	(void)state;
	for (unsigned i = 0; (s = scene_open(i)); i++) {
		for (unsigned side = 0; side < 2; side++) {
			uint8_t *saved, *again;
			size_t length, length_again;

			scene_save(s, side, &saved, &length);
			restore_in_place(s, side, saved, length);
			scene_save(s, side, &again, &length_again);
			assert_int_equal(length, length_again);
			assert_memory_equal(saved, again, length);
			urxe_state_free(saved);
			urxe_state_free(again);
		}
		scene_close(s);
	}
}

static void expect_same_completions(struct node_cq *cq, struct node_cq *other)
{
	assert_int_equal(cq->events, other->events);
	assert_int_equal(cq->tail - cq->head, other->tail - other->head);
	for (uint32_t i = cq->head, k = other->head; i != cq->tail; i++, k++) {
		const struct urxe_wc *a = &cq->ring[i], *b = &other->ring[k];

		assert_int_equal(a->wr_id, b->wr_id);
		assert_int_equal(a->status, b->status);
		assert_int_equal(a->opcode, b->opcode);
		assert_int_equal(a->byte_len, b->byte_len);
		assert_int_equal(a->imm, b->imm);
		assert_int_equal(a->invalidated_key, b->invalidated_key);
		assert_int_equal(a->qpn, b->qpn);
		assert_int_equal(a->src_qpn, b->src_qpn);
		assert_int_equal(a->flags, b->flags);
		assert_int_equal(a->pkey_index, b->pkey_index);
		assert_int_equal(a->sl, b->sl);
		assert_int_equal(a->net, b->net);
		assert_int_equal(a->solicited, b->solicited);
	}
}

static void expect_same_node(struct node *node, struct node *other)
{
	const struct urxe_counters *a = urxe_dev_counters(node->dev);
	const struct urxe_counters *b = urxe_dev_counters(other->dev);

	expect_same_completions(&node->send_cq, &other->send_cq);
	expect_same_completions(&node->recv_cq, &other->recv_cq);
	assert_memory_equal(node->async, other->async, sizeof(node->async));
	assert_int_equal(node->mem_size, other->mem_size);
	assert_memory_equal(node->mem, other->mem, node->mem_size);
	for (unsigned i = 0; i < URXE_EVENT_COUNT; i++)
		assert_int_equal(a->event[i], b->event[i]);
	for (unsigned i = 0; i < URXE_DROP_COUNT; i++)
		assert_int_equal(a->drop[i], b->drop[i]);
}

static bool has_objects(const struct scene *s)
{
	return !strcmp(s->name, "objects");
}

/* Adds a connection with the SRQ of node 0. */
static void connect_srq(struct scene *s)
{
	struct conn_attr *conn = &s->conn[s->n];

	*conn = conn_default(URXE_QPT_RC);
	conn->srq[0] = s->srq;
	conn_open(s->pair, conn, s->end[s->n++]);
}

/* The send queue of a connection's node 0 is not drained yet. */
static void begin_drain(struct scene *s)
{
	const struct urxe_qp_attr drain = {.state = URXE_QPS_SQD, .en_sqd_async_notify = true};
	const struct urxe_seg seg = node_seg(s->pair->node[0], 0, 100);
	const struct urxe_send_wr write = {.opcode = URXE_WR_RDMA_WRITE,
					   .segs = &seg,
					   .n_segs = 1,
					   .remote_addr = s->pair->node[1]->iova,
					   .rkey = s->pair->node[1]->key};

	assert_int_equal(urxe_post_send(s->end[0][0].qp, &write), 0);
	pair_run(s->pair, s->pair->now + 500);
	assert_int_equal(urxe_qp_modify(s->end[0][0].qp, s->pair->now, &drain,
					URXE_QP_STATE | URXE_QP_EN_SQD_ASYNC_NOTIFY),
			 0);
	assert_int_equal(s->pair->node[0]->async[URXE_ASYNC_SQ_DRAINED], 0);
}

/* Solicited messages over the newest connection leave fewer requests in the SRQ than its limit. */
static void use_srq(struct scene *s)
{
	const struct urxe_seg seg = node_seg(s->pair->node[1], 0, 100);
	const struct urxe_send_wr send = {
		.opcode = URXE_WR_SEND, .flags = URXE_SEND_SOLICITED, .segs = &seg, .n_segs = 1};

	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(urxe_post_send(s->end[s->n - 1][1].qp, &send), 0);
}

static void expect_owed_events(const struct node *node)
{
	assert_int_equal(node->async[URXE_ASYNC_SQ_DRAINED], 1);
	assert_int_equal(node->async[URXE_ASYNC_SRQ_LIMIT_REACHED], 1);
	assert_int_equal(node->send_cq.events, 1);
	assert_int_equal(node->recv_cq.events, 1);
}

static void go_on(struct scene *s)
{
	if (has_objects(s))
		use_srq(s);
	/* A requester without a receive request at its peer tries for ever. */
	pair_run(s->pair, s->pair->now + 1000000);
	if (has_objects(s))
		expect_owed_events(s->pair->node[0]);
}

/* In scene "objects" node 0 owes events: of its armed CQs, its SRQ's limit and a send queue. */
static struct scene *open_owing(unsigned i)
{
	struct scene *s = scene_open(i);

	if (!s || !has_objects(s))
		return s;
	connect_srq(s);
	begin_drain(s);
	return s;
}

static void test_moved_nodes_go_on_as_others_do(void **state)
{
	struct scene *s, *unmoved;

	(void)state;
	for (unsigned sides = 1; sides < 4; sides++)
		for (unsigned i = 0; (s = open_owing(i)); i++) {
			unmoved = open_owing(i);
			for (unsigned side = 0; side < 2; side++)
				if (sides & 1 << side)
					scene_move(s, side);
			go_on(s);
			go_on(unmoved);
			for (unsigned side = 0; side < 2; side++)
				expect_same_node(s->pair->node[side], unmoved->pair->node[side]);
			scene_close(s);
			scene_close(unmoved);
		}
}

static void test_qp_attributes_survive_a_move(void **state)
{
	struct scene *s;

	(void)state;
	for (unsigned i = 0; (s = scene_open(i)); i++) {
		for (uint32_t k = 0; k < s->n; k++) {
			struct urxe_qp_attr before, after;
			struct urxe_qp_init init, init_after;

			urxe_qp_query(s->end[k][0].qp, &before, &init);
			scene_move(s, 0);
			urxe_qp_query(s->end[k][0].qp, &after, &init_after);
			assert_memory_equal(&before, &after, sizeof(before));
			assert_memory_equal(&init.cap, &init_after.cap, sizeof(init.cap));
			assert_ptr_equal(init.ctx, init_after.ctx);
			assert_int_equal(init.type, init_after.type);
			assert_int_equal(init.qpn, init_after.qpn);
			assert_int_equal(init.pd, init_after.pd);
			assert_int_equal(!init.srq, !init_after.srq);
			assert_int_equal(urxe_mcast_attached(s->end[k][0].qp), i == 1 && k > 1);
		}
		scene_close(s);
	}
}

/* A driver may leave anything in bits 24 to 31 of the peer's QPN. */
static void test_waiting_datagram_with_a_qpn_of_32_bits_moves(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	const struct urxe_path path = conn_path(URXE_NET_IPV4, pair->node[1]);
	const struct urxe_seg seg = node_seg(pair->node[0], 0, 100);
	const struct urxe_seg to = node_seg(pair->node[1], 0, 200);
	const struct urxe_recv_wr recv = {.wr_id = 3, .n_segs = 1, .segs = &to};
	struct urxe_qp_attr attr = {.state = URXE_QPS_SQD};
	struct urxe_send_wr wr = {.opcode = URXE_WR_SEND,
				  .segs = &seg,
				  .n_segs = 1,
				  .path = &path,
				  .remote_qkey = conn.qkey};
	struct endpoint end[2], *moved = &end[0];

	(void)state;
	conn_open(pair, &conn, end);
	assert_int_equal(urxe_post_recv(end[1].rq, &recv), 0);
	wr.remote_qpn = 0x35000000 | end[1].qpn;
	assert_int_equal(urxe_qp_modify(end[0].qp, pair->now, &attr, URXE_QP_STATE), 0);
	assert_int_equal(urxe_post_send(end[0].qp, &wr), 0);
	move_node(pair, 0, &moved, 1);
	attr.state = URXE_QPS_RTS;
	assert_int_equal(urxe_qp_modify(end[0].qp, pair->now, &attr, URXE_QP_STATE), 0);
	pair_settle(pair);
	expect_wc(&pair->node[1]->recv_cq, 3, URXE_WC_SUCCESS);
	pair_destroy(pair);
}

#define PAGE 4096u

/* Four pages of the node's memory. */
static struct urxe_fast_reg four_pages(const struct node *node, uint32_t key)
{
	return (struct urxe_fast_reg){.key = key,
				      .access = NODE_ACCESS,
				      .iova = node->iova,
				      .length = 4 * PAGE,
				      .n_pages = 1,
				      .page_shift = 14};
}

/* A WRITE of so many bytes, to the same offset of the peer's region. */
static struct post write_of(uint32_t length, uint32_t rkey)
{
	return (struct post){.wr_id = 1,
			     .opcode = URXE_WR_RDMA_WRITE,
			     .flags = URXE_SEND_SIGNALED,
			     .length = length,
			     .remote = length,
			     .rkey = rkey};
}

/* The middle of a page of the list is unmapped: more pieces than the registration may have. */
static void test_cut_fast_registration_moves(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	struct urxe_send_wr reg = {.opcode = URXE_WR_REG_MR};
	struct urxe_extent hole = {pair->node[1]->mem + PAGE, PAGE};
	struct engine e = {.pair = pair, .a = pair->node[0], .b = pair->node[1]};
	struct endpoint *moved = &e.end[1];
	struct urxe_fast_mr *fast;
	struct post post;

	(void)state;
	conn_open(pair, &conn, e.end);
	assert_int_equal(urxe_fast_mr_alloc(e.b->dev, NODE_PD, 1, &fast), 0);
	reg.fast_reg = four_pages(e.b, urxe_fast_mr_key(fast));
	assert_int_equal(urxe_post_send(e.end[1].qp, &reg), 0);
	pair_settle(pair);
	assert_int_equal(urxe_mr_unmap(urxe_fast_mr_region(fast), &hole), 0);
	urxe_mr_unmapped(urxe_fast_mr_region(fast), &hole, true);
	move_node(pair, 1, &moved, 1);
	memset(e.a->mem, 0xab, 2 * PAGE);
	post = write_of(2 * PAGE, reg.fast_reg.key);
	post_send(&e, 0, &post);
	pair_settle(pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_memory_equal(e.b->mem + 2 * PAGE, e.a->mem, 2 * PAGE);
	post.remote = 0;
	post_send(&e, 0, &post);
	pair_settle(pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_REM_ACCESS_ERR);
	pair_destroy(pair);
}

/* The registration waits for the end of a READ. */
static void test_pending_fast_registration_moves(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1});
	struct urxe_send_wr reg = {.wr_id = 2,
				   .opcode = URXE_WR_REG_MR,
				   .flags = URXE_SEND_FENCE | URXE_SEND_SIGNALED};
	struct engine e = {.pair = pair, .a = pair->node[0], .b = pair->node[1]};
	const struct urxe_seg seg = node_seg(e.b, 0, 100);
	const struct urxe_send_wr read = {.wr_id = 1,
					  .opcode = URXE_WR_RDMA_READ,
					  .flags = URXE_SEND_SIGNALED,
					  .segs = &seg,
					  .n_segs = 1,
					  .remote_addr = e.a->iova,
					  .rkey = e.a->key};
	struct endpoint *moved = &e.end[1];
	struct urxe_fast_mr *fast;
	struct post post;

	(void)state;
	conn_open(pair, &conn, e.end);
	assert_int_equal(urxe_fast_mr_alloc(e.b->dev, NODE_PD, 1, &fast), 0);
	reg.fast_reg = four_pages(e.b, urxe_fast_mr_key(fast) + 1);
	assert_int_equal(urxe_post_send(e.end[1].qp, &read), 0);
	assert_int_equal(urxe_post_send(e.end[1].qp, &reg), 0);
	move_node(pair, 1, &moved, 1);
	pair_settle(pair);
	expect_wc(&e.b->send_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&e.b->send_cq, 2, URXE_WC_SUCCESS);
	memset(e.a->mem, 0xab, PAGE);
	post = write_of(PAGE, reg.fast_reg.key);
	post_send(&e, 0, &post);
	pair_settle(pair);
	expect_wc(&e.a->send_cq, 1, URXE_WC_SUCCESS);
	assert_memory_equal(e.b->mem + PAGE, e.a->mem, PAGE);
	pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restored_device_saves_the_same_stream),
		cmocka_unit_test(test_moved_nodes_go_on_as_others_do),
		cmocka_unit_test(test_qp_attributes_survive_a_move),
		cmocka_unit_test(test_waiting_datagram_with_a_qpn_of_32_bits_moves),
		cmocka_unit_test(test_cut_fast_registration_moves),
		cmocka_unit_test(test_pending_fast_registration_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
