/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs whose QPN the process has told the daemon (vnic_driver_add_qpn): while an HCA backs
 * the device, each queue pair, also one with a QPN of the lease; without an HCA none.
 */
#ifndef URXE_VERBS_ADAPTER_LOCAL_QP_H
#define URXE_VERBS_ADAPTER_LOCAL_QP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct vnic_driver;

struct local_qp {
	uint32_t qpn;
	bool reachable;  /* peers on this host may reach it without the HCA */
	uint32_t daemon; /* adapter.daemons when the daemon was told */
	LIST_ENTRY(local_qp) link;
};
LIST_HEAD(local_qp_list, local_qp);

/* Tells the daemon a queue pair that the engine executes. Waits for the answer with the lock held,
 * so only while the adapter attaches. NULL: no memory. */
struct local_qp *local_qp_add_locked(struct vnic_driver *nic, uint32_t qpn);
/* With the lock; NULL is ignored. requests/local_qp_requests.h tells the daemon later. */
void local_qp_release(struct local_qp *local);
/* With the lock, when the adapter has another daemon. */
void local_qp_add_all(struct vnic_driver *nic);
/* With the lock, when the adapter is detached. */
void local_qp_forget_released(void);

#endif
