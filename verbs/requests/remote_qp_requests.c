/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requests/remote_qp_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/port.h"
#include "port/remote_qp.h"
#include "process/log.h"
#include "requests/daemon_requests.h"

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

int remote_qp_register(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn,
		       struct remote_qp **remote)
{
	struct remote_qp *r = remote_qp_make(local_qpn, dgid, qpn);
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
