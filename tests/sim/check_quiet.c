/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "check.h"

#include <inttypes.h>

#include "world.h"

/* After the last completion no timer may be left and no frame may come any more. */
static void check_idle(struct world *world)
{
	struct urxe_wc wc;

	if (pair_run(world->pair, world->pair->now + 3600ull * 1000000000) != PAIR_IDLE)
		world_fail(world, "the engines do not come to rest");
	for (unsigned side = 0; side < 2; side++) {
		/* Late duplicates of datagrams are still messages. */
		while (node_poll(&world->pair->node[side]->recv_cq, &wc))
			check_delivery(world, side, &wc);
		if (node_poll(&world->pair->node[side]->send_cq, &wc))
			world_fail(world, "a completion after the last one");
		if (urxe_dev_counters(world->pair->node[side]->dev)->event[URXE_EVENT_CQ_OVERFLOW])
			world_fail(world, "a completion queue ran over");
	}
}

/* Receive requests that nobody used come back, each once and in order (IBA 10.3.1.6). */
static void check_flush(struct world *world, unsigned side)
{
	struct node_cq *cq = &world->pair->node[side]->recv_cq;
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};
	struct urxe_wc wc;

	for (uint32_t i = 0; i < world->n_conns; i++) {
		world->conn[i].inbox[side]->lazy = false;
		if (urxe_qp_modify(world->conn[i].end[side].qp, world->pair->now, &attr,
				   URXE_QP_STATE))
			world_fail(world, "a QP refused to go to the error state");
	}
	pair_run(world->pair, world->pair->now + 1000000000);
	while (node_poll(cq, &wc)) {
		struct conn *conn = world_conn(world, side, wc.qpn);

		if (!conn || wc.status != URXE_WC_WR_FLUSH_ERR)
			world_fail(world, "flush gave status %u for qp %06x", wc.status, wc.qpn);
		else
			inbox_take(conn->inbox[side], wc.wr_id);
	}
	for (uint32_t i = 0; i < world->n_conns; i++) {
		const struct inbox *inbox = world->conn[i].inbox[side];

		if (!inbox->shared && inbox->consumed != inbox->posted)
			world_fail(world, "%" PRIu64 " receive requests were not flushed",
				   inbox->posted - inbox->consumed);
	}
}

void check_quiet(struct world *world)
{
	check_idle(world);
	for (unsigned side = 0; side < 2 && !world->failure[0]; side++)
		check_flush(world, side);
}
