/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creation and destruction of the manager, and the timers of its connections. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"

int cm_create(const struct cm_ops *ops, void *ctx, uint64_t ca_guid,
	      const uint8_t seed[CM_SEED_LEN], struct cm **out)
{
	struct cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return -ENOMEM;
	cm->ops = ops;
	cm->ctx = ctx;
	cm->ca_guid = ca_guid;
	memcpy(&cm->key, seed, sizeof(cm->key));
	TAILQ_INIT(&cm->unconfirmed[0]);
	TAILQ_INIT(&cm->unconfirmed[1]);
	TAILQ_INIT(&cm->released);
	*out = cm;
	return 0;
}

void cm_destroy(struct cm *cm)
{
	struct cm_conn *conn;

	for (uint32_t i = 0; i < CM_BUCKETS; i++)
		while ((conn = LIST_FIRST(&cm->by_id[i])))
			cm_conn_free(conn);
	heap_free(&cm->timers);
	free(cm);
}

void cm_report_no_answer(struct cm_conn *conn, uint64_t now)
{
	switch (conn->state) {
	case CM_REQ_SENT:
	case CM_MRA_REQ_RCVD:
		cm_tell(conn, CM_EVENT_REQ_ERROR, NULL);
		cm_enter_idle(conn);
		break;
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		cm_tell(conn, CM_EVENT_REP_ERROR, NULL);
		cm_enter_idle(conn);
		break;
	case CM_SIDR_REQ_SENT:
		cm_tell(conn, CM_EVENT_SIDR_ERROR, NULL);
		cm_enter_idle(conn);
		break;
	default: /* CM_DREQ_SENT; in other states no answer is awaited */
		cm_tell(conn, CM_EVENT_DREQ_ERROR, NULL);
		cm_enter_timewait(conn, now);
		break;
	}
}

static void handle_timeout(struct cm_conn *conn, uint64_t now)
{
	if (conn->state == CM_TIMEWAIT) {
		cm_tell(conn, CM_EVENT_TIMEWAIT_EXIT, NULL);
		cm_enter_idle(conn);
	} else if (conn->unsent) {
		conn->unsent = false;
		cm_await(conn, now);
		cm_post_again(conn);
	} else if (!conn->retries) {
		cm_await_no_more(conn);
		cm_count(conn->cm, CM_COUNT_TIMED_OUT);
		cm_report_no_answer(conn, now);
	} else {
		conn->retries--;
		cm_count(conn->cm, CM_COUNT_REPEATED);
		heap_set(&conn->cm->timers, &conn->timer, now + conn->timeout_ns);
		cm_post_again(conn);
	}
}

void cm_tick(struct cm *cm, uint64_t now)
{
	struct heap_node *node;

	for (int i = 0; i < CM_TICK_MAX && (node = heap_first(&cm->timers)) && node->due <= now;
	     i++)
		handle_timeout((struct cm_conn *)((char *)node - offsetof(struct cm_conn, timer)),
			       now);
}

uint64_t cm_next_deadline(const struct cm *cm)
{
	const struct heap_node *node = heap_first(&cm->timers);

	return node ? node->due : CM_NEVER;
}

const uint64_t *cm_counters(const struct cm *cm)
{
	return cm->counters;
}

uint32_t cm_conns(const struct cm *cm)
{
	return cm->n;
}
