/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/drain.h"

#include "sim/alloc.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

void drain_plan(struct world *world)
{
	struct rand *r = &world->drain_rand;

	*r = (struct rand){world->scenario.seed ^ 0x647261696e};
	for (uint64_t i = 0; i < world->scenario.drains && world->n_conns; i++) {
		struct simconn *conn = &world->conn[rand_below(r, world->n_conns)];
		unsigned side = rand_below(r, 2);

		if (!conn->failure.kind)
			conn->end[side].drain.times++;
	}
}

static void modify(struct endpoint *end, uint8_t state, uint32_t mask)
{
	const struct urxe_qp_attr attr = {.state = state, .en_sqd_async_notify = true};

	sim_require(urxe_qp_modify(end->qp, end->host->world->now, &attr, URXE_QP_STATE | mask) ==
		    0);
}

static void begin(struct endpoint *end)
{
	end->drain.state = DRAIN_BEGUN;
	end->drain.times--;
	world_note(end->host->world, "host %u qp %06x drains its send queue", end->host->id,
		   end->qpn);
	modify(end, URXE_QPS_SQD, URXE_QP_EN_SQD_ASYNC_NOTIFY);
}

static void end_drain(struct endpoint *end)
{
	end->drain.state = DRAIN_NONE;
	world_note(end->host->world, "host %u qp %06x goes on", end->host->id, end->qpn);
	modify(end, URXE_QPS_RTS, 0);
}

void drain_turn(struct endpoint *end)
{
	const struct stream *stream = &end->conn->stream[end->side];
	struct drain *drain = &end->drain;

	if (!(drain->times || drain->state) || rand_chance(&end->host->world->drain_rand, 0.5))
		return;
	if (drain->state == DRAIN_ENDED)
		end_drain(end);
	else if (drain->state == DRAIN_NONE && stream->posted && !stream_done(stream))
		begin(end);
}
