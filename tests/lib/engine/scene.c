/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/announcement.h>

#include "craft.h"
#include "engine_hca.h"
#include "move.h"
#include "require.h"

#define US      UINT64_C(1000)
#define MESSAGE 40000u

/* --- Parts of scenes. */

static void add_conn_of_depth(struct scene *s, enum urxe_qp_type type, uint8_t depth)
{
	struct conn_attr *conn = &s->conn[s->n];

	*conn = conn_default(type);
	conn->rd_atomic = depth;
	conn->net = (uint8_t)(s->n % 3);
	conn->qpn[0] = 0x1100 + s->n;
	conn->qpn[1] = 0x2100 + s->n;
	conn->access |= URXE_ACCESS_FLUSH_GLOBAL;
	conn_open(s->pair, conn, s->end[s->n]);
	s->n++;
}

static void add_conn(struct scene *s, enum urxe_qp_type type)
{
	add_conn_of_depth(s, type, conn_default(type).rd_atomic);
}

static void post_recv(struct scene *s, uint32_t conn, unsigned side, uint32_t length)
{
	struct urxe_seg seg = node_seg(s->pair->node[side], 300000, length);
	const struct urxe_recv_wr wr = {.wr_id = 700, .segs = &seg, .n_segs = 1};

	require(urxe_post_recv(s->end[conn][side].rq, &wr) == 0);
}

static void post_send(struct scene *s, uint32_t conn, uint32_t opcode, uint32_t length)
{
	struct node *to = s->pair->node[1];
	struct urxe_seg seg = node_seg(s->pair->node[0], 100, length);
	struct urxe_path path = conn_path(s->conn[conn].net, to);
	const struct urxe_send_wr wr = {
		.wr_id = 500 + opcode,
		.opcode = opcode,
		.segs = &seg,
		.n_segs = 1,
		.imm = 0x01020304,
		.remote_addr = to->iova + 200000,
		.rkey = to->key,
		.compare_add = 5,
		.path = &path,
		.remote_qpn = s->end[conn][1].qpn,
		.remote_qkey = s->conn[conn].qkey,
		.flush = {.placement = URXE_FLUSH_GLOBAL, .length = 100},
	};

	require(urxe_post_send(s->end[conn][0].qp, &wr) == 0);
}

static void run_for(struct scene *s, uint64_t ns)
{
	require(pair_run(s->pair, s->pair->now + ns) != PAIR_STUCK);
}

static void modify(struct scene *s, uint32_t conn, enum urxe_qp_state state)
{
	const struct urxe_qp_attr attr = {.state = (uint8_t)state};

	require(urxe_qp_modify(s->end[conn][0].qp, s->pair->now, &attr, URXE_QP_STATE) == 0);
}

/* --- Scenes. */

/* A QP of each type and state. */
static void build_states(struct scene *s)
{
	add_conn(s, URXE_QPT_RC);
	add_conn(s, URXE_QPT_UC);
	add_conn(s, URXE_QPT_UD);
	add_conn(s, URXE_QPT_RC);
	modify(s, 3, URXE_QPS_RESET);
	add_conn(s, URXE_QPT_RC);
	modify(s, 4, URXE_QPS_ERR);
	add_conn(s, URXE_QPT_RC);
	modify(s, 5, URXE_QPS_SQD);
	/* A datagram that cannot be sent: SQE. */
	add_conn(s, URXE_QPT_UC);
	post_send(s, 6, URXE_WR_SEND, 0x7fffffff);
	add_conn(s, URXE_QPT_RC);
	s->conn[7].qpn[0] = 0x11ff;
	conn_create(s->pair, &s->conn[7], 0, &s->end[7][0]);
	run_for(s, 100 * US);
}

static void bind_window(struct scene *s, uint32_t key, struct urxe_mw *mw)
{
	const struct urxe_send_wr wr = {
		.opcode = URXE_WR_BIND_MW,
		.bind = {.mw_key = urxe_mw_key(mw),
			 .tag = 0x5a,
			 .mr_key = key,
			 .access = URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_WRITE,
			 .addr = s->pair->node[0]->iova + 5000,
			 .length = 3000},
	};

	require(urxe_post_send(s->end[0][0].qp, &wr) == 0);
}

