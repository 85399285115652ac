/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The size and the limit of SRQs. */
#include "sim/check/check.h"

#include <errno.h>

#include "sim/host/recv_queue.h"
#include "sim/world.h"

void check_post_recv(const struct recv_queue *recv_queue, uint32_t outstanding, int rc)
{
	if (rc != (outstanding == recv_queue->room ? -ENOMEM : 0))
		world_fail(recv_queue->host->world,
			   "host %u: post_recv returned %d with %u of %u outstanding",
			   recv_queue->host->id, rc, outstanding, recv_queue->room);
}

void check_srq_resize(const struct recv_queue *recv_queue, uint32_t room, int rc)
{
	const uint32_t outstanding = recv_queue_outstanding(recv_queue);
	const bool fits = room && room >= outstanding && room >= recv_queue->limit;

	if (rc != (fits ? 0 : -EINVAL))
		world_fail(recv_queue->host->world,
			   "host %u: the resize of an SRQ with %u requests and limit %u to %u "
			   "returned %d",
			   recv_queue->host->id, outstanding, recv_queue->limit, room, rc);
}

void check_srq_limit(const struct recv_queue *recv_queue, uint32_t limit, int rc)
{
	if (rc != (limit <= recv_queue->room ? 0 : -EINVAL))
		world_fail(recv_queue->host->world,
			   "host %u: limit %u of an SRQ of %u requests returned %d",
			   recv_queue->host->id, limit, recv_queue->room, rc);
}

/*
 * Whether the SRQ has fallen below its limit. It has if a QP has taken a request since the event
 * was requested, and fewer requests than the limit are left: posts only add requests, so when the
 * QP took one, no more were left than now.
 */
static bool is_limit_reached(const struct recv_queue *recv_queue)
{
	return urxe_rq_retired(recv_queue->rq) != recv_queue->limit_from &&
	       recv_queue_outstanding(recv_queue) < recv_queue->limit;
}

void check_srqs(const struct simhost *host)
{
	for (uint32_t i = 0; i < host->n_recv_queues; i++) {
		const struct recv_queue *recv_queue = host->recv_queue[i];

		if (!recv_queue->shared)
			continue;
		if (recv_queue->limit && is_limit_reached(recv_queue))
			world_fail(host->world,
				   "host %u: an SRQ is below its limit without an event", host->id);
		if (urxe_srq_limit(recv_queue->rq) != recv_queue->limit)
			world_fail(host->world, "host %u: an SRQ has the limit %u, not %u",
				   host->id, urxe_srq_limit(recv_queue->rq), recv_queue->limit);
	}
}
