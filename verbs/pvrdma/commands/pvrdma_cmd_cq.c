/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The driver's command CREATE_CQ. */
#include <errno.h>

#include "commands/pvrdma_command.h"
#include "object.h"
#include "queues/pvrdma_cq.h"

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
