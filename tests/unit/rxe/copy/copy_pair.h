/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two nodes that reach each other's memory within this process, for tests of the copy transport.
 */
#ifndef URXE_TEST_COPY_PAIR_H
#define URXE_TEST_COPY_PAIR_H

#include "engine.h"

#include <string.h>

#include "require.h"

/* --- Copy operations within this process. */

#define NODE_STEP 4 /* blocks of 0x1000 QPNs, in turn for each node */

/* Faults that a test injects into copies, and counts of what the engine asked for. */
struct way {
	struct node *peer;
	bool closed; /* the peer cannot be reached */
	bool stops;  /* a copy fails after this number of parts, half way through the next part */
	uint32_t stops_behind;
	void (*before)(void *arg); /* the test's action just before a copy */
	void *arg;
	uint32_t copies,
		calls; /* requests that were copied, and calls that copied at least one request */
	uint32_t withdrawals;
	uint32_t unsettled;    /* how many more times `settled` returns false */
	uint32_t awake, asked; /* how often the peer's engine is reported awake, and how often the
				  requester asked */
};

static inline const struct urxe_copy_table *table(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	struct way *way = ((struct node *)ctx)->arg;

	require(!memcmp(mac, way->peer->mac, sizeof(way->peer->mac)));
	if (way->closed || qpn / 0x1000 % NODE_STEP != way->peer->mac[5])
		return NULL;
	return way->peer->table;
}

static inline void copy_part(const struct urxe_copy_part *part, bool write)
{
	uint64_t in_remote = 0, in_local = 0, n;

	for (uint32_t l = 0, r = 0; l < part->n_local || r < part->n_remote;) {
		uint8_t *local = (uint8_t *)part->local[l].addr + in_local;
		uint8_t *remote = (uint8_t *)(uintptr_t)part->remote[r].addr + in_remote;

		require(l < part->n_local && r < part->n_remote);
		n = part->local[l].length - in_local;
		if (n > part->remote[r].length - in_remote)
			n = part->remote[r].length - in_remote;
		require(n > 0);
		memcpy(write ? remote : local, write ? local : remote, n);
		in_local += n;
		in_remote += n;
		if (in_local == part->local[l].length)
			in_local = 0, l++;
		if (in_remote == part->remote[r].length)
			in_remote = 0, r++;
	}
}

static inline uint32_t copy(void *ctx, const struct urxe_copy_job *c)
{
	struct way *way = ((struct node *)ctx)->arg;
	uint32_t n = c->n_parts;

	require(n && n <= URXE_COPY_PARTS);
	if (way->stops && n > way->stops_behind)
		n = way->stops_behind;
	if (way->before)
		way->before(way->arg);
	if (way->peer->table->state.word != c->state)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		copy_part(&c->parts[i], c->write);
	way->copies += n;
	way->calls += n > 0;
	return n;
}

static inline bool polls_or_wake(void *ctx, uint64_t now)
{
	struct way *way = ((struct node *)ctx)->arg;

	(void)now;
	return way->asked++ < way->awake;
}

static inline void withdrawn(void *ctx)
{
	((struct way *)((struct node *)ctx)->arg)->withdrawals++;
}

static inline bool settled(void *ctx)
{
	struct way *way = ((struct node *)ctx)->arg;

	if (!way->unsettled)
		return true;
	way->unsettled--;
	return false;
}

static const struct urxe_copy_ops ops = {
	.table = table,
	.copy = copy,
	.polls_or_wake = polls_or_wake,
	.withdrawn = withdrawn,
	.settled = settled,
};

/* Two nodes, a connection, and on each node one region of one piece. */
struct copy_pair {
	struct engine e;
	struct way way[2];
	struct urxe_mr *mr[2];
	uint32_t key[2];
};

#define REGION 65536u

static inline void copy_pair_open(struct copy_pair *d, const struct conn_attr *conn)
{
	static struct way none[2];

	memset(d, 0, sizeof(*d));
	d->e.pair = pair_create(&(struct pair_attr){.seed = 1, .copy_ops = &ops});
	d->e.a = d->e.pair->node[0];
	d->e.b = d->e.pair->node[1];
	for (int i = 0; i < 2; i++) {
		d->way[i] = none[i];
		d->way[i].peer = d->e.pair->node[!i];
		d->e.pair->node[i]->arg = &d->way[i];
		d->mr[i] = node_reg(d->e.pair->node[i], NODE_PD, NODE_ACCESS, 0, REGION);
		d->key[i] = urxe_mr_key(d->mr[i]);
	}
	conn_open(d->e.pair, conn, d->e.end);
}

static inline void copy_pair_close(struct copy_pair *d)
{
	engine_close(&d->e);
}

static inline struct post a_post(const struct copy_pair *d, uint32_t opcode, uint64_t wr_id)
{
	return (struct post){
		.wr_id = wr_id,
		.opcode = opcode,
		.flags = URXE_SEND_SIGNALED,
		.offset = 4096,
		.length = 100,
		.remote = 8192,
		.rkey = d->key[1],
		.lkey = d->key[0],
	};
}

/* Posts the request on node a and steps both nodes until nothing is left to do. */
static inline struct urxe_wc run(struct copy_pair *d, const struct post *post, uint32_t status)
{
	post_send(&d->e, 0, post);
	pair_settle(d->e.pair);
	return expect_wc(&d->e.a->send_cq, post->wr_id, status);
}

/* Sends one request in packets: the requester copies only after a first answer of the peer. */
static inline void prove(struct copy_pair *d)
{
	struct post post = a_post(d, URXE_WR_RDMA_WRITE, 1);
	uint32_t before = d->way[0].copies;

	assert_false(urxe_qp_tries_copy(d->e.end[0].qp));
	run(d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d->way[0].copies, before);
	assert_true(urxe_qp_tries_copy(d->e.end[0].qp));
}

static inline void fill(uint8_t *at, uint32_t n, uint8_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		at[i] = (uint8_t)(seed + i * 7);
}

static inline uint64_t packets(struct node *node)
{
	return events(node, URXE_EVENT_TX_PACKETS);
}

static inline void setup_proven(struct copy_pair *d)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);

	copy_pair_open(d, &conn);
	prove(d);
}

#endif
