/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/qp_error.h"

#include "objects/completion.h"
#include "objects/copy_table.h"
#include "objects/offload_objects.h"
#include "objects/qp.h"

/* A NAK that is due follows the responses to earlier requests, so these responses stay due. */
static void drop_responses(struct urxe_qp *qp)
{
	qp->resp.ack_due = false;
	timer_clear(&qp->ack_timer);
	if (!qp->resp.nak)
		qp_clear_responses(qp);
}

void tell_last_wqe(struct urxe_qp *qp)
{
	if (qp->rq->qp || qp->offloaded || qp->last_wqe)
		return;
	qp->last_wqe = true;
	qp_event(qp, URXE_ASYNC_QP_LAST_WQE_REACHED);
}

void qp_error(struct urxe_qp *qp)
{
	if (qp->attr.state == URXE_QPS_ERR)
		return;
	qp->attr.state = URXE_QPS_ERR;
	copy_table_withdraw_qp(qp->dev, qp->qpn);
	qp->req.rnr_wait = false;
	qp->req.error = 0;
	qp->req.drain_event = false;
	timer_clear(&qp->timer);
	qp_clear_gap(qp);
	drop_responses(qp);
	offload_fail(qp);
	flush_sends(qp);
	flush_recvs(qp);
	tell_last_wqe(qp);
	if (qp->resp.nak)
		qp_schedule(qp);
}

void qp_error_event(struct urxe_qp *qp, enum urxe_async event)
{
	if (qp->attr.state == URXE_QPS_ERR)
		return;
	qp_error(qp);
	qp_event(qp, event);
}
