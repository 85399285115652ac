/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/announcer.h"

#include <string.h>

#include "common/clock.h"
#include "vm/host/switch_link.h"

/* As QEMU: some frames may be lost while switches and ports change. */
#define FRAMES 5
#define PAUSE_NS                                                                        \
	(50 * NS_PER_MS) /* before the second frame; each further pause is longer by it \
			  */

#define RARP_FRAME 60u /* the shortest frame of Ethernet, without its checksum */

static void build_rarp(const uint8_t mac[6], uint8_t frame[RARP_FRAME])
{
	/* RARP (RFC 903): Ethernet, IPv4, request reverse; the addresses are not known. */
	static const uint8_t fixed[] = {0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3};

	memset(frame, 0, RARP_FRAME);
	memset(frame, 0xff, 6);
	memcpy(frame + 6, mac, 6);
	memcpy(frame + 12, fixed, sizeof(fixed));
	memcpy(frame + 22, mac, 6);
	memcpy(frame + 32, mac, 6);
}

void announcer_begin(struct announcer *a, uint64_t now)
{
	*a = (struct announcer){FRAMES, now};
}

uint64_t announcer_tick(struct announcer *a, struct switch_link *link, uint64_t now)
{
	uint8_t frame[RARP_FRAME];

	if (!a->left)
		return UINT64_MAX;
	/* A daemon may come later: the machine is announced then. */
	if (!switch_link_is_up(link) || now < a->next_at)
		return switch_link_is_up(link) ? a->next_at : UINT64_MAX;
	build_rarp(link->mac, frame);
	if (switch_link_room(link)) {
		switch_link_send(link, frame, sizeof(frame));
		switch_link_flush(link);
	}
	a->left--;
	a->next_at = now + (FRAMES - a->left) * PAUSE_NS;
	return a->left ? a->next_at : UINT64_MAX;
}
