/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/uplink_qpns.h"

#include <string.h>

#include "adapter/adapter.h"
#include "adapter/told_qp.h"
#include "daemon/port_attributes.h"
#include "poll/engine_wake.h"
#include "queues/verbs_qp.h"

/* Whether the QPN is leased: then the uplink passes its packets to the engine in any case. The QPN
 * of a queue pair that is being destroyed may have no block any more, and counts as leased. */
static bool is_leased(uint32_t qpn)
{
	const struct lease_block *block = adapter.leases.by_qpn[VNIC_BLOCK(qpn)];

	return !block || !block->unleased;
}

/* Whether the connection's peer is on this host, so that its packets do not come by the uplink. */
static bool is_local(const struct qp *qp)
{
	return qp->remote && port_has_gid(qp->remote->dgid);
}

/*
 * Whether a take-over is in progress, which may stop any queue pair of the HCA, or an abandoned one
 * has left stopped queue pairs. The engine executes a stopped queue pair as soon as the HCA has
 * returned its receive requests.
 */
static bool may_stop(void)
{
	return adapter.hca.take_over.takers || adapter.hca.qps_stopped;
}

/* Whether the engine executes the queue pair, or soon may, and other hosts send packets to it. */
static bool needs_uplink(const struct qp *qp)
{
	const enum urxe_qp_state state = qp_state(qp);

	return state >= URXE_QPS_RTR && state <= URXE_QPS_SQE && !is_local(qp) &&
	       (!urxe_qp_offloaded(qp->qp) || may_stop());
}

/* Tells the daemon whether the engine needs the queue pair's packets, if that has changed. False:
 * not told, because the socket to the daemon is full. */
static bool tell_daemon(struct qp *qp)
{
	bool uplink;

	if (!qp->added || is_leased(qp->qpn))
		return true;
	uplink = needs_uplink(qp);
	return uplink == qp->added->uplink || !told_qp_set_uplink(qp->added, uplink);
}

/* Sets adapter.uplink_qpns_late to `late`: the daemon could not be told a change. If it was false,
 * wakes the engine thread, which tries again each millisecond; but not at the end of a restore,
 * before that thread runs. */
static void note_late(bool late)
{
	if (late && !adapter.uplink_qpns_late && adapter_thread.wake_at)
		engine_wake();
	adapter.uplink_qpns_late = late;
}

bool uplink_qpn_update(struct qp *qp)
{
	const bool before = qp->added && qp->added->uplink;

	if (!tell_daemon(qp))
		note_late(true);
	return qp->added && !is_leased(qp->qpn) && needs_uplink(qp) && !before;
}

bool uplink_qpns_handled(void)
{
	return !adapter_connected() ||
	       (!adapter.uplink_qpns_late && vnic_driver_qpns_handled(adapter.nic));
}

void uplink_qpns_update(void)
{
	struct qp *qp;
	uint32_t at = 0;
	bool late = false;

	while ((qp = leases_next(&adapter.leases, &at)))
		late |= !tell_daemon(qp);
	note_late(late);
}
