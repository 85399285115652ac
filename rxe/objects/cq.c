/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/cq.h"

#include <errno.h>
#include <stdlib.h>

#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"

int urxe_cq_create(struct urxe_dev *dev, void *ctx, struct urxe_cq **out)
{
	struct urxe_cq *cq = calloc(1, sizeof(*cq));

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
	if (cq->users)
		return -EBUSY;
	LIST_REMOVE(cq, link);
	free(cq);
	return 0;
}

/* IBA 11.4.2.2: a request for the next completion outweighs one for a solicited one. */
void urxe_cq_arm(struct urxe_cq *cq, bool solicited_only)
{
	if (!solicited_only)
		cq->armed = CQ_ARMED_NEXT;
	else if (!cq->armed)
		cq->armed = CQ_ARMED_SOLICITED;
}

/* None of its QPs can say any more what became of its requests (IBA 11.6.3.1). */
static void fail_users(struct urxe_cq *cq)
{
	struct urxe_qp *qp;

	for (uint32_t i = 0; (qp = idmap_next(&cq->dev->qps, &i));) {
		if (qp->send_cq == cq || qp->recv_cq == cq)
			qp_error_event(qp, URXE_ASYNC_QP_FATAL);
	}
}

static bool cq_overflow(struct urxe_cq *cq)
{
	cq->overflow = true;
	dev_count(cq->dev, URXE_EVENT_CQ_OVERFLOW);
	cq->dev->attr.ops->async_event(cq->dev->attr.ctx, URXE_ASYNC_CQ_ERR, cq->ctx);
	fail_users(cq);
	return false;
}

static void count_error(struct urxe_dev *dev, const struct urxe_wc *wc)
{
	static const uint8_t events[] = {
		[URXE_WC_LOC_LEN_ERR] = URXE_EVENT_WC_LOC_LEN,
		[URXE_WC_LOC_QP_OP_ERR] = URXE_EVENT_WC_LOC_QP_OP,
		[URXE_WC_LOC_PROT_ERR] = URXE_EVENT_WC_LOC_PROT,
		[URXE_WC_WR_FLUSH_ERR] = URXE_EVENT_WC_WR_FLUSH,
		[URXE_WC_MW_BIND_ERR] = URXE_EVENT_WC_MW_BIND,
		[URXE_WC_BAD_RESP_ERR] = URXE_EVENT_WC_BAD_RESP,
		[URXE_WC_LOC_ACCESS_ERR] = URXE_EVENT_WC_LOC_ACCESS,
		[URXE_WC_REM_INV_REQ_ERR] = URXE_EVENT_WC_REM_INV_REQ,
		[URXE_WC_REM_ACCESS_ERR] = URXE_EVENT_WC_REM_ACCESS,
		[URXE_WC_REM_OP_ERR] = URXE_EVENT_WC_REM_OP,
		[URXE_WC_RETRY_EXC_ERR] = URXE_EVENT_WC_RETRY_EXC,
		[URXE_WC_RNR_RETRY_EXC_ERR] = URXE_EVENT_WC_RNR_RETRY_EXC,
	};

	qp_count(idmap_find(&dev->qps, wc->qpn), events[wc->status]);
}

bool cq_complete(struct urxe_cq *cq, const struct urxe_wc *wc)
{
	const struct urxe_ops *ops = cq->dev->attr.ops;

	if (cq->overflow)
		return false;
	if (!ops->complete(cq->ctx, wc))
		return cq_overflow(cq);
	if (wc->status != URXE_WC_SUCCESS)
		count_error(cq->dev, wc);
	if (cq->armed == CQ_ARMED_NEXT || (cq->armed == CQ_ARMED_SOLICITED && wc->solicited)) {
		cq->armed = CQ_DISARMED;
		ops->comp_event(cq->ctx);
	}
	return true;
}
