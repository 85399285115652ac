/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "peer_route.h"

#include <stdlib.h>

struct peer_route *peer_route_open(struct peers *peers, struct vnic_outbox *outbox,
				   const uint8_t mac[6], uint32_t process)
{
	struct peer_route *route = calloc(1, sizeof(*route));

	if (route)
		route->peer = peer_open(peers, outbox, process);
	if (!route || !route->peer) {
		vnic_outbox_close(outbox);
		free(route);
		return NULL;
	}
	memcpy(route->mac, mac, sizeof(route->mac));
	route->outbox = outbox;
	return route;
}

void peer_route_close(struct peer_route *route)
{
	peer_close(route->peer);
	free(route);
}

/* A `now` before stuck_since: this thread took the time, and then waited for the lock while another
 * thread set stuck_since. */
bool peer_route_stalls(struct peer_route *route, uint64_t now)
{
	if (!route->stuck_since || now < route->stuck_since)
		route->stuck_since = now;
	if (now - route->stuck_since < PEER_ROUTE_STALLED_NS)
		return false;
	route->detour_until = now + PEER_ROUTE_DETOUR_NS;
	return true;
}
