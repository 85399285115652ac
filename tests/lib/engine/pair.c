/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "pair.h"

#include <stdlib.h>

#include "craft.h"
#include "require.h"

#define BURST 32
#define HOUR  (3600ull * 1000000000)
/* More rounds than this at one instant mean that a timer does not advance: PAIR_STUCK. */
#define MAX_ROUNDS 100000

void pair_set_frame_room(struct pair *pair, uint32_t room)
{
	free(pair->frames);
	pair->frame_room = room;
	pair->frames = malloc((size_t)BURST * room);
	require(pair->frames);
}

struct pair *pair_create(const struct pair_attr *attr)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	require(pair);
	pair->now = 1; /* not 0, which next_deadline uses for "at once" */
	pair_set_frame_room(pair, (attr->mtu ? attr->mtu : 4200) + 18);
	for (unsigned i = 0; i < 2; i++) {
		const struct node_attr node = {
			.id = (uint8_t)(i + 1),
			.seed = attr->seed + i,
			.mtu = attr->mtu,
			.max_packets = attr->max_packets,
			.reorder_ns = attr->reorder_ns,
			.probe_ns = attr->probe_ns,
			.go_back_n = attr->go_back_n[i],
			.congestion = attr->congestion,
			.link_bps = attr->link_bps,
			.dcqcn = attr->dcqcn,
			.mem_size = attr->mem_size,
			.mac_id = attr->same_mac ? 1 : (uint8_t)(i + 1),
			.omit_local_icrc = attr->omit_local_icrc,
			.durable = attr->durable,
			.copy_ops = attr->copy_ops,
		};

		pair->node[i] = node_create(&node);
		link_init(&pair->link[i], attr->seed * 2 + i);
	}
	return pair;
}

void pair_destroy(struct pair *pair)
{
	for (unsigned i = 0; i < 2; i++) {
		node_destroy(pair->node[i]);
		link_free(&pair->link[i]);
	}
	free(pair->frames);
	free(pair);
}

static bool transmit(struct pair *pair, unsigned side)
{
	struct urxe_frame frames[BURST];
	bool any = false;
	uint32_t n;

	do {
		for (uint32_t i = 0; i < BURST; i++)
			frames[i] = (struct urxe_frame){
				.data = pair->frames + (size_t)i * pair->frame_room,
				.room = pair->frame_room,
			};
		n = urxe_output(pair->node[side]->dev, pair->now, frames, BURST);
		require(n <= BURST);
		for (uint32_t i = 0; i < n; i++) {
			require(frames[i].len <= pair->frame_room);
			link_send(&pair->link[side], pair->now, frames[i].data, frames[i].len);
		}
		any |= n > 0;
	} while (n == BURST);
	return any;
}

static bool receive(struct pair *pair, unsigned side)
{
	struct link_frame frame;
	bool any = false;

	while (link_recv(&pair->link[!side], pair->now, &frame)) {
		struct urxe_frame in = {frame.data, frame.len, frame.len};

		urxe_input(pair->node[side]->dev, pair->now, &in, 1);
		free(frame.data);
		any = true;
	}
	return any;
}

bool pair_step(struct pair *pair)
{
	bool any = false;

	for (unsigned side = 0; side < 2; side++)
		any |= transmit(pair, side);
	for (unsigned side = 0; side < 2; side++)
		any |= receive(pair, side);
	return any;
}

uint64_t pair_next(const struct pair *pair)
{
	uint64_t next = UINT64_MAX;

	for (unsigned side = 0; side < 2; side++) {
		uint64_t deadline = urxe_next_deadline(pair->node[side]->dev);
		uint64_t arrival = link_next(&pair->link[side]);

		next = deadline < next ? deadline : next;
		next = arrival < next ? arrival : next;
	}
	return next;
}

enum pair_result pair_run(struct pair *pair, uint64_t until)
{
	unsigned rounds = 0;

	for (;;) {
		uint64_t next;

		pair_step(pair);
		next = pair_next(pair);
		if (next > until) {
			if (next == URXE_NEVER)
				return PAIR_IDLE;
			pair->now = until > pair->now ? until : pair->now;
			return PAIR_TIME_UP;
		}
		if (next > pair->now) {
			pair->now = next;
			rounds = 0;
		} else if (++rounds == MAX_ROUNDS) {
			return PAIR_STUCK;
		}
	}
}

void pair_settle(struct pair *pair)
{
	require(pair_run(pair, pair->now + HOUR) == PAIR_IDLE);
}

