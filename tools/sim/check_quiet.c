/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/check.h"

#include <inttypes.h>

#include "sim/recv_queue.h"
#include "sim/simconn.h"
#include "sim/world.h"

#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)

/* After the last completion no timer may be left and no frame may come any more. */
static void check_idle(struct world *world)
{
	if (!world_settle(world, world->now + HOUR))
		world_fail(world, "the engines do not come to rest");
	for (uint32_t i = 0; i < world->n_hosts && !world->failure[0]; i++) {
		struct simhost *host = &world->host[i];
		struct urxe_wc wc;

		/* Late duplicates of datagrams are still messages. */
		while (!world->failure[0] && simcq_poll(&host->recv_cq, &wc))
			check_delivery(host, &wc);
		if (simcq_poll(&host->send_cq, &wc))
			world_fail(world, "host %u: a completion after the last one", host->id);
		if (urxe_dev_counters(host->dev)->event[URXE_EVENT_CQ_OVERFLOW])
			world_fail(world, "host %u: a completion queue ran over", host->id);
	}
}

static void go_to_error(struct simhost *host)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};

	for (uint32_t i = 0; i < host->n_inboxes; i++)
		host->inbox[i]->lazy = false;
	for (uint32_t i = 0; i < host->n_ends; i++)
		if (urxe_qp_modify(host->end[i]->qp, host->world->now, &attr, URXE_QP_STATE))
			world_fail(host->world, "a QP refused to go to the error state");
	simhost_send(host);
	simhost_schedule(host);
}

/* Receive requests that nobody used come back, each once and in order (IBA 10.3.1.6). */
static void check_flush(struct simhost *host)
{
	struct world *world = host->world;
	struct urxe_wc wc;

	while (!world->failure[0] && simcq_poll(&host->recv_cq, &wc)) {
		const struct endpoint *end = simhost_end(host, wc.qpn);

		if (!end || wc.status != URXE_WC_WR_FLUSH_ERR)
			world_fail(world, "host %u: flush gave status %u for qp %06x", host->id,
				   wc.status, wc.qpn);
		else
			recv_queue_take(end->inbox, wc.wr_id);
	}
	for (uint32_t i = 0; i < host->n_inboxes; i++) {
		const struct recv_queue *inbox = host->inbox[i];

		if (!inbox->shared && inbox->consumed != inbox->posted)
			world_fail(world, "host %u: %" PRIu64 " receive requests were not flushed",
				   host->id, inbox->posted - inbox->consumed);
	}
}

void check_quiet(struct world *world)
{
	check_idle(world);
	for (uint32_t i = 0; i < world->n_hosts && !world->failure[0]; i++)
		go_to_error(&world->host[i]);
	if (!world->failure[0] && !world_settle(world, world->now + SECOND))
		world_fail(world, "the engines do not come to rest in the error state");
	for (uint32_t i = 0; i < world->n_hosts && !world->failure[0]; i++)
		check_flush(&world->host[i]);
}
