/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>

#include <rxe/offload.h>

#include "pvrdma_hca.h"
#include "pvrdma_port.h"
#include "queues/event_ring.h"
#include "queues/pvrdma_qp.h"
#include "queues/pvrdma_recv_queue.h"
#include "queues/send_wqe.h"

/* The most QPs at which one call of pv_qp_poll looks, unless pvrdma.polls_all is set. */
#define POLLED_QPS 64

static enum urxe_wc_status status_of(int rc)
{
	return rc == -EMSGSIZE ? URXE_WC_LOC_LEN_ERR : URXE_WC_LOC_QP_OP_ERR;
}

/* Whether the datagram is longer than the port's path MTU. The engine knows the device's MTU only;
 * the NIC's driver may have chosen a shorter one. */
static bool is_too_long(const struct pv_qp *qp, const struct urxe_send_wr *wr)
{
	uint64_t length = 0;

	if (qp->type != PV_QPT_UD)
		return false;
	for (uint32_t i = 0; i < wr->n_segs; i++)
		length += wr->segs[i].length;
	return length > pv_port_path_mtu(qp->object.dev);
}

static int post_well_formed(struct pv_qp *qp, const struct pv_send_request *request, bool prepares)
{
	int rc;

	if (is_too_long(qp, &request->wr))
		return -EMSGSIZE;
	rc = prepares ? pv_hca_prepare(qp->pd, &request->path, false) : 0;
	return rc ? rc : urxe_post_send(qp->qp, &request->wr);
}

/*
 * Posts the send request at the device's index to the engine, if the HCA is prepared for it
 * (`prepares`: calls pv_hca_prepare). The engine completes a malformed request in an error, after
 * the requests before it. 0; -ENOMEM: the engine has no room; -EAGAIN: the HCA is not prepared yet;
 * -EINVAL: the QP's state permits no request, and the caller drops it.
 */
static int post_one(struct pv_qp *qp, bool prepares)
{
	struct pv_send_request request;
	int rc = -EINVAL;

	if (pv_send_wqe_read(qp, pv_ring_slot(&qp->send, qp->send.index), &request))
		rc = post_well_formed(qp, &request, prepares);
	if (!rc || rc == -ENOMEM || rc == -EAGAIN)
		return rc;
	pv_count(qp->object.dev, PVRDMA_SENDS_BAD);
	return urxe_post_malformed(qp->qp, request.wr.wr_id, status_of(rc));
}

/* Moves the QP to the error state, because the guest broke the protocol of the rings. False: the QP
 * was in the error state or in RESET already. */
static bool fail_by_guest(struct pv_qp *qp)
{
	if (!pv_qp_may_fail(qp))
		return false;
	pv_count(qp->object.dev, PVRDMA_RING_BAD);
	pv_qp_fail(qp);
	return true;
}

/* Whether the HCA will send the QP's datagrams, for which it has to be prepared. In states other
 * than RTS and SQD the engine or the HCA refuses or flushes them. */
static bool needs_preparation(const struct pv_qp *qp)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	if (qp->type != PV_QPT_UD || !urxe_qp_offloaded(qp->qp))
		return false;
	urxe_qp_query(qp->qp, &attr, &init);
	return attr.state == URXE_QPS_RTS || attr.state == URXE_QPS_SQD;
}

/* The QP is tried again when there may be room (rc -ENOMEM), or the HCA may be prepared
 * (-EAGAIN). */
static void post_later(struct pv_qp *qp, int rc)
{
	struct pvrdma *dev = qp->object.dev;
	struct pv_qp_list *list = rc == -ENOMEM ? &dev->waiting_qps : &dev->unprepared_qps;

	if (qp->waits_in == list)
		return;
	if (qp->waits_in)
		TAILQ_REMOVE(qp->waits_in, qp, waiting_link);
	qp->waits_in = list;
	TAILQ_INSERT_TAIL(list, qp, waiting_link);
}

bool pv_qp_post_sends(struct pv_qp *qp)
{
	uint32_t n, posted = 0;
	bool prepares;

	if (!qp->send.indices)
		return false;
	if (!pv_ring_filled(&qp->send, &n))
		return fail_by_guest(qp);
	if (!n || urxe_qp_is_reset(qp->qp))
		return false;
	prepares = needs_preparation(qp);
	for (; posted < n; posted++) {
		const int rc = post_one(qp, prepares);

		if (rc == -ENOMEM || rc == -EAGAIN) {
			post_later(qp, rc);
			break;
		}
		pv_ring_consume(&qp->send);
	}
	/* The HCA gets requests at once, also while the switch has no room for frames. */
	if (posted && urxe_qp_offloaded(qp->qp))
		urxe_qp_execute(qp->qp, qp->object.dev->now);
	pv_count_n(qp->object.dev, PVRDMA_SENDS, posted);
	return posted > 0;
}

bool pv_qp_post_recvs(struct pv_qp *qp)
{
	uint32_t n;

	if (qp->srq || !qp->recv.ring.indices)
		return false;
	if (!pv_ring_filled(&qp->recv.ring, &n))
		return fail_by_guest(qp);
	return n && !urxe_qp_is_reset(qp->qp) && pv_recv_queue_refill(qp->object.dev, &qp->recv);
}

bool pv_qp_post_waiting(struct pvrdma *dev)
{
	struct pv_qp_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct pv_qp *qp;
	bool posted = false;

	TAILQ_CONCAT(&waiting, &dev->waiting_qps, waiting_link);
	while ((qp = TAILQ_FIRST(&waiting))) {
		TAILQ_REMOVE(&waiting, qp, waiting_link);
		qp->waits_in = NULL;
		posted |= pv_qp_post_sends(qp);
	}
	return posted;
}

void pv_qp_requeue_unprepared(struct pvrdma *dev)
{
	struct pv_qp *qp;

	TAILQ_FOREACH(qp, &dev->unprepared_qps, waiting_link)
	qp->waits_in = &dev->waiting_qps;
	TAILQ_CONCAT(&dev->waiting_qps, &dev->unprepared_qps, waiting_link);
}

bool pv_qp_poll(struct pvrdma *dev)
{
	struct pv_qp *qp, *first = NULL;
	bool found = false;

	for (unsigned i = 0; dev->polls_all || i < POLLED_QPS; i++) {
		qp = TAILQ_FIRST(&dev->polled_qps);
		if (qp == first)
			break;
		if (!first)
			first = qp;
		TAILQ_REMOVE(&dev->polled_qps, qp, poll_link);
		TAILQ_INSERT_TAIL(&dev->polled_qps, qp, poll_link);
		found |= pv_qp_post_recvs(qp);
		if (!qp->waits_in)
			found |= pv_qp_post_sends(qp);
	}
	dev->polls_all = false;
	return found;
}
