/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "doorbell.h"

#include <errno.h>

#include "object.h"
#include "pvrdma_device.h"
#include "queues/pvrdma_cq.h"
#include "queues/pvrdma_qp.h"
#include "queues/pvrdma_recv_queue.h"

/* The object of a doorbell; NULL: there is none, or it belongs to another page's context. */
static void *find_target(struct pvrdma *dev, enum pv_kind kind, uint32_t page, uint32_t value)
{
	struct pv_object *object = pv_object_find(dev, kind, value & PVRDMA_UAR_HANDLE_MASK);

	if (object && object->uar_page == page)
		return object;
	pv_count(dev, PVRDMA_DOORBELL_BAD);
	return NULL;
}

static void ring_qp(struct pvrdma *dev, uint32_t page, uint32_t value)
{
	struct pv_qp *qp = find_target(dev, PV_QP, page, value);

	if (!qp)
		return;
	if (value & PV_UAR_QP_RECV)
		pv_qp_post_recvs(qp);
	if (value & PV_UAR_QP_SEND)
		pv_qp_post_sends(qp);
}

static void ring_cq(struct pvrdma *dev, uint32_t page, uint32_t value)
{
	struct pv_cq *cq = find_target(dev, PV_CQ, page, value);

	if (!cq)
		return;
	cq->polled |= (value & PV_UAR_CQ_POLL) != 0;
	/* Counts a poll only if the CQ is still empty: a completion may have come since the
	 * driver's look at the CQ. */
	if (value & PV_UAR_CQ_POLL && pv_cq_is_empty(cq))
		pv_count(dev, PVRDMA_DOORBELL_POLL);
	if (value & (PV_UAR_CQ_ARM | PV_UAR_CQ_ARM_SOL)) {
		cq->uses_events = true;
		cq->unread_pause_ns = cq->unread_notify_at = 0;
		pv_cq_arm(cq, !(value & PV_UAR_CQ_ARM));
	}
}

static void ring_srq(struct pvrdma *dev, uint32_t page, uint32_t value)
{
	struct pv_srq *srq = find_target(dev, PV_SRQ, page, value);

	if (srq && value & PV_UAR_SRQ_RECV)
		pv_recv_queue_refill(dev, &srq->recv);
}

int pv_doorbell(struct pvrdma *dev, uint32_t offset, uint32_t value)
{
	const uint32_t page = offset / PV_PAGE;

	if (page >= PVRDMA_UAR_PAGES)
		return -EINVAL;
	/*
	 * Ignores doorbells while the driver permits no access to memory. No request is lost: when
	 * the device may access memory again, it arms all CQs, and the next pvrdma_poll looks at
	 * all queue pairs. The engine asks for those of SRQs itself (urxe_ops.refill).
	 */
	if (dev->no_master)
		return 0;
	switch (offset % PV_PAGE) {
	case PVRDMA_UAR_QP_OFFSET: ring_qp(dev, page, value); break;
	case PVRDMA_UAR_CQ_OFFSET: ring_cq(dev, page, value); break;
	case PVRDMA_UAR_SRQ_OFFSET: ring_srq(dev, page, value); break;
	default: return -EINVAL;
	}
	pv_count(dev, PVRDMA_DOORBELLS);
	return 0;
}
