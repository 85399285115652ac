/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The service level of a datagram's completion. RoCE has only the three bits of an 802.1Q priority.
 * Mellanox NICs add the packet's type, and programs depend on that: UCX before 1.18 locates the
 * destination GID of a datagram by it, and drops datagrams that came over IPv4 without it.
 */
#ifndef URXE_RXE_SERVICE_LEVEL_H
#define URXE_RXE_SERVICE_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#define SL_MAX 7
/* Packet type in the lower four bits, as in Mellanox NICs: 8 for RoCEv2, plus 2 for IPv4. The upper
 * bits are the priority. */
#define SL_IPV4           0xa
#define SL_PRIORITY_SHIFT 4

/* ibv_wc.sl of a datagram with this priority (0 to SL_MAX). */
static inline uint8_t sl_of_datagram(uint8_t priority, bool ipv4)
{
	return ipv4 ? (uint8_t)(priority << SL_PRIORITY_SHIFT | SL_IPV4) : priority;
}

/*
 * The priority in an address's service level, which may come from ibv_init_ah_from_wc(). Programs
 * also give one of InfiniBand's 16 levels; its lower three bits count, as in Mellanox NICs. But
 * level 10 is SL_IPV4 with priority 0.
 */
static inline uint8_t sl_priority(uint8_t sl)
{
	return ((sl & 0xf) == SL_IPV4 ? sl >> SL_PRIORITY_SHIFT : sl) & SL_MAX;
}

#endif
