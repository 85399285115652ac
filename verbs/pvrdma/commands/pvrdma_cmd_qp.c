/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The driver's commands CREATE_QP, MODIFY_QP, QUERY_QP and DESTROY_QP. */
#include <errno.h>

#include <rxe/offload.h>
#include <rxe/psn.h>

#include "commands/pvrdma_command.h"
#include "frames.h"
#include "object.h"
#include "pvrdma_port.h"
#include "queues/path.h"
#include "queues/pvrdma_qp.h"

static bool find_objects(const struct pvrdma *dev, const struct pv_cmd_create_qp *request,
			 struct pv_qp_objects *objects)
{
	*objects = (struct pv_qp_objects){
		.pd = pv_object_find(dev, PV_PD, request->pd_handle),
		.send_cq = pv_object_find(dev, PV_CQ, request->send_cq_handle),
		.recv_cq = pv_object_find(dev, PV_CQ, request->recv_cq_handle),
	};
	if (request->is_srq) {
		objects->srq = pv_object_find(dev, PV_SRQ, request->srq_handle);
		if (!objects->srq)
			return false;
	}
	return objects->pd && objects->send_cq && objects->recv_cq;
}

int pv_cmd_create_qp(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response)
{
	const struct pv_cmd_create_qp *create = &request->create_qp;
	struct pv_cmd_create_qp_resp *created = &response->create_qp;
	struct pv_qp_objects objects;
	struct pv_qp *qp;
	int rc = find_objects(dev, create, &objects) ? pv_qp_open(dev, &objects, create, &qp)
						     : -ENOENT;

	if (rc)
		return rc;
	created->qpn = qp->qpn;
	created->qp_handle = qp->object.handle;
	created->max_send_wr = qp->send.slots;
	created->max_recv_wr = qp->recv.ring.slots;
	created->max_send_sge = qp->max_send_sge;
	created->max_recv_sge = qp->recv.max_sge;
	return 0;
}

/* Returns whether a member of the request is at most `max`, or is not selected by attr_mask
 * (`bit`). Linux' driver copies all members, so one that is not selected may have any value. */
static bool is_at_most(const struct pv_cmd_modify_qp *request, uint32_t bit, uint32_t value,
		       uint32_t max)
{
	return !(request->attr_mask & bit) || value <= max;
}

/* Returns false if the request selects a path MTU whose code is too large, or that is longer than
 * the port's. The engine checks the device's MTU only; the NIC's driver may have chosen a shorter
 * one. */
static bool fits_port(const struct pvrdma *dev, const struct pv_cmd_modify_qp *request)
{
	const uint32_t mtu = request->attrs.path_mtu;

	return !(request->attr_mask & URXE_QP_PATH_MTU) ||
	       (mtu <= URXE_MTU_4096 && 128u << mtu <= pv_port_path_mtu(dev));
}

/*
 * Converts the attributes of MODIFY_QP to the engine's. 0, or -EINVAL: a selected member is out of
 * range, or the path is invalid. The values of states and masks are those of verbs on both sides.
 * Access flags and PSNs are cut to their valid bits, because Linux' driver passes them on as
 * programs give them.
 */
static int read_attr(const struct pvrdma *dev, const struct pv_cmd_modify_qp *request,
		     struct urxe_qp_attr *attr)
{
	const struct pv_qp_attr *from = &request->attrs;

