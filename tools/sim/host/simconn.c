/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/simconn.h"

#include "sim/alloc.h"
#include "sim/host/recv_queue.h"
#include "sim/network/address.h"
#include "sim/world.h"

#define MAX_INLINE 256
/* Attributes of bulk connections; 16 is usual in hardware. */
#define BULK_RD_ATOMIC 16
#define BULK_DEPTH     4
#define BULK_PSN       0xfff000 /* wraps around soon */

/* --- Choice of attributes. */

static uint8_t get_mtu_code(uint64_t bytes)
{
	uint8_t code = URXE_MTU_256;

	while (128u << code < bytes)
		code++;
	return code;
}

static uint8_t choose_type(const struct world *world, struct rand *r)
{
	static const uint8_t mixed[] = {URXE_QPT_RC, URXE_QPT_RC, URXE_QPT_RC, URXE_QPT_UC,
					URXE_QPT_UD};

	switch (world->scenario.traffic) {
	case TRAFFIC_MIXED: return mixed[rand_below(r, sizeof(mixed))];
	case TRAFFIC_UC: return URXE_QPT_UC;
	case TRAFFIC_UD: return URXE_QPT_UD;
	default: return URXE_QPT_RC;
	}
}

/* Half of the ends begin with a PSN that soon wraps around. */
static uint32_t choose_psn(struct rand *r)
{
	uint32_t psn = 0xffffff - rand_below(r, 40);

	return (psn + (rand_chance(r, 0.5) ? rand_below(r, 1 << 24) : 0)) & 0xffffff;
}

/* Chooses the attributes of a connection at random. Each statement makes one random choice, because
 * a seed depends on the order of the choices, and C does not define it within a statement. */
static struct simconn_attr choose_mixed_attr(const struct world *world, struct rand *r)
{
	const struct scenario *s = &world->scenario;
	struct simconn_attr attr = {
		.retry_cnt = (uint8_t)s->retries,
		.rnr_retry = 7,
		.cap = {.max_recv_wr = RECV_QUEUE_DEPTH,
			.max_send_sge = LAYOUT_MAX_SEGS,
			.max_recv_sge = LAYOUT_MAX_SEGS},
	};

	attr.type = choose_type(world, r);
	attr.net = (uint8_t)rand_below(r, 3);
	attr.path_mtu = (uint8_t)rand_in(r, URXE_MTU_256, URXE_MTU_4096);
	if (s->mtu != BY_SEED)
		attr.path_mtu = get_mtu_code(s->mtu);
	attr.timeout = (uint8_t)scenario_or(s->timeout, rand_in(r, 6, 10)); /* 0.26 to 4.2 ms */
	attr.min_rnr_timer = (uint8_t)rand_in(r, 1, 12);                    /* 0.01 to 0.64 ms */
	attr.rd_atomic = (uint8_t)rand_in(r, 1, 8);
	attr.sq_sig_all = rand_chance(r, 0.5);
	attr.psn[0] = choose_psn(r);
	attr.psn[1] = choose_psn(r);
	attr.cap.max_send_wr = (uint32_t)scenario_or(s->depth, rand_in(r, 1, 8));
	attr.cap.max_inline = rand_below(r, MAX_INLINE + 1);
	return attr;
}

/* The attributes of bulk traffic, as a benchmark would have them. */
static struct simconn_attr get_bulk_attr(const struct scenario *s)
{
	return (struct simconn_attr){
		.type = URXE_QPT_RC,
		.net = URXE_NET_IPV4,
		.path_mtu = get_mtu_code(scenario_or(s->mtu, 1024)),
		.timeout = (uint8_t)scenario_or(s->timeout, 14),
		.retry_cnt = (uint8_t)s->retries,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.rd_atomic = BULK_RD_ATOMIC,
		.sq_sig_all = true,
		.psn = {BULK_PSN, BULK_PSN},
		.cap = {.max_send_wr = (uint32_t)scenario_or(s->depth, BULK_DEPTH),
			.max_recv_wr = s->traffic == TRAFFIC_SEND ? RECV_QUEUE_DEPTH : 0,
			.max_send_sge = 1,
			.max_recv_sge = LAYOUT_MAX_SEGS},
	};
}

/* --- Memory layout. */

static struct recv_queue *plan_recv_queue(struct world *world, struct simhost *host, uint32_t depth)
{
	if (host->n_recv_queues && host->recv_queue[0]->shared)
		return host->recv_queue[0];
	return recv_queue_plan(host, !host->n_ends && depth && rand_chance(&world->rand, 0.3),
			       depth);
}

