/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues. */
#ifndef URXE_VERBS_QUEUES_CQ_H
#define URXE_VERBS_QUEUES_CQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#include "queues/comp_channel.h"
#include "queues/ring.h"
#include "uverbs/handle.h"

struct cq {
	struct object object;
	struct urxe_cq *cq;
	struct queue ring;
	uint32_t producer;       /* entries written; the ring's index follows in cq_publish */
	struct channel *channel; /* NULL without events */
	uint32_t comp_events;    /* sent to the channel */
	uint32_t async_events;
	bool armed; /* asked for an event that did not come yet */
	bool event_due;
	bool dirty;    /* in port.dirty_cqs */
	bool ex_known; /* poll_hook.c has looked for ibv_cq_ex's start_poll */
	TAILQ_ENTRY(cq) dirty_link;
};
TAILQ_HEAD(cq_list, cq);

/* The engine's callbacks. */
bool cq_add(void *ctx, const struct urxe_wc *wc);
void cq_comp_event(void *ctx);

/* Asks for an event; of solicited completions only, if so. */
void cq_arm(struct cq *cq, bool solicited);

/* Shows the application what was completed, and sends the event that is due. */
void cq_publish(struct cq *cq);
/* Completions that the application has not taken, shown or not. */
uint32_t cq_count(const struct cq *cq);
/* Moves them into another ring, which takes the old one's place. */
void cq_move(struct cq *cq, const struct queue *ring);
void cq_destroy(struct object *object);

#endif
