/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The driver's commands for user contexts, PDs, regions, CQs and SRQs, except those that destroy an
 * object. */
#include <errno.h>
#include <stdlib.h>

#include "commands/pvrdma_command.h"
#include "doorbell_page.h"
#include "memory/pvrdma_mr.h"
#include "object.h"
#include "queues/pvrdma_cq.h"
#include "queues/pvrdma_recv_queue.h"
#include "queues/pvrdma_srq.h"

#define SRQT_BASIC 0

/* Destroys the context that the page already has, if any. The driver gives a page to one context
 * only, so it has given up the CREATE_UC that made the earlier context. */
static void destroy_context_of(struct pvrdma *dev, uint32_t page)
{
	const struct pv_object *uc;
	uint32_t at = 0;

	while ((uc = pv_object_next(dev, PV_UC, &at)))
		if (uc->uar_page == page)
			pv_object_destroy(dev, PV_UC, uc->handle);
}

int pv_cmd_create_uc(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response)
{
	/* Page 0 is the driver's. A pfn64 below uar_pfn wraps to a page number that is too large.
	 */
	const uint64_t page = request->create_uc.pfn64 - dev->slots.uar_pfn;
	struct pv_uc *uc;
	int rc;

	if (!page || page >= PVRDMA_UAR_PAGES)
		return -EINVAL;
	uc = calloc(1, sizeof(*uc));
	if (!uc)
		return -ENOMEM;
	destroy_context_of(dev, (uint32_t)page);
	rc = pv_object_add(dev, &uc->object, PV_UC, (uint32_t)page, sizeof(*uc));
	if (rc) {
		free(uc);
		return rc;
	}
	pv_doorbell_page_use(dev, (uint32_t)page);
	response->handle.handle = uc->object.handle;
	return 0;
}

int pv_cmd_create_pd(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response)
{
	struct pv_object *uc = NULL;
	struct pv_pd *pd;
	int rc;

	if (request->handle.handle) {
		uc = pv_object_find(dev, PV_UC, request->handle.handle);
		if (!uc)
			return -ENOENT;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	rc = pv_object_add(dev, &pd->object, PV_PD, uc ? uc->uar_page : 0, sizeof(*pd));
	if (rc) {
		free(pd);
		return rc;
	}
	pd->uc = uc;
	if (uc)
		uc->users++;
	response->handle.handle = pd->object.handle;
	return 0;
}

int pv_cmd_create_mr(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response)
{
	struct pv_pd *pd = pv_object_find(dev, PV_PD, request->create_mr.pd_handle);
	struct pv_mr *mr;
	int rc = pd ? pv_mr_open(dev, pd, &request->create_mr, &mr) : -ENOENT;

	if (rc)
		return rc;
	response->create_mr.mr_handle = mr->object.handle;
	response->create_mr.lkey = response->create_mr.rkey = pv_mr_key(mr);
	return 0;
}

int pv_cmd_create_cq(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response)
{
	struct pv_object *uc = NULL;
	struct pv_cq *cq;
	int rc;

	if (request->create_cq.ctx_handle) {
		uc = pv_object_find(dev, PV_UC, request->create_cq.ctx_handle);
		if (!uc)
			return -ENOENT;
	}
	rc = pv_cq_open(dev, uc, &request->create_cq, &cq);
	if (rc)
		return rc;
	response->create_cq.cq_handle = cq->object.handle;
	response->create_cq.cqe = cq->ring.slots;
	return 0;
}

int pv_cmd_create_srq(struct pvrdma *dev, const union pv_request *request,
		      union pv_response *response)
{
	struct pv_pd *pd = pv_object_find(dev, PV_PD, request->create_srq.pd_handle);
	struct pv_srq *srq;
	int rc;

	if (!pd)
		return -ENOENT;
	if (request->create_srq.srq_type != SRQT_BASIC)
		return -EOPNOTSUPP;
	rc = pv_srq_open(dev, pd, &request->create_srq, &srq);
	if (!rc)
		response->handle.handle = srq->object.handle;
	return rc;
}

int pv_cmd_modify_srq(struct pvrdma *dev, const union pv_request *request,
		      union pv_response *response)
{
	struct pv_srq *srq = pv_object_find(dev, PV_SRQ, request->modify_srq.srq_handle);

	(void)response;
	if (!srq)
		return -ENOENT;
	if (request->modify_srq.attr_mask != PV_SRQ_LIMIT)
		return -EINVAL;
	/* The engine compares the limit with the number of its requests, so those in the ring are
	 * posted first. */
	pv_recv_queue_refill(dev, &srq->recv);
	return urxe_srq_set_limit(srq->recv.rq, request->modify_srq.attrs.srq_limit);
}

int pv_cmd_query_srq(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response)
{
	struct pv_srq *srq = pv_object_find(dev, PV_SRQ, request->handle.handle);

	if (!srq)
		return -ENOENT;
	response->query_srq.attrs = (struct pv_srq_attr){
		.max_wr = srq->recv.ring.slots,
		.max_sge = srq->recv.max_sge,
		.srq_limit = urxe_srq_limit(srq->recv.rq),
	};
	return 0;
}
