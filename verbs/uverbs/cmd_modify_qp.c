/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MODIFY_QP. */
#include <errno.h>
#include <string.h>

#include <hca/hca.h>
#include <infiniband/verbs.h>
#include <rxe/psn.h>

#include "adapter/adapter.h"
#include "adapter/told_qp.h"
#include "daemon/port_attributes.h"
#include "daemon/uplink_qpns.h"
#include "engine/clock.h"
#include "objects/settle.h"
#include "objects/verbs_mr.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "process/log.h"
#include "queues/publish.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"
#include "requests/daemon_requests.h"
#include "requests/hca_choice.h"
#include "requests/told_qp_requests.h"
#include "uverbs/capability.h"
#include "uverbs/qp_command.h"
#include "uverbs/uverbs_address.h"
#include "uverbs/uverbs_command.h"

/* The bit of a controlled Q_Key (IBA 10.2.5). */
#define PRIVILEGED_QKEY 0x80000000u

/* Makes the checks of the kernel's modify_qp (drivers/infiniband/core/uverbs_cmd.c), which precede
 * those of the driver. 0 or a negative errno value. */
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

/* Copies the attributes for the engine. Cuts PSNs to 24 bits, as the kernel's _ib_modify_qp
 * (drivers/infiniband/core/verbs.c) does. */
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
		.access = request->qp_access_flags & ~(uint32_t)HARMLESS_ACCESS,
		.qkey = request->qkey,
		.dest_qpn = request->dest_qp_num,
		.rq_psn = request->rq_psn & URXE_PSN_MASK,
		.sq_psn = request->sq_psn & URXE_PSN_MASK,
	};
}

/* Whether the command connects the RC or UC queue pair to a remote QP that this process has not
 * registered with the daemon for it. Sets *qpn to its number. With adapter.lock. */
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

/* Registers the remote QP with the daemon, if needs_registration(): the daemon drops packets of a
 * connection that it does not know. Blocks; adapter.lock must not be held. *remote becomes the
 * registration; NULL: none is needed. 0 or a negative errno value. */
static int register_remote_qp(const struct command *c, const struct ib_uverbs_modify_qp *request,
			      const struct urxe_qp_attr *attr, struct told_qp **remote)
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
	return ask ? told_qp_connect(local, attr->path.dgid.raw, qpn, remote) : 0;
}

/* Releases a registration that no queue pair has got, because another thread has closed the context
 * or the device has died meanwhile. */
static void release_remote_qp(struct told_qp *remote)
{
	adapter_lock();
	told_qp_release(remote);
	adapter_unlock();
	told_qp_flush();
}

/*
 * Gives the QP the registration of its new remote QP, or releases the old one when the program has
 * moved the QP to RESET or to the error state. A QP that fails by itself keeps its registration
 * until then: the daemon must still forward the NAK that tells its peer.
 */
static void replace_remote_qp(struct qp *qp, struct told_qp *remote)
{
	enum urxe_qp_state state = qp_state(qp);

	if (remote || state == URXE_QPS_RESET || state == URXE_QPS_ERR) {
		told_qp_release(qp->remote);
		qp->remote = remote;
	}
}

/* Whether the HCA or the engine executes a connection, and why. */
struct way {
	bool known; /* the command connects the queue pair, and an HCA backs the device */
	bool by_hca;
	enum way_reason reason;
	/* 0, or the error by which the daemon has found no next hop to the address in the command,
	 * or has not registered the remote queue pair. Only the HCA can use the address then. */
	int daemon_error;
};

static bool is_connection(const struct urxe_qp_attr *attr, uint32_t mask)
{
	return (mask & URXE_QP_STATE) && (mask & URXE_QP_AV) && (mask & URXE_QP_DEST_QPN) &&
	       attr->state == URXE_QPS_RTR;
}

/* If the command connects the queue pair, decides whether the HCA or the engine executes it, and
 * sets *way. May ask the daemon; adapter.lock must not be held. 0 or the error of
 * command_lock(). */
