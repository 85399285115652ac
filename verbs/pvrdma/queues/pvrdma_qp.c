/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/pvrdma_qp.h"

#include <errno.h>
#include <stdlib.h>

#include <rxe/offload.h>

#include "frames.h"
#include "memory/page_dir.h"
#include "object.h"
#include "pvrdma_hca.h"
#include "queues/event_ring.h"
#include "queues/pvrdma_recv_queue.h"
#include "queues/send_wqe.h"
#include "queues/wqe_size.h"

/* Opens the header page and the pages of both queues. 0; -EINVAL: the driver has given too few
 * pages; or an error of pv_pages_open(). */
static int open_rings(struct pvrdma *dev, const struct pv_cmd_create_qp *request, struct pv_qp *qp)
{
	const uint32_t send_size = pv_send_wqe_size(request->max_send_sge);
	/* With an SRQ the QP has no receive queue, and its size in the request may be anything. */
	const uint32_t recv_size = pv_recv_wqe_size(qp->srq ? 0 : request->max_recv_sge);
	const uint32_t recv_slots = qp->srq ? 0 : request->max_recv_wr;
	const uint32_t recv_at = 1 + request->send_chunks;
	const uint32_t n = recv_at + pv_ring_pages(recv_slots, recv_size);
	struct pv_ring_state *state;
	int rc;

	if (pv_ring_pages(request->max_send_wr, send_size) > request->send_chunks)
		return -EINVAL;
	rc = pv_pages_open(&qp->pages, dev->attr.memory, request->pdir_dma, n,
			   request->total_chunks);
	if (rc)
		return rc;
	qp->max_send_sge = request->max_send_sge;
	state = pv_pages_header(&qp->pages);
	pv_ring_init(&qp->send, dev->attr.memory, &state->tx, qp->pages.page + 1,
		     request->max_send_wr, send_size);
	if (qp->srq)
		return 0;
	qp->recv.max_sge = request->max_recv_sge;
	pv_ring_init(&qp->recv.ring, dev->attr.memory, &state->rx, qp->pages.page + recv_at,
		     recv_slots, recv_size);
	return 0;
}

/*
 * Returns the QPN for a new QP: 1 for the GSI QP, else a number that the owner chooses. If the
 * owner chooses none, returns the QP's handle below a generation number, so that the last QPs of
 * the same handle had other QPNs.
 */
static uint32_t take_qpn(struct pvrdma *dev, struct pv_qp *qp)
{
	const struct pvrdma_owner *owner = dev->attr.owner;
	uint32_t qpn;

	if (qp->type == PV_QPT_GSI)
		return URXE_QPN_GSI;
	qpn = owner ? owner->take_qpn(owner->ctx) : 0;
	qp->qpn_taken = qpn;
	if (qpn)
		return qpn;
	dev->qpn_generation = dev->qpn_generation % UINT8_MAX + 1;
	return dev->qpn_generation << 16 | qp->object.handle;
}

static void free_qpn(const struct pv_qp *qp, uint32_t qpn)
{
	const struct pvrdma_owner *owner = qp->object.dev->attr.owner;

	if (qp->qpn_taken)
		owner->free_qpn(owner->ctx, qpn);
}

/* The most QPNs from the owner that create_with_own_number() replaces for one QP, because queue
 * pairs of the HCA have them. */
#define MAX_HELD 16

/*
 * Creates the QP with a QPN of take_qpn(). If a queue pair of the HCA has that QPN already
 * (-EEXIST), takes another one. Gives QPNs that are in use back to the owner only at the end, so
 * that the owner does not choose them again meanwhile. Returns the result of urxe_qp_create().
 */
static int create_with_own_number(struct pvrdma *dev, struct urxe_qp_init *init, struct pv_qp *qp)
{
	uint32_t held[MAX_HELD], n = 0;
	int rc;

	for (;;) {
		init->qpn = take_qpn(dev, qp);
		rc = urxe_qp_create(dev->engine, init, &qp->qp);
		if (rc != -EEXIST || !qp->qpn_taken || n == MAX_HELD)
			break;
		held[n++] = init->qpn;
	}
	if (rc)
		free_qpn(qp, init->qpn);
	while (n)
		dev->attr.owner->free_qpn(dev->attr.owner->ctx, held[--n]);
	return rc;
}

/* Creates the QP. If the HCA executes it, the HCA chooses its QPN; if the HCA does not take it
 * (-ENOSPC), the owner or this device does. */
static int create_numbered(struct pvrdma *dev, struct urxe_qp_init *init, struct pv_qp *qp)
{
	int rc = pv_hca_serves(qp->pd) && qp->type != PV_QPT_GSI
			 ? urxe_qp_create(dev->engine, init, &qp->qp)
			 : -ENOSPC;

	return rc == -ENOSPC ? create_with_own_number(dev, init, qp) : rc;
}

