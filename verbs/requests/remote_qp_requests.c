/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requests/remote_qp_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "adapter/remote_qp.h"
#include "process/log.h"
#include "requests/daemon_requests.h"

/* Adds the record to adapter.remote_qps. False, without effect: since the registration a new daemon
 * has replaced the old one, so the caller must register the remote QP with the new one. */
static bool add_if_known(struct remote_qp *remote)
{
	bool known;

	adapter_lock();
	known = remote->daemon_generation == adapter.daemon_generation;
	if (known)
		LIST_INSERT_HEAD(&adapter.remote_qps, remote, link);
	adapter_unlock();
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
		rc = adapter_register_remote_qp(r, true);
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

	adapter_lock();
	/* The next daemon does not know the released remote QPs, so it need not be told. */
	if (!adapter_connected())
		remote_qp_forget_released();
	remote = LIST_FIRST(&adapter.released_remote_qps);
	if (remote)
		LIST_REMOVE(remote, link);
	adapter_unlock();
	return remote;
}

void remote_qp_flush(void)
{
	struct remote_qp *remote;

	while ((remote = next_released())) {
		/* Ignores the result: it fails only if the daemon has ended, and forgotten all. */
		adapter_register_remote_qp(remote, false);
		free(remote);
	}
}
