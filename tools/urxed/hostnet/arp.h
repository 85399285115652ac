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
 * Writes an ARP frame of ARP_FRAME_LEN bytes with destination MAC tmac, for most requests the
 * broadcast address.
 */
void arp_build(uint8_t *frame, const struct arp *a, const uint8_t tmac[ETHER_MAC_LEN]);

#endif