static int open_engine_qp(struct pvrdma *dev, const struct pv_cmd_create_qp *request,
			  struct pv_qp *qp)
{
	struct urxe_qp_init init = {
		.ctx = qp,
		.type = qp->type == PV_QPT_RC ? URXE_QPT_RC : URXE_QPT_UD,
		.sq_sig_all = request->sq_sig_all,
		.pd = qp->pd->object.handle,
		.send_cq = qp->send_cq->cq,
		.recv_cq = qp->recv_cq->cq,
		.srq = qp->srq ? qp->srq->recv.rq : NULL,
		.cap = {.max_send_wr = request->max_send_wr,
			.max_recv_wr = qp->srq ? 0 : request->max_recv_wr,
			.max_send_sge = request->max_send_sge,
			/* At least 1, for bad_segment (pvrdma_recv_queue.c). */
			.max_recv_sge = request->max_recv_sge ? request->max_recv_sge : 1},
	};
	int rc = create_numbered(dev, &init, qp);

	if (rc)
		return rc;
	qp->qpn = urxe_qp_qpn(qp->qp);
	qp->recv.rq = urxe_qp_rq(qp->qp);
	return 0;
}

static int check_request(const struct pv_cmd_create_qp *request, bool has_srq)
{
	if (request->qp_type != PV_QPT_RC && request->qp_type != PV_QPT_UD &&
	    request->qp_type != PV_QPT_GSI)
		return -EOPNOTSUPP;
	if (!pv_is_queue_size(request->max_send_wr) || request->max_send_sge > URXE_MAX_SGE)
		return -EINVAL;
	if (!has_srq &&
	    (!pv_is_queue_size(request->max_recv_wr) || request->max_recv_sge > URXE_MAX_SGE))
		return -EINVAL;
	return 0;
}

/* Bytes that the engine takes for an outstanding READ or atomic of the peer. */
#define RESOURCE_BYTES 96u

/* Estimates the most bytes that the object and the engine take. */
static uint64_t bytes_of(const struct pv_qp *qp, const struct pv_cmd_create_qp *request)
{
	const uint64_t sge = sizeof(struct urxe_seg);
	uint64_t bytes = sizeof(*qp) + 4096 + qp->pages.n * sizeof(qp->pages.page[0]) +
			 request->max_send_wr * (160 + request->max_send_sge * sge);

	/* READs and atomics of the peer: the most, because MODIFY_QP sets their number later. */
	if (qp->type == PV_QPT_RC)
		bytes += URXE_MAX_RD_ATOMIC * RESOURCE_BYTES;
	if (!qp->srq)
		bytes += request->max_recv_wr * (32 + request->max_recv_sge * sge);
	return bytes;
}

static void use_objects(const struct pv_qp *qp, int change)
{
	qp->pd->object.users += (uint32_t)change;
	qp->send_cq->object.users += (uint32_t)change;
	qp->recv_cq->object.users += (uint32_t)change;
	if (qp->srq)
		qp->srq->object.users += (uint32_t)change;
}

static struct pv_qp *make_qp(const struct pv_qp_objects *objects, uint8_t type)
{
	struct pv_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->pd = objects->pd;
	qp->send_cq = objects->send_cq;
	qp->recv_cq = objects->recv_cq;
	qp->srq = objects->srq;
	qp->type = type;
	return qp;
}

int pv_qp_open(struct pvrdma *dev, const struct pv_qp_objects *objects,
	       const struct pv_cmd_create_qp *request, struct pv_qp **out)
{
	struct pv_qp *qp;
	int rc = check_request(request, objects->srq);

	if (rc)
		return rc;
	qp = make_qp(objects, request->qp_type);
	if (!qp)
		return -ENOMEM;
	rc = open_rings(dev, request, qp);
	if (!rc)
		rc = pv_object_add(dev, &qp->object, PV_QP, qp->pd->object.uar_page,
				   bytes_of(qp, request));
	if (rc)
		goto err;
	rc = open_engine_qp(dev, request, qp);
	if (rc) {
		pv_object_remove(&qp->object);
		goto err;
	}
	use_objects(qp, 1);
	/* Posts the SRQ's requests, whose doorbell may have been replaced by another SRQ's
	 * (doorbell_page.h). */
	if (qp->srq)
		pv_recv_queue_refill(dev, &qp->srq->recv);
	TAILQ_INSERT_TAIL(&dev->polled_qps, qp, poll_link);
	*out = qp;
	return 0;
err:
	free(qp->pages.page);
	free(qp);
	return rc;
}

