/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events. */
#include "sim/check/check.h"

#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

/* Whether the event of a refused key may come: a responder that refuses a request for its key
 * reports that once (IBA 11.6.3.2). */
static bool may_refuse(const struct endpoint *end)
{
	const struct failure *failure = &end->conn->failure;

	return failure->begun && failure->kind == FAILURE_KEY && failure->side != end->side &&
	       !end->n_events[URXE_ASYNC_QP_ACCESS_ERR];
}

/* Whether the event may come for this QP now. COMM_EST never comes: both ends of a connection are
 * in RTS before its first packet. */
static bool may_come(const struct endpoint *end, enum urxe_async event)
{
	switch (event) {
	case URXE_ASYNC_SQ_DRAINED: return end->drain.state == DRAIN_BEGUN;
	case URXE_ASYNC_QP_ACCESS_ERR: return may_refuse(end);
	case URXE_ASYNC_QP_LAST_WQE_REACHED:
		return end->recv_queue->shared && failure_may_stop(end) && !end->n_events[event];
	default: return false;
	}
}

static void check_qp_event(struct endpoint *end, enum urxe_async event)
{
	if (!may_come(end, event))
		world_fail(end->host->world, "host %u: asynchronous event %u of qp %06x",
			   end->host->id, event, end->qpn);
	end->n_events[event]++;
	if (event == URXE_ASYNC_SQ_DRAINED)
		end->drain.state = DRAIN_ENDED;
}

void check_drained(const struct simcq *cq, const struct urxe_wc *wc)
{
	const struct endpoint *end = simhost_end(cq->host, wc->qpn);

	if (cq == &cq->host->send_cq && end && end->drain.state == DRAIN_ENDED)
		world_fail(cq->host->world,
			   "host %u: completion of qp %06x, whose send queue is drained",
			   cq->host->id, wc->qpn);
}

static void check_limit_event(struct recv_queue *recv_queue)
{
	if (!recv_queue->limit)
		world_fail(recv_queue->host->world,
			   "host %u: event of a limit that was not requested",
			   recv_queue->host->id);
	recv_queue->limit = 0;
}

void check_event(struct simhost *host, enum urxe_async event, void *ctx)
{
	switch (event) {
	case URXE_ASYNC_CQ_ERR:
	case URXE_ASYNC_SRQ_ERR:
		world_fail(host->world, "host %u: asynchronous event %u", host->id, event);
		break;
	case URXE_ASYNC_SRQ_LIMIT_REACHED: check_limit_event(SIMHOST_RECV_QUEUE(ctx)); break;
	default:
		if (!member_of_context(host->world, ctx))
			check_qp_event(ctx, event);
		else
			world_fail(host->world, "host %u: event %u of a multicast qp", host->id,
				   event);
		break;
	}
}

static bool brings_event(const struct simcq *cq, const struct urxe_wc *wc)
{
	return cq->armed && (!cq->solicited_only || wc->solicited);
}

void check_comp_event(struct simcq *cq)
{
	if (cq->head == cq->tail || !brings_event(cq, &cq->ring[(cq->tail - 1) & (cq->room - 1)]))
		world_fail(cq->host->world, "host %u: completion event that was not requested",
			   cq->host->id);
	cq->armed = false;
}

void check_told(const struct simcq *cq, const struct urxe_wc *wc)
{
	if (brings_event(cq, wc))
		world_fail(cq->host->world, "host %u: completion of qp %06x without its event",
			   cq->host->id, wc->qpn);
}

void check_last_wqe(const struct simhost *host)
{
	for (uint32_t i = 0; i < host->n_ends; i++) {
		const struct endpoint *end = host->end[i];

		if (end->recv_queue->shared && !end->n_events[URXE_ASYNC_QP_LAST_WQE_REACHED])
			world_fail(host->world, "host %u: qp %06x has not told its last receive",
				   host->id, end->qpn);
	}
}
