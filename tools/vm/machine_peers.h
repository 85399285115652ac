/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peers of the virtual machine on this host: programs, and device processes of other machines,
 * of the same user, to whose queue pairs those of the machine are connected. The kernel copies
 * WRITEs and READs between a peer's memory and the machine's (docs/same-host.md). All other
 * messages go in packets by the switch.
 */
#ifndef URXE_VM_MACHINE_PEERS_H
#define URXE_VM_MACHINE_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include <samehost/peer.h>
#include <vnic/inbox.h>

#include "vm/session.h"

struct machine_route; /* one peer, with the memory that it has published */

struct machine_peers {
	struct vm_session *session;
	struct vnic_inbox *inbox; /* receives no frames: peers use what it publishes; NULL = none */
	struct peers peers;
	struct urxe_direct_ops direct;   /* of the engine, with &peers as their context */
	struct urxe_direct_table *table; /* of the engine; NULL = no copies */
	struct machine_route *routes[VNIC_PROCESSES]; /* by VNIC_PROCESS of the peer's QPN */
};

/*
 * Publishes the memory of the machine to its peers. Call it in the thread that runs the engine,
 * after vm_session_open; *p must stay where it is. If the session has no daemon now, or copies are
 * not possible, all messages of the machine go in packets until the process ends.
 */
void machine_peers_open(struct machine_peers *p, struct vm_session *session);
/* Call it when the engine no longer exists. */
void machine_peers_close(struct machine_peers *p);

/*
 * Call it before a queue pair of the machine is connected to the queue pair `qpn` of the device
 * with that MAC: asks urxed for the process of that queue pair, if the process may be on this host
 * and is not known.
 */
void machine_peers_meet(struct machine_peers *p, const uint8_t mac[6], uint32_t qpn);
/* Whether the process of that queue pair is known, and urxed permits copies now. */
bool machine_peers_has(const struct machine_peers *p, const uint8_t mac[6], uint32_t qpn);

#endif
