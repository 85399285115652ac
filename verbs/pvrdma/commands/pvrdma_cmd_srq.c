/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The driver's commands CREATE_SRQ, MODIFY_SRQ and QUERY_SRQ. */
#include <errno.h>

#include "commands/pvrdma_command.h"
#include "object.h"
#include "queues/pvrdma_recv_queue.h"
#include "queues/pvrdma_srq.h"

#define SRQT_BASIC 0

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
	/* The limit counts the engine's requests, so the engine must have those of the ring. */
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
