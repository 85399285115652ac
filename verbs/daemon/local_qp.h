/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs whose QPN the process has told the daemon (vnic_driver_add_qpn). While an HCA backs
 * the device, the HCA chooses QPNs, so they are in no lease of the process.
 */
#ifndef URXE_VERBS_DAEMON_LOCAL_QP_H
#define URXE_VERBS_DAEMON_LOCAL_QP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct vnic_driver;

struct local_qp {
	uint32_t qpn;
	bool reachable;  /* peers on this host may reach it without the HCA */
	uint32_t daemon; /* port.daemons when the daemon was told */
	LIST_ENTRY(local_qp) link;
};
LIST_HEAD(local_qp_list, local_qp);

/*
 * Tells the daemon. Blocks, without the lock. -EEXIST: another process has added or leased the QPN,
 * so only the HCA can execute the queue pair.
 */
int local_qp_add(uint32_t qpn, bool reachable, struct local_qp **local);
/* The same with the lock, for a queue pair that the engine executes. NULL: no memory. */
struct local_qp *local_qp_add_locked(struct vnic_driver *nic, uint32_t qpn);
/* With the lock; NULL is ignored. */
void local_qp_release(struct local_qp *local);
/* Tells the daemon about the released ones. Blocks, without the lock. */
void local_qp_flush(void);
/* With the lock, when the port has another daemon. */
void local_qp_add_all(struct vnic_driver *nic);
/* With the lock, when the port is detached. */
void local_qp_forget_released(void);

#endif
