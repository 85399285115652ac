/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* CREATE_QP, QUERY_QP, MODIFY_QP, DESTROY_QP, ATTACH_MCAST, DETACH_MCAST. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "adapter/adapter.h"
#include "adapter/added_qp.h"
#include "adapter/remote_qp.h"
#include "daemon/adapter_hca.h"
#include "daemon/uplink_qpns.h"
#include "engine/clock.h"
#include "objects/settle.h"
#include "objects/verbs_pd.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "poll/poll_hook.h"
#include "poll/recv_hook.h"
#include "process/log.h"
#include "queues/publish.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"
#include "requests/added_qp_requests.h"
#include "requests/daemon_requests.h"
#include "requests/hca_choice.h"
#include "requests/remote_qp_requests.h"
#include "uverbs/capability.h"
#include "uverbs/device_max.h"
#include "uverbs/uverbs_address.h"
#include "uverbs/uverbs_command.h"

#define CREATE_FLAGS ((uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
/* Flags that the kernel's create_qp passes to the driver. */
#define KNOWN_FLAGS                                                                 \
	(CREATE_FLAGS | IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING | \
	 IBV_QP_CREATE_SOURCE_QPN | IBV_QP_CREATE_PCI_WRITE_END_PADDING |           \
	 1u << 2 /* CROSS_CHANNEL */ | 1u << 3 /* MANAGED_SEND */ | 1u << 4 /* MANAGED_RECV */)

/* Types that the kernel knows and this device does not support. */
static bool is_known_type(uint8_t type)
{
	return type == IBV_QPT_RAW_PACKET || type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV ||
	       type == IBV_QPT_DRIVER;
}

/* Checks in the order of the kernel's create_qp and rxe_create_qp, so the error is the same. */
static int check_create(const struct ib_uverbs_ex_create_qp *request)
{
	struct hca_limits max;

	device_max(&max);
	if (request->comp_mask || request->reserved || request->create_flags & ~KNOWN_FLAGS)
		return -EINVAL;
	if ((request->qp_type == IBV_QPT_RAW_PACKET ||
	     request->create_flags & IBV_QP_CREATE_SOURCE_QPN) &&
	    !capability_net_raw())
		return -EPERM;
	if (request->qp_type != URXE_QPT_RC && request->qp_type != URXE_QPT_UC &&
	    request->qp_type != URXE_QPT_UD)
		return is_known_type(request->qp_type) ? -EOPNOTSUPP : -EINVAL;
	if (request->create_flags & ~CREATE_FLAGS)
		return -EOPNOTSUPP;
	if (request->max_send_wr > max.max_qp_wr || request->max_send_sge > max.max_sge ||
	    request->max_inline_data > URXE_MAX_INLINE)
		return -EINVAL;
	if (!request->is_srq &&
	    (request->max_recv_wr > max.max_qp_wr || request->max_recv_sge > max.max_sge))
		return -EINVAL;
	return 0;
}

static int find_objects(const struct command *c, const struct ib_uverbs_ex_create_qp *request,
			struct qp *qp)
{
	if (request->is_srq) {
		qp->srq = (struct srq *)command_object(c, OBJECT_SRQ, request->srq_handle);
		if (!qp->srq)
			return command_object_error(c, request->srq_handle);
	}
	qp->recv_cq = (struct cq *)command_object(c, OBJECT_CQ, request->recv_cq_handle);
	if (!qp->recv_cq)
		return command_object_error(c, request->recv_cq_handle);
	qp->send_cq = (struct cq *)command_object(c, OBJECT_CQ, request->send_cq_handle);
	if (!qp->send_cq)
		return command_object_error(c, request->send_cq_handle);
	qp->pd = (struct pd *)command_object(c, OBJECT_PD, request->pd_handle);
	return qp->pd ? 0 : command_object_error(c, request->pd_handle);
}

/* As in the Linux driver, one slot holds either the segments or the inline data. */
static int make_rings(const struct command *c, const struct ib_uverbs_ex_create_qp *request,
		      struct qp *qp)
{
	uint32_t payload = request->max_send_sge * (uint32_t)sizeof(struct rxe_sge);
	struct hca_limits max;
	int rc;

