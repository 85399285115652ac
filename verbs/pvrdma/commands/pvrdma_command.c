/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "commands/pvrdma_command.h"

#include <errno.h>

#include "object.h"

/*
 * `awaited`: the driver waits for an interrupt after the command, so the device raises one. For the
 * other commands the device raises none: the driver would take a late one for the response to its
 * next command.
 *
 * `destroys`: Linux' driver frees the memory of the object also after an error. So the device
 * executes the command even while the driver permits no access to memory (no_master). It then reads
 * only the command slot, which the driver has just filled, and stores no response. Without `run`,
 * such a command destroys the object of `kind` with the handle of the request.
 */
static const struct {
	int (*run)(struct pvrdma *dev, const union pv_request *request,
		   union pv_response *response);
	uint32_t response_size;
	bool awaited;
	bool destroys;
	enum pv_kind kind;
} commands[PV_CMDS] = {
	[PV_CMD_QUERY_PORT] = {pv_cmd_query_port, sizeof(struct pv_cmd_query_port_resp), true},
	[PV_CMD_QUERY_PKEY] = {pv_cmd_query_pkey, sizeof(struct pv_cmd_query_pkey_resp), true},
	[PV_CMD_CREATE_PD] = {pv_cmd_create_pd, sizeof(struct pv_cmd_handle_resp), true},
	[PV_CMD_DESTROY_PD] = {NULL, sizeof(struct pv_cmd_resp_hdr), false, true, PV_PD},
	[PV_CMD_CREATE_MR] = {pv_cmd_create_mr, sizeof(struct pv_cmd_create_mr_resp), true},
	[PV_CMD_DESTROY_MR] = {NULL, sizeof(struct pv_cmd_resp_hdr), false, true, PV_MR},
	[PV_CMD_CREATE_CQ] = {pv_cmd_create_cq, sizeof(struct pv_cmd_create_cq_resp), true},
	/* Not supported: the request has no page directory for the new ring, and Linux' driver
	 * never sends it. */
	[PV_CMD_RESIZE_CQ] = {NULL, sizeof(struct pv_cmd_resp_hdr), true},
	[PV_CMD_DESTROY_CQ] = {NULL, sizeof(struct pv_cmd_resp_hdr), false, true, PV_CQ},
	[PV_CMD_CREATE_QP] = {pv_cmd_create_qp, sizeof(struct pv_cmd_create_qp_resp), true},
	[PV_CMD_MODIFY_QP] = {pv_cmd_modify_qp, sizeof(struct pv_cmd_resp_hdr), true},
	[PV_CMD_QUERY_QP] = {pv_cmd_query_qp, sizeof(struct pv_cmd_query_qp_resp), true},
	[PV_CMD_DESTROY_QP] = {pv_cmd_destroy_qp, sizeof(struct pv_cmd_destroy_qp_resp), false,
			       true},
	[PV_CMD_CREATE_UC] = {pv_cmd_create_uc, sizeof(struct pv_cmd_handle_resp), true},
	[PV_CMD_DESTROY_UC] = {NULL, sizeof(struct pv_cmd_resp_hdr), false, true, PV_UC},
	[PV_CMD_CREATE_BIND] = {pv_cmd_create_bind, sizeof(struct pv_cmd_resp_hdr), false},
	[PV_CMD_DESTROY_BIND] = {pv_cmd_destroy_bind, sizeof(struct pv_cmd_resp_hdr), false, true},
	[PV_CMD_CREATE_SRQ] = {pv_cmd_create_srq, sizeof(struct pv_cmd_handle_resp), true},
	[PV_CMD_MODIFY_SRQ] = {pv_cmd_modify_srq, sizeof(struct pv_cmd_resp_hdr), false},
	[PV_CMD_QUERY_SRQ] = {pv_cmd_query_srq, sizeof(struct pv_cmd_query_srq_resp), true},
	[PV_CMD_DESTROY_SRQ] = {NULL, sizeof(struct pv_cmd_resp_hdr), false, true, PV_SRQ},
};

/* Copies the command from its slot in guest memory. False: the slot is not in the guest's memory.
 */
static bool copy_request(const struct pvrdma *dev, union pv_request *request)
{
	const void *slot = vnic_guest_memory_range(dev->attr.memory, dev->slots.request,
						   sizeof(*request), false);

	if (slot)
		pv_copy_once(request, slot, sizeof(*request));
	return slot;
}

static bool store_response(const struct pvrdma *dev, const union pv_response *response,
			   uint32_t size)
{
	void *slot = vnic_guest_memory_range(dev->attr.memory, dev->slots.response, size, true);

	if (!slot)
		return false;
	memcpy(slot, response, size);
	vnic_dirty_mark(vnic_guest_memory_log(dev->attr.memory), slot, size);
	return true;
}

/*
 * Whether the device reports a failure of this command only in the response, and 0 in ERR. Linux'
 * driver looks at a response's error only after MODIFY_QP. After other commands it looks at ERR,
 * and does not wait for the response if ERR has an error.
 */
static bool reports_error_in_response(uint32_t cmd)
{
	return cmd == PV_CMD_MODIFY_QP;
}

static int call_command(struct pvrdma *dev, const union pv_request *request,
			union pv_response *response)
{
	const uint32_t cmd = request->hdr.cmd;

	if (commands[cmd].run)
		return commands[cmd].run(dev, request, response);
	return commands[cmd].destroys
		       ? pv_object_destroy(dev, commands[cmd].kind, request->handle.handle)
		       : -EOPNOTSUPP;
}

static int run_command(struct pvrdma *dev, const union pv_request *request)
{
	const uint32_t cmd = request->hdr.cmd;
	union pv_response response = {.hdr = {.response = request->hdr.response}};
	int rc;

	if (cmd >= PV_CMDS)
		return -EOPNOTSUPP;
	if (dev->no_master && !commands[cmd].destroys)
		return -EIO;
	rc = call_command(dev, request, &response);
	if (rc == -EINPROGRESS) {
		dev->deferred_command = *request;
		dev->command_deferred = true;
		return 0;
	}
	if (rc)
		pv_count(dev, PVRDMA_COMMAND_ERRORS);
	response.hdr.ack = PV_CMD_ACK + cmd;
	response.hdr.err = (uint8_t)-rc;
	if (dev->no_master)
		return rc;
	if (!store_response(dev, &response, commands[cmd].response_size))
		return -EFAULT;
	if (rc && !reports_error_in_response(cmd))
		return rc;
	if (commands[cmd].awaited)
		pv_raise(dev, PV_VECTOR_RESPONSE);
	return 0;
}

int pv_command_execute(struct pvrdma *dev)
{
	union pv_request request;

	/* If the last command is still deferred, the driver has given it up. */
	dev->command_deferred = false;
	pv_count(dev, PVRDMA_COMMANDS);
	if (!dev->active)
		return -EINVAL;
	if (!copy_request(dev, &request))
		return -EFAULT;
	return run_command(dev, &request);
}

void pv_command_retry(struct pvrdma *dev)
{
	const union pv_request request = dev->deferred_command;

	if (!dev->command_deferred)
		return;
	dev->command_deferred = false;
	run_command(dev, &request);
}
