/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "steer.h"

#include <rxe/packet.h>

#define PEEK_LEN (ETHER_HDR_LEN + ETHER_VLAN_LEN + IPV6_HDR_LEN + UDP_HDR_LEN + BTH_LEN)

/* RFC 4861, 4.3 and 4.4 */
#define ICMPV6_SOLICITATION  135
#define ICMPV6_ADVERTISEMENT 136

static enum steer_kind peek_bth(struct steer *s, const uint8_t *bth, uint32_t len)
{
	if (len < BTH_LEN)
		return STEER_OTHER;
	s->dest_qpn = (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];
	return STEER_ROCE;
}

static enum steer_kind peek_udp(struct steer *s, const uint8_t *udp, uint32_t len)
{
	if (len < UDP_HDR_LEN || ether_get16(udp + 2) != URXE_UDP_PORT)
		return STEER_OTHER;
	return peek_bth(s, udp + UDP_HDR_LEN, len - UDP_HDR_LEN);
}

static enum steer_kind peek_ipv4(struct steer *s, const uint8_t *ip, uint32_t len)
{
	if (len < IPV4_HDR_LEN || ip[0] != 0x45 || ip[9] != PROTO_UDP)
		return STEER_OTHER;
	return peek_udp(s, ip + IPV4_HDR_LEN, len - IPV4_HDR_LEN);
}

static enum steer_kind peek_ipv6(struct steer *s, const uint8_t *ip, uint32_t len)
{
	if (len <= IPV6_HDR_LEN)
		return STEER_OTHER;
	if (ip[6] == PROTO_UDP)
		return peek_udp(s, ip + IPV6_HDR_LEN, len - IPV6_HDR_LEN);
	if (ip[6] == PROTO_ICMPV6 &&
	    (ip[IPV6_HDR_LEN] == ICMPV6_SOLICITATION || ip[IPV6_HDR_LEN] == ICMPV6_ADVERTISEMENT))
		return STEER_ND;
	return STEER_OTHER;
}

static enum steer_kind peek_grh(struct steer *s, const uint8_t *grh, uint32_t len)
{
	if (len < IPV6_HDR_LEN || grh[6] != PROTO_BTH)
		return STEER_OTHER;
	return peek_bth(s, grh + IPV6_HDR_LEN, len - IPV6_HDR_LEN);
}

static enum steer_kind peek_network(struct steer *s, const uint8_t *hdr, uint32_t len)
{
	uint16_t ethertype = ether_get16(hdr + 12);
	uint32_t l3 = ETHER_HDR_LEN;

	if (ethertype == ETHERTYPE_ID_VLAN) {
		if (len < ETHER_HDR_LEN + ETHER_VLAN_LEN)
			return STEER_OTHER;
		ethertype = ether_get16(hdr + 16);
		l3 += ETHER_VLAN_LEN;
	}
	switch (ethertype) {
	case ETHERTYPE_ID_IPV4: return peek_ipv4(s, hdr + l3, len - l3);
	case ETHERTYPE_ID_IPV6: return peek_ipv6(s, hdr + l3, len - l3);
	case ETHERTYPE_ID_ARP: return STEER_ARP;
	case URXE_ETHERTYPE_ROCEV1: return peek_grh(s, hdr + l3, len - l3);
	default: return STEER_OTHER;
	}
}

void steer_peek(struct steer *s, const uint8_t *frame, uint32_t len)
{
	uint8_t hdr[PEEK_LEN];

	s->kind = STEER_RUNT;
	if (len < ETHER_HDR_LEN)
		return;
	if (len > PEEK_LEN)
		len = PEEK_LEN;
	memcpy(hdr, frame, len);
	memcpy(s->dmac, hdr, ETHER_MAC_LEN);
	memcpy(s->smac, hdr + ETHER_MAC_LEN, ETHER_MAC_LEN);
	s->kind = peek_network(s, hdr, len);
}
