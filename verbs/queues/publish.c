/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/publish.h"

#include "port/port.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_qp.h"

/* Rings before completions: a program that sees a completion may post at once. */
void port_publish(void)
{
	struct qp *qp;
	struct cq *cq;

	while ((qp = TAILQ_FIRST(&port.dirty_qps)))
		qp_publish(qp);
	while ((cq = TAILQ_FIRST(&port.dirty_cqs)))
		cq_publish(cq);
}
