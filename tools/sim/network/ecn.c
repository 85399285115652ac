/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/network/ecn.h"

#include "common/ether.h"

#define ECN_CE 3

/* Marks the packet, and updates the header checksum (RFC 1624, equation 3). False: it is not
 * ECN-capable. */
static bool mark_ipv4(uint8_t *ip)
{
	const uint32_t old = ether_get16(ip);
	uint32_t sum;

	if (!(ip[1] & ECN_CE))
		return false;
	ip[1] |= ECN_CE;
	sum = (~ether_get16(ip + 10) & 0xffff) + (~old & 0xffff) + ether_get16(ip);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ether_put16(ip + 10, (uint16_t)~sum);
	return true;
}

/* As mark_ipv4. The ECN bits of the traffic class are bits 4 and 5 of the second byte. */
static bool mark_ipv6(uint8_t *ip)
{
	if (!(ip[1] & ECN_CE << 4))
		return false;
	ip[1] |= ECN_CE << 4;
	return true;
}

bool ecn_mark(uint8_t *frame, uint32_t len)
{
	uint8_t *l3 = frame + ETHER_HDR_LEN;
	uint32_t type;

	if (len < ETHER_HDR_LEN + ETHER_VLAN_LEN + IPV4_HDR_LEN)
		return false;
	type = ether_get16(frame + ETHER_HDR_LEN - 2);
	if (type == ETHERTYPE_ID_VLAN) {
		type = ether_get16(frame + ETHER_HDR_LEN + ETHER_VLAN_LEN - 2);
		l3 += ETHER_VLAN_LEN;
	}
	switch (type) {
	case ETHERTYPE_ID_IPV4: return mark_ipv4(l3);
	case ETHERTYPE_ID_IPV6: return mark_ipv6(l3);
	default: return false;
	}
}
