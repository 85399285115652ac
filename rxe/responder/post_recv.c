/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe_post_recv: from the receive request of verbs to an entry of the receive queue. */
#include <errno.h>
#include <string.h>

#include "memory/sg_list.h"
#include "objects/completion.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "objects/rq.h"
#include "offload/hooks.h"
#include "responder/acknowledge.h"

/* For a queue that the HCA has: hands new requests to the HCA, or flushes them in the error state.
 * Does nothing within a refill: urxe_offload_refill hands the requests over together, after the
 * callback. */
static void post_offloaded(struct urxe_rq *rq)
{
	if (rq->refilling)
		return;
	if (rq->qp && rq->qp->attr.state == URXE_QPS_ERR)
		flush_recvs(rq->qp);
	else
		offload_receive(rq);
}

int urxe_post_recv(struct urxe_rq *rq, const struct urxe_recv_wr *wr)
{
	struct recv_wqe *wqe = rq_slot(rq, rq->head);
	uint64_t length;

	if (HAS_RECORDING(rq->dev))
		record_post_recv(rq, wr);
	if (wr->n_segs > rq->attr.max_sge)
		return -EINVAL;
	if (rq->qp && rq->qp->attr.state == URXE_QPS_RESET)
		return -EINVAL;
	if (rq->head - rq->retired >= rq->attr.max_wr)
		return -ENOMEM;
	length = sge_length(wr->segs, wr->n_segs);
	wqe->wr_id = wr->wr_id;
	wqe->n_segs = wr->n_segs;
	wqe->length = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
	if (wr->n_segs)
		memcpy(wqe->segs, wr->segs, wr->n_segs * sizeof(*wr->segs));
	rq->head++;
	if (offload_has_queue(rq)) {
		post_offloaded(rq);
		return 0;
	}
	/* Within a refill the responder sends no ACK for the new credits: the answer that it is
	 * about to send has them. */
	if (rq->qp && !rq->refilling)
		resp_recv_posted(rq->qp);
	/* Within a refill in the error state flush_recvs() is running, and completes this request
	 * itself. */
	if (rq->qp && rq->qp->attr.state == URXE_QPS_ERR && !rq->refilling)
		flush_recvs(rq->qp);
	return 0;
}