static int choose_way(const struct command *c, const struct ib_uverbs_modify_qp *request,
		      const struct urxe_qp_attr *attr, struct way *way)
{
	bool number_unknown = false, with_device = false, has_hca, is_on_hca = false;
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
		number_unknown = qp->number_unknown;
		with_device = qp->srq;
		/* False for a queue pair that is older than the HCA: the engine executes it. */
		is_on_hca = has_hca && urxe_offload_has_qp(qp->qp);
	}
	adapter_unlock();
	way->known = has_hca;
	way->by_hca = is_on_hca && with_device;
	way->reason = is_on_hca ? WAY_OF_DEVICE : WAY_NO_HCA;
	if (is_on_hca && !with_device)
		way->by_hca = adapter_hca_chooses(attr, number_unknown, &way->reason);
	return 0;
}

/* If the command connects the queue pair, gets the inbox of a peer on this host from the daemon. */
static void request_peer_inbox(const struct urxe_qp_attr *attr, uint32_t mask)
{
	if (is_connection(attr, mask))
		adapter_request_inbox(attr->path.dmac, attr->dest_qpn);
}

/* Registers the remote QP and, unless the HCA executes the connection, requests the peer's inbox.
 * An error only sets way->daemon_error: the HCA may be able to execute the connection without both.
 */
static void prepare_engine(const struct command *c, const struct ib_uverbs_modify_qp *request,
			   struct urxe_qp_attr *attr, struct way *way, struct told_qp **remote)
{
	if (way->daemon_error)
		return;
	way->daemon_error = register_remote_qp(c, request, attr, remote);
	/* A dmac of 0 tells the engine that it cannot take over the connection from the HCA later.
	 */
	if (way->daemon_error)
		memset(attr->path.dmac, 0, sizeof(attr->path.dmac));
	else if (!way->by_hca)
		request_peer_inbox(attr, request->attr_mask);
}

/*
 * Changes the engine's queue pair. With adapter.lock. 0 or a negative errno value. Refuses the
 * transition from RESET to the error state, as Linux does for all drivers (qp_state_table in
 * drivers/infiniband/core/verbs.c): from RESET it allows only RESET and INIT. IBA 10.3.1 and the
 * engine allow the error state after any state.
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

/* After EOPNOTSUPP: logs the attribute of path migration in the command, if there is one. An HCA
 * may have other reasons for EOPNOTSUPP, which this function does not log. */
static void log_migration(const struct qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	const char *unsupported = NULL;

	if (mask & IBV_QP_ALT_PATH)
		unsupported = "IBV_QP_ALT_PATH";
	else if (mask & IBV_QP_PATH_MIG_STATE && attr->path_mig_state != URXE_MIG_MIGRATED)
		unsupported = "IBV_QP_PATH_MIG_STATE";
	if (unsupported)
		log_info("qp %#x: path migration is not supported (%s)", qp->qpn, unsupported);
}

/* After EINVAL: logs a path MTU that the link cannot carry. The engine refuses it; Linux' rdma_rxe
 * accepts it, and its packets are lost. */
static void log_path_mtu(const struct qp *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	uint32_t link = 128u << port_mtu();

	if (mask & URXE_QP_PATH_MTU && attr->path_mtu <= URXE_MTU_4096 &&
	    128u << attr->path_mtu > link)
		log_info("qp %#x: path MTU %u is larger than the port's active MTU, %u", qp->qpn,
			 128u << attr->path_mtu, link);
}

/*
 * Hands the HCA the receive requests in the ring of a queue pair that it executes or will execute.
 * Called before the transition to RTR, because the peer may send at once; and after each
 * transition, for requests that the program posted before recv_hook.c replaced librxe's functions.
 */
static void refill_hca(struct qp *qp)
{
	if (urxe_qp_offloaded(qp->qp))
		urxe_offload_refill(qp->srq ? qp->srq->recv.rq : qp->recv.rq);
	else if (qp->by_hca && !qp->srq)
		recv_queue_refill(&qp->recv);
}

/*
 * Whether the engine would not get the packets of the connection, because the HCA's hardware
 * receives them. Not if the peer is on this host: it sends by inboxes and the switch, or not at
 * all. So do virtual machines of this host. The process does not know their GIDs, so while there
 * are any, each peer may be one. With adapter.lock.
 */
