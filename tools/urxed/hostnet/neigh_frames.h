/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ARP and ND frames of neigh.h: neigh.c sends questions by this file, and hears here what
 * stations claim. neigh_input and neigh_claim_allowed are in this file, too.
 */
#ifndef URXE_URXED_HOSTNET_NEIGH_FRAMES_H
#define URXE_URXED_HOSTNET_NEIGH_FRAMES_H

#include <stdint.h>

#include "urxed/hostnet/neigh.h"

/* Asks who has the address of an entry: the station with that MAC, or all stations if it is NULL.
 */
void neigh_send_solicitation(struct neigh *n, const struct neigh_entry *e, const uint8_t *mac);

/* --- neigh.c */

/* Where a frame came in. */
struct neigh_ingress {
	int uplink;
	uint16_t vlan; /* 0 = untagged */
};

static inline bool neigh_is_vm(const struct neigh *n, int uplink)
{
	return n->vm_mask >> uplink & 1;
}

/* A station says that it has the address. `strong`: it may replace a known MAC (RFC 4861, 7.2.5).
 */
void neigh_learn_claim(struct neigh *n, const struct neigh_ingress *ingress, const uint8_t ip[16],
		       const uint8_t mac[ETHER_MAC_LEN], bool strong);

#endif