	if (!is_at_most(request, URXE_QP_STATE, from->qp_state, URXE_QPS_COUNT - 1) ||
	    !is_at_most(request, URXE_QP_CUR_STATE, from->cur_qp_state, URXE_QPS_COUNT - 1) ||
	    !is_at_most(request, URXE_QP_PATH_MIG_STATE, from->path_mig_state, URXE_MIG_ARMED) ||
	    !fits_port(dev, request))
		return -EINVAL;
	*attr = (struct urxe_qp_attr){
		.state = (uint8_t)from->qp_state,
		.cur_state = (uint8_t)from->cur_qp_state,
		.path_mtu = (uint8_t)from->path_mtu,
		.path_mig_state = (uint8_t)from->path_mig_state,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn & URXE_PSN_MASK,
		.sq_psn = from->sq_psn & URXE_PSN_MASK,
		.dest_qpn = from->dest_qp_num,
		.access = from->qp_access_flags & URXE_ACCESS_ALL,
		.pkey_index = from->pkey_index,
		.en_sqd_async_notify = from->en_sqd_async_notify,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port = from->port_num,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
	};
	if (request->attr_mask & URXE_QP_AV && !pv_path_of_attr(dev, &from->ah_attr, &attr->path))
		return -EINVAL;
	return 0;
}

/* Adds the device's only port to a transition of QP 1 to INIT: Linux' kernel leaves it out, and the
 * engine requires it. */
static void complete_gsi(struct urxe_qp_attr *attr, uint32_t *mask)
{
	if (!(*mask & URXE_QP_STATE) || attr->state != URXE_QPS_INIT || *mask & URXE_QP_PORT)
		return;
	attr->port = PV_PORT;
	*mask |= URXE_QP_PORT;
}

int pv_cmd_modify_qp(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response)
{
	struct pv_qp *qp = pv_object_find(dev, PV_QP, request->modify_qp.qp_handle);
	uint32_t mask = request->modify_qp.attr_mask;
	struct urxe_qp_attr attr;
	int rc = qp ? read_attr(dev, &request->modify_qp, &attr) : -ENOENT;

	(void)response;
	if (rc)
		return rc;
	if (qp->type == PV_QPT_GSI)
		complete_gsi(&attr, &mask);
	return pv_qp_modify(qp, &attr, mask);
}

static void write_attr(const struct pv_qp *qp, struct pv_qp_attr *to)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_offload_query(qp->qp, &attr, &init);
	*to = (struct pv_qp_attr){
		.qp_state = attr.state,
		.cur_qp_state = attr.state,
		.path_mtu = attr.path_mtu,
		.path_mig_state = attr.path_mig_state,
		.qkey = attr.qkey,
		.rq_psn = attr.rq_psn,
		.sq_psn = attr.sq_psn,
		.dest_qp_num = attr.dest_qpn,
		.qp_access_flags = attr.access,
		.pkey_index = attr.pkey_index,
		.en_sqd_async_notify = attr.en_sqd_async_notify,
		.sq_draining = attr.sq_draining,
		.max_rd_atomic = attr.max_rd_atomic,
		.max_dest_rd_atomic = attr.max_dest_rd_atomic,
		.min_rnr_timer = attr.min_rnr_timer,
		.port_num = attr.port,
		.timeout = attr.timeout,
		.retry_cnt = attr.retry_cnt,
		.rnr_retry = attr.rnr_retry,
		.cap = {.max_send_wr = qp->send.slots,
			.max_recv_wr = qp->recv.ring.slots,
			.max_send_sge = qp->max_send_sge,
			.max_recv_sge = qp->recv.max_sge},
	};
	pv_path_to_attr(&attr.path, &to->ah_attr);
}

int pv_cmd_query_qp(struct pvrdma *dev, const union pv_request *request,
		    union pv_response *response)
{
	const struct pv_qp *qp = pv_object_find(dev, PV_QP, request->query_qp.qp_handle);

	if (!qp)
		return -ENOENT;
	write_attr(qp, &response->query_qp.attrs);
	return 0;
}

int pv_cmd_destroy_qp(struct pvrdma *dev, const union pv_request *request,
		      union pv_response *response)
{
	struct pv_qp *qp = pv_object_find(dev, PV_QP, request->handle.handle);

	if (!qp)
		return -ENOENT;
	pv_frames_stage_up_to_ack(dev, qp->qp);
	response->destroy_qp.events_reported = qp->events;
	pv_qp_close(qp);
	return 0;
}
