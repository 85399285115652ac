/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/pvrdma_srq.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/page_dir.h"
#include "object.h"
#include "pvrdma_hca.h"
#include "queues/event_ring.h"
#include "queues/pvrdma_recv_queue.h"
#include "queues/wqe_size.h"

static int open_ring(struct pvrdma *dev, const struct pv_cmd_create_srq *request,
		     struct pv_srq *srq)
{
	const uint32_t size = pv_recv_wqe_size(request->attrs.max_sge);
	const uint32_t n = 1 + pv_ring_pages(request->attrs.max_wr, size);
	const int rc = pv_pages_open(&srq->pages, dev->attr.memory, request->pdir_dma, n,
				     request->nchunks);

	if (rc)
		return rc;
	srq->recv.max_sge = request->attrs.max_sge;
	pv_ring_init(&srq->recv.ring, dev->attr.memory, &pv_pages_header(&srq->pages)->rx,
		     srq->pages.page + 1, request->attrs.max_wr, size);
	return 0;
}

static int open_engine_srq(struct pvrdma *dev, const struct pv_srq_attr *attrs, struct pv_srq *srq)
{
	const struct urxe_rq_attr attr = {
		.ctx = srq,
		.pd = srq->pd->object.handle,
		.max_wr = attrs->max_wr,
		/* At least 1, for bad_segment (pvrdma_recv_queue.c). */
		.max_sge = attrs->max_sge ? attrs->max_sge : 1,
		.alone = !pv_hca_serves(srq->pd),
	};
	int rc = urxe_srq_create(dev->engine, &attr, &srq->recv.rq);

	if (rc)
		return rc;
	/* Cuts a limit that is too high: Linux' driver passes on srq_limit, which programs need not
	 * set (ibv_create_srq(3)). */
	rc = urxe_srq_set_limit(srq->recv.rq, attrs->srq_limit < attrs->max_wr ? attrs->srq_limit
									       : attrs->max_wr);
	if (rc)
		urxe_srq_destroy(srq->recv.rq);
	return rc;
}

/* Estimates the bytes that the engine takes for the requests. If the HCA has the SRQ, the engine
 * has a second copy. */
static uint64_t engine_bytes(const struct pv_pd *pd, const struct pv_srq_attr *attrs)
{
	const uint64_t copies = pv_hca_serves(pd) ? 2 : 1;

	return copies * attrs->max_wr * (32 + attrs->max_sge * sizeof(struct urxe_seg));
}

int pv_srq_open(struct pvrdma *dev, struct pv_pd *pd, const struct pv_cmd_create_srq *request,
		struct pv_srq **out)
{
	struct pv_srq *srq;
	int rc;

	if (!pv_is_queue_size(request->attrs.max_wr) || request->attrs.max_sge > URXE_MAX_SGE)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->pd = pd;
	rc = open_ring(dev, request, srq);
	if (!rc)
		rc = pv_object_add(dev, &srq->object, PV_SRQ, pd->object.uar_page,
				   sizeof(*srq) + srq->pages.n * sizeof(srq->pages.page[0]) +
					   engine_bytes(pd, &request->attrs));
	if (rc)
		goto err;
	rc = open_engine_srq(dev, &request->attrs, srq);
	if (rc) {
		pv_object_remove(&srq->object);
		goto err;
	}
	pd->object.users++;
	*out = srq;
	return 0;
err:
	free(srq->pages.page);
	free(srq);
	return rc;
}

void pv_srq_close(struct pv_srq *srq)
{
	urxe_srq_destroy(srq->recv.rq);
	srq->pd->object.users--;
	pv_object_remove(&srq->object);
	free(srq->pages.page);
	free(srq);
}

void pv_srq_refill_used(struct pv_srq *srq)
{
	if (srq->object.users)
		pv_recv_queue_refill(srq->object.dev, &srq->recv);
}

void pv_srq_memory_removed(struct pv_srq *srq, const struct pv_removed *removed)
{
	if (pv_removed_takes(removed, srq->object.dev, &srq->recv.ring, &srq->pages))
		pv_event_report(&srq->object, URXE_ASYNC_SRQ_ERR);
}
