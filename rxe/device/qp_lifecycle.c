/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "device/qp_lifecycle.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "congestion/pacing.h"
#include "memory/mw.h"
#include "objects/copy_table.h"
#include "objects/cq.h"
#include "objects/device.h"
#include "objects/multicast.h"
#include "objects/qp.h"
#include "objects/references.h"
#include "objects/rq.h"
#include "offload/hooks.h"
#include "requester/completer.h"
#include "requester/requester.h"
#include "requester/retransmit.h"
#include "responder/acknowledge.h"
#include "responder/psn_gap.h"
#include "responder/responder.h"

/* The function of each timer, and the offset of the timer in the QP. */
static const struct {
	size_t at;
	void (*fired)(struct urxe_qp *qp);
} qp_timers[] = {
	[TIMER_RETRY] = {offsetof(struct urxe_qp, timer), comp_retransmit_timer},
	[TIMER_GAP] = {offsetof(struct urxe_qp, gap_timer), resp_gap_time_out},
	[TIMER_ACK] = {offsetof(struct urxe_qp, ack_timer), resp_ack_at_last},
	[TIMER_PACE] = {offsetof(struct urxe_qp, pace.timer), qp_schedule},
};

#define QP_TIMERS (sizeof(qp_timers) / sizeof(qp_timers[0]))

static bool is_valid_type(uint8_t type)
{
	return type == URXE_QPT_RC || type == URXE_QPT_UC || type == URXE_QPT_UD;
}

static bool is_valid_init(const struct urxe_qp_init *init)
{
	const struct urxe_qp_cap *cap = &init->cap;

	return is_valid_type(init->type) && init->send_cq && init->recv_cq &&
	       init->qpn < URXE_QPN_MULTICAST && cap->max_send_wr <= URXE_MAX_WR &&
	       cap->max_send_sge <= URXE_MAX_SGE && cap->max_inline <= URXE_MAX_INLINE;
}

/* The next free QPN of the device; 0 if all are taken. */
static uint32_t choose_qpn(struct urxe_dev *dev)
{
	for (uint32_t i = 0; i < dev->attr.qpn_count; i++) {
		uint32_t qpn = dev->attr.qpn_first + dev->qpn_next;

		dev->qpn_next = (dev->qpn_next + 1) % dev->attr.qpn_count;
		if (qpn && !idmap_find(&dev->qps, qpn))
			return qpn;
	}
	return 0;
}

static int attach_rq(struct urxe_qp *qp, const struct urxe_qp_init *init)
{
	struct urxe_rq_attr attr = {
		.ctx = init->ctx,
		.pd = init->pd,
		.max_wr = init->cap.max_recv_wr,
		.max_sge = init->cap.max_recv_sge,
	};

	if (!init->srq)
		return rq_create(qp->dev, &attr, qp, &qp->rq);
	qp->rq = init->srq;
	qp->rq->users++;
	return 0;
}

static void detach_rq(struct urxe_qp *qp)
{
	if (!qp->rq)
		return;
	if (qp->rq->qp)
		rq_free(qp->rq);
	else
		qp->rq->users--;
}

static void free_qp(struct urxe_qp *qp)
{
	detach_rq(qp);
	sq_free(&qp->sq);
	free(qp->resp.copy);
	free(qp->resp.resources);
	free(qp->req.answered);
	free(qp);
}

/* Allocates req.answered, one bit for each PSN that may be outstanding. 0 or -ENOMEM. */
static int allocate_answered(struct urxe_qp *qp)
{
	uint32_t bits = 64;

	while (bits < qp->dev->referred_packets)
		bits *= 2;
	qp->req.answered = calloc(bits / 64, sizeof(uint64_t));
	qp->req.answered_mask = bits - 1;
	return qp->req.answered ? 0 : -ENOMEM;
}

static int allocate_queues(struct urxe_qp *qp, const struct urxe_qp_init *init)
{
	int rc = sq_init(&qp->sq, &init->cap);

	if (!rc)
		rc = attach_rq(qp, init);
	if (rc)
		return rc;
	if (init->srq)
		qp->resp.copy = malloc(rq_wqe_size(qp->rq));
	if (init->srq && !qp->resp.copy)
		return -ENOMEM;
	return qp->type == URXE_QPT_RC ? allocate_answered(qp) : 0;
}

