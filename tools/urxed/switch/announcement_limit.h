/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How often announcements of stations (announcement.h) are heard. Machines that migrate at once
 * announce themselves at once, and each of them has to be heard. Queue pairs repeat packets then,
 * so a station is heard once in 10 ms, and all together ANNOUNCED_STATIONS times in 10 ms.
 */
#ifndef URXE_URXED_SWITCH_ANNOUNCEMENT_LIMIT_H
#define URXE_URXED_SWITCH_ANNOUNCEMENT_LIMIT_H

#include "common/ether.h"

/* QEMU sends the next announcement after 50 ms. */
#define ANNOUNCEMENT_NS    10000000u
#define ANNOUNCED_STATIONS 4

/* Starts as zeros. */
struct announcement_limit {
	struct {
		uint8_t mac[ETHER_MAC_LEN];
		uint64_t at; /* ns; 0 = none yet */
	} heard[ANNOUNCED_STATIONS];
	uint32_t oldest;
};

/* Whether an announcement of this MAC is heard now. */
static inline bool announcement_heard(struct announcement_limit *l,
				      const uint8_t mac[ETHER_MAC_LEN], uint64_t now)
{
	for (uint32_t i = 0; i < ANNOUNCED_STATIONS; i++)
		if (l->heard[i].at && now - l->heard[i].at < ANNOUNCEMENT_NS &&
		    (i == l->oldest || !memcmp(l->heard[i].mac, mac, ETHER_MAC_LEN)))
			return false;
	memcpy(l->heard[l->oldest].mac, mac, ETHER_MAC_LEN);
	l->heard[l->oldest].at = now;
	l->oldest = (l->oldest + 1) % ANNOUNCED_STATIONS;
	return true;
}

#endif
