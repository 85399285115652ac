/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/arp_frame.h"

#define ARP_REQUEST 1
#define ARP_REPLY   2

#define HARDWARE_ETHERNET 1
#define HARDWARE_IEEE_802 6

static const uint8_t broadcast[ETHER_MAC_LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* Hardware type Ethernet, protocol type IPv4, address lengths 6 and 4 (RFC 826). */
static const uint8_t arp_types[6] = {0, 1, 8, 0, 6, 4};

bool arp_parse(struct arp *a, const uint8_t *frame, uint32_t len)
{
	const uint8_t *arp = frame + ETHER_HDR_LEN;
	uint16_t op;

	if (len < ARP_FRAME_LEN || ether_get16(frame + 12) != ETHERTYPE_ID_ARP ||
	    memcmp(arp, arp_types, sizeof(arp_types)))
		return false;
	op = ether_get16(arp + 6);
	a->request = op == ARP_REQUEST;
	memcpy(a->smac, arp + 8, ETHER_MAC_LEN);
	ip_from_v4(a->sip, arp + 14);
	ip_from_v4(a->tip, arp + 24);
	return op == ARP_REQUEST || op == ARP_REPLY;
}

bool arp_read_sender(const uint8_t *arp, uint32_t len, uint8_t ip[16], uint8_t mac[ETHER_MAC_LEN])
{
	uint16_t hardware;

	if (len < ARP_FRAME_LEN - ETHER_HDR_LEN ||
	    memcmp(arp + 2, arp_types + 2, sizeof(arp_types) - 2))
		return false;
	hardware = ether_get16(arp);
	memcpy(mac, arp + 8, ETHER_MAC_LEN);
	ip_from_v4(ip, arp + 14);
	return hardware == HARDWARE_ETHERNET || hardware == HARDWARE_IEEE_802;
}

void arp_build(uint8_t *frame, const struct arp *a, const uint8_t tmac[ETHER_MAC_LEN])
{
	uint8_t *arp = frame + ETHER_HDR_LEN;

	memcpy(frame, tmac ? tmac : broadcast, ETHER_MAC_LEN);
	memcpy(frame + 6, a->smac, ETHER_MAC_LEN);
	ether_put16(frame + 12, ETHERTYPE_ID_ARP);
	memcpy(arp, arp_types, sizeof(arp_types));
	ether_put16(arp + 6, a->request ? ARP_REQUEST : ARP_REPLY);
	memcpy(arp + 8, a->smac, ETHER_MAC_LEN);
	memcpy(arp + 14, a->sip + 12, 4);
	if (a->request)
		memset(arp + 18, 0, ETHER_MAC_LEN);
	else
		memcpy(arp + 18, tmac, ETHER_MAC_LEN);
	memcpy(arp + 24, a->tip + 12, 4);
}