static void plan_end(struct simconn *conn, struct world *world, struct simhost *host, unsigned side)
{
	conn->end[side] = (struct endpoint){
		.conn = conn,
		.host = host,
		.side = side,
		.recv_queue = plan_recv_queue(world, host, conn->attr.cap.max_recv_wr),
		.qpn = SIMHOST_FIRST_QPN + host->n_ends,
	};
	host->end = sim_realloc(host->end, (host->n_ends + 1) * sizeof(*host->end));
	host->end[host->n_ends++] = &conn->end[side];
}

void simconn_plan(struct simconn *conn, struct world *world, struct simhost *opener,
		  struct simhost *target)
{
	conn->attr = scenario_is_bulk(&world->scenario) ? get_bulk_attr(&world->scenario)
							: choose_mixed_attr(world, &world->rand);
	opener->opens = true;
	plan_end(conn, world, opener, 0);
	plan_end(conn, world, target, 1);
	for (unsigned side = 0; side < 2; side++)
		stream_plan(&conn->stream[side], world, conn, side);
}

/* --- QPs. */

struct urxe_path simconn_path(const struct simconn *conn, unsigned side)
{
	const uint32_t peer = conn->end[!side].host->id;
	struct urxe_path path = {
		.dgid = address_gid((enum urxe_net)conn->attr.net, peer),
		.sgid_index = SIMHOST_SGID(conn->attr.net),
		.hop_limit = 64,
	};

	address_mac(peer, path.dmac);
	return path;
}

static void create_qp(struct simconn *conn, unsigned side)
{
	struct endpoint *end = &conn->end[side];
	const struct urxe_qp_init init = {
		.ctx = end,
		.type = conn->attr.type,
		.sq_sig_all = conn->attr.sq_sig_all,
		.pd = SIMHOST_PD,
		.qpn = end->qpn,
		.send_cq = end->host->send_cq.cq,
		.recv_cq = end->host->recv_cq.cq,
		.srq = end->recv_queue->shared ? end->recv_queue->rq : NULL,
		.cap = conn->attr.cap,
	};

	sim_require(urxe_qp_create(end->host->dev, &init, &end->qp) == 0);
	if (!end->recv_queue->shared)
		end->recv_queue->rq = urxe_qp_rq(end->qp);
}

uint32_t simconn_step_mask(uint8_t type, int to)
{
	const bool connected = type != URXE_QPT_UD, reliable = type == URXE_QPT_RC;

	switch (to) {
	case URXE_QPS_INIT:
		return URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT |
		       (connected ? URXE_QP_ACCESS_FLAGS : URXE_QP_QKEY);
	case URXE_QPS_RTR:
		return URXE_QP_STATE |
		       (connected
				? URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN | URXE_QP_RQ_PSN
				: 0) |
		       (reliable ? URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER : 0);
	default:
		return URXE_QP_STATE | URXE_QP_SQ_PSN |
		       (reliable ? URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT | URXE_QP_RNR_RETRY |
					   URXE_QP_MAX_QP_RD_ATOMIC
				 : 0);
	}
}

static void move_to_rts(struct simconn *conn, unsigned side, uint64_t now)
{
	const struct simconn_attr *c = &conn->attr;
	struct urxe_qp_attr attr = {
		.path_mtu = c->path_mtu,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.min_rnr_timer = c->min_rnr_timer,
		.max_rd_atomic = c->rd_atomic,
		.max_dest_rd_atomic = c->rd_atomic,
		.port = 1,
		.access = SIMHOST_ACCESS,
		.qkey = SIMCONN_QKEY,
		.dest_qpn = conn->end[!side].qpn,
		.sq_psn = c->psn[side],
		.rq_psn = c->psn[!side],
		.path = simconn_path(conn, side),
	};

	for (int state = URXE_QPS_INIT; state <= URXE_QPS_RTS; state++) {
		attr.state = (uint8_t)state;
		sim_require(urxe_qp_modify(conn->end[side].qp, now, &attr,
					   simconn_step_mask(c->type, state)) == 0);
	}
	conn->end[side].change.attr = attr;
}

void simconn_open(struct simconn *conn, struct world *world)
{
	for (unsigned side = 0; side < 2; side++)
		create_qp(conn, side);
	for (unsigned side = 0; side < 2; side++) {
		move_to_rts(conn, side, world->now);
		stream_open(&conn->stream[side]);
	}
}

void simconn_free(struct simconn *conn)
{
	for (unsigned side = 0; side < 2; side++)
		stream_free(&conn->stream[side]);
}
