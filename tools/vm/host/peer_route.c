/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/peer_route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int peer_route_open(struct peers *peers, const int fds[VNIC_INBOX_FDS], uint16_t mtu, uint32_t own,
		    uint32_t other, struct peer_route **out)
{
	struct peer_route *route = calloc(1, sizeof(*route));
	struct vnic_outbox *outbox;
	int rc = vnic_outbox_open(fds, mtu, own, &outbox);

	if (rc) {
		free(route);
		return rc;
	}
	if (route)
		route->peer = peer_open(peers, outbox, other);
	if (!route || !route->peer) {
		vnic_outbox_close(outbox);
		free(route);
		return -ENOMEM;
	}
	route->outbox = outbox;
	*out = route;
	return 0;
}

void peer_route_close(struct peer_route *route)
{
	peer_close(route->peer);
	free(route);
}

bool peer_route_leads_to(const struct peer_route *route, const uint8_t mac[6])
{
	return !memcmp(route->mac, mac, sizeof(route->mac));
}

/* Frames in inboxes have no ICRC. The pieces of a payload reference begin at its place. */
static struct vnic_frame inbox_frame(const struct urxe_frame *frame)
{
	struct vnic_frame to = {.data = frame->data, .len = frame->len - URXE_ICRC_LEN};

	if (frame->reference.length)
		to.reference = (struct vnic_reference){
			.address = frame->reference.address,
			.length = frame->reference.length,
			.packets = frame->reference.packets,
			.generation = frame->reference.generation,
			.qpn = frame->reference.src_qpn,
			.n_pieces = frame->reference.n_pieces,
		};
	return to;
}

static void note_stuck(struct peer_route *route, uint64_t now)
{
	if (!route->stuck_since)
		route->stuck_since = now;
	if (now - route->stuck_since >= PEER_ROUTE_STALLED_NS)
		route->detour_until = now + PEER_ROUTE_DETOUR_NS;
}

uint32_t peer_route_send(struct peer_route *route, uint64_t now, const struct urxe_frame *frames,
			 uint32_t n)
{
	struct vnic_frame out[PEER_ROUTE_BURST];
	enum vnic_outbox_status status;
	uint32_t sent;

	if (n > PEER_ROUTE_BURST)
		n = PEER_ROUTE_BURST;
	out[0] = inbox_frame(&frames[0]);
	for (uint32_t i = 1; i < n; i++)
		out[i] = inbox_frame(&frames[i]);
	sent = vnic_outbox_send(route->outbox, out, n, &status);
	if (sent)
		route->stuck_since = 0;
	if (sent < n)
		note_stuck(route, now);
	return sent;
}
