/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/check/check.h"

#include <inttypes.h>

#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)

/* After the last completion no timer and no frame may be left. */
static void check_idle(struct world *world)
{
	if (!world_settle(world, world->now + HOUR))
		world_fail(world, "the engines do not come to rest");
	for (uint32_t i = 0; i < world->n_hosts && !world->failure[0]; i++) {
		struct simhost *host = &world->host[i];
		struct urxe_wc wc;

		/* Duplicates of datagrams may still arrive. */
		while (!world->failure[0] && simcq_poll(&host->recv_cq, &wc))
			check_delivery(host, &wc);
		/* The last completions of members may be left, because no application polls
		 * them. */
		while (!world->failure[0] && simcq_poll(&host->send_cq, &wc)) {
			if (!member_find(host, wc.qpn))
				world_fail(world, "host %u: a completion after the last one",
					   host->id);
			else
				check_completion(host, &wc);
		}
		for (uint32_t k = 0; k < host->n_ends; k++)
			if (host->end[k]->drain.state == DRAIN_BEGUN)
				world_fail(world,
					   "host %u: the send queue of qp %06x is not drained",
					   host->id, host->end[k]->qpn);
		if (urxe_dev_counters(host->dev)->event[URXE_EVENT_CQ_OVERFLOW])
			world_fail(world, "host %u: a completion queue ran over", host->id);
	}
}

static void move_member_to_error(struct member *member)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};
	struct world *world = member->host->world;

	member->in_error = true;
	if (urxe_qp_modify(member->qp, world->now, &attr, URXE_QP_STATE))
		world_fail(world, "a multicast QP refused to go to the error state");
}

static void move_qps_to_error(struct simhost *host)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};
	struct members *members = &host->world->members;

	for (uint32_t i = 0; i < host->n_recv_queues; i++)
		host->recv_queue[i]->refills_in_callback = false;
	for (uint32_t i = 0; i < host->n_ends; i++) {
		host->end[i]->in_error = true;
		if (urxe_qp_modify(host->end[i]->qp, host->world->now, &attr, URXE_QP_STATE))
			world_fail(host->world, "a QP refused to go to the error state");
	}
	for (uint32_t i = 0; i < members->n; i++)
		if (members->member[i].host == host)
			move_member_to_error(&members->member[i]);
	simhost_send(host);
	simhost_schedule(host);
}

/* The error state flushes each unused receive request once, in order (IBA 10.3.1.6). */
static void check_flushed_recvs(struct simhost *host)
{
	struct world *world = host->world;
	struct urxe_wc wc;

	while (!world->failure[0] && simcq_poll(&host->recv_cq, &wc)) {
		struct endpoint *end = simhost_end(host, wc.qpn);
		struct member *member = member_find(host, wc.qpn);

		if (member)
			check_multicast_delivery(member, &wc);
		else if (end)
			check_flushed_recv(end, &wc);
		else
			world_fail(world, "host %u: flush of unknown qp %06x", host->id, wc.qpn);
	}
	for (uint32_t i = 0; i < host->n_recv_queues; i++) {
		const struct recv_queue *recv_queue = host->recv_queue[i];

		if (!recv_queue->shared && recv_queue->consumed != recv_queue->posted)
			world_fail(world, "host %u: %" PRIu64 " receive requests were not flushed",
				   host->id, recv_queue->posted - recv_queue->consumed);
		if (recv_queue->shared &&
		    (uint32_t)recv_queue->consumed != urxe_rq_retired(recv_queue->rq))
			world_fail(world,
				   "host %u: of %u receive requests taken from an SRQ, %" PRIu64
				   " are complete",
				   host->id, urxe_rq_retired(recv_queue->rq), recv_queue->consumed);
	}
}

void check_quiet(struct world *world)
{
	check_idle(world);
	for (uint32_t i = 0; i < world->n_hosts && !world->failure[0]; i++)
		move_qps_to_error(&world->host[i]);
	if (!world->failure[0] && !world_settle(world, world->now + SECOND))
		world_fail(world, "the engines do not come to rest in the error state");
	for (uint32_t i = 0; i < world->n_hosts && !world->failure[0]; i++) {
		check_flushed_recvs(&world->host[i]);
		check_last_wqe(&world->host[i]);
	}
}