struct conn_attr conn_default(enum urxe_qp_type type)
{
	return (struct conn_attr){
		.type = type,
		.net = URXE_NET_IPV4,
		.path_mtu = URXE_MTU_1024,
		.timeout = 8, /* 4.096 us * 2^8, about 1 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1, /* 0.01 ms */
		.rd_atomic = 4,
		.sq_sig_all = true,
		.access = NODE_ACCESS & ~URXE_ACCESS_LOCAL_WRITE,
		.qkey = 0x11111111,
		.psn = {0x123456, 0xabcdef},
		.cap = {.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 8,
			.max_recv_sge = 8,
			.max_inline = 256},
	};
}

struct urxe_path conn_path(enum urxe_net net, const struct node *to)
{
	struct urxe_path path = {.sgid_index = NODE_SGID(net), .hop_limit = 64};

	path.dgid = craft_gid(net, to->id);
	memcpy(path.dmac, to->mac, 6);
	return path;
}

struct urxe_qp_attr conn_qp_attr(const struct conn_attr *conn, unsigned side, struct node *peer,
				 uint32_t peer_qpn)
{
	return (struct urxe_qp_attr){
		.path_mtu = conn->path_mtu,
		.timeout = conn->timeout,
		.retry_cnt = conn->retry_cnt,
		.rnr_retry = conn->rnr_retry,
		.min_rnr_timer = conn->min_rnr_timer,
		.max_rd_atomic = conn->rd_atomic,
		.max_dest_rd_atomic = conn->rd_atomic,
		.port = 1,
		.access = conn->access,
		.qkey = conn->qkey,
		.dest_qpn = peer_qpn,
		.sq_psn = conn->psn[side],
		.rq_psn = conn->psn[!side],
		.path = conn_path(conn->net, peer),
	};
}

/* Required attributes of each step (IBA volume 1, table 96). */
uint32_t conn_mask(enum urxe_qp_type type, enum urxe_qp_state to)
{
	uint32_t mask = URXE_QP_STATE;

	switch (to) {
	case URXE_QPS_INIT:
		mask |= URXE_QP_PKEY_INDEX | URXE_QP_PORT;
		return mask | (type == URXE_QPT_UD ? URXE_QP_QKEY : URXE_QP_ACCESS_FLAGS);
	case URXE_QPS_RTR:
		if (type == URXE_QPT_UD)
			return mask;
		mask |= URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN | URXE_QP_RQ_PSN;
		if (type == URXE_QPT_RC)
			mask |= URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER;
		return mask;
	case URXE_QPS_RTS:
		mask |= URXE_QP_SQ_PSN;
		if (type == URXE_QPT_RC)
			mask |= URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT | URXE_QP_RNR_RETRY |
				URXE_QP_MAX_QP_RD_ATOMIC;
		return mask;
	default: return mask;
	}
}

void conn_create(struct pair *pair, const struct conn_attr *conn, unsigned side,
		 struct endpoint *end)
{
	struct node *node = pair->node[side];
	const struct urxe_qp_init init = {
		.ctx = &end->queue,
		.type = conn->type,
		.sq_sig_all = conn->sq_sig_all,
		.pd = NODE_PD,
		.send_cq = node->send_cq.cq,
		.recv_cq = node->recv_cq.cq,
		.srq = conn->srq[side],
		.cap = conn->cap,
		.qpn = conn->qpn[side],
	};

	*end = (struct endpoint){.queue.node = node, .node = node};
	require(urxe_qp_create(node->dev, &init, &end->qp) == 0);
	end->rq = init.srq ? init.srq : urxe_qp_rq(end->qp);
	end->qpn = urxe_qp_qpn(end->qp);
}

void conn_bring_up(struct pair *pair, const struct conn_attr *conn, unsigned side,
		   struct endpoint *end, struct endpoint *peer)
{
	struct urxe_qp_attr attr = conn_qp_attr(conn, side, peer->node, peer->qpn);

	for (int state = URXE_QPS_INIT; state <= URXE_QPS_RTS; state++) {
		attr.state = (uint8_t)state;
		require(urxe_qp_modify(end->qp, pair->now, &attr, conn_mask(conn->type, state)) ==
			0);
	}
}

void conn_open(struct pair *pair, const struct conn_attr *conn, struct endpoint end[2])
{
	for (unsigned side = 0; side < 2; side++)
		conn_create(pair, conn, side, &end[side]);
	for (unsigned side = 0; side < 2; side++)
		conn_bring_up(pair, conn, side, &end[side], &end[!side]);
}
