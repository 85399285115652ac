/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Helpers for tests of engine behaviour: short forms to post requests and to state the expected
 * completion.
 */
#ifndef URXE_TEST_ENGINE_H
#define URXE_TEST_ENGINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "craft.h"
#include "pair.h"

/* Two nodes with one connection between them. */
struct engine {
	struct pair *pair;
	struct endpoint end[2];
	struct node *a, *b; /* the nodes of end 0 and end 1 */
};

/* Opens `e` where it lies: the QPs keep the addresses of their end points. */
static inline void engine_open(struct engine *e, const struct conn_attr *conn)
{
	e->pair = pair_create(&(struct pair_attr){.seed = 1});
	e->a = e->pair->node[0];
	e->b = e->pair->node[1];
	conn_open(e->pair, conn, e->end);
}

static inline void engine_close(struct engine *e)
{
	pair_destroy(e->pair);
}

/* Brings the QP of one end through RESET to RTR again. */
static inline void engine_start_anew(struct engine *e, const struct conn_attr *conn, unsigned end)
{
	struct urxe_qp_attr attr = {0};

	assert_int_equal(urxe_qp_modify(e->end[end].qp, 0, &attr, URXE_QP_STATE), 0);
	for (uint8_t to = URXE_QPS_INIT; to <= URXE_QPS_RTR; to++) {
		attr = conn_qp_attr(conn, end, e->end[!end].node, e->end[!end].qpn);
		attr.state = to;
		assert_int_equal(
			urxe_qp_modify(e->end[end].qp, 0, &attr, conn_mask(conn->type, to)), 0);
	}
}

static inline void post_recv(struct endpoint *end, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct urxe_seg seg = node_seg(end->node, offset, length);
	struct urxe_recv_wr wr = {.wr_id = wr_id, .segs = &seg, .n_segs = 1};

	assert_int_equal(urxe_post_recv(end->rq, &wr), 0);
}

/*
 * A request with one segment of the node's memory. The remote address has the same offset in the
 * peer's memory.
 */
struct post {
	uint64_t wr_id;
	uint32_t opcode;
	uint32_t flags;
	uint32_t offset, length; /* local */
	uint64_t remote;         /* offset in the peer's memory, modulo 2^64 */
	uint32_t rkey;           /* 0 = the peer's default rkey */
	uint32_t lkey;           /* 0 = the node's default lkey */
	uint32_t imm;
	uint64_t compare_add, swap;
	bool cqes_unpolled; /* the test does not poll the completions of other requests */
};

static inline int try_post(struct engine *e, unsigned side, const struct post *post)
{
	struct node *peer = e->pair->node[!side];
	struct urxe_seg seg = node_seg(e->pair->node[side], post->offset, post->length);
	struct urxe_send_wr wr = {
		.wr_id = post->wr_id,
		.opcode = post->opcode,
		.flags = post->flags,
		.imm = post->imm,
		.segs = &seg,
		.n_segs = 1,
		.remote_addr = peer->iova + post->remote,
		.rkey = post->rkey ? post->rkey : peer->key,
		.compare_add = post->compare_add,
		.swap = post->swap,
		.cqes_unpolled = post->cqes_unpolled,
	};

	if (post->lkey)
		seg.lkey = post->lkey;
	return urxe_post_send(e->end[side].qp, &wr);
}

static inline void post_send(struct engine *e, unsigned side, const struct post *post)
{
	assert_int_equal(try_post(e, side, post), 0);
}

static inline struct urxe_wc expect_wc(struct node_cq *cq, uint64_t wr_id, uint32_t status)
{
	struct urxe_wc wc;

	assert_true(node_poll(cq, &wc));
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
	if (status)
		assert_true(wc.solicited); /* an error completion counts as solicited */
	return wc;
}

static inline void expect_none(struct node_cq *cq)
{
	struct urxe_wc wc;

	assert_false(node_poll(cq, &wc));
}

static inline uint8_t qp_state(struct endpoint *end)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_qp_query(end->qp, &attr, &init);
	return attr.state;
}

static inline uint64_t drops(struct node *node, enum urxe_drop drop)
{
	return urxe_dev_counters(node->dev)->drop[drop];
}

static inline uint64_t events(struct node *node, enum urxe_event event)
{
	return urxe_dev_counters(node->dev)->event[event];
}

/* Both nodes count a fatal error: by the NAK sent and received, and by the completion. */
static inline void expect_fatal_nak(struct node *from, struct node *to, uint32_t status)
{
	static const struct {
		uint32_t status;
		enum urxe_event sent, received, completed;
	} rows[] = {
		{URXE_WC_REM_INV_REQ_ERR, URXE_EVENT_NAK_INVALID_SENT, URXE_EVENT_NAK_INVALID_RCVD,
		 URXE_EVENT_WC_REM_INV_REQ},
		{URXE_WC_REM_ACCESS_ERR, URXE_EVENT_NAK_ACCESS_SENT, URXE_EVENT_NAK_ACCESS_RCVD,
		 URXE_EVENT_WC_REM_ACCESS},
		{URXE_WC_REM_OP_ERR, URXE_EVENT_NAK_OP_SENT, URXE_EVENT_NAK_OP_RCVD,
		 URXE_EVENT_WC_REM_OP},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(events(from, rows[i].sent), status == rows[i].status);
		if (!to)
			continue;
		assert_int_equal(events(to, rows[i].received), status == rows[i].status);
		assert_int_equal(events(to, rows[i].completed), status == rows[i].status);
	}
}

static inline uint64_t all_drops(struct node *node)
{
	uint64_t sum = 0;

	for (int i = 0; i < URXE_DROP_COUNT; i++)
		sum += drops(node, i);
	return sum;
}

#endif