/* Sets the QPN, and creates the HCA's QP if the HCA can. The owner's choice of the QPN comes first,
 * then the HCA's, then the engine's. -ENOSPC: all QPNs are in use; -EOPNOTSUPP or another error of
 * the HCA: only the HCA could execute the QP. */
static int choose_number(struct urxe_qp *qp, const struct urxe_qp_init *init)
{
	int rc;

	qp->qpn = init->qpn;
	if (qp->qpn)
		return offload_keeps_receives(qp->rq) ? -EOPNOTSUPP : 0;
	rc = offload_create_qp(qp, init);
	if (!rc && idmap_find(&qp->dev->qps, qp->qpn))
		rc = -EOPNOTSUPP;
	if (!rc)
		return 0;
	offload_destroy_qp(qp);
	/* -ENOMEM in place of -ENOSPC, because after -ENOSPC the owner would choose a QPN itself
	 * and call again. */
	if (offload_keeps_receives(qp->rq))
		return rc == -ENOSPC ? -ENOMEM : rc;
	qp->qpn = choose_qpn(qp->dev);
	return qp->qpn ? 0 : -ENOSPC;
}

static int add_to_device(struct urxe_qp *qp)
{
	struct urxe_dev *dev = qp->dev;
	int rc = timers_reserve(&dev->timers, (uint32_t)QP_TIMERS * (dev->qps.used + 1));

	if (!rc)
		rc = idmap_add(&dev->qps, qp->qpn, qp);
	if (rc)
		return rc;
	qp->send_cq->users++;
	qp->recv_cq->users++;
	return 0;
}

