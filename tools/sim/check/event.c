/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events. */
#include "sim/check/check.h"

#include "sim/host/simconn.h"
#include "sim/world.h"

/* A responder that refuses a request for its key tells so once (IBA 11.6.3.2). */
static bool may_refuse(const struct endpoint *end)
{
	const struct failure *failure = &end->conn->failure;

	return failure->begun && failure->kind == FAILURE_KEY && failure->side != end->side &&
	       !end->n_events[URXE_ASYNC_QP_ACCESS_ERR];
}

static void check_qp_event(struct endpoint *end, enum urxe_async event)
{
	if (event == URXE_ASYNC_QP_FATAL || event == URXE_ASYNC_QP_REQ_ERR ||
	    (event == URXE_ASYNC_QP_ACCESS_ERR && !may_refuse(end)))
		world_fail(end->host->world, "host %u: asynchronous event %u of qp %06x",
			   end->host->id, event, end->qpn);
	end->n_events[event]++;
}

void check_event(struct simhost *host, enum urxe_async event, void *ctx)
{
	switch (event) {
	case URXE_ASYNC_CQ_ERR:
	case URXE_ASYNC_SRQ_ERR:
		world_fail(host->world, "host %u: asynchronous event %u", host->id, event);
		break;
	case URXE_ASYNC_SRQ_LIMIT_REACHED: break;
	default: check_qp_event(ctx, event); break;
	}
}
