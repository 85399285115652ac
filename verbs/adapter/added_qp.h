/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs whose QPN the process has told the daemon (vnic_driver_add_qpn). While an HCA backs
 * the device, these are all queue pairs, also those with leased QPNs. Without an HCA, they are
 * those whose QPN an HCA chose earlier, in this process or before it was saved and restored.
 */
#ifndef URXE_VERBS_ADAPTER_ADDED_QP_H
#define URXE_VERBS_ADAPTER_ADDED_QP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct vnic_driver;

struct added_qp {
	uint32_t qpn;
	bool reachable; /* peers on this host may reach it without the HCA */
	bool uplink;    /* the engine receives packets of other hosts to it (VNIC_QPN_UPLINK) */
	bool told;      /* the daemon has accepted the QPN, so the process tells it the end, too */
	uint32_t daemon_generation; /* adapter.daemon_generation when the daemon was told */
	LIST_ENTRY(added_qp) link;
};
LIST_HEAD(added_qp_list, added_qp);

/*
 * Tells the daemon that peers may reach the queue pair without the HCA, and adds a record to
 * adapter.added_qps, also if the daemon refuses. Waits for the answer with adapter.lock held. For
 * queue pairs that exist before an HCA is attached, and restored ones. 0, the daemon's error, or
 * -ENOMEM; *added is NULL only after -ENOMEM.
 */
int added_qp_add_locked(struct vnic_driver *nic, uint32_t qpn, struct added_qp **added);
/* Returns the record's flags for the daemon: VNIC_QPN_* of attach_protocol.h. */
uint32_t added_qp_flags(const struct added_qp *added);
/*
 * Sets added->uplink to `uplink`, the opposite of its value, and tells the daemon without a wait.
 * -EAGAIN: the daemon reads no messages now, and nothing has changed. 0: the message is sent, or
 * this daemon has refused the QPN; or there is no daemon, or it has ended, and added_qp_add_all
 * tells the next one. With adapter.lock.
 */
int added_qp_set_uplink(struct added_qp *added, bool uplink);
/* Frees all records, also released ones: the daemon has forgotten the process. With the lock. */
void added_qp_forget_all(void);
/*
 * The queue pair is destroyed: moves its record to adapter.released_added_qps. With adapter.lock.
 * requests/added_qp_requests.h tells the daemon later, and frees the record. If the daemon has
 * refused the QPN, frees the record at once: the daemon must not be told the end of a QPN that
 * another queue pair may have added since. NULL: no effect.
 */
void added_qp_release(struct added_qp *added);
/*
 * Tells a new daemon all queue pairs of adapter.added_qps, and waits for each answer with
 * adapter.lock held. Frees released records.
 */
void added_qp_add_all(struct vnic_driver *nic);
/* Frees the released records: no daemon has to be told any more. With adapter.lock. */
void added_qp_forget_released(void);

#endif
