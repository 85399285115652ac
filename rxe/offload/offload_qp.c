/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Offloaded queue pairs: creation, state transitions, and their end. */
#include <errno.h>
#include <stddef.h>

#include "objects/completion.h"
#include "objects/cq.h"
#include "objects/device.h"
#include "offload/hooks.h"

static int create_cqs(struct urxe_qp *qp)
{
	int rc = offload_create_cq(qp->send_cq);

	if (!rc && !qp->send_cq->hca)
		rc = -EOPNOTSUPP;
	return rc ? rc : offload_create_cq(qp->recv_cq);
}

/* Whether a new QP becomes the HCA's, too; srq NULL: the QP has a queue of its own. During a
 * take-over QPs without SRQ are the engine's. The HCA has the requests of a SRQ until its QPs stop,
 * so QPs of this SRQ are the HCA's until then. */
static bool has_queue_of_hca(const struct urxe_dev *dev, const struct urxe_rq *srq)
{
	return srq ? srq->hca && !srq->stopping : !dev->taking_over;
}

/* Also returns -EOPNOTSUPP if the HCA goes, or the engine takes over, while an operation waits. */
int offload_create_qp(struct urxe_qp *qp, const struct urxe_qp_init *init)
{
	const struct offload_hca hca = offload_current(qp->dev);
	struct urxe_offload_queues queues;
	int rc;

	if (!hca.ops || !has_queue_of_hca(qp->dev, init->srq))
		return -EOPNOTSUPP;
	rc = create_cqs(qp);
	if (rc)
		return rc;
	if (!offload_is_current(qp->dev, &hca))
		return -EOPNOTSUPP;
	queues = (struct urxe_offload_queues){
		.send_cq = qp->send_cq->hca,
		.recv_cq = qp->recv_cq->hca,
		.srq = init->srq ? init->srq->hca : NULL,
	};
	rc = hca.ops->qp_create(hca.ctx, init, &queues, &qp->hca, &qp->qpn);
	if (rc)
		return rc;
	qp->hca_ops = hca.ops;
	return offload_is_current(qp->dev, &hca) && has_queue_of_hca(qp->dev, init->srq)
		       ? 0
		       : -EOPNOTSUPP;
}

/* Counts one more offloaded QP of the CQ. If the CQ is armed, arms the HCA's queue. */
static void use_cq(struct urxe_cq *cq)
{
	cq->offloaded++;
	if (cq->armed)
		offload_arm_cq(cq, cq->armed == CQ_ARMED_SOLICITED);
}

/* Notes whether the peer may send messages that use up no receive request, because the engine
 * cannot count these by completions. */
static void note_rights(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	const uint32_t remote =
		URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_ATOMIC;

	qp->uncounted |= mask & URXE_QP_ACCESS_FLAGS && attr->access & remote;
}

static void begin(struct urxe_qp *qp)
{
	qp->offloaded = true;
	qp->dev->offloaded++;
	use_cq(qp->send_cq);
	use_cq(qp->recv_cq);
}

/* Whether the QP is offloaded from INIT on, as UD QPs and QPs with an SRQ are. For other QPs
 * urxe_offload_ops.takes decides at the transition to RTR. */
static bool is_offloaded_from_init(const struct urxe_qp *qp)
{
	return qp->type == URXE_QPT_UD || !qp->rq->qp;
}

static bool takes_connection(const struct urxe_qp *qp, const struct urxe_qp_attr *attr)
{
	return !qp->dev->taking_over && !offload_lacks_regions(qp->dev, qp->pd) &&
	       qp->dev->offload->takes(qp->hca, attr);
}

/* Changes the HCA's QP, if there is one, and returns the HCA's answer. If the HCA went meanwhile,
 * returns 0, so that the engine's QP changes. */
static int change_hca(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	int rc;

	if (!qp->hca)
		return 0;
	offload_begin_call(qp);
	rc = qp->hca_ops->qp_modify(qp->hca, attr, mask);
	return offload_end_call(qp) ? rc : 0;
}

/* Moves the HCA's QP to RESET, and returns the HCA's answer. Requests that are posted meanwhile go
 * to the HCA only if the transition fails. */
static int reset_hca(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	int rc;

	qp->resetting = true;
	rc = change_hca(qp, attr, mask);
	qp->resetting = false;
	if (rc && qp->offloaded && qp->attr.state == URXE_QPS_ERR) {
		offload_fail(qp);
		flush_sends(qp);
		flush_recvs(qp);
		tell_last_wqe(qp);
	} else if (rc && qp->offloaded) {
		offload_send(qp);
		offload_receive(qp->rq);
	}
	return rc;
}

