/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote queue pairs to which this process's queue pairs are connected. The daemon forwards RC and
 * UC packets only to remote QPs that the sending process has registered, because such packets do
 * not name their source queue pair. For requests/remote_qp_requests.h and the adapter.
 */
#ifndef URXE_VERBS_ADAPTER_REMOTE_QP_H
#define URXE_VERBS_ADAPTER_REMOTE_QP_H

#include <stdint.h>
#include <sys/queue.h>

struct vnic_driver;

struct remote_qp {
	uint32_t local_qpn;         /* of this process's queue pair */
	uint8_t dgid[16];           /* of the remote queue pair's device */
	uint32_t qpn;               /* of the remote queue pair */
	uint32_t daemon_generation; /* adapter.daemon_generation at the registration */
	LIST_ENTRY(remote_qp) link;
};
LIST_HEAD(remote_qp_list, remote_qp);

/* Allocates a record, and adds it to no list. NULL: no memory. */
struct remote_qp *remote_qp_make(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn);

/*
 * The connection has ended: moves the record to adapter.released_remote_qps. With adapter.lock.
 * requests/remote_qp_requests.h tells the daemon later, and frees the record. No effect for NULL,
 * and for a parent's record in a forked child.
 */
void remote_qp_release(struct remote_qp *remote);
/* Frees the released records: their daemon has ended, or the adapter is detached. With
 * adapter.lock. */
void remote_qp_forget_released(void);
/*
 * Adds the remote QP of a restored QP to adapter.remote_qps; remote_qp_register_all registers it
 * with the daemon later. With adapter.lock. NULL: no memory.
 */
struct remote_qp *remote_qp_add(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn);
/*
 * Registers all records of adapter.remote_qps with a new daemon, and frees released records. Waits
 * for each answer with adapter.lock held, and goes on after an error. Returns 0 or the first error.
 */
int remote_qp_register_all(struct vnic_driver *nic);

#endif