static void register_fast(struct scene *s)
{
	const struct urxe_send_wr wr = {
		.opcode = URXE_WR_REG_MR,
		.fast_reg = {.access = URXE_ACCESS_LOCAL_WRITE,
			     .length = 8192,
			     .iova = 0x7000,
			     .n_pages = 2,
			     .page_shift = 12,
			     .page_list = 16384,
			     .key = 0},
	};
	struct urxe_send_wr reg = wr;

	require(urxe_fast_mr_alloc(s->pair->node[0]->dev, NODE_PD, 8, &s->fast) == 0);
	reg.fast_reg.key = urxe_fast_mr_key(s->fast) + 1;
	require(urxe_post_send(s->end[0][0].qp, &reg) == 0);
}

static void open_srq(struct scene *s)
{
	struct node *node = s->pair->node[0];
	const struct urxe_rq_attr attr = {
		.ctx = &s->srq_queue, .pd = NODE_PD, .max_wr = 20, .max_sge = 3};
	struct urxe_seg seg = node_seg(node, 4000, 500);
	struct urxe_recv_wr wr = {.segs = &seg, .n_segs = 1};

	s->srq_queue.node = node;
	require(urxe_srq_create(node->dev, &attr, &s->srq) == 0);
	require(urxe_srq_set_limit(s->srq, 2) == 0);
	for (wr.wr_id = 0; wr.wr_id < 7; wr.wr_id++)
		require(urxe_post_recv(s->srq, &wr) == 0);
}

static void attach_groups(struct scene *s)
{
	struct urxe_gid gid = {{[10] = 0xff, 0xff, 239, 1, 2, 3}};

	for (uint32_t i = 2; i < 4; i++)
		require(urxe_mcast_attach(s->end[i][0].qp, &gid) == 0);
	gid.raw[15] = 9;
	require(urxe_mcast_attach(s->end[2][0].qp, &gid) == 0);
}

static void unmap_middle(struct scene *s)
{
	struct node *node = s->pair->node[0];
	struct urxe_mr *mr = node_reg(node, NODE_PD, NODE_ACCESS, 20000, 9000);
	const struct urxe_extent middle = {node->mem + 23000, 1000};

	require(urxe_mr_unmap(mr, &middle) == 0);
	urxe_mr_unmapped(mr, &middle, true);
}

/* Regions, windows, keys, tables, queues and groups. */
static void build_objects(struct scene *s)
{
	struct node *node = s->pair->node[0];
	const struct urxe_mw_attr type_1 = {.pd = NODE_PD, .type = URXE_MW_TYPE_1};
	const struct urxe_mw_attr type_2 = {.pd = NODE_PD, .type = URXE_MW_TYPE_2};
	struct urxe_mr *mr =
		node_reg(node, NODE_PD, NODE_ACCESS | URXE_ACCESS_MW_BIND, 4000, 10000);
	const struct urxe_qp_attr limit = {.rate_limit = 1000000};

	open_srq(s);
	add_conn(s, URXE_QPT_RC);
	s->conn[1].srq[0] = s->srq;
	add_conn(s, URXE_QPT_RC);
	add_conn(s, URXE_QPT_UD);
	add_conn(s, URXE_QPT_UD);
	require(urxe_pkey_set(node->dev, 3, 0x8123) == 0);
	require(urxe_gid_set_vlan(node->dev, NODE_SGID(URXE_NET_IPV6), 77) == 0);
	require(urxe_mw_alloc(node->dev, &type_1, &s->mw[0]) == 0);
	require(urxe_mw_alloc(node->dev, &type_2, &s->mw[1]) == 0);
	bind_window(s, urxe_mr_key(mr), s->mw[0]);
	bind_window(s, urxe_mr_key(mr), s->mw[1]);
	register_fast(s);
	attach_groups(s);
	unmap_middle(s);
	urxe_cq_arm(node->send_cq.cq, false);
	urxe_cq_arm(node->recv_cq.cq, true);
	require(urxe_qp_modify(s->end[0][0].qp, s->pair->now, &limit, URXE_QP_RATE_LIMIT) == 0);
	run_for(s, 100 * US);
}

