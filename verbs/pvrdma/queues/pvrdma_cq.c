/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/pvrdma_cq.h"

#include <errno.h>
#include <stdlib.h>

#include <rxe/offload.h>
#include <rxe/service_level.h>

#include "memory/page_dir.h"
#include "object.h"
#include "queues/event_ring.h"

_Static_assert(sizeof(struct pvrdma_cqe) == 64, "a power of two");

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static int open_ring(struct pvrdma *dev, const struct pv_cmd_create_cq *request, struct pv_cq *cq)
{
	const uint32_t n = 1 + pv_ring_pages(request->cqe, sizeof(struct pvrdma_cqe));
	const int rc =
		pv_pages_open(&cq->pages, dev->attr.memory, request->pdir_dma, n, request->nchunks);

	if (!rc)
		pv_ring_init(&cq->ring, dev->attr.memory, &pv_pages_header(&cq->pages)->rx,
			     cq->pages.page + 1, request->cqe, sizeof(struct pvrdma_cqe));
	return rc;
}

int pv_cq_open(struct pvrdma *dev, struct pv_object *uc, const struct pv_cmd_create_cq *request,
	       struct pv_cq **out)
{
	struct pv_cq *cq;
	int rc;

	if (!is_power_of_two(request->cqe) || request->cqe > PV_MAX_CQE)
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	rc = open_ring(dev, request, cq);
	if (!rc)
		rc = pv_object_add(dev, &cq->object, PV_CQ, uc ? uc->uar_page : 0,
				   sizeof(*cq) + cq->pages.n * sizeof(cq->pages.page[0]));
	if (rc)
		goto err;
	rc = urxe_cq_create(dev->engine, cq, &cq->cq);
	if (rc) {
		pv_object_remove(&cq->object);
		goto err;
	}
	cq->uc = uc;
	if (uc)
		uc->users++;
	*out = cq;
	return 0;
err:
	free(cq->pages.page);
	free(cq);
	return rc;
}

void pv_cq_close(struct pv_cq *cq)
{
	if (cq->notify_due)
		TAILQ_REMOVE(&cq->object.dev->notify_cqs, cq, notify_link);
	urxe_cq_destroy(cq->cq);
	if (cq->uc)
		cq->uc->users--;
	pv_object_remove(&cq->object);
	free(cq->pages.page);
	free(cq);
}

void pv_cq_report_failure(struct pv_cq *cq)
{
	if (cq->failed)
		return;
	cq->failed = true;
	pv_event_report(&cq->object, URXE_ASYNC_CQ_ERR);
}

void pv_cq_memory_removed(struct pv_cq *cq, const struct pv_removed *removed)
{
	if (pv_removed_takes(removed, cq->object.dev, &cq->ring, &cq->pages))
		pv_cq_report_failure(cq);
}

static uint32_t cqe_opcode(uint32_t opcode)
{
	switch (opcode) {
	case URXE_WC_RDMA_WRITE: return PVRDMA_WC_RDMA_WRITE;
	case URXE_WC_RDMA_READ: return PVRDMA_WC_RDMA_READ;
	case URXE_WC_COMPARE_SWAP: return PVRDMA_WC_COMP_SWAP;
	case URXE_WC_FETCH_ADD: return PVRDMA_WC_FETCH_ADD;
	case URXE_WC_LOCAL_INV: return PVRDMA_WC_LOCAL_INV;
	case URXE_WC_REG_MR: return PVRDMA_WC_FAST_REG_MR;
	case URXE_WC_RECV: return PVRDMA_WC_RECV;
	case URXE_WC_RECV_RDMA_WITH_IMM: return PVRDMA_WC_RECV_RDMA_WITH_IMM;
	default: return PVRDMA_WC_SEND;
	}
}

static uint32_t cqe_flags(uint32_t flags)
{
	return (flags & URXE_WC_GRH ? PVRDMA_WC_GRH : 0) |
	       (flags & URXE_WC_WITH_IMM ? PVRDMA_WC_WITH_IMM : 0) |
	       (flags & URXE_WC_WITH_INV ? PVRDMA_WC_WITH_INVALIDATE : 0);
}

static uint8_t cqe_network(uint8_t net)
{
	switch (net) {
	case URXE_NET_IPV4: return PVRDMA_NETWORK_IPV4;
	case URXE_NET_IPV6: return PVRDMA_NETWORK_IPV6;
	default: return PVRDMA_NETWORK_ROCE_V1;
	}
}

/* The engine's and PVRDMA's statuses have the values of enum ibv_wc_status. */
_Static_assert((int)URXE_WC_LOC_LEN_ERR == (int)PVRDMA_WC_LOC_LEN_ERR &&
		       (int)URXE_WC_WR_FLUSH_ERR == (int)PVRDMA_WC_WR_FLUSH_ERR &&
		       (int)URXE_WC_REM_ACCESS_ERR == (int)PVRDMA_WC_REM_ACCESS_ERR &&
		       (int)URXE_WC_RNR_RETRY_EXC_ERR == (int)PVRDMA_WC_RNR_RETRY_EXC_ERR,
	       "the same order");

