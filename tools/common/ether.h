/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Constants and helpers for the headers that urxed and urxe read themselves: Ethernet, 802.1Q,
 * IPv4, IPv6 and UDP.
 */
#ifndef URXE_COMMON_ETHER_H
#define URXE_COMMON_ETHER_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ETHER_MAC_LEN  6
#define ETHER_HDR_LEN  14
#define ETHER_VLAN_LEN 4
#define ETHER_VLAN_MAX 4094
#define ETHER_VLAN_ID  0x0fff /* mask of the VLAN ID in an 802.1Q tag */
#define IPV4_HDR_LEN   20
#define IPV6_HDR_LEN   40 /* a GRH has the same length */
#define UDP_HDR_LEN    8
#define BTH_LEN        12
#define DETH_LEN       8

#define ETHERTYPE_ID_IPV4        0x0800
#define ETHERTYPE_ID_ARP         0x0806
#define ETHERTYPE_ID_RARP        0x8035
#define ETHERTYPE_ID_VLAN        0x8100
#define ETHERTYPE_ID_IPV6        0x86dd
#define ETHERTYPE_ID_MAC_CONTROL 0x8808 /* PAUSE */

#define PROTO_UDP    17
#define PROTO_BTH    0x1b /* IBA 8.3: next header of a GRH */
#define PROTO_ICMPV6 58

static inline uint16_t ether_get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static inline void ether_put16(uint8_t *p, uint16_t v)
{
	v = htobe16(v);
	memcpy(p, &v, sizeof(v));
}

static inline bool ether_is_group(const uint8_t mac[ETHER_MAC_LEN])
{
	return mac[0] & 1;
}

static inline bool ether_same(const uint8_t a[ETHER_MAC_LEN], const uint8_t b[ETHER_MAC_LEN])
{
	return !memcmp(a, b, ETHER_MAC_LEN);
}

static inline bool ether_is_zero(const uint8_t mac[ETHER_MAC_LEN])
{
	static const uint8_t zero[ETHER_MAC_LEN];

	return ether_same(mac, zero);
}

/* Whether a station can have the MAC. */
static inline bool ether_is_station(const uint8_t mac[ETHER_MAC_LEN])
{
	return !ether_is_group(mac) && !ether_is_zero(mac);
}

/*
 * Inserts an 802.1Q tag with this VLAN ID into a frame, behind the MACs; 0: inserts none. The
 * frame's buffer must have room for ETHER_VLAN_LEN more bytes. Returns the frame's new length.
 */
static inline uint32_t ether_add_tag(uint8_t *frame, uint32_t len, uint16_t vlan)
{
	const uint32_t macs = 2 * ETHER_MAC_LEN;

	if (!vlan)
		return len;
	memmove(frame + macs + ETHER_VLAN_LEN, frame + macs, len - macs);
	ether_put16(frame + macs, ETHERTYPE_ID_VLAN);
	ether_put16(frame + macs + 2, vlan);
	return len + ETHER_VLAN_LEN;
}

/* Writes the 128-bit form of an IPv4 address, ::ffff:a.b.c.d. */
static inline void ip_from_v4(uint8_t ip[16], const uint8_t v4[4])
{
	memset(ip, 0, 10);
	ip[10] = ip[11] = 0xff;
	memcpy(ip + 12, v4, 4);
}

#define IP_V4_BITS 96 /* length of the prefix ::ffff:0:0/96 before an IPv4 address */

/* Is this 128-bit address an IPv4 address, ::ffff:a.b.c.d (RFC 4291, 2.5.5.2)? */
static inline bool ip_is_v4(const uint8_t ip[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(ip, prefix, sizeof(prefix));
}

/* Is this a link-local IPv6 address, fe80::/10 (RFC 4291, 2.5.6)? */
static inline bool ip_is_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

#endif
