/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues, for uverbs/ and the queue pairs that use them. */
#ifndef URXE_VERBS_QUEUES_VERBS_SRQ_H
#define URXE_VERBS_QUEUES_VERBS_SRQ_H

#include "objects/handle.h"
#include "queues/verbs_recv.h"

struct pd;

struct srq {
	struct object object;
	struct pd *pd;
	struct recv_queue recv;
	uint32_t async_events;
	uint32_t limit_changes; /* number of attempts to set the limit, also failed ones */
};

void srq_destroy(struct object *object);

#endif
