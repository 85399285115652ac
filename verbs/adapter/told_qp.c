/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "adapter/told_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/attach_protocol.h>

#include "adapter/adapter.h"
#include "process/log.h"

static uint32_t get_flags(const struct told_qp *told)
{
	return (told->reachable ? VNIC_QPN_REACHABLE : 0) | (told->uplink ? VNIC_QPN_UPLINK : 0);
}

void told_qp_insert(struct told_qp *told)
{
	LIST_INSERT_HEAD(told->local_qpn ? &adapter.remote_qps : &adapter.added_qps, told, link);
}

int told_qp_tell(struct vnic_driver *nic, const struct told_qp *told)
{
	return told->local_qpn ? vnic_driver_register(nic, told->local_qpn, told->dgid, told->qpn)
			       : vnic_driver_add_qpn(nic, told->qpn, get_flags(told));
}

int told_qp_tell_end(struct vnic_driver *nic, const struct told_qp *told)
{
	return told->local_qpn ? vnic_driver_unregister(nic, told->local_qpn, told->dgid, told->qpn)
			       : vnic_driver_remove_qpn(nic, told->qpn);
}

int told_qp_add_locked(struct vnic_driver *nic, uint32_t qpn, struct told_qp **told)
{
	struct told_qp *qp = malloc(sizeof(*qp));
	int rc;

	*told = qp;
	if (!qp)
		return -ENOMEM;
	*qp = (struct told_qp){
		.qpn = qpn, .reachable = true, .daemon_generation = adapter.daemon_generation};
	rc = told_qp_tell(nic, qp);
	if (rc)
		log_info("the daemon does not take QP %#x: %s", qpn, strerror(-rc));
	qp->told = !rc;
	told_qp_insert(qp);
	return rc;
}

struct told_qp *told_qp_restore(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn)
{
	struct told_qp *told = malloc(sizeof(*told));

	if (!told)
		return NULL;
	*told = (struct told_qp){.qpn = qpn,
				 .daemon_generation = adapter.daemon_generation,
				 .told = true,
				 .local_qpn = local_qpn};
	memcpy(told->dgid, dgid, sizeof(told->dgid));
	told_qp_insert(told);
	return told;
}

int told_qp_set_uplink(struct told_qp *told, bool uplink)
{
	told->uplink = uplink;
	if (!told->told || !adapter_connected() ||
	    vnic_driver_set_qpn(adapter.nic, told->qpn, get_flags(told)) != -EAGAIN)
		return 0;
	told->uplink = !uplink;
	return -EAGAIN;
}

void told_qp_release(struct told_qp *told)
{
	/* In a forked child the record stays where it is: it was in a list of the parent. */
	if (!told || told->daemon_generation != adapter.daemon_generation)
		return;
	LIST_REMOVE(told, link);
	if (told->told)
		LIST_INSERT_HEAD(&adapter.released_qps, told, link);
	else
		free(told);
}

static void free_list(struct told_qp_list *list)
{
	struct told_qp *told;

	while ((told = LIST_FIRST(list))) {
		LIST_REMOVE(told, link);
		free(told);
	}
}

void told_qp_forget_released(void)
{
	free_list(&adapter.released_qps);
}

void told_qp_forget_all(void)
{
	free_list(&adapter.released_qps);
	free_list(&adapter.added_qps);
	free_list(&adapter.remote_qps);
}

/* The caller calls this function before it sends the new daemon a frame: the daemon drops frames
 * from QPNs, and to remote QPs, that it does not know. Each request takes some 20 us. */
int told_qp_tell_all(struct vnic_driver *nic, struct told_qp_list *list)
{
	struct told_qp *told;
	int error = 0;

	told_qp_forget_released();
	LIST_FOREACH(told, list, link)
	{
		int rc = told_qp_tell(nic, told);

		/* QPs connected to a remote QP that is refused fail by their own timeouts. */
		if (rc)
			log_error(told->local_qpn ? "cannot connect to remote QP %#x again: %s"
						  : "the daemon does not take QP %#x: %s",
				  told->qpn, strerror(-rc));
		error = error ? error : rc;
		told->told = !rc;
		told->daemon_generation = adapter.daemon_generation;
	}
	return error;
}
