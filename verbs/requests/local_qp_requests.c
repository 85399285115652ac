/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requests/local_qp_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "process/log.h"
#include "requests/daemon_requests.h"

/* False: a new daemon, which does not know the queue pair, has replaced the old one. */
static bool add_if_known(struct local_qp *local)
{
	bool known;

	adapter_lock();
	known = local->daemon == adapter.daemons;
	if (known)
		LIST_INSERT_HEAD(&adapter.local_qps, local, link);
	adapter_unlock();
	return known;
}

int local_qp_add(uint32_t qpn, bool reachable, struct local_qp **local)
{
	struct local_qp *l = malloc(sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	*l = (struct local_qp){.qpn = qpn, .reachable = reachable};
	do {
		rc = adapter_add_qpn(l, true);
	} while (!rc && !add_if_known(l));
	if (rc) {
		log_info("QP %#x is unknown to urxed, so only the HCA reaches it: %s", qpn,
			 strerror(-rc));
		free(l);
		return rc;
	}
	*local = l;
	return 0;
}

static struct local_qp *next_released(void)
{
	struct local_qp *local;

	adapter_lock();
	/* The next daemon does not know them. */
	if (!adapter_connected())
		local_qp_forget_released();
	local = LIST_FIRST(&adapter.released_local_qps);
	if (local)
		LIST_REMOVE(local, link);
	adapter_unlock();
	return local;
}

void local_qp_flush(void)
{
	struct local_qp *local;

	if (LIST_EMPTY(&adapter.released_local_qps))
		return;
	while ((local = next_released())) {
		/* A failure means that the daemon has ended, and with it what it knew. */
		adapter_add_qpn(local, false);
		free(local);
	}
}
