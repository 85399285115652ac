/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/announcement.h"

#include <string.h>

/* Offsets in an ARP or RARP packet (RFC 826), and the sizes of its parts. */
#define ARP_SENDER_IP 14
#define ARP_TARGET_IP 24
#define ARP_LEN       28
#define ARP_ETHERNET  1
#define RARP_REQUEST  3 /* RFC 903 */

#define ICMPV6_ADVERTISEMENT 136 /* RFC 4861, 4.4 */

/* A sender that names itself as the target (RFC 5227, 3). */
static bool is_gratuitous(const uint8_t *arp, uint32_t len)
{
	return len >= ARP_LEN && !memcmp(arp + ARP_SENDER_IP, arp + ARP_TARGET_IP, 4);
}

/* Sent to a group, so that no solicitation preceded it (RFC 4861, 7.2.6). */
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

void announcement_build(uint8_t frame[ANNOUNCEMENT_LEN], const uint8_t mac[ETHER_MAC_LEN])
{
	uint8_t *rarp = frame + ETHER_HDR_LEN;

	memset(frame, 0, ANNOUNCEMENT_LEN);
	memset(frame, 0xff, ETHER_MAC_LEN);
	memcpy(frame + ETHER_MAC_LEN, mac, ETHER_MAC_LEN);
	ether_put16(frame + 2 * ETHER_MAC_LEN, ETHERTYPE_ID_RARP);
	ether_put16(rarp, ARP_ETHERNET);
	ether_put16(rarp + 2, ETHERTYPE_ID_IPV4);
	rarp[4] = ETHER_MAC_LEN;
	rarp[5] = 4;
	ether_put16(rarp + 6, RARP_REQUEST);
	memcpy(rarp + 8, mac, ETHER_MAC_LEN);
	memcpy(rarp + 18, mac, ETHER_MAC_LEN);
}
