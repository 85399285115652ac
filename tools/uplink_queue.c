/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "uplink.h"

#include <stddef.h>

uint8_t *uplink_reserve(struct uplink *u)
{
	return u->queued < UPLINK_QUEUE ? u->room + u->queued * u->stride : NULL;
}

void uplink_commit(struct uplink *u, uint32_t len)
{
	u->queue[u->queued] = (struct netdev_frame){u->room + u->queued * u->stride, len, len, 0};
	u->queued++;
}

/* What the port refused moves to the front; that is rare, since the port's own ring is longer. */
static void keep(struct uplink *u, uint32_t sent)
{
	uint32_t i, left = u->queued - sent;

	for (i = 0; sent && i < left; i++) {
		u->queue[i] = u->queue[sent + i];
		memcpy(u->room + i * u->stride, u->queue[i].data, u->queue[i].len);
		u->queue[i].data = u->room + i * u->stride;
	}
	u->queued = left;
}

bool uplink_flush(struct uplink *u, uint64_t now)
{
	uint32_t sent;

	if (!u->queued)
		return true;
	sent = netdev_tx(u->port, now, u->queue, u->queued);
	keep(u, sent);
	if (sent)
		u->full_since = 0;
	if (u->queued && !u->full_since)
		u->full_since = now;
	return !u->queued;
}

uint32_t uplink_purge(struct uplink *u)
{
	uint32_t n = u->queued;

	u->queued = 0;
	u->full_since = 0;
	return n;
}