/* Moves the HCA's QP to the error state. Destroys a QP that refuses: it must not access memory
 * after its requests are flushed. */
static void fail_hca(struct urxe_qp *qp, const struct urxe_qp_attr *attr)
{
	if (!qp->offloaded || qp->stopping || qp->hca_failed || qp->calling)
		return;
	qp->hca_failed = true;
	if (change_hca(qp, attr, URXE_QP_STATE))
		offload_destroy_qp(qp);
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

/* Moves the HCA's QP to RTR, and returns the HCA's answer. The HCA gets the receive requests before
 * the transition, because the peer may send right after it. */
static int connect_qp(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	int rc;

	note_rights(qp, &qp->attr, URXE_QP_ACCESS_FLAGS);
	begin(qp);
	offload_receive(qp->rq);
	rc = change_hca(qp, attr, mask);
	/* If the HCA's QP has failed meanwhile, the engine's QP is in the error state, and its
	 * requests are flushed. Then the HCA's QP does not return to INIT. */
	if (!rc || qp->attr.state == URXE_QPS_ERR)
		return rc;
	offload_end(qp);
	return_to_init(qp);
	return rc;
}

static int leave_reset(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	int rc;

	/* A take-over has stopped the SRQ, so the HCA gets none of its requests. */
	if (qp->rq->stopping) {
		offload_destroy_qp(qp);
		return 0;
	}
	rc = change_hca(qp, attr, mask);
	/* With an SRQ this is an error, because the HCA has the SRQ's requests. */
	if (rc == -EOPNOTSUPP && qp->rq->qp) {
		offload_destroy_qp(qp);
		return 0;
	}
	if (!rc && qp->hca && is_offloaded_from_init(qp)) {
		note_rights(qp, attr, mask);
		begin(qp);
	}
	return rc;
}

static bool is_connecting(const struct urxe_qp *qp, uint8_t to)
{
	return to == URXE_QPS_RTR && qp->attr.state == URXE_QPS_INIT;
}

/* Changes the HCA's QP, if it is to change, or connects it. Returns the HCA's answer. */
static int change_or_connect(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	if (qp->offloaded || attr->state == URXE_QPS_INIT)
		return change_hca(qp, attr, mask);
	if (is_connecting(qp, attr->state) && takes_connection(qp, attr))
		return connect_qp(qp, attr, mask);
	return 0;
}

/*
 * Sets what the engine needs to count packets before it changes the HCA's QP, because messages may
 * complete before the HCA's call returns. If the HCA refuses, takes that back.
 */
static int modify_counted(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	const bool uncounted = qp->uncounted;
	const uint16_t mtu = qp->mtu;
	int rc;

	note_rights(qp, attr, mask);
	if (mask & URXE_QP_PATH_MTU)
		qp->mtu = 128u << attr->path_mtu;
	rc = change_or_connect(qp, attr, mask);
	if (rc) {
		qp->uncounted = uncounted;
		qp->mtu = mtu;
	}
	return rc;
}

int offload_modify(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	const uint8_t from = qp->attr.state, to = attr->state;

	if (!qp->hca)
		return to == URXE_QPS_INIT && offload_keeps_receives(qp->rq) ? -EOPNOTSUPP : 0;
	if (to == URXE_QPS_ERR) {
		fail_hca(qp, attr);
		return 0;
	}
	if (to == URXE_QPS_RESET)
		return from == URXE_QPS_RESET ? 0 : reset_hca(qp, attr, mask);
	if (from == URXE_QPS_RESET)
		return leave_reset(qp, attr, mask);
	/* During a take-over the engine's QP, which goes on, gets the attributes, but not the
	 * HCA's. */
	if (qp->stopping)
		return 0;
	/* If the failed request was not for the HCA, the HCA's QP is in RTS, not in cur_state. */
	if (from == URXE_QPS_SQE)
		mask &= ~(uint32_t)URXE_QP_CUR_STATE;
	return modify_counted(qp, attr, mask);
}

bool urxe_offload_has_qp(const struct urxe_qp *qp)
{
	return qp->hca;
}

bool urxe_offload_takes(const struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	if (!qp->hca || qp->stopping)
		return false;
	if (qp->offloaded)
		return true;
	return mask & URXE_QP_STATE && is_connecting(qp, attr->state) && takes_connection(qp, attr);
}

bool urxe_qp_offloaded(const struct urxe_qp *qp)
{
	return qp->offloaded;
}
