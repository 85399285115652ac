/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requests/added_qp_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "process/log.h"
#include "requests/daemon_requests.h"

/* Adds the record to adapter.added_qps. False, without effect: since the daemon was told the QPN, a
 * new daemon has replaced it, so the caller must tell the new one. */
static bool add_if_known(struct added_qp *added)
{
	bool known;

	adapter_lock();
	known = added->daemon_generation == adapter.daemon_generation;
	if (known)
		LIST_INSERT_HEAD(&adapter.added_qps, added, link);
	adapter_unlock();
	return known;
}

int added_qp_add(uint32_t qpn, bool reachable, struct added_qp **added)
{
	struct added_qp *qp = malloc(sizeof(*qp));
	int rc;

	if (!qp)
		return -ENOMEM;
	*qp = (struct added_qp){.qpn = qpn, .reachable = reachable, .told = true};
	do {
		rc = adapter_add_qpn(qp, true);
	} while (!rc && !add_if_known(qp));
	if (rc) {
		log_info("QP %#x is unknown to urxed, so only the HCA reaches it: %s", qpn,
			 strerror(-rc));
		free(qp);
		return rc;
	}
	*added = qp;
	return 0;
}

static struct added_qp *next_released(void)
{
	struct added_qp *added;

	adapter_lock();
	/* The next daemon does not know the released queue pairs, so it need not be told. */
	if (!adapter_connected())
		added_qp_forget_released();
	added = LIST_FIRST(&adapter.released_added_qps);
	if (added)
		LIST_REMOVE(added, link);
	adapter_unlock();
	return added;
}

void added_qp_flush(void)
{
	struct added_qp *added;

	if (LIST_EMPTY(&adapter.released_added_qps))
		return;
	while ((added = next_released())) {
		/* Ignores the result: it fails only if the daemon has ended, and forgotten all. */
		adapter_add_qpn(added, false);
		free(added);
	}
}
