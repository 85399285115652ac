/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests of the process to the daemon: next hops, QPNs, remote QPs, inboxes of peers. If the
 * daemon ends, the next daemon is asked. All functions block, and adapter.lock must not be held, in
 * a process that has the adapter open. -EIO: the adapter is dead.
 */
#ifndef URXE_VERBS_REQUESTS_DAEMON_REQUESTS_H
#define URXE_VERBS_REQUESTS_DAEMON_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct local_qp;
struct remote_qp;
struct vnic_next_hop;

/* The next hop to dgid. Blocks for seconds at most. For an open context. */
int adapter_resolve_next_hop(uint8_t sgid_index, const uint8_t dgid[16], struct vnic_next_hop *hop);

/*
 * Leases more queue pair numbers, if all are taken. Blocks. -EINVAL: the process
 * has the maximum of queue pairs; -ENOSPC: the daemon has no more numbers for the process.
 */
int adapter_lease_qpns(void);
/*
 * Tells the daemon that a QP is connected to a remote QP, or no longer. Blocks.
 */
int adapter_register_remote_qp(struct remote_qp *remote, bool connected);
/* Tells the daemon that the process has a QP with that number, or no longer. Blocks. */
int adapter_add_qpn(struct local_qp *local, bool exists);
/*
 * 0: the peer of a connection is a queue pair of this host that can be reached without the HCA.
 * Blocks.
 */
int adapter_query_qpn(const uint8_t dgid[16], uint32_t qpn);
/*
 * Asks the daemon for the inbox of the process of this host that has the QPN of the device with
 * that MAC, if there may be one. Blocks. For an open context.
 */
void adapter_request_inbox(const uint8_t mac[6], uint32_t qpn);

#endif
