/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "urxed/cm/ucma.h"

#define INIT 1 /* enum ib_qp_state */
#define RTR  2
#define RTS  3

#define QUESTIONS 6

struct question {
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

/*
 * What librdmacm asks after an event, by the time it has made the queue pair that goes with it, or
 * has connected it.
 */
static const struct question questions[][QUESTIONS] = {
	[CMA_ADDR_RESOLVED] = {QUERY(ADDR), QUERY(GID)},
	[CMA_ROUTE_RESOLVED] = {QUERY(PATH), QP_ATTR(INIT)},
	[CMA_CONNECT_REQUEST] = {QUERY(ADDR), QUERY(GID), QUERY(PATH), QP_ATTR(INIT), QP_ATTR(RTR),
				 QP_ATTR(RTS)},
	[CMA_CONNECT_RESPONSE] = {QP_ATTR(INIT), QP_ATTR(RTR), QP_ATTR(RTS)},
};

/* Both commands look alike, but for what the last field is called. */
static_assert(sizeof(struct rdma_ucm_init_qp_attr) == sizeof(struct rdma_ucm_query) &&
		      offsetof(struct rdma_ucm_init_qp_attr, id) ==
			      offsetof(struct rdma_ucm_query, id) &&
		      offsetof(struct rdma_ucm_init_qp_attr, qp_state) ==
			      offsetof(struct rdma_ucm_query, option),
	      "one structure serves for both");

/* Bytes that the answer takes; 0: there is none. */
static uint32_t answer(const struct ucma_ctx *ctx, const struct question *q, uint8_t *at)
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

	if (type >= sizeof(questions) / sizeof(questions[0]) || !questions[type]->command)
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
	for (const struct question *q = questions[event->resp.event], *end = q + QUESTIONS;
	     q < end && q->command; q++) {
		n = answer(ctx, q, one);
		if (n > CM_ATTACH_CACHED - len)
			break;
		memcpy(out + len, one, n);
		len += n;
	}
	return len;
}
