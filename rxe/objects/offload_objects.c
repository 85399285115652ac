/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/offload_objects.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "memory/mr.h"
#include "objects/completion.h"
#include "objects/cq.h"
#include "objects/device.h"

/* --- Queue pairs. */

void offload_return_receives(struct urxe_rq *rq)
{
	if (rq->qp)
		rq->tail = rq->retired;
}

void offload_end(struct urxe_qp *qp)
{
	if (!qp->offloaded)
		return;
	qp->offloaded = qp->stopping = qp->drained = qp->uncounted = qp->hca_failed = false;
	qp->returned = 0;
	qp->dev->offloaded--;
	qp->send_cq->offloaded--;
	qp->recv_cq->offloaded--;
}

void offload_destroy_qp(struct urxe_qp *qp)
{
	/* The engine gets the receive requests back that the HCA has not completed, and flushes
	 * them. */
	if (qp->offloaded)
		offload_return_receives(qp->rq);
	offload_end(qp);
	if (qp->hca)
		qp->hca_ops->qp_destroy(qp->hca);
	qp->hca = NULL;
}

/*
 * Moves the HCA's QP to the error state, once. An `orphaned` QP fails in offload_end_call(). During
 * a reset the HCA stops the QP itself; if the reset fails, reset_hca() calls this function again. A
 * `stopping` QP is in the HCA's error state already and accesses no memory: this function destroys
 * it, unless it has an SRQ, whose completions for the QP may still come.
 */
void offload_fail(struct urxe_qp *qp)
{
	if (!qp->offloaded || qp->hca_failed || qp->orphaned || qp->resetting)
		return;
	qp->hca_failed = true;
	if (qp->stopping ? !qp->rq->qp : !qp->hca_ops->qp_fail(qp->hca))
		return;
	/* The HCA's QP does not stop, or is of no more use: it is destroyed, so that it accesses no
	 * memory after its requests are flushed. */
	if (qp->calling)
		qp->orphaned = true;
	else
		offload_destroy_qp(qp);
}

/* Destroys the HCA's QP before the flush: the HCA must not access the memory of flushed requests.
 */
void offload_release_qp(struct urxe_qp *qp)
{
	const bool was_offloaded = qp->offloaded;

	if (qp->calling) {
		qp->orphaned = true;
		return;
	}
	offload_destroy_qp(qp);
	if (!was_offloaded)
		return;
	if (qp->attr.state == URXE_QPS_ERR) {
		flush_sends(qp);
		flush_recvs(qp);
		tell_last_wqe(qp);
	} else {
		qp_error_event(qp, URXE_ASYNC_QP_FATAL);
	}
}

void offload_begin_call(struct urxe_qp *qp)
{
	qp->calling = true;
}

bool offload_end_call(struct urxe_qp *qp)
{
	const bool orphaned = qp->orphaned;

	qp->calling = qp->orphaned = false;
	if (orphaned)
		offload_release_qp(qp);
	return !orphaned;
}

int offload_join_group(struct urxe_qp *qp, const struct urxe_gid *gid)
{
	int rc;

	if (!qp->hca)
		return 0;
	offload_begin_call(qp);
	rc = qp->hca_ops->mcast_attach(qp->hca, gid);
	return offload_end_call(qp) ? rc : 0;
}

void offload_leave_group(struct urxe_qp *qp, const struct urxe_gid *gid)
{
	if (!qp->hca)
		return;
	offload_begin_call(qp);
	qp->hca_ops->mcast_detach(qp->hca, gid);
	offload_end_call(qp);
}

bool offload_is_current(const struct urxe_dev *dev, const struct offload_hca *hca)
{
	return dev->offload == hca->ops && dev->offload_ctx == hca->ctx;
}

struct offload_hca offload_current(const struct urxe_dev *dev)
{
	return (struct offload_hca){dev->offload, dev->offload_ctx};
}

/* --- Completion queues. */

