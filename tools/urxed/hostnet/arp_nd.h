/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handles the daemon's ARP and ND frames: answers requests for those addresses of this host for
 * which the kernel does not answer, passes claims in received frames to neigh.c, and sends
 * neigh.c's solicitations. Its entry for received frames, neigh_input, is in neigh.h.
 */
#ifndef URXE_URXED_HOSTNET_ARP_ND_H
#define URXE_URXED_HOSTNET_ARP_ND_H

#include <stdint.h>

#include "urxed/hostnet/neigh.h"

/* Bytes; longer than any ARP or ND frame. */
#define ARP_ND_ROOM 1518

/* A frame without its VLAN tag. */
struct arp_nd_untagged {
	const uint8_t *frame;
	uint32_t len;
	uint16_t vlan; /* 0 = untagged */
	uint8_t room[ARP_ND_ROOM];
};

/* Takes the tag off a frame; returns false if a tagged frame is too long. */
bool arp_nd_remove_tag(struct arp_nd_untagged *u, const uint8_t *frame, uint32_t len);

/*
 * Writes an ARP request or a neighbour solicitation for `ip`, with the VLAN's tag, into a buffer of
 * NEIGH_FRAME_ROOM bytes; returns the length in bytes. mac: destination; NULL: broadcast, or the
 * solicited-node group of `ip`. `sip`: the host's address that the frame names as its sender's. If
 * sip is NULL, or of another family than `ip`, an ARP request names the sender 0.0.0.0 (RFC 5227,
 * 2.1.1), and a solicitation comes from the link-local address of `smac`.
 */
uint32_t arp_nd_build(uint8_t *frame, const uint8_t smac[ETHER_MAC_LEN], const uint8_t *sip,
		      const uint8_t ip[16], const uint8_t *mac, uint16_t vlan);

/* Solicits the address of an entry from the station with that MAC; mac NULL: as arp_nd_build. */
void neigh_send_solicitation(struct neigh *n, const struct neigh_entry *e, const uint8_t *mac);

/* --- neigh.c */

/* The uplink and the VLAN by which a frame came. */
struct neigh_ingress {
	int uplink; /* index of the uplink; for a bond's member, that of the bond's first member */
	int member; /* index of the bond's member by which the frame came; -1 = of no bond */
	uint16_t vlan; /* 0 = untagged */
};

static inline bool neigh_is_vm(const struct neigh *n, int uplink)
{
	return n->vm_mask >> uplink & 1;
}

/* What a station's claim (in ARP or ND) may change in the entry of the claimed address (RFC 4861,
 * 7.2.5). */
enum neigh_claim {
	NEIGH_CLAIM_CONFIRMS, /* only confirm the known MAC */
	NEIGH_CLAIM_RESOLVES, /* also set the MAC of an entry that has none */
	NEIGH_CLAIM_REPLACES, /* also contest a known MAC: replaces it if its station no longer
				 answers */
};

/* Handles a station's claim that an address belongs to a MAC. */
void neigh_learn_claim(struct neigh *n, const struct neigh_ingress *ingress, const uint8_t ip[16],
		       const uint8_t mac[ETHER_MAC_LEN], enum neigh_claim claim);

#endif
