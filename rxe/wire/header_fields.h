/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Access to big-endian fields at any alignment, and the lengths of headers on the wire. */
#ifndef URXE_WIRE_HEADER_FIELDS_H
#define URXE_WIRE_HEADER_FIELDS_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define ETH_LEN    14
#define VLAN_LEN   4
#define IPV4_LEN   20
#define IPV6_LEN   40 /* also a GRH's */
#define UDP_LEN    8
#define BTH_LEN    12
#define CNP_LEN    16 /* reserved bytes behind a CNP's BTH (A17.9.2) */
#define L3_MAX_LEN (IPV6_LEN + UDP_LEN)

/* The two low bits of a traffic class (RFC 3168, 5). */
#define ECN_MASK    3
#define ECN_NOT_ECT 0
#define ECN_ECT0    2
#define ECN_CE      3

#define VLAN_ID_MASK   0x0fff
#define VLAN_ID_MAX    4094
#define VLAN_PCP_SHIFT 13

#define ETHERTYPE_IPV4  0x0800
#define ETHERTYPE_IPV6  0x86dd
#define ETHERTYPE_VLAN  0x8100
#define ETHERTYPE_SVLAN 0x88a8 /* 802.1ad: the outer tag of two */
#define IPPROTO_NUM_UDP 17
#define GRH_NEXT_HDR    0x1b /* IBA 8.3: BTH follows */

static inline uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static inline uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static inline uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static inline void put16(uint8_t *p, uint16_t v)
{
	v = htobe16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)v;
}

static inline void put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}

#endif
