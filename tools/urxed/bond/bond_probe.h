/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The frames of a bond: probes, which neighbours of the host answer, and announcements of the
 * host's addresses.
 *
 * A probe has a source MAC of its own for each member. So bridges do not learn from a backup's
 * probe that the host is there, and an answer shows by its destination which member was asked.
 */
#ifndef URXE_URXED_BOND_BOND_PROBE_H
#define URXE_URXED_BOND_BOND_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh.h"

/* Neighbours that a round of probes asks at most. */
#define BOND_TARGETS 4

/* A neighbour that can answer probes. */
struct bond_target {
	uint8_t ip[16];
	uint16_t vlan; /* ID; 0 = untagged */
	uint8_t mac[ETHER_MAC_LEN];
};

/* Is it an address in a subnet of the host? Only such stations answer ARP and ND. */
bool bond_target_is_on_link(const struct host *h, const struct bond_target *t);
/*
 * Lists up to `max` neighbours that can answer probes, first the one that the host used last.
 * Returns their number.
 */
uint32_t bond_targets_list(const struct neigh *n, struct bond_target *list, uint32_t max);

/*
 * Writes an ARP request from address 0.0.0.0, or a neighbour solicitation from the link-local
 * address of `mac`, to the target. So the target does not learn `mac` for an address of the host.
 * Returns the length, at most NEIGH_FRAME_ROOM.
 */
uint32_t bond_probe_build(uint8_t *frame, const struct bond_target *t,
			  const uint8_t mac[ETHER_MAC_LEN]);
/*
 * Writes a gratuitous ARP request (RFC 5227, 3) or an unsolicited neighbour advertisement (RFC
 * 4861, 7.2.6), which says that the host's address is at `mac`. For a tentative IPv6 address it is
 * a RARP request (RFC 903), which names no address: bridges learn the MAC from it, too. Returns the
 * length, at most NEIGH_FRAME_ROOM.
 */
uint32_t bond_announcement_build(uint8_t *frame, const struct host_address *a,
				 const uint8_t mac[ETHER_MAC_LEN]);

#endif