int urxe_qp_create(struct urxe_dev *dev, const struct urxe_qp_init *init, struct urxe_qp **out)
{
	struct urxe_qp *qp;
	int rc;

	if (HAS_RECORDING(dev))
		record_qp_create(dev, init);
	if (!is_valid_init(init))
		return -EINVAL;
	qp = aligned_alloc(_Alignof(struct urxe_qp), sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	*qp = (struct urxe_qp){0};
	qp->dev = dev;
	qp->ctx = init->ctx;
	qp->type = init->type;
	qp->pd = init->pd;
	qp->sq_sig_all = init->sq_sig_all;
	qp->block_self_mcast = init->block_self_mcast;
	qp->cap = init->cap;
	if (init->srq)
		qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->mtu = dev->path_mtu;
	timer_init(&qp->timer, TIMER_RETRY);
	timer_init(&qp->gap_timer, TIMER_GAP);
	timer_init(&qp->ack_timer, TIMER_ACK);
	psn_gap_init(&qp->resp.gap);
	LIST_INIT(&qp->windows);
	timer_init(&qp->pace.timer, TIMER_PACE);
	pace_init(qp);
	rc = allocate_queues(qp, init);
	if (!rc)
		rc = choose_number(qp, init);
	if (!rc)
		rc = add_to_device(qp);
	if (rc) {
		offload_destroy_qp(qp);
		free_qp(qp);
		return rc;
	}
	*out = qp;
	return 0;
}

void urxe_qp_destroy(struct urxe_qp *qp)
{
	RECORD_ENTRY(qp->dev, QP_DESTROY, .qpn = qp->qpn);
	mcast_leave_all(qp);
	offload_destroy_qp(qp);
	qp_unschedule(qp);
	copy_table_withdraw_qp(qp->dev, qp->qpn);
	end_references(qp);
	qp_end_unacked(qp);
	mw_unbind_all(qp);
	timer_remove(&qp->dev->timers, &qp->timer);
	timer_remove(&qp->dev->timers, &qp->gap_timer);
	timer_remove(&qp->dev->timers, &qp->ack_timer);
	qp_clear_gap(qp);
	timer_remove(&qp->dev->timers, &qp->pace.timer);
	idmap_remove(&qp->dev->qps, qp->qpn);
	qp->send_cq->users--;
	qp->recv_cq->users--;
	free_qp(qp);
}

bool urxe_qp_flush_acks(struct urxe_qp *qp)
{
	RECORD_ENTRY(qp->dev, QP_FLUSH_ACKS, .qpn = qp->qpn);
	if (timer_armed(&qp->ack_timer)) {
		timer_clear(&qp->ack_timer);
		resp_ack_at_last(qp);
	}
	if (qp->resp.ack_due)
		qp_schedule_first(qp);
	return qp->resp.ack_due;
}

uint32_t urxe_qp_qpn(const struct urxe_qp *qp)
{
	return qp->qpn;
}

bool urxe_qp_is_reset(const struct urxe_qp *qp)
{
	return qp->attr.state == URXE_QPS_RESET;
}

struct urxe_rq *urxe_qp_rq(struct urxe_qp *qp)
{
	return qp->rq->qp ? qp->rq : NULL;
}

void urxe_qp_query(const struct urxe_qp *qp, struct urxe_qp_attr *attr, struct urxe_qp_init *init)
{
	*attr = qp->attr;
	attr->cur_state = qp->attr.state;
	attr->sq_draining = qp->attr.state == URXE_QPS_SQD && !req_drained(qp);
	attr->rq_psn = qp->resp.psn;
	attr->sq_psn = qp->req.psn;
	*init = (struct urxe_qp_init){
		.ctx = qp->ctx,
		.type = qp->type,
		.sq_sig_all = qp->sq_sig_all,
		.block_self_mcast = qp->block_self_mcast,
		.pd = qp->pd,
		.qpn = qp->qpn,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->rq->qp ? NULL : qp->rq,
		.cap = qp->cap,
	};
}

void urxe_offload_query(struct urxe_qp *qp, struct urxe_qp_attr *attr, struct urxe_qp_init *init)
{
	urxe_qp_query(qp, attr, init);
	if (!qp->offloaded || !qp->hca)
		return;
	offload_begin_call(qp);
	qp->hca_ops->qp_query(qp->hca, attr);
	offload_end_call(qp);
	/* Takes over only the error state: the HCA's QP may have failed, and the event or
	 * completion that tells the engine may not have come yet. */
	if (attr->state != URXE_QPS_ERR || qp->stopping)
		attr->state = qp->attr.state;
	attr->cur_state = attr->state;
}

void urxe_qp_load(const struct urxe_qp *qp, struct urxe_qp_load *load)
{
	*load = (struct urxe_qp_load){
		.sends = qp->sq.head - qp->sq.tail,
		.packets = qp->offloaded ? 0 : requester_outstanding(&qp->req),
		.receives = qp->rq->head - qp->rq->tail,
		.retries = qp->req.retries,
		.rnr_retries = qp->req.rnr_retries,
	};
}

const struct urxe_counters *urxe_qp_counters(const struct urxe_qp *qp)
{
	return &qp->counters;
}

struct urxe_qp *qp_of_timer(const struct timer *timer)
{
	return (struct urxe_qp *)((uintptr_t)timer - qp_timers[timer->kind].at);
}

struct timer *qp_find_timer(struct urxe_qp *qp, uint8_t kind)
{
	return kind < QP_TIMERS ? (struct timer *)((uintptr_t)qp + qp_timers[kind].at) : NULL;
}

void qp_timer_fired(struct timer *timer)
{
	qp_timers[timer->kind].fired(qp_of_timer(timer));
}

void qp_reset(struct urxe_qp *qp)
{
	struct recv_wqe *copy = qp->resp.copy;

	end_references(qp);
	qp_unschedule(qp);
	timer_clear(&qp->timer);
	timer_clear(&qp->ack_timer);
	qp_clear_gap(qp);
	timer_clear(&qp->pace.timer);
	offload_end(qp);
	qp->sq.cur = qp->sq.tail = qp->sq.head;
	if (qp->rq->qp)
		rq_reset(qp->rq);
	free(qp->resp.resources);
	qp_end_unacked(qp);
	qp->req = (struct requester){
		.answered = qp->req.answered,
		.answered_mask = qp->req.answered_mask,
	};
	retransmit_init(qp);
	qp->resp = (struct responder){.copy = copy};
	psn_gap_init(&qp->resp.gap);
	qp->cnp = (struct cnp){0};
	qp->cnp_due = false;
	qp->turn = 0;
	pace_init(qp);
	qp->attr = (struct urxe_qp_attr){.state = URXE_QPS_RESET};
	qp->last_wqe = false;
	qp->mtu = qp->dev->path_mtu;
}
