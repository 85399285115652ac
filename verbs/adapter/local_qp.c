/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "adapter/local_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "process/log.h"

struct local_qp *local_qp_add_locked(struct vnic_driver *nic, uint32_t qpn)
{
	struct local_qp *l = malloc(sizeof(*l));
	int rc;

	if (!l)
		return NULL;
	*l = (struct local_qp){.qpn = qpn, .reachable = true, .daemon = adapter.daemons};
	rc = vnic_driver_add_qpn(nic, qpn, true);
	if (rc)
		log_info("the daemon does not take QP %#x: %s", qpn, strerror(-rc));
	LIST_INSERT_HEAD(&adapter.local_qps, l, link);
	return l;
}

void local_qp_release(struct local_qp *local)
{
	if (!local)
		return;
	LIST_REMOVE(local, link);
	LIST_INSERT_HEAD(&adapter.released_local_qps, local, link);
}

void local_qp_forget_released(void)
{
	struct local_qp *local;

	while ((local = LIST_FIRST(&adapter.released_local_qps))) {
		LIST_REMOVE(local, link);
		free(local);
	}
}

/* Before the first frame: the daemon drops frames of numbers that it does not know. */
void local_qp_add_all(struct vnic_driver *nic)
{
	struct local_qp *local;

	local_qp_forget_released();
	LIST_FOREACH(local, &adapter.local_qps, link)
	{
		int rc = vnic_driver_add_qpn(nic, local->qpn, local->reachable);

		if (rc)
			log_error("the daemon does not take QP %#x: %s", local->qpn, strerror(-rc));
		local->daemon = adapter.daemons;
	}
}
