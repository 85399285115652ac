/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* QUERY_QP, DESTROY_QP, ATTACH_MCAST, DETACH_MCAST. */
#include <errno.h>
#include <string.h>

#include "adapter/adapter.h"
#include "objects/settle.h"
#include "poll/engine_run.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"
#include "requests/daemon_requests.h"
#include "requests/told_qp_requests.h"
#include "uverbs/qp_command.h"
#include "uverbs/uverbs_address.h"
#include "uverbs/uverbs_command.h"

/* Waits until no other command of the queue pair runs. With the lock, which it releases meanwhile.
 * 0, or the error of command_pause(). */
static int wait_for_qp(const struct command *c, const struct qp *qp)
{
	int rc = 0;

	while (!rc && qp->in_command)
		rc = command_pause(c);
	return rc;
}

void end_qp_command(struct qp *qp)
{
	qp->in_command = false;
	qp->object.users--;
}

int begin_qp_command(const struct command *c, uint32_t handle, struct qp **out)
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

/* Takes adapter.lock, finds the queue pair of the handle, and waits until no other command of it
 * runs (begin_qp_command). 0: unlock_qp must follow. After an error the lock is free. */
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
	const struct ib_uverbs_query_qp *request = c->request;
	struct ib_uverbs_query_qp_resp reply;
	struct qp *qp;
	int rc = lock_qp(c, request->qp_handle, &qp);

	if (rc)
		return rc;
	rc = fill_query(&reply, qp);
	unlock_qp(qp);
	return rc ? rc : command_reply(c, &reply, sizeof(reply));
}

static int destroy_qp(const struct command *c, uint32_t handle, uint32_t *events)
{
	struct qp *qp = (struct qp *)command_object(c, OBJECT_QP, handle);

	if (!qp)
		return command_object_error(c, handle);
	/* A command of another thread uses the queue pair. The kernel does not wait for it either.
	 */
	if (qp->object.users)
		return -EBUSY;
	/* As in the kernel, the program must first detach the queue pair from each group. */
	if (urxe_mcast_attached(qp->qp))
		return -EBUSY;
	engine_flush_acks(qp);
	*events = comp_channel_withdraw(c->file->async, qp->object.user_handle, qp->async_events);
	qp_destroy(&qp->object);
	return 0;
}

int cmd_destroy_qp(const struct command *c)
{
	const struct ib_uverbs_destroy_qp *request = c->request;
	struct ib_uverbs_destroy_qp_resp reply = {0};
	int rc = command_lock(c);

	if (rc)
		return rc;
	adapter_defer_destruction();
	rc = destroy_qp(c, request->qp_handle, &reply.events_reported);
	adapter_unlock_settled();
	adapter_apply_multicast();
	told_qp_flush();
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
	const struct ib_uverbs_attach_mcast *request = c->request;

	return change_group(c, request->qp_handle, request->gid, urxe_mcast_attach);
}

int cmd_detach_mcast(const struct command *c)
{
	const struct ib_uverbs_detach_mcast *request = c->request;

	return change_group(c, request->qp_handle, request->gid, urxe_mcast_detach);
}
