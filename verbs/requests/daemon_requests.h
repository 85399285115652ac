/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests of the process to the daemon: next hops, QPNs, connections, inboxes of peers. All
 * functions block until the daemon has answered; if it ends, they wait for the next daemon and ask
 * that one. The adapter must be open, and adapter.lock must not be held. Functions with a result
 * return 0 or a negative errno value; -EIO: the device is dead.
 */
#ifndef URXE_VERBS_REQUESTS_DAEMON_REQUESTS_H
#define URXE_VERBS_REQUESTS_DAEMON_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct told_qp;
struct vnic_next_hop;

/* Sets *hop to the next hop from the source address sgid_index to dgid. If dgid is an address of
 * this host, does not ask the daemon. */
int adapter_resolve_next_hop(uint8_t sgid_index, const uint8_t dgid[16], struct vnic_next_hop *hop);

/*
 * Leases one more block of QPNs, if the process uses all that it has; if not, returns 0. -EINVAL:
 * the process has the maximum of queue pairs; -ENOSPC: the daemon has no more numbers for the
 * process.
 */
int adapter_lease_qpns(void);
/* `exists`: tells the daemon the record (adapter/told_qp.h), and sets told->daemon_generation. Else
 * tells the daemon, if it is still that of the generation, the end of the record. */
int adapter_tell_qp(struct told_qp *told, bool exists);
/*
 * Asks whether the remote queue pair is one of this host that can be reached without the HCA. 0: it
 * is; a negative errno value: it is not, or the daemon does not know. While the daemon does not
 * know the peer's user, asks again for up to 5 s.
 */
int adapter_query_qpn(const uint8_t dgid[16], uint32_t qpn);
/* Returns when the daemon has read all messages that this thread has sent. If the daemon ends
 * meanwhile, waits for the next one. Returns also if the device is dead. */
void adapter_await_daemon(void);
/* Tells the daemon whether this process receives multicast frames, if adapter_update_multicast has
 * changed that. Returns when the daemon has applied it. */
void adapter_apply_multicast(void);
/*
 * Gets the inbox of the process of this host that has the QPN of the device with that MAC, and adds
 * it to adapter.tx. Does not ask the daemon if the adapter has the inbox already, or the MAC is
 * certainly another host's. After an error frames to the QP go by the switch.
 */
void adapter_request_inbox(const uint8_t mac[6], uint32_t qpn);

#endif
