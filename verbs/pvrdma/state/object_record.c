/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdlib.h>

#include "memory/pvrdma_mr.h"
#include "object.h"
#include "queues/pvrdma_recv_queue.h"
#include "queues/send_wqe.h"
#include "queues/wqe_size.h"
#include "state/pvrdma_records.h"

/* --- References to other objects */

/* Writes or reads a reference to another object, and returns that object. NULL: the reference names
 * no object, which is an error unless `none`. */
static void *reference_record(struct pv_state *st, enum pv_kind kind, struct pv_object *object,
			      bool none)
{
	struct state_stream *s = &st->stream;
	uint32_t handle = object ? object->handle : UINT32_MAX;

	state_u32(s, &handle);
	if (!s->restoring)
		return object;
	object = s->error ? NULL : pv_object_find(st->dev, kind, handle);
	state_require(s, object || (none && handle == UINT32_MAX));
	if (object)
		object->users++;
	return object;
}

/* --- Kinds */

static void pd_record(struct pv_state *st, struct pv_object *object)
{
	struct pv_pd *pd = (struct pv_pd *)object;

	pd->uc = reference_record(st, PV_UC, pd->uc, true);
}

/* Writes or reads a ring's number of slots and the device's index. n_pages 0: the ring's memory is
 * gone, and the index is left out. */
static void ring_record(struct pv_state *st, struct pv_ring *ring, uint32_t n_pages)
{
	struct state_stream *s = &st->stream;

	state_u32(s, &ring->slots);
	state_require(s, ring->slots <= PV_MAX_CQE && !(ring->slots & (ring->slots - 1)));
	if (s->error)
		return;
	if (n_pages)
		pv_ring_index_record(st, ring);
}

/* Completes a ring that was just read, whose slots begin at page `at` of the list; no effect while
 * saving. `sends`: its indices are those of the send queue. */
static void lay_out(struct pv_state *st, struct pv_ring *ring, const struct pv_pages *pages,
		    uint32_t at, uint32_t slot_size, bool sends)
{
	struct state_stream *s = &st->stream;
	const uint32_t index = ring->index;
	struct pv_ring_state *header;

	if (!s->restoring || s->error)
		return;
	if (!pages->n) {
		ring->slot_size = slot_size;
		return;
	}
	state_require(s, ring->slots && at >= 1 && at <= pages->n &&
				 pv_ring_pages(ring->slots, slot_size) <= pages->n - at);
	if (s->error)
		return;
	header = pv_pages_header(pages);
	pv_ring_init(ring, st->dev->attr.memory, sends ? &header->tx : &header->rx,
		     pages->page + at, ring->slots, slot_size);
	ring->index = index;
}

static void cq_record(struct pv_state *st, struct pv_object *object)
{
	struct state_stream *s = &st->stream;
	struct pv_cq *cq = (struct pv_cq *)object;

	cq->uc = reference_record(st, PV_UC, cq->uc, true);
	state_u64s(s, &cq->n_completions, &cq->solicited, &cq->notified);
	state_bool(s, &cq->failed);
	ring_record(st, &cq->ring, pv_pages_record(st, &cq->ring, &cq->pages));
	lay_out(st, &cq->ring, &cq->pages, 1, sizeof(struct pvrdma_cqe), false);
	/* The stream lacks `armed` and `uses_events`, so a restored CQ gets both: a notification
	 * too many is better than a missing one. */
	cq->armed |= s->restoring;
	cq->uses_events |= s->restoring;
}

static void srq_record(struct pv_state *st, struct pv_object *object)
{
	struct state_stream *s = &st->stream;
	struct pv_srq *srq = (struct pv_srq *)object;

	srq->pd = reference_record(st, PV_PD, (struct pv_object *)srq->pd, false);
	state_u32_max(s, &srq->recv.max_sge, URXE_MAX_SGE);
	ring_record(st, &srq->recv.ring, pv_pages_record(st, &srq->recv.ring, &srq->pages));
	lay_out(st, &srq->recv.ring, &srq->pages, 1, pv_recv_wqe_size(srq->recv.max_sge), false);
}

