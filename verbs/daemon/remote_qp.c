/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/remote_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/port.h"
#include "report/log.h"

/* False: another daemon has come, which does not know of it. */
static bool enlist(struct remote *remote)
{
	bool known;

	port_lock();
	known = remote->daemon == port.daemons;
	if (known)
		LIST_INSERT_HEAD(&port.remotes, remote, link);
	port_unlock();
	return known;
}

int remote_register(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn,
		    struct remote **remote)
{
	struct remote *r = malloc(sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	*r = (struct remote){.local_qpn = local_qpn, .qpn = qpn};
	memcpy(r->dgid, dgid, sizeof(r->dgid));
	do {
		rc = port_register(r, true);
	} while (!rc && !enlist(r));
	if (rc) {
		log_info("cannot connect QP %#x to remote QP %#x: %s", local_qpn, qpn,
			 strerror(-rc));
		free(r);
		return rc;
	}
	*remote = r;
	return 0;
}

void remote_release(struct remote *remote)
{
	if (!remote)
		return;
	LIST_REMOVE(remote, link);
	LIST_INSERT_HEAD(&port.released_remotes, remote, link);
}

static struct remote *next_released(void)
{
	struct remote *remote;

	port_lock();
	/* Nor need the next daemon be told. */
	if (!port_connected())
		remote_forget_released();
	remote = LIST_FIRST(&port.released_remotes);
	if (remote)
		LIST_REMOVE(remote, link);
	port_unlock();
	return remote;
}

void remote_flush(void)
{
	struct remote *remote;

	while ((remote = next_released())) {
		/* Where the daemon has gone, so has what it knew. */
		port_register(remote, false);
		free(remote);
	}
}

void remote_forget_released(void)
{
	struct remote *remote;

	while ((remote = LIST_FIRST(&port.released_remotes))) {
		LIST_REMOVE(remote, link);
		free(remote);
	}
}

/*
 * One request each, some 20 us, while nobody posts; but before the first packet, as
 * others could not be told from those that the daemon is to drop.
 */
void remote_register_all(struct vnic_driver *nic)
{
	struct remote *remote;

	remote_forget_released();
	LIST_FOREACH(remote, &port.remotes, link)
	{
		int rc = vnic_driver_register(nic, remote->local_qpn, remote->dgid, remote->qpn);

		/* Its QPs end by their own timeouts. */
		if (rc)
			log_error("cannot connect to remote QP %#x again: %s", remote->qpn,
				  strerror(-rc));
		remote->daemon = port.daemons;
	}
}
