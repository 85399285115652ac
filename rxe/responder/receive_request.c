/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/receive_request.h"

#include "objects/cq.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "objects/sg_list.h"

void resp_complete_recv(struct urxe_qp *qp, struct urxe_wc *wc)
{
	wc->wr_id = qp->resp.wqe->wr_id;
	wc->qp_ctx = qp->ctx;
	wc->qpn = qp->qpn;
	wc->solicited |= wc->status != URXE_WC_SUCCESS;
	qp->resp.has_wqe = false;
	rq_retire(qp->rq);
	if (!cq_complete(qp->recv_cq, wc))
		qp_error_event(qp, URXE_ASYNC_QP_FATAL);
}

void resp_fail_recv(struct urxe_qp *qp, enum urxe_wc_status status)
{
	struct urxe_wc wc = {.status = status};

	resp_complete_recv(qp, &wc);
}

/* Where a shared queue's is copied is not in a line that packets need. */
static struct recv_wqe *copy_of(const struct urxe_qp *qp)
{
	return qp->rq->qp ? NULL : qp->resp.copy;
}

bool resp_want_recv(struct urxe_qp *qp)
{
	if (!qp->resp.has_wqe) {
		qp->resp.wqe = rq_take(qp->rq, copy_of(qp));
		qp->resp.has_wqe = qp->resp.wqe;
	}
	return qp->resp.has_wqe;
}

void resp_flush(struct urxe_qp *qp)
{
	if (qp->resp.has_wqe)
		resp_fail_recv(qp, URXE_WC_WR_FLUSH_ERR);
	while (qp->rq->qp && resp_want_recv(qp))
		resp_fail_recv(qp, URXE_WC_WR_FLUSH_ERR);
}

static struct sge_list held_list(const struct urxe_qp *qp)
{
	return (struct sge_list){
		.segs = qp->resp.wqe->segs,
		.n = qp->resp.wqe->n_segs,
		.pd = qp->rq->attr.pd,
	};
}

bool resp_scatter(struct urxe_qp *qp, uint32_t offset, const uint8_t *src, uint32_t len)
{
	struct sge_list list = held_list(qp);

	return sge_scatter(qp->dev, &list, offset, src, len);
}

uint32_t resp_extents(const struct urxe_qp *qp, uint32_t offset, uint32_t len,
		      struct urxe_extent extents[URXE_MAX_SGE])
{
	struct sge_list list = held_list(qp);

	return sge_extents(qp->dev, &list, offset, len, extents);
}
