/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/network/ecn.h"

#define ETH_LEN        14
#define VLAN_LEN       4
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ECN_CE         3

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Updates the header checksum (RFC 1624, equation 3). */
static bool mark_ipv4(uint8_t *ip)
{
	const uint32_t old = get16(ip);
	uint32_t sum;

	if (!(ip[1] & ECN_CE))
		return false;
	ip[1] |= ECN_CE;
	sum = (~get16(ip + 10) & 0xffff) + (~old & 0xffff) + get16(ip);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~sum & 0xffff);
	return true;
}

/* The ECN bits of the traffic class are bits 4 and 5 of the second byte. */
static bool mark_ipv6(uint8_t *ip)
{
	if (!(ip[1] & ECN_CE << 4))
		return false;
	ip[1] |= ECN_CE << 4;
	return true;
}

bool ecn_mark(uint8_t *frame, uint32_t len)
{
	uint8_t *l3 = frame + ETH_LEN;
	uint32_t type;

	if (len < ETH_LEN + VLAN_LEN + 20)
		return false;
	type = get16(frame + ETH_LEN - 2);
	if (type == ETHERTYPE_VLAN) {
		type = get16(frame + ETH_LEN + VLAN_LEN - 2);
		l3 += VLAN_LEN;
	}
	switch (type) {
	case ETHERTYPE_IPV4: return mark_ipv4(l3);
	case ETHERTYPE_IPV6: return mark_ipv6(l3);
	default: return false;
	}
}