static void qp_rings_record(struct pv_state *st, struct pv_qp *qp)
{
	struct state_stream *s = &st->stream;
	uint32_t recv_at = 0, n;

	state_u32_max(s, &qp->max_send_sge, URXE_MAX_SGE);
	state_u32_max(s, &qp->recv.max_sge, URXE_MAX_SGE);
	n = pv_pages_record(st, &qp->send, &qp->pages);
	if (!s->restoring && n && !qp->srq)
		recv_at = (uint32_t)(qp->recv.ring.pages - qp->pages.page);
	state_u32(s, &recv_at);
	ring_record(st, &qp->send, n);
	if (!qp->srq)
		ring_record(st, &qp->recv.ring, n);
	lay_out(st, &qp->send, &qp->pages, 1, pv_send_wqe_size(qp->max_send_sge), true);
	if (!qp->srq)
		lay_out(st, &qp->recv.ring, &qp->pages, recv_at, pv_recv_wqe_size(qp->recv.max_sge),
			false);
}

/* Demands the saved QPN from the owner: the new host must give the number that the old host chose.
 */
static void demand_qpn(struct pv_state *st, struct pv_qp *qp)
{
	const struct pvrdma_owner *owner = st->dev->attr.owner;
	int rc;

	if (st->stream.error || !owner || !owner->demand_qpn)
		return;
	rc = owner->demand_qpn(owner->ctx, qp->qpn);
	qp->qpn_taken = !rc;
	state_fail(&st->stream, rc);
}

static void qp_record(struct pv_state *st, struct pv_object *object)
{
	struct state_stream *s = &st->stream;
	struct pv_qp *qp = (struct pv_qp *)object;
	bool taken = qp->qpn_taken, waits = qp->waits_in;

	qp->pd = reference_record(st, PV_PD, (struct pv_object *)qp->pd, false);
	qp->send_cq = reference_record(st, PV_CQ, (struct pv_object *)qp->send_cq, false);
	qp->recv_cq = reference_record(st, PV_CQ, (struct pv_object *)qp->recv_cq, false);
	qp->srq = reference_record(st, PV_SRQ, (struct pv_object *)qp->srq, true);
	state_u8(s, &qp->type);
	state_require(s, qp->type == PV_QPT_RC || qp->type == PV_QPT_UD || qp->type == PV_QPT_GSI);
	state_u32_max(s, &qp->qpn, 0xffffff);
	state_bool(s, &taken);
	state_u32(s, &qp->events);
	state_bool(s, &waits);
	qp_rings_record(st, qp);
	if (s->restoring) {
		if (taken)
			demand_qpn(st, qp);
		TAILQ_INSERT_TAIL(&st->dev->polled_qps, qp, poll_link);
		if (waits) {
			qp->waits_in = &st->dev->waiting_qps;
			TAILQ_INSERT_TAIL(qp->waits_in, qp, waiting_link);
		}
	}
}

static void mr_record(struct pv_state *st, struct pv_object *object)
{
	struct state_stream *s = &st->stream;
	struct pv_mr *mr = (struct pv_mr *)object;
	uint32_t key = s->restoring ? 0 : pv_mr_key(mr);
	struct pv_key *grown;

	mr->pd = reference_record(st, PV_PD, (struct pv_object *)mr->pd, false);
	state_u32(s, &mr->access);
	state_bool(s, &mr->is_dma);
	state_u32(s, &key);
	if (!s->restoring || s->error)
		return;
	/* Doubles the room whenever the number of keys is a power of two, at which it is full. */
	if (!(st->n_keys & (st->n_keys - 1))) {
		grown = realloc(st->keys, (st->n_keys ? 2 * st->n_keys : 1) * sizeof(*grown));
		if (!grown) {
			state_fail(s, -ENOMEM);
			return;
		}
		st->keys = grown;
	}
	st->keys[st->n_keys++] = (struct pv_key){key, mr};
}

static void plain_record(struct pv_state *st, struct pv_object *object)
{
	(void)st, (void)object;
}

/* Each kind of object comes after the kinds that it uses. */
static const struct {
	enum pv_kind kind;
	size_t size;
	void (*record)(struct pv_state *st, struct pv_object *object);
} kinds[PV_KINDS] = {
	{PV_UC, sizeof(struct pv_uc), plain_record}, {PV_PD, sizeof(struct pv_pd), pd_record},
	{PV_CQ, sizeof(struct pv_cq), cq_record},    {PV_MR, sizeof(struct pv_mr), mr_record},
	{PV_SRQ, sizeof(struct pv_srq), srq_record}, {PV_QP, sizeof(struct pv_qp), qp_record},
};

