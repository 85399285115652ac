/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "adapter/added_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/attach_protocol.h>

#include "adapter/adapter.h"
#include "process/log.h"

int added_qp_add_locked(struct vnic_driver *nic, uint32_t qpn, struct added_qp **added)
{
	struct added_qp *qp = malloc(sizeof(*qp));
	int rc;

	*added = qp;
	if (!qp)
		return -ENOMEM;
	*qp = (struct added_qp){
		.qpn = qpn, .reachable = true, .daemon_generation = adapter.daemon_generation};
	rc = vnic_driver_add_qpn(nic, qpn, added_qp_flags(qp));
	if (rc)
		log_info("the daemon does not take QP %#x: %s", qpn, strerror(-rc));
	qp->told = !rc;
	LIST_INSERT_HEAD(&adapter.added_qps, qp, link);
	return rc;
}

uint32_t added_qp_flags(const struct added_qp *added)
{
	return (added->reachable ? VNIC_QPN_REACHABLE : 0) | (added->uplink ? VNIC_QPN_UPLINK : 0);
}

int added_qp_set_uplink(struct added_qp *added, bool uplink)
{
	added->uplink = uplink;
	if (!added->told || !adapter_connected() ||
	    vnic_driver_set_qpn(adapter.nic, added->qpn, added_qp_flags(added)) != -EAGAIN)
		return 0;
	added->uplink = !uplink;
	return -EAGAIN;
}

void added_qp_release(struct added_qp *added)
{
	if (!added)
		return;
	LIST_REMOVE(added, link);
	if (added->told)
		LIST_INSERT_HEAD(&adapter.released_added_qps, added, link);
	else
		free(added);
}

void added_qp_forget_released(void)
{
	struct added_qp *added;

	while ((added = LIST_FIRST(&adapter.released_added_qps))) {
		LIST_REMOVE(added, link);
		free(added);
	}
}

void added_qp_forget_all(void)
{
	struct added_qp *added;

	added_qp_forget_released();
	while ((added = LIST_FIRST(&adapter.added_qps))) {
		LIST_REMOVE(added, link);
		free(added);
	}
}

/* The caller calls this function before it sends the new daemon a frame: the daemon drops frames
 * from QPNs that it does not know. */
void added_qp_add_all(struct vnic_driver *nic)
{
	struct added_qp *added;

	added_qp_forget_released();
	LIST_FOREACH(added, &adapter.added_qps, link)
	{
		int rc = vnic_driver_add_qpn(nic, added->qpn, added_qp_flags(added));

		if (rc)
			log_error("the daemon does not take QP %#x: %s", added->qpn, strerror(-rc));
		added->told = !rc;
		added->daemon_generation = adapter.daemon_generation;
	}
}
