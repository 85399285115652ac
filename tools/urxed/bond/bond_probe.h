/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The frames of a bond: probes, which the host's neighbours answer, and announcements of the host's
 * addresses.
 *
 * Probes through a member have a source MAC of that member alone. So bridges do not learn from a
 * backup's probe that the host is there, and the destination of an answer tells through which
 * member the probe was sent.
 */
#ifndef URXE_URXED_BOND_BOND_PROBE_H
#define URXE_URXED_BOND_BOND_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh.h"

/* Most neighbours that a round of probes asks. */
#define BOND_TARGETS 4

/* A neighbour that can answer probes. */
struct bond_target {
	uint8_t ip[16];
	uint16_t vlan; /* ID; 0 = untagged */
	uint8_t mac[ETHER_MAC_LEN];
};

/* Whether the address is in a subnet of the host: only stations there answer ARP and ND. */
bool bond_target_is_on_link(const struct host *h, const struct bond_target *t);
/* Lists up to `max` neighbours that can answer probes, most recently used first. Returns their
 * number. */
uint32_t bond_targets_list(const struct neigh *n, struct bond_target *list, uint32_t max);

/*
 * Writes an ARP request from address 0.0.0.0, or a neighbour solicitation from the link-local
 * address of `mac`, to the target. With these sources the target does not learn `mac` for an
 * address of the host. Returns the length in bytes, at most NEIGH_FRAME_ROOM.
 */
uint32_t bond_probe_build(uint8_t *frame, const struct bond_target *t,
			  const uint8_t mac[ETHER_MAC_LEN]);
/*
 * Writes a gratuitous ARP request (RFC 5227, 3) or an unsolicited neighbour advertisement (RFC
 * 4861, 7.2.6), which says that the host's address is at `mac`. For a tentative IPv6 address it
 * writes a RARP request (RFC 903) instead, from which bridges learn the MAC, too, but which names
 * no address. Returns the length in bytes, at most NEIGH_FRAME_ROOM.
 */
uint32_t bond_announcement_build(uint8_t *frame, const struct host_address *a,
				 const uint8_t mac[ETHER_MAC_LEN]);

#endif
