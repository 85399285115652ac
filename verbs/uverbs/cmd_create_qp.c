/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* CREATE_QP. */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "adapter/adapter.h"
#include "adapter/told_qp.h"
#include "objects/settle.h"
#include "objects/verbs_pd.h"
#include "poll/poll_hook.h"
#include "poll/recv_hook.h"
#include "process/settings.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"
#include "requests/daemon_requests.h"
#include "requests/told_qp_requests.h"
#include "uverbs/capability.h"
#include "uverbs/device_max.h"
#include "uverbs/uverbs_command.h"

#define CREATE_FLAGS ((uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
/* Flags that the kernel's create_qp passes to the driver; it refuses all others with EINVAL. */
#define KNOWN_FLAGS                                                                 \
	(CREATE_FLAGS | IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING | \
	 IBV_QP_CREATE_SOURCE_QPN | IBV_QP_CREATE_PCI_WRITE_END_PADDING |           \
	 1u << 2 /* CROSS_CHANNEL */ | 1u << 3 /* MANAGED_SEND */ | 1u << 4 /* MANAGED_RECV */)

/* Whether a type that this device does not support is known to the kernel: then the error is
 * -EOPNOTSUPP. */
static bool is_known_type(uint8_t type)
{
	return type == IBV_QPT_RAW_PACKET || type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV ||
	       type == IBV_QPT_DRIVER;
}

/* Checks the request in the order of the kernel's create_qp and rxe_create_qp, so the error is the
 * same. 0 or a negative errno value. */
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

/*
 * Creates the send ring and, without an SRQ, the receive ring; sets qp->limits and
 * qp->recv.max_sge. As in the Linux driver, a slot of the send ring holds either the segments or
 * the inline data: both limits follow from the larger size. 0 or a negative errno value.
 */
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

/* A result of the functions below, in place of 0 or a negative errno value: all leased QPNs are in
 * use. */
#define NO_FREE_QPN 1

/* Creates the engine's queue pair. If the HCA also creates one, it chooses the QPN; else the QPN is
 * a leased one. 0, NO_FREE_QPN or a negative errno value. */
static int create_numbered(const struct hca *hca, struct urxe_qp_init *init, struct urxe_qp **qp)
{
	int rc = hca ? urxe_qp_create(adapter.dev, init, qp) : -ENOSPC;

	/* This is a child that a signal handler has forked meanwhile. */
	if (!adapter.dev)
		return -EIO;
	if (rc != -ENOSPC)
		return rc;
	init->qpn = leases_find_free(&adapter.leases);
	return init->qpn ? urxe_qp_create(adapter.dev, init, qp) : NO_FREE_QPN;
}

static int make_engine_qp(const struct hca *hca, const struct ib_uverbs_ex_create_qp *request,
			  struct qp *qp)
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
	int rc = create_numbered(hca, &init, &qp->qp);

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

/* Adds `by`, 1 or -1, to the users of the objects that the QP uses. */
static void count_uses(const struct qp *qp, int by)
{
	qp->pd->object.users += (uint32_t)by;
	qp->send_cq->object.users += (uint32_t)by;
	qp->recv_cq->object.users += (uint32_t)by;
	if (qp->srq)
		qp->srq->object.users += (uint32_t)by;
}

static int add_qp(const struct command *c, const struct ib_uverbs_ex_create_qp *request,
		  struct qp *qp)
{
	int rc = command_add_object(c, &qp->object, OBJECT_QP, request->user_handle);

	if (rc)
		urxe_qp_destroy(qp->qp);
	leases_assign(&adapter.leases, qp->qpn, rc ? NULL : qp);
	return rc;
}

/*
 * Creates the engine's queue pair, and then gives it its handle: while the HCA creates its queue
 * pair adapter.lock is free, and no other command must find this one. command_forbid_unlock() comes
 * last: it polls the HCA, and the queue pair must exist for an event about it. It may release the
 * lock, so this command counts as a user. 0, NO_FREE_QPN or a negative errno value.
 */
