/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "adapter/remote_qp.h"

#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "process/log.h"

struct remote_qp *remote_qp_make(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn)
{
	struct remote_qp *r = malloc(sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct remote_qp){.local_qpn = local_qpn, .qpn = qpn};
	memcpy(r->dgid, dgid, sizeof(r->dgid));
	return r;
}

void remote_qp_release(struct remote_qp *remote)
{
	/* In a forked child the record stays where it is: it was in a list of the parent. */
	if (!remote || remote->daemon_generation != adapter.daemon_generation)
		return;
	LIST_REMOVE(remote, link);
	LIST_INSERT_HEAD(&adapter.released_remote_qps, remote, link);
}

void remote_qp_forget_released(void)
{
	struct remote_qp *remote;

	while ((remote = LIST_FIRST(&adapter.released_remote_qps))) {
		LIST_REMOVE(remote, link);
		free(remote);
	}
}

struct remote_qp *remote_qp_add(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn)
{
	struct remote_qp *r = remote_qp_make(local_qpn, dgid, qpn);

	if (!r)
		return NULL;
	r->daemon_generation = adapter.daemon_generation;
	LIST_INSERT_HEAD(&adapter.remote_qps, r, link);
	return r;
}

/* Each request takes some 20 us with the lock held. The requests must precede the first packet: the
 * daemon drops packets to remote QPs that it does not know. */
int remote_qp_register_all(struct vnic_driver *nic)
{
	struct remote_qp *remote;
	int error = 0;

	remote_qp_forget_released();
	LIST_FOREACH(remote, &adapter.remote_qps, link)
	{
		int rc = vnic_driver_register(nic, remote->local_qpn, remote->dgid, remote->qpn);

		/* The QPs connected to this remote QP fail by their own timeouts. */
		if (rc)
			log_error("cannot connect to remote QP %#x again: %s", remote->qpn,
				  strerror(-rc));
		error = error ? error : rc;
		remote->daemon_generation = adapter.daemon_generation;
	}
	return error;
}