/* While cq_create waits, another call may create the HCA's queue, or the HCA may go. */
int offload_create_cq(struct urxe_cq *cq)
{
	const struct offload_hca hca = offload_current(cq->dev);
	void *made;
	int rc;

	if (cq->hca)
		return 0;
	rc = hca.ops->cq_create(hca.ctx, cq, &made);
	if (rc)
		return rc;
	if (cq->hca || !offload_is_current(cq->dev, &hca))
		hca.ops->cq_destroy(made);
	else
		cq->hca = made;
	return cq->hca ? 0 : -EOPNOTSUPP;
}

void offload_destroy_cq(struct urxe_cq *cq)
{
	if (cq->hca)
		cq->dev->offload->cq_destroy(cq->hca);
	cq->hca = NULL;
}

void *urxe_offload_hca_cq(const struct urxe_cq *cq)
{
	return cq->hca;
}

void offload_arm_cq(struct urxe_cq *cq, bool solicited_only)
{
	if (cq->offloaded && cq->hca)
		cq->dev->offload->cq_arm(cq->hca, solicited_only);
}

/*
 * The HCA's completions do not tell whether their messages were solicited: only the event does. If
 * the CQ still is in CQ_ARMED_NEXT, no completion has come since the arming: it would have called
 * comp_event and disarmed the CQ. So the HCA's event belongs to an earlier completion, and the
 * engine requests another event.
 */
void urxe_offload_cq_event(struct urxe_cq *cq)
{
	if (cq->armed == CQ_ARMED_NEXT) {
		offload_arm_cq(cq, false);
	} else if (cq->armed == CQ_ARMED_SOLICITED) {
		cq->armed = CQ_DISARMED;
		cq->dev->attr.ops->comp_event(cq->ctx);
	}
}

/* --- Shared receive queues. */

bool offload_keeps_receives(const struct urxe_rq *rq)
{
	return !rq->qp && rq->hca && !rq->stopping;
}

/* Adds the n elements of the block to kept_free. */
static void add_block(struct urxe_rq *srq, struct kept_block *block, uint32_t n)
{
	const size_t size = (sizeof(struct kept_recv) + srq->stride) / sizeof(block->memory[0]);

	SLIST_INSERT_HEAD(&srq->kept_blocks, block, link);
	for (uint32_t i = 0; i < n; i++)
		TAILQ_INSERT_TAIL(&srq->kept_free, (struct kept_recv *)(block->memory + i * size),
				  link);
	srq->kept_room += n;
}

int offload_make_room(struct urxe_rq *srq, uint32_t n)
{
	const uint32_t more = n > srq->kept_room ? n - srq->kept_room : 0;
	struct kept_block *block;

	if (!more)
		return 0;
	block = malloc(sizeof(*block) + more * (sizeof(struct kept_recv) + srq->stride));
	if (!block)
		return -ENOMEM;
	add_block(srq, block, more);
	return 0;
}

static void free_room(struct urxe_rq *srq)
{
	struct kept_block *block;

	TAILQ_INIT(&srq->kept);
	TAILQ_INIT(&srq->kept_free);
	srq->kept_room = 0;
	while ((block = SLIST_FIRST(&srq->kept_blocks))) {
		SLIST_REMOVE_HEAD(&srq->kept_blocks, link);
		free(block);
	}
}

struct kept_recv *offload_keep_recv(struct urxe_rq *srq, const struct recv_wqe *wqe)
{
	struct kept_recv *kept = TAILQ_FIRST(&srq->kept_free);

	TAILQ_REMOVE(&srq->kept_free, kept, link);
	memcpy(kept->wqe, wqe, srq->stride);
	TAILQ_INSERT_TAIL(&srq->kept, kept, link);
	return kept;
}

void offload_forget_recv(struct urxe_rq *srq, struct kept_recv *kept)
{
	TAILQ_REMOVE(&srq->kept, kept, link);
	TAILQ_INSERT_HEAD(&srq->kept_free, kept, link);
}

int offload_create_srq(struct urxe_rq *srq)
{
	const struct offload_hca hca = offload_current(srq->dev);
	void *made;
	int rc;

	srq->hca = NULL;
	if (!hca.ops || srq->attr.alone || srq->dev->taking_over ||
	    offload_lacks_regions(srq->dev, srq->attr.pd))
		return 0;
	rc = offload_make_room(srq, srq->attr.max_wr);
	if (rc)
		return rc;
	if (!hca.ops->srq_create(hca.ctx, &srq->attr, srq, &made)) {
		if (offload_is_current(srq->dev, &hca) && !srq->dev->taking_over)
			srq->hca = made;
		else
			hca.ops->srq_destroy(made);
	}
	if (!srq->hca)
		free_room(srq);
	return 0;
}

