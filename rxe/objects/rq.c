/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/rq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "objects/device.h"
#include "objects/offload_objects.h"
#include "objects/qp.h"
#include "util/ring.h"

int rq_create(struct urxe_dev *dev, const struct urxe_rq_attr *attr, struct urxe_qp *qp,
	      struct urxe_rq **out)
{
	struct urxe_rq *rq;

	if (attr->max_sge > URXE_MAX_SGE || attr->max_wr > URXE_MAX_WR)
		return -EINVAL;
	rq = aligned_alloc(_Alignof(struct urxe_rq), sizeof(*rq));
	if (!rq)
		return -ENOMEM;
	*rq = (struct urxe_rq){0};
	rq->dev = dev;
	rq->attr = *attr;
	rq->qp = qp;
	TAILQ_INIT(&rq->kept);
	TAILQ_INIT(&rq->kept_free);
	SLIST_INIT(&rq->kept_blocks);
	rq->mask = ring_slots(attr->max_wr) - 1;
	rq->stride = rq_wqe_size(rq);
	rq->wqes = calloc(rq->mask + 1u, rq->stride);
	if (!rq->wqes) {
		free(rq);
		return -ENOMEM;
	}
	*out = rq;
	return 0;
}

void rq_free(struct urxe_rq *rq)
{
	free(rq->wqes);
	free(rq);
}

uint32_t rq_wqe_size(const struct urxe_rq *rq)
{
	return (uint32_t)(sizeof(struct recv_wqe) + rq->attr.max_sge * sizeof(struct urxe_seg));
}

uint32_t urxe_rq_retired(const struct urxe_rq *rq)
{
	return rq->retired;
}

void rq_refill(struct urxe_rq *rq)
{
	rq->refilling = true;
	if (HAS_RECORDING(rq->dev))
		record_refill(rq->dev, true);
	rq->dev->attr.ops->refill(rq->attr.ctx);
	if (HAS_RECORDING(rq->dev))
		record_refill(rq->dev, false);
	rq->refilling = false;
}

/* Reports SRQ_LIMIT_REACHED, once, if fewer requests than `limit` are left. Before that, a refill
 * posts the requests that the program has queued and the owner has not yet passed to the engine. */
static void check_limit(struct urxe_rq *rq)
{
	if (rq->limit && rq->head - rq->tail < rq->limit)
		rq_refill(rq);
	if (!rq->limit || rq->head - rq->tail >= rq->limit)
		return;
	rq->limit = 0;
	if (HAS_RECORDING(rq->dev))
		record_async(rq->dev, URXE_ASYNC_SRQ_LIMIT_REACHED, rq->attr.ctx);
	rq->dev->attr.ops->async_event(rq->dev->attr.ctx, URXE_ASYNC_SRQ_LIMIT_REACHED,
				       rq->attr.ctx);
}

const struct recv_wqe *rq_first(struct urxe_rq *rq)
{
	if (rq->head == rq->tail)
		rq_refill(rq);
	return rq->head == rq->tail ? NULL : rq_slot(rq, rq->tail);
}

const struct recv_wqe *rq_take(struct urxe_rq *rq, struct recv_wqe *copy)
{
	const struct recv_wqe *wqe = rq_first(rq);

	if (!wqe)
		return NULL;
	rq->tail++;
	if (rq->qp)
		return wqe;
	memcpy(copy, wqe, sizeof(*wqe) + wqe->n_segs * sizeof(wqe->segs[0]));
	rq->retired++;
	check_limit(rq);
	return copy;
}

/* Refills only a queue at most half full, to save calls: a credit count may be too low. */
uint32_t rq_available(struct urxe_rq *rq)
{
	if (rq->head - rq->tail <= rq->attr.max_wr / 2 && rq->qp->attr.state != URXE_QPS_ERR)
		rq_refill(rq);
	return rq->head - rq->tail;
}

void rq_retire(struct urxe_rq *rq)
{
	if (rq->qp)
		rq->retired++;
}

