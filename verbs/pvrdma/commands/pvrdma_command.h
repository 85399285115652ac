/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands of the driver. Each pv_cmd_ function gets a copy of the request, and a response of
 * zeros, of which it fills in the body. It returns 0 or a negative errno value; -EINPROGRESS: it
 * has changed no object yet, and pv_command_retry() calls it again. After an error the driver's
 * objects are as before, but CREATE_UC may have destroyed a context that the driver had given up.
 */
#ifndef URXE_PVRDMA_PVRDMA_COMMAND_H
#define URXE_PVRDMA_PVRDMA_COMMAND_H

#include "pvrdma_device.h"

/*
 * Executes the command in the command slot of guest memory, and stores the response in the response
 * slot. Returns 0, or the negative errno value for PV_REG_ERR. Returns 0 also after a MODIFY_QP
 * that failed, whose error is only in the response, or that waits for the HCA.
 */
int pv_command_execute(struct pvrdma *dev);
/* If the last command waits for the HCA (-EINPROGRESS), executes it again, and stores the response
 * unless it still waits. */
void pv_command_retry(struct pvrdma *dev);

int pv_cmd_query_port(struct pvrdma *dev, const union pv_request *request,
		      union pv_response *response);
int pv_cmd_query_pkey(struct pvrdma *dev, const union pv_request *request,
		      union pv_response *response);
int pv_cmd_create_uc(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response);
int pv_cmd_create_pd(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response);
int pv_cmd_create_mr(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response);
int pv_cmd_create_cq(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response);
int pv_cmd_create_qp(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response);
int pv_cmd_modify_qp(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response);
int pv_cmd_query_qp(struct pvrdma *dev, const union pv_request *request,
		    union pv_response *response);
int pv_cmd_destroy_qp(struct pvrdma *dev, const union pv_request *request,
		      union pv_response *response);
int pv_cmd_create_bind(struct pvrdma *dev, const union pv_request *request,
		       union pv_response *response);
int pv_cmd_destroy_bind(struct pvrdma *dev, const union pv_request *request,
			union pv_response *response);
int pv_cmd_create_srq(struct pvrdma *dev, const union pv_request *request,
		      union pv_response *response);
int pv_cmd_modify_srq(struct pvrdma *dev, const union pv_request *request,
		      union pv_response *response);
int pv_cmd_query_srq(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response);

#endif
