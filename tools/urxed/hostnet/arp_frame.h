/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parses and builds ARP frames for IPv4 over Ethernet (RFC 826). `sip` and `tip` hold IPv4
 * addresses as ::ffff:a.b.c.d. It neither handles nor sends frames (arp_nd.h does). */
#ifndef URXE_URXED_HOSTNET_ARP_FRAME_H
#define URXE_URXED_HOSTNET_ARP_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ether.h"

#define ARP_FRAME_LEN (ETHER_HDR_LEN + 28)

struct arp {
	bool request; /* false = reply */
	uint8_t smac[ETHER_MAC_LEN];
	uint8_t sip[16];
	uint8_t tip[16];
};

bool arp_parse(struct arp *a, const uint8_t *frame, uint32_t len);
/*
 * Reads the sender's addresses of an ARP packet as leniently as any receiver: accepts each
 * operation, and hardware types 1 (Ethernet) and 6 (IEEE 802), as Linux and BSD do. `len`: bytes
 * from the hardware type on. Returns false if the packet is too short, or has another hardware
 * type, another protocol than IPv4, or other address lengths.
 */
bool arp_read_sender(const uint8_t *arp, uint32_t len, uint8_t ip[16], uint8_t mac[ETHER_MAC_LEN]);
/* Writes an ARP frame of ARP_FRAME_LEN bytes with destination MAC tmac; for a request tmac may be
 * NULL: to all stations. */
void arp_build(uint8_t *frame, const struct arp *a, const uint8_t tmac[ETHER_MAC_LEN]);

#endif