static void stop_waiting(struct pv_qp *qp)
{
	if (qp->waits_in)
		TAILQ_REMOVE(qp->waits_in, qp, waiting_link);
	qp->waits_in = NULL;
}

void pv_qp_close(struct pv_qp *qp)
{
	struct pvrdma *dev = qp->object.dev;

	stop_waiting(qp);
	TAILQ_REMOVE(&dev->polled_qps, qp, poll_link);
	urxe_qp_destroy(qp->qp);
	free_qpn(qp, qp->qpn);
	use_objects(qp, -1);
	pv_object_remove(&qp->object);
	free(qp->pages.page);
	free(qp);
}

/* Empties the rings, as the driver does after a reset. */
static void reset_rings(struct pv_qp *qp)
{
	stop_waiting(qp);
	if (qp->send.indices)
		pv_ring_reset(&qp->send);
	if (qp->recv.ring.indices)
		pv_ring_reset(&qp->recv.ring);
}

/* Before an RC QP goes to RTR, tells the owner the peer: the owner may find a shorter path to the
 * peer than the switch. */
static void announce_connection(const struct pv_qp *qp, const struct urxe_qp_attr *attr,
				uint32_t mask)
{
	const uint32_t needed = URXE_QP_STATE | URXE_QP_AV | URXE_QP_DEST_QPN;
	const struct pvrdma_owner *owner = qp->object.dev->attr.owner;

	if (owner && qp->type == PV_QPT_RC && (mask & needed) == needed &&
	    attr->state == URXE_QPS_RTR)
		owner->connecting(owner->ctx, attr->path.dmac, attr->dest_qpn);
}

/* Prepares the HCA for the connection of a QP, if the HCA is to execute it; the owner may need
 * announce_connection() to decide that. 0; -EINPROGRESS: the HCA is not prepared yet; or another
 * error of pvrdma_hca.prepare. */
static int prepare_connection(const struct pv_qp *qp, const struct urxe_qp_attr *attr,
			      uint32_t mask)
{
	int rc;

	if (qp->type != PV_QPT_RC || !(mask & URXE_QP_AV) ||
	    !urxe_offload_takes(qp->qp, attr, mask))
		return 0;
	rc = pv_hca_prepare(qp->pd, &attr->path, true);
	return rc == -EAGAIN ? -EINPROGRESS : rc;
}

int pv_qp_modify(struct pv_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	bool ends = mask & URXE_QP_STATE &&
		    (attr->state == URXE_QPS_RESET || attr->state == URXE_QPS_ERR);
	int rc;

	if (ends)
		pv_frames_stage_up_to_ack(qp->object.dev, qp->qp);
	announce_connection(qp, attr, mask);
	rc = prepare_connection(qp, attr, mask)
		     ?: urxe_qp_modify(qp->qp, qp->object.dev->now, attr, mask);
	if (rc || !(mask & URXE_QP_STATE))
		return rc;
	if (attr->state == URXE_QPS_RESET) {
		reset_rings(qp);
		return 0;
	}
	pv_qp_post_recvs(qp);
	if (attr->state >= URXE_QPS_RTS)
		pv_qp_post_sends(qp);
	return 0;
}

void pv_qp_fail(struct pv_qp *qp)
{
	static const struct urxe_qp_attr error = {.state = URXE_QPS_ERR};

	qp->events++;
	pv_event_report(&qp->object, URXE_ASYNC_QP_FATAL);
	urxe_qp_modify(qp->qp, qp->object.dev->now, &error, URXE_QP_STATE);
}

/* Whether the device must not write completions to the guest's memory now. */
static bool may_not_complete(const struct pvrdma *dev)
{
	return dev->paused || dev->no_master;
}

void pv_qp_memory_removed(struct pv_qp *qp, const struct pv_removed *removed)
{
	if (!pv_removed_takes(removed, qp->object.dev, &qp->send, &qp->pages))
		return;
	stop_waiting(qp);
	qp->recv.ring.indices = NULL;
	if (may_not_complete(qp->object.dev))
		qp->failure_due = true;
	else
		pv_qp_fail(qp);
}

bool pv_qp_may_fail(const struct pv_qp *qp)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_qp_query(qp->qp, &attr, &init);
	return attr.state != URXE_QPS_ERR && attr.state != URXE_QPS_RESET;
}

void pv_qp_restored(struct pv_qp *qp)
{
	qp->failure_due = !qp->send.indices && pv_qp_may_fail(qp);
}

void pv_qp_fail_due(struct pvrdma *dev)
{
	struct pv_qp *qp;
	uint32_t at = 0;

	if (may_not_complete(dev))
		return;
	while ((qp = pv_object_next(dev, PV_QP, &at))) {
		if (qp->failure_due)
			pv_qp_fail(qp);
		qp->failure_due = false;
	}
}
