/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requests/told_qp_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "process/log.h"
#include "requests/daemon_requests.h"

/* Adds the record to its list. False, without effect: since the daemon was told, a new daemon has
 * replaced it, so the caller must tell the new one. */
static bool add_if_known(struct told_qp *told)
{
	bool known;

	adapter_lock();
	known = told->daemon_generation == adapter.daemon_generation;
	if (known)
		told_qp_insert(told);
	adapter_unlock();
	return known;
}

/* Tells the daemon a copy of the record, and adds the copy to its list. 0 or a negative errno
 * value. */
static int add_record(const struct told_qp *record, struct told_qp **told)
{
	struct told_qp *copy = malloc(sizeof(*copy));
	int rc;

	if (!copy)
		return -ENOMEM;
	*copy = *record;
	do {
		rc = adapter_tell_qp(copy, true);
	} while (!rc && !add_if_known(copy));
	if (rc)
		free(copy);
	else
		*told = copy;
	return rc;
}

int told_qp_add(uint32_t qpn, bool reachable, struct told_qp **told)
{
	const struct told_qp record = {.qpn = qpn, .reachable = reachable, .told = true};
	int rc = add_record(&record, told);

	if (rc)
		log_info("QP %#x is unknown to urxed, so only the HCA reaches it: %s", qpn,
			 strerror(-rc));
	return rc;
}

int told_qp_connect(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn, struct told_qp **told)
{
	struct told_qp record = {.qpn = qpn, .told = true, .local_qpn = local_qpn};
	int rc;

	memcpy(record.dgid, dgid, sizeof(record.dgid));
	rc = add_record(&record, told);
	if (rc)
		log_info("cannot connect QP %#x to remote QP %#x: %s", local_qpn, qpn,
			 strerror(-rc));
	return rc;
}

static struct told_qp *next_released(void)
{
	struct told_qp *told;

	adapter_lock();
	/* The next daemon does not know the released records, so it need not be told. */
	if (!adapter_connected())
		told_qp_forget_released();
	told = LIST_FIRST(&adapter.released_qps);
	if (told)
		LIST_REMOVE(told, link);
	adapter_unlock();
	return told;
}

void told_qp_flush(void)
{
	struct told_qp *told;

	while ((told = next_released())) {
		/* Ignores the result: it fails only if the daemon has ended, and forgotten all. */
		adapter_tell_qp(told, false);
		free(told);
	}
}
