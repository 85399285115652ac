/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote queue pairs to which this process's queue pairs are connected. The daemon forwards RC and
 * UC packets only to remote QPs that the sending process has registered, because such packets do
 * not name their source queue pair. For cmd_qp.c and the adapter.
 */
#ifndef URXE_VERBS_ADAPTER_REMOTE_QP_H
#define URXE_VERBS_ADAPTER_REMOTE_QP_H

#include <stdint.h>
#include <sys/queue.h>

struct vnic_driver;

struct remote_qp {
	uint32_t local_qpn; /* of this process's queue pair */
	uint8_t dgid[16];
	uint32_t qpn;
	uint32_t daemon; /* adapter.daemons at the time of the registration */
	LIST_ENTRY(remote_qp) link;
};
LIST_HEAD(remote_qp_list, remote_qp);

/* A record in no list. NULL: no memory. */
struct remote_qp *remote_qp_make(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn);

/*
 * With the lock: the connection has ended. `remote` may be NULL.
 * requests/remote_qp_requests.h tells the daemon later.
 */
void remote_qp_release(struct remote_qp *remote);
/* With the lock: the daemon has ended before it was told. */
void remote_qp_forget_released(void);
/*
 * With the lock: adds the remote QP of a restored QP, which remote_qp_register_all registers. NULL:
 * no memory.
 */
struct remote_qp *remote_qp_add(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn);
/* With the lock: registers all remote QPs with a new daemon. Returns the first error. */
int remote_qp_register_all(struct vnic_driver *nic);

#endif