void rq_reset(struct urxe_rq *rq)
{
	rq->tail = rq->retired = rq->head;
}

int urxe_srq_create(struct urxe_dev *dev, const struct urxe_rq_attr *attr, struct urxe_rq **srq)
{
	int rc;

	RECORD_ENTRY(dev, SRQ_CREATE, .context = (uintptr_t)attr->ctx, .srq = *attr);
	rc = rq_create(dev, attr, NULL, srq);
	if (rc)
		return rc;
	/* The SRQ is in dev->srqs only after the HCA's call, which may wait: the device may be
	 * saved meanwhile, and the owner does not know the SRQ yet. */
	rc = offload_create_srq(*srq);
	if (rc) {
		rq_free(*srq);
		return rc;
	}
	LIST_INSERT_HEAD(&dev->srqs, *srq, link);
	return 0;
}

int urxe_srq_destroy(struct urxe_rq *srq)
{
	RECORD_ENTRY(srq->dev, SRQ_DESTROY, .context = (uintptr_t)srq->attr.ctx);
	if (srq->users)
		return -EBUSY;
	LIST_REMOVE(srq, link);
	offload_destroy_srq(srq);
	rq_free(srq);
	return 0;
}

/* The result of an HCA's call that waited: its `rc`, or 0 if the HCA has gone meanwhile. In that
 * case the SRQ is the engine's alone, and only the engine's own change counts. */
static int answer_of_hca(const struct urxe_rq *srq, int rc)
{
	return srq->hca ? rc : 0;
}

int urxe_srq_set_limit(struct urxe_rq *srq, uint32_t limit)
{
	const uint32_t before = srq->limit;
	int rc = 0;

	RECORD_ENTRY(srq->dev, SRQ_LIMIT, .context = (uintptr_t)srq->attr.ctx, .value = limit);
	if (limit > srq->attr.max_wr)
		return -EINVAL;
	/* The engine's limit is set first: the HCA's event may come before srq_set_limit returns.
	 */
	srq->limit = limit;
	if (srq->hca)
		rc = answer_of_hca(srq, srq->dev->offload->srq_set_limit(srq->hca, limit));
	if (rc)
		srq->limit = before;
	return rc;
}

uint32_t urxe_srq_limit(const struct urxe_rq *srq)
{
	return srq->limit;
}

/* Copies the posted requests to the new ring. They keep their free-running indices. */
static void move_posted(const struct urxe_rq *from, struct urxe_rq *to)
{
	for (uint32_t i = from->tail; i != from->head; i++)
		memcpy(rq_slot(to, i), rq_slot(from, i), from->stride);
}

int urxe_srq_resize(struct urxe_rq *srq, uint32_t max_wr)
{
	struct urxe_rq resized = *srq;
	int rc = 0;

	RECORD_ENTRY(srq->dev, SRQ_RESIZE, .context = (uintptr_t)srq->attr.ctx, .value = max_wr);
	if (!max_wr || max_wr > URXE_MAX_WR || max_wr < srq->head - srq->retired ||
	    max_wr < srq->limit)
		return -EINVAL;
	resized.attr.max_wr = max_wr;
	resized.mask = ring_slots(max_wr) - 1;
	resized.wqes = calloc(resized.mask + 1u, resized.stride);
	if (!resized.wqes)
		return -ENOMEM;
	if (srq->hca)
		rc = offload_make_room(srq, max_wr);
	if (!rc && srq->hca)
		rc = answer_of_hca(srq, srq->dev->offload->srq_resize(srq->hca, max_wr));
	/* While the HCA's call waited, other calls may have posted requests or set a limit. */
	if (!rc && (max_wr < srq->head - srq->retired || max_wr < srq->limit))
		rc = -EINVAL;
	if (rc) {
		free(resized.wqes);
		return rc;
	}
	move_posted(srq, &resized);
	free(srq->wqes);
	srq->wqes = resized.wqes;
	srq->mask = resized.mask;
	srq->attr.max_wr = max_wr;
	return 0;
}
