/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The service level of a datagram's completion. RoCE has the three bits of an 802.1Q priority,
 * which need not be the whole of it: Mellanox' NICs put the packet's type there, and programs
 * have come to depend on that. UCX before 1.18 finds the destination GID of a datagram so, and
 * drops what came over IPv4 but does not say it.
 */
#ifndef URXE_VERBS_QUEUES_SERVICE_LEVEL_H
#define URXE_VERBS_QUEUES_SERVICE_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#define SL_MAX 7
/* The lower half, as those NICs have it: RoCEv2 is bit 3, IPv4 is 2. The upper is the priority. */
#define SL_IPV4           0xa
#define SL_PRIORITY_SHIFT 4

/* What ibv_wc.sl says of a datagram that came with a priority (0 to SL_MAX). */
static inline uint8_t sl_of_datagram(uint8_t priority, bool ipv4)
{
	return ipv4 ? (uint8_t)(priority << SL_PRIORITY_SHIFT | SL_IPV4) : priority;
}

/* The priority of an address, which may be one that ibv_init_ah_from_wc() made; false if none. */
static inline bool sl_priority(uint8_t sl, uint8_t *priority)
{
	if ((sl & 0xf) == SL_IPV4)
		sl >>= SL_PRIORITY_SHIFT;
	*priority = sl;
	return sl <= SL_MAX;
}

#endif
