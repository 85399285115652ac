/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fills the replies that an event's packet carries to the commands that librdmacm sends after the
 * event (ucma.h). */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "urxed/cm/ucma.h"

#define INIT 1 /* enum ib_qp_state */
#define RTR  2
#define RTS  3

#define MAX_QUERIES 6

struct cached_query {
	uint32_t command;
	uint32_t what;
};

#define QUERY(option)                                               \
	{                                                           \
		RDMA_USER_CM_CMD_QUERY, RDMA_USER_CM_QUERY_##option \
	}
#define QP_ATTR(state)                               \
	{                                            \
		RDMA_USER_CM_CMD_INIT_QP_ATTR, state \
	}

/* For each event type, the commands that librdmacm sends next, until it has created or connected
 * the QP. */
static const struct cached_query cached_queries[][MAX_QUERIES] = {
	[CMA_ADDR_RESOLVED] = {QUERY(ADDR), QUERY(GID)},
	[CMA_ROUTE_RESOLVED] = {QUERY(PATH), QP_ATTR(INIT)},
	[CMA_CONNECT_REQUEST] = {QUERY(ADDR), QUERY(GID), QUERY(PATH), QP_ATTR(INIT), QP_ATTR(RTR),
				 QP_ATTR(RTS)},
	[CMA_CONNECT_RESPONSE] = {QP_ATTR(INIT), QP_ATTR(RTR), QP_ATTR(RTS)},
};

/* The code fills one structure for both commands, QUERY and INIT_QP_ATTR: only the last field's
 * name differs. */
static_assert(sizeof(struct rdma_ucm_init_qp_attr) == sizeof(struct rdma_ucm_query) &&
		      offsetof(struct rdma_ucm_init_qp_attr, id) ==
			      offsetof(struct rdma_ucm_query, id) &&
		      offsetof(struct rdma_ucm_init_qp_attr, qp_state) ==
			      offsetof(struct rdma_ucm_query, option),
	      "one structure serves for both");

/* Returns the number of bytes written to `at`; 0: the command failed. */
static uint32_t build_reply(const struct ucma_ctx *ctx, const struct cached_query *q, uint8_t *at)
{
	const struct rdma_ucm_query in = {.id = ctx->id->number, .option = q->what};
	struct cm_attach_cached head = {.command = q->command, .option = q->what};
	struct ucma_command c = {.file = ctx->file,
				 .number = q->command,
				 .in = (const uint8_t *)&in,
				 .in_size = sizeof(in),
				 .out = at + sizeof(head),
				 .out_size = CM_ATTACH_BYTES};

	if (ucma_run_command(&c))
		return 0;
	head.out = c.out_len;
	memcpy(at, &head, sizeof(head));
	return (uint32_t)sizeof(head) + c.out_len;
}

const struct ucma_ctx *ucma_reply_cache_ctx(const struct ucma_event *event)
{
	uint32_t type = event->resp.event;

	if (type >= sizeof(cached_queries) / sizeof(cached_queries[0]) ||
	    !cached_queries[type]->command)
		return NULL;
	return type == CMA_CONNECT_REQUEST ? event->child : event->ctx;
}

uint32_t ucma_reply_cache_fill(const struct ucma_event *event, uint8_t *out)
{
	const struct ucma_ctx *ctx = ucma_reply_cache_ctx(event);
	uint8_t one[sizeof(struct cm_attach_cached) + CM_ATTACH_BYTES];
	uint32_t len = 0, n;

	if (!ctx)
		return 0;
	for (const struct cached_query *q = cached_queries[event->resp.event],
				       *end = q + MAX_QUERIES;
	     q < end && q->command; q++) {
		n = build_reply(ctx, q, one);
		if (n > CM_ATTACH_CACHED - len)
			break;
		memcpy(out + len, one, n);
		len += n;
	}
	return len;
}
