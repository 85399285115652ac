/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Helpers for tests of memory windows: a region with a window, and functions to bind and use the
 * window.
 */
#ifndef URXE_TEST_WINDOW_H
#define URXE_TEST_WINDOW_H

#include <errno.h>
#include <string.h>

#include "engine.h"

#define REGION 4096u /* offset of the region under test, in node b's memory */
#define LENGTH 1000u
#define PART   104u /* size of the window in the region */
#define SIZE   296u

#define W    URXE_ACCESS_REMOTE_WRITE
#define R    URXE_ACCESS_REMOTE_READ
#define A    URXE_ACCESS_REMOTE_ATOMIC
#define LW   URXE_ACCESS_LOCAL_WRITE
#define BIND URXE_ACCESS_MW_BIND
#define ZB   URXE_ACCESS_ZERO_BASED

#define WRITE URXE_WR_RDMA_WRITE
#define READ  URXE_WR_RDMA_READ
#define FAA   URXE_WR_FETCH_ADD
#define CAS   URXE_WR_COMPARE_SWAP

#define TYPE_1 URXE_MW_TYPE_1
#define TYPE_2 URXE_MW_TYPE_2

/* Node b owns the region and the windows; node a is the requester. */
struct bench {
	struct engine e;
	struct urxe_mr *mr;
	struct urxe_mw *mw;
};

static inline struct urxe_mw *alloc_mw(struct node *node, uint8_t type, uint32_t pd)
{
	const struct urxe_mw_attr attr = {.pd = pd, .type = type};
	struct urxe_mw *mw;

	assert_int_equal(urxe_mw_alloc(node->dev, &attr, &mw), 0);
	return mw;
}

static inline void open_bench(struct bench *b, enum urxe_qp_type qp_type, uint8_t type)
{
	struct conn_attr conn = conn_default(qp_type);

	engine_open(&b->e, &conn);
	b->mr = node_reg(b->e.b, NODE_PD, LW | BIND, REGION, LENGTH);
	b->mw = alloc_mw(b->e.b, type, NODE_PD);
}

static inline struct urxe_mw_bind bind_to(const struct bench *b, uint32_t access)
{
	uint32_t key = urxe_mw_key(b->mw);

	return (struct urxe_mw_bind){
		.mw_key = key,
		.tag = (uint8_t)(key + 1),
		.mr_key = urxe_mr_key(b->mr),
		.access = access,
		.addr = b->e.b->iova + REGION + PART,
		.length = SIZE,
	};
}

static inline int try_bind(struct urxe_qp *qp, uint64_t wr_id, const struct urxe_mw_bind *bind)
{
	const struct urxe_send_wr wr = {.wr_id = wr_id, .opcode = URXE_WR_BIND_MW, .bind = *bind};

	return urxe_post_send(qp, &wr);
}

static inline void post_bind(struct urxe_qp *qp, uint64_t wr_id, const struct urxe_mw_bind *bind)
{
	assert_int_equal(try_bind(qp, wr_id, bind), 0);
}

static inline int try_key_wr(struct urxe_qp *qp, uint64_t wr_id, uint32_t opcode, uint32_t key)
{
	const struct urxe_send_wr wr = {.wr_id = wr_id, .opcode = opcode, .invalidate_key = key};

	return urxe_post_send(qp, &wr);
}

static inline void post_inv(struct urxe_qp *qp, uint64_t wr_id, uint32_t key)
{
	assert_int_equal(try_key_wr(qp, wr_id, URXE_WR_LOCAL_INV, key), 0);
}

/* Binds the window and checks that the binding succeeded. */
static inline void bind_well(struct bench *b, uint32_t access)
{
	const struct urxe_mw_bind bind = bind_to(b, access);

	post_bind(b->e.end[1].qp, 1, &bind);
	pair_settle(b->e.pair);
	assert_int_equal(expect_wc(&b->e.b->send_cq, 1, URXE_WC_SUCCESS).opcode, URXE_WC_BIND_MW);
	assert_int_equal(urxe_mw_key(b->mw), (bind.mw_key & ~0xffu) | bind.tag);
}

/* The completion status of node a's request by the key, at an address. */
static inline uint32_t outcome(struct engine *e, uint32_t opcode, uint64_t addr, uint32_t length,
			       uint32_t key)
{
	struct urxe_wc wc;

	post_send(e, 0,
		  &(struct post){.opcode = opcode,
				 .length = length,
				 .remote = addr - e->b->iova,
				 .rkey = key,
				 .compare_add = 1});
	pair_settle(e->pair);
	assert_true(node_poll(&e->a->send_cq, &wc));
	return wc.status;
}

static inline uint32_t write_at_window(struct bench *b)
{
	return outcome(&b->e, URXE_WR_RDMA_WRITE, b->e.b->iova + REGION + PART, 8,
		       urxe_mw_key(b->mw));
}

/* Tries to deregister the region; true if a bound window prevents it. */
static inline bool region_is_bound(struct bench *b)
{
	return urxe_mr_dereg(b->mr) == -EBUSY;
}

/* A second connection between the same nodes. */
static inline void open_second(struct engine *e, struct endpoint end[2])
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn_open(e->pair, &conn, end);
}

#endif
