/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/announcer.h"

#include <rxe/announcement.h>

#include "common/clock.h"
#include "vm/host/switch_link.h"

/* Frames of an announcement, as of QEMU: some may be lost while switches and ports change. */
#define FRAMES 5
/* The pause before the second frame. Each further pause is longer by this time. */
#define PAUSE_NS (50 * NS_PER_MS)
/* The pause before the next attempt while the ring to urxed is full. */
#define FULL_NS NS_PER_MS

void announcer_begin(struct announcer *a, uint64_t now)
{
	*a = (struct announcer){FRAMES, now};
}

uint64_t announcer_tick(struct announcer *a, struct switch_link *link, uint64_t now, bool *began)
{
	uint8_t frame[URXE_ANNOUNCEMENT_LEN];

	*began = false;
	if (!a->left)
		return UINT64_MAX;
	/* While the link is down, the announcement waits for the next daemon. */
	if (!switch_link_is_up(link) || now < a->next_at)
		return switch_link_is_up(link) ? a->next_at : UINT64_MAX;
	if (!switch_link_room(link))
		return now + FULL_NS;
	urxe_announcement_build(frame, link->mac);
	switch_link_send(link, frame, sizeof(frame));
	switch_link_flush(link);
	*began = a->left == FRAMES;
	a->left--;
	a->next_at = now + (FRAMES - a->left) * PAUSE_NS;
	return a->left ? a->next_at : UINT64_MAX;
}
