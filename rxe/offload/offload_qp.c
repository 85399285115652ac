/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Offloaded queue pairs: creation, state transitions, and their end. */
#include <errno.h>
#include <stddef.h>

#include "objects/cq.h"
#include "objects/device.h"
#include "offload/hooks.h"

int offload_create_qp(struct urxe_qp *qp, const struct urxe_qp_init *init)
{
	struct urxe_dev *dev = qp->dev;
	struct urxe_offload_queues queues;
	int rc;

	if (!dev->offload || dev->taking_over || (init->srq && !init->srq->hca))
		return -EOPNOTSUPP;
	rc = offload_create_cq(qp->send_cq);
	if (!rc)
		rc = offload_create_cq(qp->recv_cq);
	if (rc)
		return rc;
	queues = (struct urxe_offload_queues){
		.send_cq = qp->send_cq->hca,
		.recv_cq = qp->recv_cq->hca,
		.srq = init->srq ? init->srq->hca : NULL,
	};
	return dev->offload->qp_create(dev->offload_ctx, qp, init, &queues, &qp->hca, &qp->qpn);
}

/* Armed CQs have to be armed at the HCA, too. */
static void use_cq(struct urxe_cq *cq)
{
	cq->offloaded++;
	if (cq->armed)
		offload_arm_cq(cq, cq->armed == CQ_ARMED_SOLICITED);
}

/* The engine does not count messages that use up no receive request. */
static void note_rights(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	const uint32_t remote =
		URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_ATOMIC;

	qp->uncounted |= mask & URXE_QP_ACCESS_FLAGS && attr->access & remote;
}

static void begin(struct urxe_qp *qp)
{
	note_rights(qp, &qp->attr, URXE_QP_ACCESS_FLAGS);
	qp->offloaded = true;
	use_cq(qp->send_cq);
	use_cq(qp->recv_cq);
}

/* UD and SRQ go where the device goes; of connections, the HCA's side chooses. */
static bool goes_with_device(const struct urxe_qp *qp)
{
	return qp->type == URXE_QPT_UD || !qp->rq->qp;
}

static bool takes_connection(const struct urxe_qp *qp, const struct urxe_qp_attr *attr)
{
	return !qp->dev->taking_over && !offload_has_alone(qp->dev, qp->pd) &&
	       qp->dev->offload->takes(qp->hca, attr);
}

static int change_hca(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	return qp->dev->offload->qp_modify(qp->hca, attr, mask);
}

/* Gives the HCA's QP the attributes that the engine's QP has in INIT. */
static void return_to_init(struct urxe_qp *qp)
{
	const struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	const struct urxe_qp_attr init = {
		.state = URXE_QPS_INIT,
		.pkey_index = qp->attr.pkey_index,
		.port = qp->attr.port,
		.access = qp->attr.access,
	};

	if (!change_hca(qp, &reset, URXE_QP_STATE))
		change_hca(qp, &init,
			   URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT |
				   URXE_QP_ACCESS_FLAGS);
	offload_return_receives(qp->rq);
}

/* The HCA gets the receives before the transition: the peer may send at once after it. */
static int connect_qp(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	int rc;

	begin(qp);
	offload_receive(qp->rq);
	rc = change_hca(qp, attr, mask);
	if (!rc)
		return 0;
	offload_end(qp);
	return_to_init(qp);
	return rc;
}

static int leave_reset(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	int rc = change_hca(qp, attr, mask);

	/* A SRQ's requests are with the HCA. */
	if (rc == -EOPNOTSUPP && qp->rq->qp) {
		offload_destroy_qp(qp);
		return 0;
	}
	if (!rc && goes_with_device(qp))
		begin(qp);
	return rc;
}

int offload_modify(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	const uint8_t from = qp->attr.state, to = attr->state;

	if (!qp->hca)
		return 0;
	/* qp_error tells the HCA. */
	if (to == URXE_QPS_ERR)
		return 0;
	if (to == URXE_QPS_RESET)
		return from == URXE_QPS_RESET ? 0 : change_hca(qp, attr, mask);
	if (from == URXE_QPS_RESET)
		return leave_reset(qp, attr, mask);
	/* The engine's QP gets the attributes, and goes on with them. */
	if (qp->stopping)
		return 0;
	note_rights(qp, attr, mask);
	if (qp->offloaded || to == URXE_QPS_INIT)
		return change_hca(qp, attr, mask);
	if (to == URXE_QPS_RTR && from == URXE_QPS_INIT && takes_connection(qp, attr))
		return connect_qp(qp, attr, mask);
	return 0;
}

bool urxe_offload_has_qp(const struct urxe_qp *qp)
{
	return qp->hca;
}

bool urxe_qp_offloaded(const struct urxe_qp *qp)
{
	return qp->offloaded;
}