	if (payload < request->max_inline_data)
		payload = (request->max_inline_data + 15) & ~15u;
	if (!payload)
		payload = sizeof(struct rxe_sge);
	qp->limits = (struct wqe_limits){.qp_type = request->qp_type,
					 .max_sge = payload / (uint32_t)sizeof(struct rxe_sge),
					 .max_inline = payload};
	device_max(&max);
	if (qp->limits.max_sge > max.max_sge)
		qp->limits.max_sge = max.max_sge;
	if (!qp->srq) {
		qp->recv.max_sge = request->max_recv_sge;
		rc = queue_create(&qp->recv.wq.ring, &c->file->queues, c->fd, request->max_recv_wr,
				  queue_receive_bytes(request->max_recv_sge));
		if (rc)
			return rc;
	}
	return queue_create(&qp->sq.ring, &c->file->queues, c->fd, request->max_send_wr,
			    (uint32_t)sizeof(struct rxe_send_wqe) + payload);
}

/* All leased QPNs are in use; differs from all errno values. */
#define NO_FREE_QPN 1

/* The HCA chooses the number, if it takes the queue pair. */
static int create_numbered(struct urxe_qp_init *init, struct urxe_qp **qp)
{
	struct hca *hca = adapter_allow_unlock();
	int rc = hca ? urxe_qp_create(adapter.dev, init, qp) : -ENOSPC;

	if (command_forbid_unlock(hca))
		return -EIO;
	if (rc != -ENOSPC)
		return rc;
	init->qpn = leases_find_free(&adapter.leases);
	return init->qpn ? urxe_qp_create(adapter.dev, init, qp) : NO_FREE_QPN;
}

static int make_engine_qp(const struct ib_uverbs_ex_create_qp *request, struct qp *qp)
{
	struct urxe_qp_init init = {
		.ctx = qp,
		.type = request->qp_type,
		.sq_sig_all = request->sq_sig_all,
		.block_self_mcast = request->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
		.pd = qp->pd->number,
		.send_cq = qp->send_cq->cq,
		.recv_cq = qp->recv_cq->cq,
		.srq = qp->srq ? qp->srq->recv.rq : NULL,
		.cap = {.max_send_wr = queue_capacity(&qp->sq.ring),
			.max_recv_wr = qp->srq ? 0 : queue_capacity(&qp->recv.wq.ring),
			.max_send_sge = qp->limits.max_sge,
			/*
			 * The engine's QP always allows one segment, because queues/verbs_recv.c
			 * replaces a malformed request by a request with one segment.
			 */
			.max_recv_sge = qp->recv.max_sge ? qp->recv.max_sge : 1,
			.max_inline = qp->limits.max_inline},
	};
	int rc = create_numbered(&init, &qp->qp);

	if (rc)
		return rc;
	rc = leases_reserve(&adapter.leases, urxe_qp_qpn(qp->qp));
	if (rc) {
		urxe_qp_destroy(qp->qp);
		return rc;
	}
	qp->recv.rq = urxe_qp_rq(qp->qp);
	qp->qpn = urxe_qp_qpn(qp->qp);
	return 0;
}

/* `by`: 1 or -1. */
static void count_uses(const struct qp *qp, int by)
{
	qp->pd->object.users += (uint32_t)by;
	qp->send_cq->object.users += (uint32_t)by;
	qp->recv_cq->object.users += (uint32_t)by;
	if (qp->srq)
		qp->srq->object.users += (uint32_t)by;
}

/* The queue pair gets its handle when the HCA has it: until then no command finds it. */
static int make_numbered_qp(const struct command *c, const struct ib_uverbs_ex_create_qp *request,
			    struct qp *qp)
{
	int rc = make_engine_qp(request, qp);

	if (rc)
		return rc;
	rc = command_add_object(c, &qp->object, OBJECT_QP, request->user_handle);
	if (rc)
		urxe_qp_destroy(qp->qp);
	else
		leases_assign(&adapter.leases, qp->qpn, qp);
	return rc;
}

static int make_qp(const struct command *c, const struct ib_uverbs_ex_create_qp *request,
		   struct qp *qp)
{
	int rc = find_objects(c, request, qp);

