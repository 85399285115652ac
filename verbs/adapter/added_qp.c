/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "adapter/added_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "process/log.h"

int added_qp_add_locked(struct vnic_driver *nic, uint32_t qpn, struct added_qp **added)
{
	struct added_qp *qp = malloc(sizeof(*qp));
	int rc;

	*added = qp;
	if (!qp)
		return -ENOMEM;
	*qp = (struct added_qp){.qpn = qpn, .reachable = true, .daemon = adapter.daemons};
	rc = vnic_driver_add_qpn(nic, qpn, true);
	if (rc)
		log_info("the daemon does not take QP %#x: %s", qpn, strerror(-rc));
	qp->told = !rc;
	LIST_INSERT_HEAD(&adapter.added_qps, qp, link);
	return rc;
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

/* Before the first frame: the daemon drops frames of numbers that it does not know. */
void added_qp_add_all(struct vnic_driver *nic)
{
	struct added_qp *added;

	added_qp_forget_released();
	LIST_FOREACH(added, &adapter.added_qps, link)
	{
		int rc = vnic_driver_add_qpn(nic, added->qpn, added->reachable);

		if (rc)
			log_error("the daemon does not take QP %#x: %s", added->qpn, strerror(-rc));
		added->told = !rc;
		added->daemon = adapter.daemons;
	}
}
