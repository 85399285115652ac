/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/cq.h"

#include <errno.h>
#include <stdlib.h>

#include "objects/completion.h"
#include "objects/device.h"
#include "objects/offload_objects.h"
#include "objects/qp.h"
#include "record/recorder.h"

int urxe_cq_create(struct urxe_dev *dev, void *ctx, struct urxe_cq **out)
{
	struct urxe_cq *cq = calloc(1, sizeof(*cq));

	RECORD_ENTRY(dev, CQ_CREATE, .context = (uintptr_t)ctx);
	if (!cq)
		return -ENOMEM;
	cq->dev = dev;
	cq->ctx = ctx;
	LIST_INSERT_HEAD(&dev->cqs, cq, link);
	*out = cq;
	return 0;
}

int urxe_cq_destroy(struct urxe_cq *cq)
{
	RECORD_ENTRY(cq->dev, CQ_DESTROY, .context = (uintptr_t)cq->ctx);
	if (cq->users)
		return -EBUSY;
	LIST_REMOVE(cq, link);
	offload_destroy_cq(cq);
	free(cq);
	return 0;
}

/* IBA 11.4.2.2: arming for the next completion also covers arming for the next solicited one. */
void urxe_cq_arm(struct urxe_cq *cq, bool solicited_only)
{
	RECORD_ENTRY(cq->dev, CQ_ARM, .context = (uintptr_t)cq->ctx, .flag = solicited_only);
	if (!solicited_only)
		cq->armed = CQ_ARMED_NEXT;
	else if (!cq->armed)
		cq->armed = CQ_ARMED_SOLICITED;
	offload_arm_cq(cq, cq->armed == CQ_ARMED_SOLICITED);
}

/* Fails the QPs of an overrun CQ: they cannot report completions any more (IBA 11.6.3.1). */
static void fail_users(struct urxe_cq *cq)
{
	struct urxe_qp *qp;

	for (uint32_t i = 0; (qp = idmap_next(&cq->dev->qps, &i));) {
		if (qp->send_cq == cq || qp->recv_cq == cq)
			qp_error_event(qp, URXE_ASYNC_QP_FATAL);
	}
}

void cq_overrun(struct urxe_cq *cq)
{
	cq->overrun = true;
	dev_count(cq->dev, URXE_EVENT_CQ_OVERFLOW);
	if (HAS_RECORDING(cq->dev))
		record_async(cq->dev, URXE_ASYNC_CQ_ERR, cq->ctx);
	cq->dev->attr.ops->async_event(cq->dev->attr.ctx, URXE_ASYNC_CQ_ERR, cq->ctx);
	fail_users(cq);
}
