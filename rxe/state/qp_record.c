/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs: creation, and the records that a QP's record consists of. */
#include "objects/qp.h"

#include "objects/device.h"
#include "objects/rq.h"
#include "state/state_records.h"
#include "util/ring.h"

static void cap_fields(struct state_stream *s, struct urxe_qp_cap *cap)
{
	state_u32_max(s, &cap->max_send_wr, URXE_MAX_WR);
	state_u32_max(s, &cap->max_recv_wr, URXE_MAX_WR);
	state_u32_max(s, &cap->max_send_sge, URXE_MAX_SGE);
	state_u32_max(s, &cap->max_recv_sge, URXE_MAX_SGE);
	state_u32_max(s, &cap->max_inline, URXE_MAX_INLINE);
}

static void init_fields(struct state_device *d, struct urxe_qp_init *init)
{
	struct state_stream *s = &d->stream;

	state_u24(s, &init->qpn);
	state_u8_max(s, &init->type, URXE_QPT_UD);
	state_u32(s, &init->pd);
	state_bools(s, &init->sq_sig_all, &init->block_self_mcast);
	cq_field(d, &init->send_cq);
	cq_field(d, &init->recv_cq);
	srq_field(d, &init->srq);
	cap_fields(s, &init->cap);
}

uint64_t qp_memory(const struct urxe_dev *dev, const struct urxe_qp_init *init)
{
	const struct urxe_qp_cap *cap = &init->cap;
	const uint64_t send = sizeof(struct send_wqe) + cap->max_inline +
			      cap->max_send_sge * sizeof(struct urxe_seg);
	const uint64_t own = sizeof(struct urxe_qp) + dev->referred_packets / 8;

	return own + ring_slots(cap->max_send_wr) * send +
	       (init->srq ? 0 : rq_memory(cap->max_recv_wr, cap->max_recv_sge));
}

static struct urxe_qp *create_qp(struct state_device *d, struct urxe_qp_init *init, uint64_t tag)
{
	struct state_stream *s = &d->stream;
	struct urxe_qp *qp = NULL;
	int rc;

	state_require(s, init->qpn);
	if (!state_ok(s))
		return NULL;
	state_spend(s, 1, qp_memory(d->dev, init));
	init->ctx = object_context(d, URXE_STATE_QP, init->qpn, tag);
	rc = state_ok(s) ? urxe_qp_create(d->dev, init, &qp) : 0;
	if (rc)
		state_fail(s, rc == -ENOMEM ? rc : -EBADMSG);
	return qp;
}

/* Restoring: fails if answers are due and the device's MTU is too small for packets of the QP's
 * path MTU. A QP in the error state may have such answers, too. */
static void require_mtu_for_answers(struct state_stream *s, const struct urxe_qp *qp)
{
	if (s->restoring && state_ok(s) && urxe_qp_has_answers(qp) &&
	    qp->mtu > urxe_max_path_mtu(qp->dev->attr.mtu))
		state_fail(s, -EINVAL);
}

void qp_record(struct state_device *d, struct urxe_qp *qp)
{
	struct state_stream *s = &d->stream;
	struct urxe_qp_init init = {0};
	struct urxe_qp_attr attr;
	uint64_t tag = 0;

	if (qp) {
		urxe_qp_query(qp, &attr, &init);
		tag = object_tag(d, URXE_STATE_QP, init.ctx);
	}
	state_begin(s, STATE_RECORD_QP);
	state_u64(s, &tag);
	init_fields(d, &init);
	if (s->restoring)
		qp = create_qp(d, &init, tag);
	if (!qp)
		return;
	qp_attr_record(s, qp);
	sends_record(s, qp);
	receives_record(s, qp);
	requester_record(s, qp);
	responder_record(s, qp);
	resources_record(s, qp);
	require_mtu_for_answers(s, qp);
	gap_record(s, qp);
	congestion_record(s, qp);
	counters_record(s, &qp->counters);
	state_end(s);
	if (s->restoring)
		object_restored(
			d, &(struct urxe_state_object){
				   .kind = URXE_STATE_QP, .id = init.qpn, .tag = tag, .qp = qp});
}
