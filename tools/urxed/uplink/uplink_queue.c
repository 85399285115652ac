/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/uplink.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int uplink_make_queue(struct uplink *u)
{
	u->stride = ETHER_HDR_LEN + ETHER_VLAN_LEN + u->mtu;
	u->buffers = calloc(UPLINK_QUEUE, u->stride);
	return u->buffers ? 0 : -ENOMEM;
}

void uplink_free_queue(struct uplink *u)
{
	free(u->buffers);
	u->buffers = NULL;
	u->lost += u->queued;
	u->queued = 0;
}

bool uplink_has_room(const struct uplink *u, uint32_t n)
{
	return !u->port || u->queued + n <= UPLINK_QUEUE;
}

uint8_t *uplink_reserve(struct uplink *u)
{
	return u->port && u->queued < UPLINK_QUEUE ? u->buffers + u->queued * u->stride : NULL;
}

void uplink_commit(struct uplink *u, uint32_t len)
{
	u->queue[u->queued] =
		(struct netdev_frame){u->buffers + u->queued * u->stride, len, len, 0};
	u->queued++;
}

uint32_t uplink_send(struct uplink *u, uint64_t now)
{
	uint32_t sent = u->queued ? netdev_tx(u->port, now, u->queue, u->queued) : 0;

	if (sent)
		u->full_since = 0;
	if (sent < u->queued && !u->full_since)
		u->full_since = now;
	u->refused_at = sent < u->queued ? now : 0;
	return sent;
}

/* Moves frames that the port refused to the front of the queue. That is rare, because the port's
 * own ring is longer. */
void uplink_release(struct uplink *u, uint32_t n)
{
	uint32_t i, left = u->queued - n;

	for (i = 0; n && i < left; i++) {
		u->queue[i] = u->queue[n + i];
		memcpy(u->buffers + i * u->stride, u->queue[i].data, u->queue[i].len);
		u->queue[i].data = u->buffers + i * u->stride;
	}
	u->queued = left;
}

void uplink_purge(struct uplink *u)
{
	u->queued = 0;
	u->full_since = 0;
}
