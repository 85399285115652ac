/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the process has told the daemon about queue pairs. A record is one of two kinds:
 *
 * A queue pair of this process, in adapter.added_qps (vnic_driver_add_qpn). While an HCA backs the
 * device, these are all queue pairs, also those with leased QPNs. Without an HCA, they are those
 * whose QPN an HCA chose earlier, in this process or before it was saved and restored.
 *
 * A remote queue pair to which one of this process is connected, in adapter.remote_qps
 * (vnic_driver_register). The daemon forwards RC and UC packets only to remote QPs that the sending
 * process has registered, because such packets do not name their source queue pair.
 */
#ifndef URXE_VERBS_ADAPTER_TOLD_QP_H
#define URXE_VERBS_ADAPTER_TOLD_QP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct vnic_driver;

struct told_qp {
	uint32_t qpn;               /* of the queue pair, or of the remote one */
	uint32_t daemon_generation; /* adapter.daemon_generation when the daemon was told */
	bool told; /* the daemon has accepted the record, so the process tells it the end, too */
	/* Of a queue pair of this process: */
	bool reachable; /* peers on this host may reach it without the HCA */
	bool uplink;    /* the engine receives packets of other hosts to it (VNIC_QPN_UPLINK) */
	/* Of a remote queue pair: */
	uint32_t local_qpn; /* of this process's queue pair; 0: the record is of the other kind */
	uint8_t dgid[16];   /* of the remote queue pair's device */
	LIST_ENTRY(told_qp) link;
};
LIST_HEAD(told_qp_list, told_qp);

/* Adds the record to the list of its kind. With adapter.lock. */
void told_qp_insert(struct told_qp *told);
/* Tells the daemon the record, or its end. Waits for the answer: 0 or the daemon's error. */
int told_qp_tell(struct vnic_driver *nic, const struct told_qp *told);
int told_qp_tell_end(struct vnic_driver *nic, const struct told_qp *told);
/*
 * Tells the daemon that peers may reach the queue pair without the HCA, and adds a record to
 * adapter.added_qps, also if the daemon refuses. Waits for the answer with adapter.lock held. For
 * queue pairs that exist before an HCA is attached, and restored ones. 0, the daemon's error, or
 * -ENOMEM; *told is NULL only after -ENOMEM.
 */
int told_qp_add_locked(struct vnic_driver *nic, uint32_t qpn, struct told_qp **told);
/*
 * Adds the remote QP of a restored QP to adapter.remote_qps; told_qp_tell_all tells the daemon
 * later. With adapter.lock. NULL: no memory.
 */
struct told_qp *told_qp_restore(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn);
/*
 * Sets told->uplink to `uplink`, the opposite of its value, and tells the daemon without a wait.
 * -EAGAIN: the daemon reads no messages now, and nothing has changed. 0: the message is sent, or
 * this daemon has refused the QPN; or there is no daemon, or it has ended, and told_qp_tell_all
 * tells the next one. With adapter.lock.
 */
int told_qp_set_uplink(struct told_qp *told, bool uplink);
/*
 * The queue pair is destroyed, or its connection has ended: moves the record to
 * adapter.released_qps. With adapter.lock. requests/told_qp_requests.h tells the daemon later, and
 * frees the record. If the daemon has refused the record, frees it at once: the daemon must not be
 * told the end of a QPN that another queue pair may have added since. No effect for NULL, and for a
 * parent's record in a forked child.
 */
void told_qp_release(struct told_qp *told);
/*
 * Tells a new daemon all records of the list, and frees released records. Waits for each answer
 * with adapter.lock held, and goes on after an error. Returns 0 or the first error.
 */
int told_qp_tell_all(struct vnic_driver *nic, struct told_qp_list *list);
/* Frees the released records: no daemon has to be told any more. With adapter.lock. */
void told_qp_forget_released(void);
/* Frees all records, also released ones: the daemon has forgotten the process. With the lock. */
void told_qp_forget_all(void);

#endif
