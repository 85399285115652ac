/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues: the engine's completions in the ring that librxe polls. */
#ifndef URXE_VERBS_QUEUES_VERBS_CQ_H
#define URXE_VERBS_QUEUES_VERBS_CQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#include "objects/comp_channel.h"
#include "objects/handle.h"
#include "queues/librxe_ring.h"

struct cq {
	struct object object;
	struct urxe_cq *cq;
	struct queue ring;
	uint32_t producer;            /* entries written so far; cq_publish copies it to the ring */
	struct comp_channel *channel; /* NULL without events */
	uint32_t comp_events;         /* sent to the channel */
	uint32_t async_events;
	bool armed; /* the application waits for an event */
	bool event_due;
	bool dirty;    /* in adapter.dirty_cqs */
	bool ex_known; /* poll_hook.c has examined start_poll of the ibv_cq_ex */
	TAILQ_ENTRY(cq) dirty_link;
};

/* The engine's callbacks. cq_add returns false if the ring is full. */
bool cq_add(void *ctx, const struct urxe_wc *wc);
void cq_comp_event(void *ctx);

/* Requests one event: for the next completion, or the next solicited one. */
void cq_arm(struct cq *cq, bool solicited);

/* Makes new completions visible to the application, and sends the requested event. */
void cq_publish(struct cq *cq);
/* Completions that the application has not polled, visible or not. */
uint32_t cq_count(const struct cq *cq);
/* Replaces the ring, as ibv_resize_cq does, and moves the completions of cq_count to the new one.
 */
void cq_move(struct cq *cq, const struct queue *ring);
void cq_destroy(struct object *object);

#endif
