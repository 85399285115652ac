/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/publish.h"

#include "adapter/adapter.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_qp.h"

/*
 * Releases ring slots before it publishes completions: a program that sees a completion may post at
 * once. Publishes completions before it sends asynchronous events: a program that gets an event
 * polls for the completions that precede it.
 */
void adapter_publish(void)
{
	struct qp *qp;
	struct cq *cq;

	while ((qp = TAILQ_FIRST(&adapter.dirty_qps)))
		qp_publish(qp);
	while ((cq = TAILQ_FIRST(&adapter.dirty_cqs)))
		cq_publish(cq);
	if (adapter.events_due)
		comp_channels_flush();
}
