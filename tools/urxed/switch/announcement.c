/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/announcement.h"

#include <string.h>

/* Offsets in an ARP or RARP packet (RFC 826), and the sizes of its parts. */
#define ARP_SENDER_IP 14
#define ARP_TARGET_IP 24
#define ARP_LEN       28

#define ICMPV6_ADVERTISEMENT 136 /* RFC 4861, 4.4 */

/* Whether the ARP packet's sender and target have the same address (RFC 5227, 3). */
static bool is_gratuitous(const uint8_t *arp, uint32_t len)
{
	return len >= ARP_LEN && !memcmp(arp + ARP_SENDER_IP, arp + ARP_TARGET_IP, 4);
}

/*
 * Whether the packet is a neighbour advertisement. The caller has checked that the frame is sent to
 * a group. So the advertisement is unsolicited (RFC 4861, 7.2.6), or answers a station without an
 * address that checks whether the address is in use (7.2.4).
 */
static bool is_unsolicited(const uint8_t *ip, uint32_t len)
{
	return len > IPV6_HDR_LEN && ip[IPV6_HDR_LEN] == ICMPV6_ADVERTISEMENT;
}

bool is_announcement(const struct frame_class *s)
{
	uint32_t at = 2 * ETHER_MAC_LEN;

	if (!ether_is_group(s->dmac))
		return false;
	if (ether_get16(s->head + at) == ETHERTYPE_ID_VLAN)
		at += ETHER_VLAN_LEN;
	if (s->head_len < at + 2)
		return false;
	if (ether_get16(s->head + at) == ETHERTYPE_ID_RARP)
		return true;
	at += 2;
	if (s->kind == FRAME_ARP)
		return is_gratuitous(s->head + at, s->head_len - at);
	return s->kind == FRAME_ND && is_unsolicited(s->head + at, s->head_len - at);
}
