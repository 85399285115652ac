/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device's HCA: its coming and going, and its events of queue pairs. */
#include <stddef.h>

#include <rxe/record.h>

#include "memory/mr.h"
#include "objects/completion.h"
#include "objects/cq.h"
#include "objects/device.h"
#include "offload/hooks.h"

void urxe_offload_set(struct urxe_dev *dev, const struct urxe_offload_ops *ops, void *ctx)
{
	/* A recording would lack the HCA's calls and completions. */
	urxe_record_stop(dev);
	dev->offload = ops;
	dev->offload_ctx = ctx;
}

bool urxe_offload_all(const struct urxe_dev *dev)
{
	return dev->offloaded && dev->offloaded == dev->qps.used;
}

static void release_qps(struct urxe_dev *dev)
{
	struct urxe_qp *qp;
	uint32_t at = 0;

	while ((qp = idmap_next(&dev->qps, &at)))
		offload_release_qp(qp);
}

/* Destroys the HCA's SRQs. The receive requests that the HCA has are lost. */
static void release_srqs(struct urxe_dev *dev)
{
	struct urxe_rq *srq;

	LIST_FOREACH(srq, &dev->srqs, link)
	{
		if (!srq->hca)
			continue;
		offload_destroy_srq(srq);
		urxe_offload_srq_event(srq, URXE_ASYNC_SRQ_ERR);
	}
}

static void release_regions(struct urxe_dev *dev)
{
	struct urxe_mr *mr;
	uint32_t at = 0;

	while ((mr = idmap_next(&dev->mrs, &at)))
		urxe_offload_withdraw(mr);
}

void urxe_offload_unset(struct urxe_dev *dev)
{
	struct urxe_cq *cq;

	if (!dev->offload)
		return;
	release_qps(dev);
	release_srqs(dev);
	release_regions(dev);
	LIST_FOREACH(cq, &dev->cqs, link)
	offload_destroy_cq(cq);
	dev->offload = NULL;
	dev->taking_over = false;
}

static bool is_fatal(enum urxe_async event)
{
	return event == URXE_ASYNC_QP_FATAL || event == URXE_ASYNC_QP_REQ_ERR ||
	       event == URXE_ASYNC_QP_ACCESS_ERR;
}

void urxe_offload_qp_event(struct urxe_dev *dev, uint32_t qpn, enum urxe_async event)
{
	struct urxe_qp *qp = idmap_find(&dev->qps, qpn);

	if (!qp || !qp->offloaded)
		return;
	if (qp->stopping || qp->attr.state == URXE_QPS_ERR)
		qp->drained |= event == URXE_ASYNC_QP_LAST_WQE_REACHED;
	if (qp->stopping)
		return;
	/* A flush error may have moved the QP to the error state before; then qp_error() does
	 * nothing, and qp_event() reports the event. */
	if (is_fatal(event))
		qp_error(qp);
	qp->req.drain_event &= event != URXE_ASYNC_SQ_DRAINED;
	qp->last_wqe |= event == URXE_ASYNC_QP_LAST_WQE_REACHED;
	qp_event(qp, event);
}

void urxe_offload_cq_lost(struct urxe_cq *cq)
{
	struct urxe_qp *qp;
	uint32_t at = 0;

	while ((qp = idmap_next(&cq->dev->qps, &at)))
		if (qp->offloaded && (qp->send_cq == cq || qp->recv_cq == cq))
			offload_release_qp(qp);
}
