/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The driver's command CREATE_MR. */
#include <errno.h>

#include "commands/pvrdma_command.h"
#include "memory/pvrdma_mr.h"
#include "object.h"

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
