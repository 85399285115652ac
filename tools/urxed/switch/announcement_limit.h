/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits how often urxed passes announcements of stations (announcement.h) to processes, and `urxe
 * vm` to PVRDMA, because queue pairs repeat packets after each announcement. In any 10 ms, at most
 * one announcement of each MAC passes, and at most ANNOUNCED_STATIONS in all. If more machines
 * migrate at once, one of their later announcements passes.
 */
#ifndef URXE_URXED_SWITCH_ANNOUNCEMENT_LIMIT_H
#define URXE_URXED_SWITCH_ANNOUNCEMENT_LIMIT_H

#include "common/ether.h"

/* Shorter than QEMU's interval: it sends the next announcement after 50 ms. */
#define ANNOUNCEMENT_NS    10000000u
#define ANNOUNCED_STATIONS 4

/* Valid if all zero. */
struct announcement_limit {
	struct {
		uint8_t mac[ETHER_MAC_LEN];
		uint64_t at; /* time of the last permitted announcement, ns; 0 = none yet */
	} passed[ANNOUNCED_STATIONS];
	uint32_t oldest; /* index in `passed` of the oldest announcement, replaced next */
};

/* Returns whether the caller may pass on an announcement of this MAC now; if so, counts it. `now`:
 * ns, not 0. */
static inline bool announcement_permit(struct announcement_limit *l,
				       const uint8_t mac[ETHER_MAC_LEN], uint64_t now)
{
	for (uint32_t i = 0; i < ANNOUNCED_STATIONS; i++)
		if (l->passed[i].at && now - l->passed[i].at < ANNOUNCEMENT_NS &&
		    (i == l->oldest || !memcmp(l->passed[i].mac, mac, ETHER_MAC_LEN)))
			return false;
	memcpy(l->passed[l->oldest].mac, mac, ETHER_MAC_LEN);
	l->passed[l->oldest].at = now;
	l->oldest = (l->oldest + 1) % ANNOUNCED_STATIONS;
	return true;
}

#endif