	if (!rc)
		rc = make_rings(c, request, qp);
	if (rc)
		return rc;
	count_uses(qp, 1);
	rc = make_numbered_qp(c, request, qp);
	if (rc)
		count_uses(qp, -1);
	return rc;
}

static int reply_qp(const struct command *c, const struct qp *qp)
{
	const struct ib_uverbs_ex_create_qp_resp reply = {
		.base = {.qp_handle = qp->object.handle,
			 .qpn = qp->qpn,
			 .max_send_wr = queue_capacity(&qp->sq.ring),
			 .max_recv_wr = qp->srq ? 0 : queue_capacity(&qp->recv.wq.ring),
			 .max_send_sge = qp->limits.max_sge,
			 .max_recv_sge = qp->recv.max_sge,
			 .max_inline_data = qp->limits.max_inline},
		.response_length = c->out_size < sizeof(reply) ? c->out_size : sizeof(reply),
	};
	const struct rxe_create_qp_resp driver = {
		.rq_mi = queue_mminfo(&qp->recv.wq.ring),
		.sq_mi = queue_mminfo(&qp->sq.ring),
	};
	int rc = command_reply(c, &reply, c->extended ? sizeof(reply) : sizeof(reply.base));

	return rc ? rc : command_reply_driver(c, &driver, sizeof(driver));
}