static bool is_starved(const struct urxe_qp_attr *attr, uint32_t mask)
{
	struct hca *hca = adapter.hca.hca;

	return is_connection(attr, mask) && hca && hca_is_hardware(hca) &&
	       hca_has_gid(hca, attr->path.sgid_index) && !port_has_gid(attr->path.dgid.raw) &&
	       !adapter.welcome.port.machines;
}

/* 0 if the HCA executes the connection; else way->daemon_error, or -ENETUNREACH if the engine would
 * receive nothing. Does not rely on choose_way(): since then the HCA may have gone, or the program
 * may have registered a region that the HCA cannot have. */
static int check_address(const struct qp *qp, uint32_t mask, const struct urxe_qp_attr *attr,
			 const struct way *way)
{
	if (urxe_offload_takes(qp->qp, attr, mask))
		return 0;
	if (!way->daemon_error && is_starved(attr, mask)) {
		log_info("qp %#x: the HCA would take the packets of other hosts", qp->qpn);
		return -ENETUNREACH;
	}
	return way->daemon_error;
}

/* Changes the queue pair, and delivers the completions and frames of the change. `remote`: the new
 * registration of its remote QP, or NULL; released after an error. With adapter.lock. 0 or a
 * negative errno value. */
static int change_qp(struct qp *qp, uint32_t mask, const struct urxe_qp_attr *attr,
		     struct told_qp *remote, const struct way *way)
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
		log_migration(qp, attr, mask);
	else if (rc == -EINVAL)
		log_path_mtu(qp, attr, mask);
	if (rc) {
		told_qp_release(remote);
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

/* Does change_qp() as the only command of the queue pair. *uplink becomes the result of
 * uplink_qpn_update(). With adapter.lock. 0 or a negative errno value. */
static int modify_qp_locked(const struct command *c, const struct ib_uverbs_modify_qp *request,
			    const struct urxe_qp_attr *attr, struct told_qp *remote,
			    const struct way *way, bool *uplink)
{
	struct qp *qp;
	int rc = begin_qp_command(c, request->qp_handle, &qp);

	if (rc) {
		told_qp_release(remote);
		return rc;
	}
	rc = change_qp(qp, request->attr_mask, attr, remote, way);
	/* A child that a signal handler has forked meanwhile has another adapter. */
	*uplink = adapter.dev && uplink_qpn_update(qp);
	end_qp_command(qp);
	return rc;
}

/* Calls uplink_qpn_update() again. True: the daemon may not know yet that the engine needs the
 * queue pair's packets, so the caller calls again. False: the daemon knows, the device is dead, or
 * another thread has destroyed the queue pair. */
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

/* Returns when the daemon's uplink receives the queue pair's packets for the engine
 * (daemon/uplink_qpns.h). If the socket to the daemon was full, tells the daemon again after each
 * of its answers, which show that it reads messages. */
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
	struct told_qp *remote = NULL;
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
	/* When the command has returned, the peer may send, and the daemon must pass its packets.
	 */
	if (uplink)
		await_uplink(c, request->qp_handle);
	told_qp_flush();
	return rc;
}

/* Attributes that MODIFY_QP and EX_MODIFY_QP may set, as in the kernel. */
#define MODIFY_MASK    ((IBV_QP_DEST_QPN << 1) - 1u)
#define MODIFY_EX_MASK ((IBV_QP_RATE_LIMIT << 1) - 1u)

int cmd_modify_qp(const struct command *c)
{
	const struct ib_uverbs_modify_qp *request = c->request;

	if (request->attr_mask & ~MODIFY_MASK)
		return -EOPNOTSUPP;
	return modify_qp(c, request, 0);
}

int cmd_modify_qp_ex(const struct command *c)
{
	const struct ib_uverbs_ex_modify_qp *request = c->request;
	struct ib_uverbs_ex_modify_qp_resp reply = {.response_length = sizeof(reply)};
	int rc;

	if (request->base.attr_mask & ~MODIFY_EX_MASK)
		return -EOPNOTSUPP;
	rc = modify_qp(c, &request->base, request->rate_limit);
	return rc ? rc : command_reply(c, &reply, sizeof(reply));
}