/* Both nodes in the middle of a message of each kind. */
static void build_messages(struct scene *s)
{
	static const uint32_t opcodes[] = {URXE_WR_SEND,      URXE_WR_RDMA_WRITE_IMM,
					   URXE_WR_RDMA_READ, URXE_WR_FETCH_ADD,
					   URXE_WR_SEND_IMM,  URXE_WR_FLUSH};

	for (uint32_t i = 0; i < 6; i++) {
		uint32_t length = opcodes[i] == URXE_WR_FETCH_ADD ? 8 : MESSAGE;

		add_conn(s, i == 4 ? URXE_QPT_UC : URXE_QPT_RC);
		post_recv(s, i, 1, MESSAGE);
		post_send(s, i, opcodes[i], opcodes[i] == URXE_WR_FLUSH ? 0 : length);
		if (i != 4)
			post_send(s, i, URXE_WR_RDMA_READ, 3000);
	}
	run_for(s, 5 * US);
}

static bool lose_third(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	uint32_t *n = arg;

	(void)now, (void)data, (void)len;
	return ++*n != 3;
}

/* The responder keeps packets behind a lost one; the requester is about to learn of it. */
static void build_gap(struct scene *s)
{
	uint32_t n = 0;

	add_conn(s, URXE_QPT_RC);
	s->pair->link[0].filter = lose_third;
	s->pair->link[0].filter_arg = &n;
	post_send(s, 0, URXE_WR_RDMA_WRITE, MESSAGE);
	run_for(s, 2 * US);
	s->pair->link[0].filter = NULL;
}

/* The requester waits for the RNR timer. */
static void build_rnr(struct scene *s)
{
	add_conn(s, URXE_QPT_RC);
	post_send(s, 0, URXE_WR_SEND, MESSAGE);
	run_for(s, 3 * US);
}

/* Completions that the program has not taken, some of them of flushed requests. */
static void build_completions(struct scene *s)
{
	add_conn(s, URXE_QPT_RC);
	post_recv(s, 0, 1, 100);
	post_send(s, 0, URXE_WR_SEND_IMM, 100);
	post_send(s, 0, URXE_WR_RDMA_READ, 3000);
	post_recv(s, 0, 0, 100);
	run_for(s, 500 * US);
	post_send(s, 0, URXE_WR_RDMA_WRITE, MESSAGE);
	run_for(s, 1 * US);
	modify(s, 0, URXE_QPS_ERR);
}

static bool lose_all(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return false;
}

static void announce_return(struct node *node, uint64_t now)
{
	uint8_t data[URXE_ANNOUNCEMENT_LEN];
	const struct urxe_frame frame = {.data = data, .len = sizeof(data)};

	urxe_announcement_build(data, node->mac);
	urxe_input(node->dev, now, &frame, 1);
}

/* Node 0 was absent twice: its responder has sent the first of two sequence NAKs, and its next
 * probe sends all outstanding requests again. */
static void build_absence(struct scene *s)
{
	struct node *node = s->pair->node[0];

	add_conn(s, URXE_QPT_RC);
	announce_return(node, s->pair->now);
	run_for(s, 3200 * US);
	s->pair->link[0].filter = lose_all;
	post_send(s, 0, URXE_WR_RDMA_WRITE, 3000);
	run_for(s, 5 * US);
	announce_return(node, s->pair->now);
	s->pair->link[0].filter = NULL;
}

static bool pass_some(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	uint32_t *room = arg;

	(void)now, (void)data, (void)len;
	return *room && (*room)--;
}

/* Node 1 has executed five of nine fetch-and-adds, and the answers to the last three are lost. Its
 * max_dest_rd_atomic is no power of two. */