static void fill_success(struct pvrdma_cqe *cqe, const struct pv_qp *qp, const struct urxe_wc *wc)
{
	bool is_datagram = qp->type == PV_QPT_UD;

	cqe->opcode = cqe_opcode(wc->opcode);
	cqe->byte_len = wc->byte_len;
	cqe->imm_data = wc->flags & URXE_WC_WITH_INV ? wc->invalidated_key : wc->imm;
	cqe->src_qp = wc->src_qpn;
	cqe->wc_flags = cqe_flags(wc->flags);
	cqe->pkey_index = wc->pkey_index;
	/* Completions of UD add the packet's type to the service level; those of QP 1 do not,
	 * because the guest's connection manager expects the level alone. */
	cqe->sl = is_datagram ? sl_of_datagram(wc->sl, wc->net == URXE_NET_IPV4) : wc->sl;
	if (qp->type != PV_QPT_RC)
		cqe->network_hdr_type = cqe_network(wc->net);
}

static void add_cqe(struct pv_cq *cq, const struct urxe_wc *wc)
{
	const struct pv_qp *qp = wc->qp_ctx;
	struct pvrdma_cqe cqe = {
		.wr_id = wc->wr_id,
		.qp = qp->object.handle,
		.status = wc->status,
		.port_num = PV_PORT,
	};

	if (wc->status == URXE_WC_SUCCESS)
		fill_success(&cqe, qp, wc);
	memcpy(pv_ring_slot(&cq->ring, cq->ring.index), &cqe, sizeof(cqe));
	pv_ring_produce(&cq->ring);
	cq->n_completions++;
	if (wc->solicited)
		cq->solicited = cq->n_completions;
}

/* Sets *unread to the number of completions that the driver has not consumed. False: the ring is
 * unusable, or the device may not access it. */
static bool count_unread(struct pv_cq *cq, uint32_t *unread)
{
	if (!cq->ring.indices || cq->object.dev->no_master)
		return false;
	if (pv_ring_unread(&cq->ring, unread))
		return true;
	pv_count(cq->object.dev, PVRDMA_RING_BAD);
	return false;
}

bool pv_cq_is_empty(struct pv_cq *cq)
{
	uint32_t unread;

	return count_unread(cq, &unread) && !unread;
}

bool pv_cq_is_left_unread(struct pv_cq *cq)
{
	const uint32_t before = cq->left_unread, head = cq->left_head;

	if (!count_unread(cq, &cq->left_unread))
		cq->left_unread = 0;
	cq->left_head = (cq->ring.index - cq->left_unread) & (2 * cq->ring.slots - 1);
	return before && cq->left_unread && cq->left_head == head &&
	       cq->n_completions > cq->notified;
}

bool pv_cq_complete(void *ctx, const struct urxe_wc *wc)
{
	struct pv_cq *cq = ctx;
	uint32_t unread;

	if (!count_unread(cq, &unread) || unread == cq->ring.slots) {
		pv_count(cq->object.dev, PVRDMA_CQ_OVERFLOWS);
		return false;
	}
	pv_count(cq->object.dev, PVRDMA_COMPLETIONS);
	add_cqe(cq, wc);
	return true;
}

/*
 * Whether the CQ must cause no notification: the guest's kernel only polls it (IB_POLL_DIRECT), and
 * would warn. The device itself may have armed such a CQ in place of another one of the page
 * (doorbell_page.h).
 */
static bool is_only_polled(const struct pv_cq *cq)
{
	return !cq->uc && cq->polled && !cq->uses_events;
}

void pv_cq_notify_later(struct pv_cq *cq)
{
	cq->armed = false;
	if (cq->notify_due || is_only_polled(cq))
		return;
	cq->notify_due = cq->uses_events = true;
	TAILQ_INSERT_TAIL(&cq->object.dev->notify_cqs, cq, notify_link);
}

void pv_cq_comp_event(void *ctx)
{
	struct pv_cq *cq = ctx;

	if (cq->armed)
		pv_cq_notify_later(cq);
}

void pv_cq_arm(struct pv_cq *cq, bool solicited_only)
{
	uint32_t unread;
	uint64_t newest;
	bool has_unnotified;

	if (!count_unread(cq, &unread))
		return;
	solicited_only &= !urxe_offload_hca_cq(cq->cq);
	newest = solicited_only ? cq->solicited : cq->n_completions;
	has_unnotified = newest > cq->notified && cq->n_completions - newest < unread;
	if (has_unnotified) {
		pv_cq_notify_later(cq);
		return;
	}
	cq->armed = true;
	urxe_cq_arm(cq->cq, solicited_only);
}

void pv_cq_arm_all(struct pvrdma *dev)
{
	struct pv_cq *cq;
	uint32_t at = 0;

	while ((cq = pv_object_next(dev, PV_CQ, &at)))
		pv_cq_arm(cq, false);
}

void pv_cq_notify_due(struct pvrdma *dev)
{
	const bool usable = dev->cq_notify.ring.indices;
	struct pv_cq *cq;

	while ((cq = TAILQ_FIRST(&dev->notify_cqs))) {
		if (usable && !pv_event_notify(dev, cq->object.handle)) {
			pv_count(dev, PVRDMA_NOTIFICATIONS_LATE);
			return;
		}
		cq->notify_due = false;
		cq->notified = cq->n_completions;
		TAILQ_REMOVE(&dev->notify_cqs, cq, notify_link);
	}
}
