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
	struct comp_channel *channel; /* NULL: the CQ has no channel */
	uint64_t n_completions; /* entries written so far; a restored CQ begins with the ring's
				   capacity, as if it were full of unpolled entries */
	uint64_t n_solicited;   /* n_completions after the newest solicited completion or error */
	uint64_t n_notified;    /* n_completions at the latest completion event */
	uint32_t comp_events;  /* completion events sent to the channel so far, without lost ones */
	uint32_t async_events; /* asynchronous events about the CQ so far */
	bool armed;            /* the application has requested an event, and none is due yet */
	bool event_due;        /* cq_publish has to send the event */
	bool dirty;            /* the CQ is in adapter.dirty_cqs */
	bool ex_known;         /* poll_hook_install_ex() has examined the ibv_cq_ex */
	TAILQ_ENTRY(cq) dirty_link;
};

/* Callbacks of the engine; ctx is the struct cq. cq_add (urxe_ops.complete) adds the completion to
 * the ring, not yet visible to the application; false: the ring is full. cq_comp_event
 * (urxe_ops.comp_event) notes that cq_publish has to send the CQ's event, unless cq_arm has done so
 * since the engine's CQ was armed. */
bool cq_add(void *ctx, const struct urxe_wc *wc);
void cq_comp_event(void *ctx);

/*
 * Requests one event: for the next completion, or with `solicited` for the next that is solicited
 * or an error. If such a completion came after the latest event and the application has not polled
 * it, the event is due now, as with mlx5: UCX polls, arms the CQ and sleeps without another poll.
 */
void cq_arm(struct cq *cq, bool solicited);

/* Makes new completions visible to the application, and sends the event if it is due. The CQ must
 * be in adapter.dirty_cqs, and leaves that list. */
void cq_publish(struct cq *cq);
/* Call it if comp_channel_send() has lost a due event, for lack of memory, of the CQ with this
 * channel and user handle. The CQ counts one event less. */
void cq_event_lost(const struct comp_channel *channel, uint64_t user_handle);
/* The number of completions that the application has not polled, visible or not. */
uint32_t cq_count(const struct cq *cq);
/* Replaces the ring for ibv_resize_cq: moves the completions that the application has not polled to
 * the new ring, makes them visible, and destroys the old ring. */
void cq_move(struct cq *cq, const struct queue *ring);
void cq_destroy(struct object *object);

#endif
