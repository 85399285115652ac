/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The addresses of simulated hosts: host 0 has 02:00:00:00:00:01 and 10.0.0.1. */
#ifndef URXE_SIM_NETWORK_ADDRESS_H
#define URXE_SIM_NETWORK_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rxe/packet.h>

static inline void address_mac(uint32_t host, uint8_t mac[6])
{
	const uint32_t n = host + 1;
	const uint8_t bytes[6] = {2, 0, 0, 0, (uint8_t)(n >> 8), (uint8_t)n};

	memcpy(mac, bytes, 6);
}

/* The host to which a frame's destination MAC belongs. */
static inline uint32_t address_host(const uint8_t *frame)
{
	return ((uint32_t)frame[4] << 8 | frame[5]) - 1;
}

/* The host's GID: fe80::N for RoCEv1, 10.0.x.y, or 2001:db8::N. */
static inline struct urxe_gid address_gid(enum urxe_net net, uint32_t host)
{
	struct urxe_gid gid = {{0}};

	switch (net) {
	case URXE_NET_IPV4:
		gid.raw[10] = gid.raw[11] = 0xff;
		gid.raw[12] = 10;
		break;
	case URXE_NET_IPV6: memcpy(gid.raw, "\x20\x01\x0d\xb8", 4); break;
	case URXE_NET_ROCEV1: memcpy(gid.raw, "\xfe\x80", 2); break;
	}
	gid.raw[14] = (uint8_t)((host + 1) >> 8);
	gid.raw[15] = (uint8_t)(host + 1);
	return gid;
}

/* The address of the group that uses this network: ff0e::1, 239.0.0.2, or ff0e::3. */
static inline struct urxe_gid address_group(enum urxe_net net)
{
	struct urxe_gid gid = {{0}};

	if (net == URXE_NET_IPV4) {
		gid.raw[10] = gid.raw[11] = 0xff;
		gid.raw[12] = 239;
	} else {
		memcpy(gid.raw, "\xff\x0e", 2);
	}
	gid.raw[15] = (uint8_t)(net + 1);
	return gid;
}

/* Sets the MAC of the multicast group (RFC 1112, 6.4, and RFC 2464, 7). */
static inline void address_group_mac(const struct urxe_gid *gid, uint8_t mac[6])
{
	memcpy(mac, gid->raw[0] == 0xff ? "\x33\x33" : "\x01\x00", 2);
	memcpy(mac + 2, gid->raw + 12, 4);
	if (gid->raw[0] != 0xff)
		mac[2] = 0x5e;
}

/* The network of the group (enum urxe_net) to which a multicast frame's destination MAC belongs. */
static inline uint32_t address_group_number(const uint8_t *frame)
{
	return frame[5] - 1u;
}

static inline bool address_is_group(const uint8_t *frame)
{
	return frame[0] & 1;
}

#endif
