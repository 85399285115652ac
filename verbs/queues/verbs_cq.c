/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/verbs_cq.h"

#include <stdlib.h>
#include <string.h>

#include <linux/types.h>
#include <rdma/ib_user_verbs.h>

#include <rxe/offload.h>
#include <rxe/service_level.h>

#include "adapter/adapter.h"
#include "objects/uverbs_file.h"
#include "queues/verbs_qp.h"

static void mark_dirty(struct cq *cq)
{
	if (cq->dirty)
		return;
	cq->dirty = true;
	TAILQ_INSERT_TAIL(&adapter.dirty_cqs, cq, dirty_link);
}

bool cq_add(void *ctx, const struct urxe_wc *wc)
{
	struct cq *cq = ctx;
	struct ib_uverbs_wc *entry = queue_element(&cq->ring, cq->producer);

	qp_completed(wc);
	if (((cq->producer + 1) & cq->ring.mask) == queue_consumer(&cq->ring))
		return false;
	*entry = (struct ib_uverbs_wc){
		.wr_id = wc->wr_id,
		.status = wc->status,
		.opcode = wc->opcode,
		.byte_len = wc->byte_len,
		.ex.imm_data = wc->flags & URXE_WC_WITH_INV ? wc->invalidated_key : wc->imm,
		.qp_num = wc->qpn,
		.src_qp = wc->src_qpn,
		.wc_flags = wc->flags,
		.sl = sl_of_datagram(wc->sl, wc->net == URXE_NET_IPV4),
		.pkey_index = wc->pkey_index,
		.port_num = 1,
	};
	cq->producer++;
	cq->n_completions++;
	if (wc->solicited)
		cq->n_solicited = cq->n_completions;
	mark_dirty(cq);
	return true;
}

/* Whether the CQ has an unpolled entry, or with `solicited` a solicited one, that came after the
 * latest event. With an HCA any entry counts: an HCA does not tell which ones are solicited. */
static bool has_unnotified(const struct cq *cq, bool solicited)
{
	const bool selects = solicited && !urxe_offload_hca_cq(cq->cq);
	const uint64_t newest = selects ? cq->n_solicited : cq->n_completions;

	return newest > cq->n_notified && cq->n_completions - newest < cq_count(cq);
}

/* Has cq_publish send the event after it has made the completion visible: the thread that the event
 * wakes must find the completion. */
static void make_event_due(struct cq *cq)
{
	cq->armed = false;
	cq->event_due = true;
	mark_dirty(cq);
}

void cq_arm(struct cq *cq, bool solicited)
{
	if (cq->channel && has_unnotified(cq, solicited)) {
		make_event_due(cq);
		return;
	}
	cq->armed = true;
	urxe_cq_arm(cq->cq, solicited);
}

void cq_comp_event(void *ctx)
{
	struct cq *cq = ctx;

	if (cq->armed)
		make_event_due(cq);
}

void cq_publish(struct cq *cq)
{
	cq->dirty = false;
	TAILQ_REMOVE(&adapter.dirty_cqs, cq, dirty_link);
	queue_set_producer(&cq->ring, cq->producer);
	if (!cq->event_due)
		return;
	cq->event_due = false;
	if (!cq->channel)
		return;
	if (!comp_channel_send_later(cq->channel, cq->object.user_handle))
		return;
	cq->n_notified = cq->n_completions;
	cq->comp_events++;
}

/* Looks the CQ up, because it may have been destroyed with its context. */
void cq_event_lost(const struct comp_channel *channel, uint64_t user_handle)
{
	struct uverbs_file *file;
	struct cq *cq;

	LIST_FOREACH(file, &adapter.files, link)
	for (uint32_t at = 0; (cq = (struct cq *)handle_next(&file->handles, OBJECT_CQ, &at));)
		if (cq->channel == channel && cq->object.user_handle == user_handle) {
			cq->comp_events--;
			cq->n_notified = 0;
			return;
		}
}

uint32_t cq_count(const struct cq *cq)
{
	return (cq->producer - queue_consumer(&cq->ring)) & cq->ring.mask;
}

void cq_move(struct cq *cq, const struct queue *ring)
{
	uint32_t n = cq_count(cq), first = cq->producer - n;

	for (uint32_t i = 0; i < n; i++)
		memcpy(queue_element(ring, i), queue_element(&cq->ring, first + i),
		       sizeof(struct ib_uverbs_wc));
	queue_destroy(&cq->ring, &cq->object.file->queues);
	cq->ring = *ring;
	cq->producer = n;
	queue_set_producer(&cq->ring, n);
}

void cq_destroy(struct object *object)
{
	struct cq *cq = (struct cq *)object;

	if (cq->dirty)
		TAILQ_REMOVE(&adapter.dirty_cqs, cq, dirty_link);
	urxe_cq_destroy(cq->cq);
	queue_destroy(&cq->ring, &object->file->queues);
	if (cq->channel)
		comp_channel_put(cq->channel);
	handle_remove(&object->file->handles, object);
	free(cq);
}
