/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/qp.h"

#include "objects/copy_table.h"
#include "objects/device.h"
#include "objects/out_of_order.h"

void qp_schedule(struct urxe_qp *qp)
{
	if (qp->queued)
		return;
	qp->queued = true;
	TAILQ_INSERT_TAIL(&qp->dev->ready, qp, ready_link);
}

void qp_schedule_first(struct urxe_qp *qp)
{
	qp_unschedule(qp);
	qp->queued = true;
	TAILQ_INSERT_HEAD(&qp->dev->ready, qp, ready_link);
}

void qp_unschedule(struct urxe_qp *qp)
{
	if (!qp->queued)
		return;
	TAILQ_REMOVE(&qp->dev->ready, qp, ready_link);
	qp->queued = false;
}

void qp_event(struct urxe_qp *qp, enum urxe_async event)
{
	if (HAS_RECORDING(qp->dev))
		record_async(qp->dev, event, qp->ctx);
	qp->dev->attr.ops->async_event(qp->dev->attr.ctx, event, qp->ctx);
}

void qp_clear_gap(struct urxe_qp *qp)
{
	timer_clear(&qp->gap_timer);
	out_of_order_clear(qp->dev, &qp->resp.gap.kept);
}

void qp_clear_responses(struct urxe_qp *qp)
{
	for (uint32_t i = 0; i < qp->resp.n_resources; i++) {
		qp->resp.resources[i].pending = false;
		qp->resp.resources[i].n_repeats = 0;
	}
	qp->resp.res_pending = 0;
}

static bool is_executing_requests(const struct urxe_qp *qp)
{
	return qp->type == URXE_QPT_RC && !qp->offloaded && qp->attr.state >= URXE_QPS_RTR &&
	       qp->attr.state <= URXE_QPS_SQD;
}

void qp_publish_rights(const struct urxe_qp *qp)
{
	const struct urxe_copy_qp entry = {
		.qpn = qp->qpn,
		.dest_qpn = qp->attr.dest_qpn,
		.pd = qp->pd,
		.access = qp->attr.access,
		.rd_atomic = qp->attr.max_dest_rd_atomic,
	};

	if (is_executing_requests(qp))
		copy_table_publish_qp(qp->dev, &entry);
	else
		copy_table_withdraw_qp(qp->dev, qp->qpn);
}

void qp_change_unacked(struct urxe_qp *qp)
{
	qp->req.unacked = !qp->req.unacked;
	if (qp->req.unacked)
		qp->dev->unacked_qps++;
	else
		qp->dev->unacked_qps--;
}
