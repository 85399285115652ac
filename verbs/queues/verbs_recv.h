/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive requests: from a ring of librxe to a receive queue of the engine. */
#ifndef URXE_VERBS_QUEUES_VERBS_RECV_H
#define URXE_VERBS_QUEUES_VERBS_RECV_H

#include <stdbool.h>

#include <rxe/rxe.h>

#include "queues/librxe_ring.h"

struct recv_queue {
	struct work_queue wq;
	struct urxe_rq *rq; /* the engine's receive queue; NULL: the QP uses an SRQ */
	uint32_t max_sge;
	/* recv_queue_refill runs, and a nested call returns at once. The engine makes such calls
	 * (urxe_ops.refill) when a request that it gets is flushed. */
	bool refilling;
};

/* Posts the receives in the ring to the engine. The application adds them without a doorbell, so
 * the engine asks for them (urxe_ops.refill), or a command does. With adapter.lock. */
void recv_queue_refill(struct recv_queue *queue);

#endif