static int make_numbered_qp(const struct command *c, const struct ib_uverbs_ex_create_qp *request,
			    struct qp *qp)
{
	struct hca *hca = adapter_allow_unlock();
	int rc = make_engine_qp(hca, request, qp);

	if (!rc)
		rc = add_qp(c, request, qp);
	qp->object.users++;
	if (command_forbid_unlock(hca))
		return -EIO;
	qp->object.users--;
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

/* Creates a queue pair, and writes the response to the program. *qpn becomes its number. 0,
 * NO_FREE_QPN or a negative errno value. */
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
	/* This is a child that a signal handler has forked: it frees nothing, because the rings are
	 * the parent's. */
	if (rc && !adapter.dev)
		return rc;
	if (rc) {
		queue_destroy(&qp->recv.wq.ring, &c->file->queues);
		queue_destroy(&qp->sq.ring, &c->file->queues);
		free(qp);
		return rc;
	}
	/* Another thread may have closed the device while the HCA created its queue pair. */
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

/* Whether peers on this host may reach the queue pair without the HCA. Not if the HCA certainly
 * executes it: a queue pair of the HCA that is UD, has an SRQ, or is created with URXE_WAY=hca. */
static bool is_reachable(const struct qp *qp)
{
	bool goes_with_device = qp->limits.qp_type == URXE_QPT_UD || qp->srq;

	if (!urxe_offload_has_qp(qp->qp))
		return true;
	return !goes_with_device && settings_hca_way() != HCA_WAY_HCA;
}

/* The queue pair with that number, if the daemon has not been told the number yet. With the lock.
 * NULL: another thread has told the daemon, or the program has destroyed the queue pair. */
static struct qp *find_untold(uint32_t qpn)
{
	struct qp *qp = leases_find(&adapter.leases, qpn);

	return qp && !qp->added && !qp->number_unknown ? qp : NULL;
}

/* While an HCA backs the device, tells the daemon the number of the new queue pair
 * (adapter/told_qp.h). If that fails, and the number is not a leased one, which the daemon knows
 * anyway, sets qp->number_unknown: then only the HCA can execute the queue pair. */
static void announce_number(uint32_t qpn)
{
	struct told_qp *added = NULL;
	bool reachable = false;
	struct qp *qp;
	int rc;

	adapter_lock();
	qp = adapter.hca.hca ? find_untold(qpn) : NULL;
	if (qp)
		reachable = is_reachable(qp);
	adapter_unlock();
	if (!qp)
		return;
	rc = told_qp_add(qpn, reachable, &added);
	adapter_lock();
	qp = find_untold(qpn);
	if (qp) {
		qp->added = added;
		qp->number_unknown = rc && adapter.leases.by_qpn[VNIC_BLOCK(qpn)]->unleased;
	} else {
		told_qp_release(added);
	}
	adapter_unlock();
}

/* Creates a queue pair for CREATE_QP and EX_CREATE_QP. While all leased QPNs are in use, leases
 * another block from the daemon, without adapter.lock, and tries again. 0 or a negative errno
 * value. */
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
	const struct ib_uverbs_create_qp *request = c->request;
	const struct ib_uverbs_ex_create_qp as_ex = {
		.user_handle = request->user_handle,
		.pd_handle = request->pd_handle,
		.send_cq_handle = request->send_cq_handle,
		.recv_cq_handle = request->recv_cq_handle,
		.srq_handle = request->srq_handle,
		.max_send_wr = request->max_send_wr,
		.max_recv_wr = request->max_recv_wr,
		.max_send_sge = request->max_send_sge,
		.max_recv_sge = request->max_recv_sge,
		.max_inline_data = request->max_inline_data,
		.sq_sig_all = request->sq_sig_all,
		.qp_type = request->qp_type,
		.is_srq = request->is_srq,
	};

	return create_qp(c, &as_ex);
}

int cmd_create_qp_ex(const struct command *c)
{
	return create_qp(c, c->request);
}
