/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/remote_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/port.h"
#include "process/log.h"

/* False: a new daemon, which does not know the remote QP, has replaced the old one. */
static bool add_if_known(struct remote_qp *remote)
{
	bool known;

	port_lock();
	known = remote->daemon == port.daemons;
	if (known)
		LIST_INSERT_HEAD(&port.remote_qps, remote, link);
	port_unlock();
	return known;
}

static struct remote_qp *make_remote_qp(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn)
{
	struct remote_qp *r = malloc(sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct remote_qp){.local_qpn = local_qpn, .qpn = qpn};
	memcpy(r->dgid, dgid, sizeof(r->dgid));
	return r;
}

int remote_qp_register(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn,
		       struct remote_qp **remote)
{
	struct remote_qp *r = make_remote_qp(local_qpn, dgid, qpn);
	int rc;

	if (!r)
		return -ENOMEM;
	do {
		rc = port_register_remote_qp(r, true);
	} while (!rc && !add_if_known(r));
	if (rc) {
		log_info("cannot connect QP %#x to remote QP %#x: %s", local_qpn, qpn,
			 strerror(-rc));
		free(r);
		return rc;
	}
	*remote = r;
	return 0;
}

void remote_qp_release(struct remote_qp *remote)
{
	if (!remote)
		return;
	LIST_REMOVE(remote, link);
	LIST_INSERT_HEAD(&port.released_remote_qps, remote, link);
}

static struct remote_qp *next_released(void)
{
	struct remote_qp *remote;

	port_lock();
	/* The next daemon does not know them. */
	if (!port_connected())
		remote_qp_forget_released();
	remote = LIST_FIRST(&port.released_remote_qps);
	if (remote)
		LIST_REMOVE(remote, link);
	port_unlock();
	return remote;
}

void remote_qp_flush(void)
{
	struct remote_qp *remote;

	while ((remote = next_released())) {
		/* A failure means that the daemon has ended, and its registrations with it. */
		port_register_remote_qp(remote, false);
		free(remote);
	}
}

void remote_qp_forget_released(void)
{
	struct remote_qp *remote;

	while ((remote = LIST_FIRST(&port.released_remote_qps))) {
		LIST_REMOVE(remote, link);
		free(remote);
	}
}

struct remote_qp *remote_qp_add(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn)
{
	struct remote_qp *r = make_remote_qp(local_qpn, dgid, qpn);

	if (r)
		LIST_INSERT_HEAD(&port.remote_qps, r, link);
	return r;
}

/*
 * Each request takes some 20 us with the lock held. They must precede the first packet: the daemon
 * drops packets to remote QPs that it does not know.
 */
int remote_qp_register_all(struct vnic_driver *nic)
{
	struct remote_qp *remote;
	int error = 0;

	remote_qp_forget_released();
	LIST_FOREACH(remote, &port.remote_qps, link)
	{
		int rc = vnic_driver_register(nic, remote->local_qpn, remote->dgid, remote->qpn);

		/* The QPs that are connected to it fail by their own timeouts. */
		if (rc)
			log_error("cannot connect to remote QP %#x again: %s", remote->qpn,
				  strerror(-rc));
		error = error ? error : rc;
		remote->daemon = port.daemons;
	}
	return error;
}
