/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parses and builds ARP frames for IPv4 over Ethernet (RFC 826). An address is ::ffff:a.b.c.d. */
#ifndef URXE_URXED_HOSTNET_ARP_H
#define URXE_URXED_HOSTNET_ARP_H

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
 * Reads the sender's addresses of an ARP packet as any receiver may: of any operation, and also of
 * hardware type 6 (IEEE 802), which Linux and BSD accept. `len` counts the bytes from the hardware
 * type on. False: the packet is too short, or of other types or lengths of addresses.
 */
bool arp_read_sender(const uint8_t *arp, uint32_t len, uint8_t ip[16], uint8_t mac[ETHER_MAC_LEN]);
/*
 * Writes an ARP frame of ARP_FRAME_LEN bytes with destination MAC tmac, for most requests the
 * broadcast address.
 */
void arp_build(uint8_t *frame, const struct arp *a, const uint8_t tmac[ETHER_MAC_LEN]);

#endif