/* Or NO_FREE_QPN. */
static int create_qp_locked(const struct command *c, const struct ib_uverbs_ex_create_qp *request,
			    uint32_t *qpn)
{
	struct qp *qp;
	int rc = check_create(request);

	if (rc)
		return rc;
	qp = aligned_alloc(_Alignof(struct qp), sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	*qp = (struct qp){0};
	rc = make_qp(c, request, qp);
	/* The rings of a forked child are the parent's. */
	if (rc && !adapter.dev)
		return rc;
	if (rc) {
		queue_destroy(&qp->recv.wq.ring, &c->file->queues);
		queue_destroy(&qp->sq.ring, &c->file->queues);
		free(qp);
		return rc;
	}
	/* Another thread may have closed the device. */
	if (c->file->live) {
		poll_hook_install_ex(qp->send_cq);
		poll_hook_install_ex(qp->recv_cq);
	}
	if (c->file->live && adapter.hca.hca)
		recv_hook_install(c->file, c->fd, qp->recv_cq->object.user_handle);
	rc = reply_qp(c, qp);
	if (rc)
		qp_destroy(&qp->object);
	else
		*qpn = qp->qpn;
	return rc;
}

/* Whether peers on this host may reach the queue pair without the HCA. */
static bool is_reachable(const struct qp *qp)
{
	bool goes_with_device = qp->limits.qp_type == URXE_QPT_UD || qp->srq;

	return !goes_with_device && adapter_hca_way() != HCA_WAY_HCA;
}

/* With the lock. NULL: the program has destroyed the queue pair, or another thread was first. */
static struct qp *find_unknown(uint32_t qpn)
{
	struct qp *qp = leases_find(&adapter.leases, qpn);

	return qp && !qp->added && !qp->number_taken ? qp : NULL;
}

/* Tells the daemon the number that the HCA has chosen. */
static void announce_number(uint32_t qpn)
{
	struct added_qp *added = NULL;
	bool reachable = false;
	struct qp *qp;
	int rc;

	adapter_lock();
	qp = adapter.hca.hca ? find_unknown(qpn) : NULL;
	if (qp)
		reachable = is_reachable(qp);
	adapter_unlock();
	if (!qp)
		return;
	rc = added_qp_add(qpn, reachable, &added);
	adapter_lock();
	qp = find_unknown(qpn);
	if (qp) {
		qp->added = added;
		qp->number_taken = rc != 0;
	} else {
		added_qp_release(added);
	}
	adapter_unlock();
}

/* The daemon is asked for QPNs without adapter.lock. */
static int create_qp(const struct command *c, const struct ib_uverbs_ex_create_qp *request)
{
	uint32_t qpn = 0;
	int rc;

	do {
		rc = command_lock(c);
		if (rc)
			return rc;
		adapter_defer_destruction();
		rc = create_qp_locked(c, request, &qpn);
		adapter_unlock_settled();
		if (!rc)
			announce_number(qpn);
		if (rc != NO_FREE_QPN)
			return rc;
		rc = adapter_lease_qpns();
	} while (!rc);
	return rc;
}

int cmd_create_qp(const struct command *c)
{
	struct ib_uverbs_create_qp request;
	int rc = command_read(c, &request, sizeof(request));
	const struct ib_uverbs_ex_create_qp as_ex = {
		.user_handle = request.user_handle,
		.pd_handle = request.pd_handle,
		.send_cq_handle = request.send_cq_handle,
		.recv_cq_handle = request.recv_cq_handle,
		.srq_handle = request.srq_handle,
		.max_send_wr = request.max_send_wr,
		.max_recv_wr = request.max_recv_wr,
		.max_send_sge = request.max_send_sge,
		.max_recv_sge = request.max_recv_sge,
		.max_inline_data = request.max_inline_data,
		.sq_sig_all = request.sq_sig_all,
		.qp_type = request.qp_type,
		.is_srq = request.is_srq,
	};

	return rc ? rc : create_qp(c, &as_ex);
}

int cmd_create_qp_ex(const struct command *c)
{
	struct ib_uverbs_ex_create_qp request;
	int rc = command_read(c, &request, sizeof(request));

	return rc ? rc : create_qp(c, &request);
}

/* --- Commands of a queue pair, of which one runs at a time. */

/* With the lock, which it releases while another command of the queue pair runs. */
static int wait_for_qp(const struct command *c, const struct qp *qp)
{
	int rc = 0;

	while (!rc && qp->in_command)
		rc = command_pause(c);
	return rc;
}

/* With the lock. */
static void end_qp_command(struct qp *qp)
{
	qp->in_command = false;
	qp->object.users--;
}

/* With the lock. Until end_qp_command() no command destroys the queue pair. */
static int begin_qp_command(const struct command *c, uint32_t handle, struct qp **out)
{
	struct qp *qp = *out = (struct qp *)command_object(c, OBJECT_QP, handle);
	int rc;

	if (!qp)
		return command_object_error(c, handle);
	qp->object.users++;
	rc = wait_for_qp(c, qp);
	if (rc)
		qp->object.users--;
	else
		qp->in_command = true;
	return rc;
}

/* Takes the lock; begin_qp_command(). */
static int lock_qp(const struct command *c, uint32_t handle, struct qp **qp)
{
	int rc = command_lock(c);

	if (rc)
		return rc;
	rc = begin_qp_command(c, handle, qp);
	if (rc)
		adapter_unlock();
	return rc;
}

static void unlock_qp(struct qp *qp)
{
	end_qp_command(qp);
	adapter_unlock_settled();
}

static int fill_query(struct ib_uverbs_query_qp_resp *reply, const struct qp *qp)
{
	struct hca *hca = adapter_allow_unlock();
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_offload_query(qp->qp, &attr, &init);
	if (command_forbid_unlock(hca))
		return -EIO;
	*reply = (struct ib_uverbs_query_qp_resp){
		.max_send_wr = queue_capacity(&qp->sq.ring),
		.max_recv_wr = qp->srq ? 0 : queue_capacity(&qp->recv.wq.ring),
		.max_send_sge = qp->limits.max_sge,
		.max_recv_sge = qp->recv.max_sge,
		.max_inline_data = qp->limits.max_inline,
		.qkey = attr.qkey,
		.rq_psn = attr.rq_psn,
		.sq_psn = attr.sq_psn,
		.dest_qp_num = attr.dest_qpn,
		.qp_access_flags = attr.access,
		.pkey_index = attr.pkey_index,
		.qp_state = attr.state,
		.cur_qp_state = attr.state,
		.path_mtu = attr.path_mtu,
		.max_rd_atomic = attr.max_rd_atomic,
		.max_dest_rd_atomic = attr.max_dest_rd_atomic,
		.min_rnr_timer = attr.min_rnr_timer,
		.port_num = attr.port,
		.timeout = attr.timeout,
		.retry_cnt = attr.retry_cnt,
		.rnr_retry = attr.rnr_retry,
		.sq_sig_all = init.sq_sig_all,
		.path_mig_state = attr.path_mig_state,
		.sq_draining = attr.sq_draining,
	};
	address_to_dest(&reply->dest, &attr.path);
	return 0;
}

int cmd_query_qp(const struct command *c)
{
	struct ib_uverbs_query_qp request;
	struct ib_uverbs_query_qp_resp reply;
	struct qp *qp;
	int rc = command_read(c, &request, sizeof(request));

	if (rc)
		return rc;
	rc = lock_qp(c, request.qp_handle, &qp);
	if (rc)
		return rc;
	rc = fill_query(&reply, qp);
	unlock_qp(qp);
	return rc ? rc : command_reply(c, &reply, sizeof(reply));
}

/* A controlled Q_Key (IBA 10.2.5). */
#define PRIVILEGED_QKEY 0x80000000u

/*
 * Checks that the kernel's modify_qp (drivers/infiniband/core/uverbs_cmd.c) makes before the
 * driver's.
 */
static int check_modify(const struct ib_uverbs_modify_qp *request)
{
	if (request->attr_mask & IBV_QP_PORT && request->port_num != 1)
		return -EINVAL;
	if (request->attr_mask & IBV_QP_PKEY_INDEX && request->pkey_index >= URXE_MAX_PKEYS)
		return -EINVAL;
	if ((request->attr_mask & IBV_QP_CUR_STATE && request->cur_qp_state > IBV_QPS_ERR) ||
	    (request->attr_mask & IBV_QP_STATE && request->qp_state > IBV_QPS_ERR))
		return -EINVAL;
	if (request->attr_mask & IBV_QP_QKEY && request->qkey & PRIVILEGED_QKEY &&
	    !capability_net_raw())
		return -EPERM;
	return 0;
}

static void fill_attr(struct urxe_qp_attr *attr, const struct ib_uverbs_modify_qp *request)
{
	*attr = (struct urxe_qp_attr){
		.state = request->qp_state,
		.cur_state = request->cur_qp_state,
		.path_mig_state = request->path_mig_state,
		.en_sqd_async_notify = request->en_sqd_async_notify,
		.path_mtu = request->path_mtu,
		.timeout = request->timeout,
		.retry_cnt = request->retry_cnt,
		.rnr_retry = request->rnr_retry,
		.min_rnr_timer = request->min_rnr_timer,
		.max_rd_atomic = request->max_rd_atomic,
		.max_dest_rd_atomic = request->max_dest_rd_atomic,
		.port = request->port_num,
		.pkey_index = request->pkey_index,
		.access = request->qp_access_flags,
		.qkey = request->qkey,
		.dest_qpn = request->dest_qp_num,
		.rq_psn = request->rq_psn,
		.sq_psn = request->sq_psn,
	};
}

/* Whether the command connects the QP to a remote QP that is not registered; with the lock. */
static bool needs_registration(const struct qp *qp, uint32_t mask, const struct urxe_qp_attr *to,
			       uint32_t *qpn)
{
	struct urxe_qp_attr now;
	struct urxe_qp_init init;

	if (!qp || qp->limits.qp_type == URXE_QPT_UD)
		return false;
	urxe_qp_query(qp->qp, &now, &init);
	*qpn = mask & IBV_QP_DEST_QPN ? to->dest_qpn : now.dest_qpn;
	return !qp->remote || qp->remote->qpn != *qpn ||
	       memcmp(qp->remote->dgid, to->path.dgid.raw, sizeof(qp->remote->dgid));
}

/* The daemon must know a connection before its first packet; the request may block. */
static int register_remote_qp(const struct command *c, const struct ib_uverbs_modify_qp *request,
			      const struct urxe_qp_attr *attr, struct remote_qp **remote)
{
	const struct qp *qp;
	uint32_t local = 0, qpn = 0;
	bool ask;
	int rc;

	*remote = NULL;
	if (!(request->attr_mask & IBV_QP_AV))
		return 0;
	rc = command_lock(c);
	if (rc)
		return rc;
	qp = (const struct qp *)command_object(c, OBJECT_QP, request->qp_handle);
	ask = needs_registration(qp, request->attr_mask, attr, &qpn);
	if (ask)
		local = qp->qpn;
	adapter_unlock();
	return ask ? remote_qp_register(local, attr->path.dgid.raw, qpn, remote) : 0;
}

/* The context was closed meanwhile. */
static void release_remote_qp(struct remote_qp *remote)
{
	adapter_lock();
	remote_qp_release(remote);
	adapter_unlock();
	remote_qp_flush();
}

/*
 * The registration follows the connection. A QP that failed by itself keeps it until the
 * application resets, fails or destroys it: the error must still reach the peer.
 */
static void replace_remote_qp(struct qp *qp, struct remote_qp *remote)
{
	enum urxe_qp_state state = qp_state(qp);

	if (remote || state == URXE_QPS_RESET || state == URXE_QPS_ERR) {
		remote_qp_release(qp->remote);
		qp->remote = remote;
	}
}

/* Which of HCA and engine executes a connection. */
struct way {
	bool known; /* the command connects the queue pair */
	bool by_hca;
	enum way_reason reason;
	/* The daemon knows no next hop to the address in the command, or has not registered the
	 * remote queue pair. The HCA needs neither; the engine cannot use the address. */
	int daemon_error;
};

static bool is_connection(const struct urxe_qp_attr *attr, uint32_t mask)
{
	return (mask & URXE_QP_STATE) && (mask & URXE_QP_AV) && (mask & URXE_QP_DEST_QPN) &&
	       attr->state == URXE_QPS_RTR;
}

/* The daemon is asked without adapter.lock. */
static int choose_way(const struct command *c, const struct ib_uverbs_modify_qp *request,
		      const struct urxe_qp_attr *attr, struct way *way)
{
	bool number_taken = false, with_device = false, has_hca, is_on_hca = false;
	const struct qp *qp;
	int rc;

	if (!is_connection(attr, request->attr_mask))
		return 0;
	rc = command_lock(c);
	if (rc)
		return rc;
	has_hca = adapter.hca.hca;
	qp = (const struct qp *)command_object(c, OBJECT_QP, request->qp_handle);
	if (qp) {
		number_taken = qp->number_taken;
		with_device = qp->srq;
		/* A queue pair that is older than the HCA is the engine's. */
		is_on_hca = has_hca && urxe_offload_has_qp(qp->qp);
	}
	adapter_unlock();
	way->known = has_hca;
	way->by_hca = is_on_hca && with_device;
	way->reason = is_on_hca ? WAY_OF_DEVICE : WAY_NO_HCA;
	if (is_on_hca && !with_device)
		way->by_hca = adapter_hca_chooses(attr, number_taken, &way->reason);
	return 0;
}

/* Before a connection within the host: gets the peer's inbox. */
static void request_peer_inbox(const struct urxe_qp_attr *attr, uint32_t mask)
{
	if (is_connection(attr, mask))
		adapter_request_inbox(attr->path.dmac, attr->dest_qpn);
}

/* What the engine needs for the address in the command; the HCA does not need it. */
static void prepare_engine(const struct command *c, const struct ib_uverbs_modify_qp *request,
			   struct urxe_qp_attr *attr, struct way *way, struct remote_qp **remote)
{
	if (way->daemon_error)
		return;
	way->daemon_error = register_remote_qp(c, request, attr, remote);
	/* The engine cannot take the connection over from the HCA either. */
	if (way->daemon_error)
		memset(attr->path.dmac, 0, sizeof(attr->path.dmac));
	else if (!way->by_hca)
		request_peer_inbox(attr, request->attr_mask);
}

/*
 * With the lock. The specification lets a QP go to the error state from any state (IBA 10.3.1), and
 * so does the engine; Linux' table (qp_state_table in drivers/infiniband/core/verbs.c) allows only
 * INIT after RESET, for all drivers.
 */
static int modify_engine(struct qp *qp, uint64_t now, const struct urxe_qp_attr *attr,
			 uint32_t mask)
{
	struct hca *hca;
	int rc;

	if (mask & URXE_QP_STATE && attr->state == URXE_QPS_ERR && qp_state(qp) == URXE_QPS_RESET)
		return -EINVAL;
	if (mask & URXE_QP_STATE && (attr->state == URXE_QPS_ERR || attr->state == URXE_QPS_RESET))
		engine_flush_acks(qp);
	hca = adapter_allow_unlock();
	rc = urxe_qp_modify(qp->qp, now, attr, mask);
	return command_forbid_unlock(hca) ? -EIO : rc;
}

static void log_migration(const struct qp *qp, uint32_t mask)
{
	log_info("qp %#x: path migration is not supported (%s)", qp->qpn,
		 mask & IBV_QP_ALT_PATH ? "IBV_QP_ALT_PATH" : "IBV_QP_PATH_MIG_STATE");
}

/*
 * Hands the HCA the receives in the ring: before the transition to RTR, because the peer may send
 * at once, and later for programs that posted them before the hook was installed.
 */
static void refill_hca(struct qp *qp)
{
	if (urxe_qp_offloaded(qp->qp))
		urxe_offload_refill(qp->srq ? qp->srq->recv.rq : qp->recv.rq);
	else if (qp->by_hca && !qp->srq)
		recv_queue_refill(&qp->recv);
}

/* The program may have got a region of the engine alone, or the HCA may have gone, since
 * choose_way(). */
static int check_address(const struct qp *qp, uint32_t mask, const struct urxe_qp_attr *attr,
			 const struct way *way)
{
	if (!way->daemon_error || urxe_offload_takes(qp->qp, attr, mask))
		return 0;
	return way->daemon_error;
}

/* With the adapter's lock. */
static int change_qp(struct qp *qp, uint32_t mask, const struct urxe_qp_attr *attr,
		     struct remote_qp *remote, const struct way *way)
{
	int rc;

	if (way->known) {
		qp->by_hca = way->by_hca;
		qp->way_reason = (uint8_t)way->reason;
		refill_hca(qp);
	}
	rc = check_address(qp, mask, attr, way);
	if (!rc)
		rc = modify_engine(qp, clock_now(), attr, mask);
	if (rc == -EOPNOTSUPP)
		log_migration(qp, mask);
	if (rc) {
		remote_qp_release(remote);
		return rc;
	}
	refill_hca(qp);
	qp_modified(qp);
	engine_transmit(clock_now());
	adapter_publish();
	engine_wake_for_work();
	replace_remote_qp(qp, remote);
	return 0;
}

/* With the adapter's lock. *uplink becomes the result of uplink_qpn_update(). */
static int modify_qp_locked(const struct command *c, const struct ib_uverbs_modify_qp *request,
			    const struct urxe_qp_attr *attr, struct remote_qp *remote,
			    const struct way *way, bool *uplink)
{
	struct qp *qp;
	int rc = begin_qp_command(c, request->qp_handle, &qp);

	if (rc) {
		remote_qp_release(remote);
		return rc;
	}
	rc = change_qp(qp, request->attr_mask, attr, remote, way);
	/* A child that a signal handler has forked meanwhile has another adapter. */
	*uplink = adapter.dev && uplink_qpn_update(qp);
	end_qp_command(qp);
	return rc;
}

/* uplink_qpn_update() again; another thread may have destroyed the queue pair. */
static bool update_uplink(const struct command *c, uint32_t handle)
{
	struct qp *qp;
	bool asked;

	if (command_lock(c))
		return false;
	qp = (struct qp *)command_object(c, OBJECT_QP, handle);
	asked = qp && uplink_qpn_update(qp);
	adapter_unlock();
	return asked;
}

/* Returns when the daemon receives the queue pair's packets. If it did not read before, each answer
 * shows that it reads again. */
static void await_uplink(const struct command *c, uint32_t handle)
{
	bool again;

	do {
		again = update_uplink(c, handle);
		adapter_await_daemon();
	} while (again);
}

static int modify_qp(const struct command *c, const struct ib_uverbs_modify_qp *request,
		     uint32_t rate_limit)
{
	struct ib_uverbs_ah_attr address;
	struct urxe_qp_attr attr;
	struct remote_qp *remote = NULL;
	struct way way = {0};
	bool uplink = false;
	int rc = check_modify(request);

	if (rc)
		return rc;
	fill_attr(&attr, request);
	attr.rate_limit = rate_limit;
	if (request->attr_mask & IBV_QP_AV) {
		address_from_dest(&address, &request->dest);
		rc = address_path(&address, &attr.path, &way.daemon_error);
	}
	if (!rc)
		rc = choose_way(c, request, &attr, &way);
	if (rc)
		return rc;
	prepare_engine(c, request, &attr, &way, &remote);
	rc = command_lock(c);
	if (rc) {
		release_remote_qp(remote);
		return rc;
	}
	rc = modify_qp_locked(c, request, &attr, remote, &way, &uplink);
	adapter_unlock_settled();
	/* The program may ask its peer for packets when the command has returned. */
	if (uplink)
		await_uplink(c, request->qp_handle);
	remote_qp_flush();
	return rc;
}

/* Attributes that each command may set, as in the kernel; only the extended one has rate limits. */
#define MODIFY_MASK    ((IBV_QP_DEST_QPN << 1) - 1u)
#define MODIFY_EX_MASK ((IBV_QP_RATE_LIMIT << 1) - 1u)

int cmd_modify_qp(const struct command *c)
{
	struct ib_uverbs_modify_qp request;
	int rc = command_read(c, &request, sizeof(request));

	if (!rc && request.attr_mask & ~MODIFY_MASK)
		rc = -EOPNOTSUPP;
	return rc ? rc : modify_qp(c, &request, 0);
}

int cmd_modify_qp_ex(const struct command *c)
{
	struct ib_uverbs_ex_modify_qp request;
	struct ib_uverbs_ex_modify_qp_resp reply = {.response_length = sizeof(reply)};
	int rc = command_read(c, &request, sizeof(request));

	if (!rc && request.base.attr_mask & ~MODIFY_EX_MASK)
		rc = -EOPNOTSUPP;
	if (!rc)
		rc = modify_qp(c, &request.base, request.rate_limit);
	return rc ? rc : command_reply(c, &reply, sizeof(reply));
}

static int destroy_qp(const struct command *c, uint32_t handle, uint32_t *events)
{
	struct qp *qp = (struct qp *)command_object(c, OBJECT_QP, handle);

	if (!qp)
		return command_object_error(c, handle);
	/* As in the kernel, which does not wait for a command of another thread either. */
	if (qp->object.users)
		return -EBUSY;
	/* As the kernel, which requires that each attachment is detached first. */
	if (urxe_mcast_attached(qp->qp))
		return -EBUSY;
	engine_flush_acks(qp);
	*events = comp_channel_withdraw(c->file->async, qp->object.user_handle, qp->async_events);
	qp_destroy(&qp->object);
	return 0;
}

int cmd_destroy_qp(const struct command *c)
{
	struct ib_uverbs_destroy_qp request;
	struct ib_uverbs_destroy_qp_resp reply = {0};
	int rc = command_read(c, &request, sizeof(request));

	if (rc)
		return rc;
	rc = command_lock(c);
	if (rc)
		return rc;
	adapter_defer_destruction();
	rc = destroy_qp(c, request.qp_handle, &reply.events_reported);
	adapter_unlock_settled();
	adapter_apply_multicast();
	remote_qp_flush();
	added_qp_flush();
	return rc ? rc : command_reply(c, &reply, sizeof(reply));
}

static int change_group(const struct command *c, uint32_t qp_handle, const uint8_t raw[16],
			int (*change)(struct urxe_qp *, const struct urxe_gid *))
{
	struct urxe_gid gid;
	struct hca *hca;
	struct qp *qp;
	int rc = lock_qp(c, qp_handle, &qp);

	if (rc)
		return rc;
	memcpy(gid.raw, raw, sizeof(gid.raw));
	hca = adapter_allow_unlock();
	rc = change(qp->qp, &gid);
	if (command_forbid_unlock(hca))
		rc = -EIO;
	else
		adapter_update_multicast();
	unlock_qp(qp);
	adapter_apply_multicast();
	return rc;
}

int cmd_attach_mcast(const struct command *c)
{
	struct ib_uverbs_attach_mcast request;
	int rc = command_read(c, &request, sizeof(request));

	return rc ? rc : change_group(c, request.qp_handle, request.gid, urxe_mcast_attach);
}

int cmd_detach_mcast(const struct command *c)
{
	struct ib_uverbs_detach_mcast request;
	int rc = command_read(c, &request, sizeof(request));

	return rc ? rc : change_group(c, request.qp_handle, request.gid, urxe_mcast_detach);
}