static void build_depth(struct scene *s)
{
	uint32_t room = 2;

	add_conn_of_depth(s, URXE_QPT_RC, 3);
	for (uint32_t i = 0; i < 9; i++)
		post_send(s, 0, URXE_WR_FETCH_ADD, 8);
	s->pair->link[1].filter = pass_some;
	s->pair->link[1].filter_arg = &room;
	run_for(s, 10 * US);
	s->pair->link[1].filter = NULL;
}

/* --- The HCA of node 1 has got three packets of a WRITE, and the engine has taken over. */

static void connect_above(struct scene *s, struct engine_hca *hca, struct node *above)
{
	struct conn_attr *conn = &s->conn[0];

	require(urxe_mr_dereg(above->mr) == 0);
	urxe_offload_set(above->dev, &engine_hca_ops, hca);
	above->mr = node_reg(above, NODE_PD, NODE_ACCESS, 0, above->mem_size);
	above->key = urxe_mr_key(above->mr);
	*conn = conn_default(URXE_QPT_RC);
	s->pair->node[1] = above;
	conn_open(s->pair, conn, s->end[s->n++]);
	post_recv(s, 0, 1, MESSAGE);
	post_recv(s, 0, 1, MESSAGE);
	post_send(s, 0, URXE_WR_SEND, 100);
	post_send(s, 0, URXE_WR_RDMA_WRITE, MESSAGE);
	s->pair->node[1] = hca->node;
}

static void leave_hca(struct scene *s, struct engine_hca *hca, struct node *above)
{
	struct urxe_offload_refusal refusal;

	while (urxe_offload_take_over(above->dev, s->pair->now, true, &refusal) == -EAGAIN)
		engine_hca_deliver(hca);
	require(!refusal.reason);
	require(!urxe_qp_offloaded(s->end[0][1].qp));
	urxe_offload_unset(above->dev);
	node_destroy(hca->node);
	s->pair->node[1] = above;
}

static void build_resumed(struct scene *s)
{
	const struct node_attr attr = {.id = 2, .seed = 3, .max_packets = 8};
	struct node *above = node_create(&attr);
	struct engine_hca hca = {.wire = s->pair, .node = s->pair->node[1], .above = above->dev};
	uint32_t room = 1 + 3;

	s->pair->link[0].filter = pass_some;
	s->pair->link[0].filter_arg = &room;
	connect_above(s, &hca, above);
	run_for(s, 20 * US);
	engine_hca_deliver(&hca);
	leave_hca(s, &hca, above);
	s->pair->link[0].filter = NULL;
}

static const struct scene scenes[] = {
	{.name = "states", .build = build_states},
	{.name = "objects", .build = build_objects},
	{.name = "requester", .build = build_messages},
	{.name = "responder", .build = build_messages, .side = 1},
	{.name = "loss", .build = build_gap},
	{.name = "gap", .build = build_gap, .side = 1},
	{.name = "rnr", .build = build_rnr},
	{.name = "completions", .build = build_completions},
	{.name = "absence", .build = build_absence, .since = 2},
	{.name = "depth", .build = build_depth, .side = 1, .since = 2},
	{.name = "resumed", .build = build_resumed, .side = 1, .since = 2},
};

/* --- */

struct scene *scene_open(unsigned i)
{
	struct scene *s;

	if (i >= sizeof(scenes) / sizeof(scenes[0]))
		return NULL;
	/* Without memory an HCA gives its work to the engine. The scene with an HCA is the last. */
	if (scenes[i].build == build_resumed && getenv("URXE_TEST_NOMEM"))
		return NULL;
	s = malloc(sizeof(*s));
	require(s);
	*s = scenes[i];
	s->pair = pair_create(&(struct pair_attr){.seed = 1, .max_packets = 8});
	s->build(s);
	return s;
}

void scene_close(struct scene *s)
{
	pair_destroy(s->pair);
	free(s);
}

void scene_move(struct scene *s, unsigned side)
{
	struct endpoint *end[SCENE_QPS];

	for (uint32_t i = 0; i < s->n; i++)
		end[i] = &s->end[i][side];
	move_node(s->pair, side, end, s->n);
}

void scene_save(struct scene *s, unsigned side, uint8_t **stream, size_t *length)
{
	move_save(s->pair->node[side], s->pair->now, stream, length);
}
