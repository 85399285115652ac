/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parses and builds ARP frames for IPv4 over Ethernet (RFC 826). `sip` and `tip` hold IPv4
 * addresses as ::ffff:a.b.c.d. arp_nd.c handles and sends the frames.
 */
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
 * Reads the sender's addresses of an ARP packet as leniently as any receiver: of any operation, and
 * of hardware type 1 (Ethernet) or 6 (IEEE 802), as Linux and BSD do. `len` counts the bytes from
 * the hardware type on. False: the packet is too short, has another hardware type, or has other
 * types or lengths of addresses than IPv4 over Ethernet.
 */
bool arp_read_sender(const uint8_t *arp, uint32_t len, uint8_t ip[16], uint8_t mac[ETHER_MAC_LEN]);
/*
 * Writes an ARP frame of ARP_FRAME_LEN bytes with destination MAC tmac; NULL, of a request: to all
 * stations.
 */
void arp_build(uint8_t *frame, const struct arp *a, const uint8_t tmac[ETHER_MAC_LEN]);

#endif
