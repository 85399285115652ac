/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* GIDs: IPv4 addresses are IPv4-mapped IPv6 addresses (A17.3.1.1; RFC 4291, 2.5.5.2). */
#ifndef URXE_WIRE_GID_H
#define URXE_WIRE_GID_H

#include <stdbool.h>
#include <string.h>

#include <rxe/packet.h>

static const uint8_t gid_v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

static inline bool gid_equal(const struct urxe_gid *a, const struct urxe_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static inline bool gid_is_v4(const struct urxe_gid *gid)
{
	return !memcmp(gid->raw, gid_v4_prefix, sizeof(gid_v4_prefix));
}

static inline void gid_set_v4(struct urxe_gid *gid, const uint8_t addr[4])
{
	memcpy(gid->raw, gid_v4_prefix, sizeof(gid_v4_prefix));
	memcpy(gid->raw + sizeof(gid_v4_prefix), addr, 4);
}

/* Whether the GID is an IPv6 multicast address, or an IPv4-mapped IPv4 multicast address. */
static inline bool gid_is_multicast(const struct urxe_gid *gid)
{
	return gid_is_v4(gid) ? gid->raw[12] >> 4 == 0xe : gid->raw[0] == 0xff;
}

#endif