void offload_destroy_srq(struct urxe_rq *srq)
{
	if (!srq->hca)
		return;
	srq->dev->offload->srq_destroy(srq->hca);
	srq->hca = NULL;
	srq->stopping = false;
	srq->retired = srq->tail;
	free_room(srq);
}

void offload_end_srq(struct urxe_rq *srq)
{
	const struct kept_recv *kept;
	uint32_t at = srq->retired;

	TAILQ_FOREACH(kept, &srq->kept, link)
	memcpy(rq_slot(srq, at++), kept->wqe, srq->stride);
	srq->tail = srq->retired;
	offload_destroy_srq(srq);
}

void urxe_offload_srq_event(struct urxe_rq *srq, enum urxe_async event)
{
	if (event == URXE_ASYNC_SRQ_LIMIT_REACHED)
		srq->limit = 0;
	srq->dev->attr.ops->async_event(srq->dev->attr.ctx, event, srq->attr.ctx);
}

/* --- Regions. */

#define PAGE_SHIFT 12

uint64_t urxe_offload_pages(uint64_t length)
{
	return (length >> PAGE_SHIFT) + 2;
}

void offload_count_region(struct urxe_dev *dev, uint64_t length, int by)
{
	dev->hca_memory.regions += (uint64_t)by;
	dev->hca_memory.pages += (uint64_t)by * urxe_offload_pages(length);
}

int offload_register(struct urxe_dev *dev, const struct urxe_mr_attr *attr, void **hca,
		     uint32_t *key)
{
	int rc;

	*hca = NULL;
	if (!dev->offload || attr->key)
		return 0;
	rc = dev->offload->mr_reg(dev->offload_ctx, attr, hca, key);
	if (rc)
		*hca = NULL;
	else
		offload_count_region(dev, attr->length, 1);
	/* -EFAULT: memory that Linux does not pin, such as a file on a disk. */
	return rc == -EOPNOTSUPP || rc == -EFAULT ? 0 : rc;
}

static void report_writes(const struct urxe_mr *mr)
{
	const struct urxe_dev *dev = mr->dev;

	if (!dev->attr.ops->written || !(mr->access & URXE_ACCESS_LOCAL_WRITE))
		return;
	for (uint32_t i = 0; i < mr->n_pieces; i++) {
		const struct mr_piece *piece = &mr->pieces[i];
		const struct urxe_extent bytes = {piece->addr, piece[1].offset - piece->offset};

		if (bytes.addr)
			dev->attr.ops->written(dev->attr.ctx, &bytes);
	}
}

/* Reports the HCA's writes after mr_dereg has ended them: urxe_offload_report_writes does not
 * report this region any more. */
void offload_deregister(struct urxe_mr *mr)
{
	if (!mr->hca)
		return;
	mr->dev->offload->mr_dereg(mr->hca);
	mr->hca = NULL;
	offload_count_region(mr->dev, mr->length, -1);
	report_writes(mr);
}

void urxe_offload_withdraw(struct urxe_mr *mr)
{
	if (!mr->hca)
		return;
	offload_deregister(mr);
	mr->dev->regions_without_hca++;
}

void urxe_offload_report_writes(struct urxe_dev *dev)
{
	const struct urxe_mr *mr;
	uint32_t at = 0;

	while (dev->attr.ops->written && (mr = idmap_next(&dev->mrs, &at)))
		if (mr->hca)
			report_writes(mr);
}

bool offload_lacks_regions(const struct urxe_dev *dev, uint32_t pd)
{
	const struct urxe_mr *mr;
	uint32_t at = 0;

	while (dev->regions_without_hca && (mr = idmap_next(&dev->mrs, &at)))
		if (!mr->hca && mr->pd == pd)
			return true;
	return false;
}
