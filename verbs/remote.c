/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "port.h"

int remote_register(const uint8_t dgid[16], uint32_t qpn, struct remote **remote)
{
	struct remote *r = malloc(sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	*r = (struct remote){.qpn = qpn};
	memcpy(r->dgid, dgid, sizeof(r->dgid));
	rc = port_register(r, true);
	if (rc) {
		log_info("cannot connect to remote QP %#x: %s", qpn,
			 rc == -EADDRINUSE ? "another process is connected to it" : strerror(-rc));
		free(r);
		return rc;
	}
	*remote = r;
	return 0;
}

void remote_release(struct remote *remote)
{
	if (remote)
		SLIST_INSERT_HEAD(&port.released_remotes, remote, link);
}

static struct remote *next_released(void)
{
	struct remote *remote;

	port_lock();
	remote = SLIST_FIRST(&port.released_remotes);
	if (remote)
		SLIST_REMOVE_HEAD(&port.released_remotes, link);
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

	while ((remote = SLIST_FIRST(&port.released_remotes))) {
		SLIST_REMOVE_HEAD(&port.released_remotes, link);
		free(remote);
	}
}
