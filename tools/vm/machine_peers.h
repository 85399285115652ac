/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Other processes of this user on this host with which queue pairs of the machine are connected:
 * programs, and device processes of other machines. WRITEs and READs between them are copies by the
 * kernel between their memory and the machine's (docs/same-host.md). Their packets go by the
 * switch.
 */
#ifndef URXE_VM_MACHINE_PEERS_H
#define URXE_VM_MACHINE_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include <samehost/peer.h>
#include <vnic/inbox.h>

#include "vm/session.h"

struct machine_route;

struct machine_peers {
	struct vm_session *session;
	struct vnic_inbox *inbox; /* only what it publishes is used; NULL = no copies */
	struct peers peers;
	struct urxe_direct_ops direct;   /* of the engine, with &peers as their context */
	struct urxe_direct_table *table; /* of the engine; NULL = no copies */
	struct machine_route *routes[VNIC_PROCESSES];
};

/*
 * Publishes the process to its peers. In the thread that runs the engine, after vm_session_open.
 * The structure must stay where it is. Without a session, or if copies are not possible, all
 * messages of the machine go in packets.
 */
void machine_peers_open(struct machine_peers *p, struct vm_session *session);
/* After the end of the engine. */
void machine_peers_close(struct machine_peers *p);

/*
 * A queue pair of the machine is being connected to that one of the device with that MAC: asks
 * urxed for its process, if the process may be on this host and is not known.
 */
void machine_peers_meet(struct machine_peers *p, const uint8_t mac[6], uint32_t qpn);
/* Whether copies to and from that process are possible now, as far as the process is known. */
bool machine_peers_has(const struct machine_peers *p, const uint8_t mac[6], uint32_t qpn);

#endif