/* --- Handles */

static void place_object(struct pv_state *st, struct pv_object *object)
{
	struct pvrdma *dev = st->dev;
	int rc = pv_handles_place(&dev->objects[object->kind], object, object->handle);

	if (rc) {
		state_fail(&st->stream, rc);
		free(object);
		return;
	}
	if (object->bytes > PV_MEMORY_MAX - dev->bytes) {
		state_fail(&st->stream, -EBADMSG);
		object->bytes = 0;
	}
	dev->bytes += object->bytes;
}

/*
 * Writes or reads the members that all objects have, and returns the object; NULL after an error.
 * While a device is restored, `object` is NULL: the function creates the object with its saved
 * handle.
 */
static struct pv_object *common_record(struct pv_state *st, struct pv_object *object,
				       enum pv_kind kind, size_t size)
{
	struct state_stream *s = &st->stream;
	struct pv_object common = object ? *object : (struct pv_object){0};

	state_u32(s, &common.handle);
	state_u32_max(s, &common.uar_page, PVRDMA_UAR_PAGES - 1);
	state_u64(s, &common.bytes);
	if (!s->restoring || s->error)
		return object;
	object = calloc(1, size);
	if (!object) {
		state_fail(s, -ENOMEM);
		return NULL;
	}
	common.dev = st->dev;
	common.kind = kind;
	*object = common;
	place_object(st, object);
	return s->error ? NULL : object;
}

static void free_handles_record(struct pv_state *st, struct pv_handle_table *table, uint32_t n)
{
	struct state_stream *s = &st->stream;
	uint32_t handle = table->oldest;

	for (uint32_t i = 0; i < n && !s->error; i++) {
		state_u32(s, &handle);
		if (s->restoring)
			state_require(s, s->error || pv_handles_place_free(table, handle));
		else
			handle = table->slots[handle].next_free;
	}
}

static void kind_record(struct pv_state *st, unsigned i)
{
	struct state_stream *s = &st->stream;
	struct pv_handle_table *table = &st->dev->objects[kinds[i].kind];
	uint32_t fresh = table->fresh, n = table->used, at = 0;

	state_u32_max(s, &fresh, table->limit);
	n = state_count(s, n, 16);
	state_require(s, fresh >= table->first && n <= fresh - table->first);
	if (s->restoring && !s->error)
		state_fail(s, pv_handles_restore(table, fresh));
	for (uint32_t j = 0; j < n && !s->error; j++) {
		struct pv_object *object =
			s->restoring ? NULL : pv_object_next(st->dev, kinds[i].kind, &at);

		object = common_record(st, object, kinds[i].kind, kinds[i].size);
		if (object)
			kinds[i].record(st, object);
	}
	if (!s->error)
		free_handles_record(st, table, fresh - table->first - n);
}

/* Writes or reads the CQs whose notification waits for room, the oldest first. */
static void notifications_record(struct pv_state *st)
{
	struct state_stream *s = &st->stream;
	struct pvrdma *dev = st->dev;
	struct pv_cq *cq = NULL;
	uint32_t n = 0, handle;

	if (!s->restoring)
		TAILQ_FOREACH(cq, &dev->notify_cqs, notify_link)
	n++;
	n = state_count(s, n, sizeof(handle));
	cq = TAILQ_FIRST(&dev->notify_cqs);
	for (uint32_t i = 0; i < n && !s->error; i++) {
		handle = s->restoring ? 0 : cq->object.handle;
		state_u32(s, &handle);
		if (!s->restoring) {
			cq = TAILQ_NEXT(cq, notify_link);
			continue;
		}
		cq = s->error ? NULL : pv_object_find(dev, PV_CQ, handle);
		state_require(s, cq && !cq->notify_due);
		if (s->error)
			return;
		cq->notify_due = true;
		TAILQ_INSERT_TAIL(&dev->notify_cqs, cq, notify_link);
	}
}

void pv_objects_record(struct pv_state *st)
{
	for (unsigned i = 0; i < PV_KINDS && !st->stream.error; i++)
		kind_record(st, i);
	notifications_record(st);
}
