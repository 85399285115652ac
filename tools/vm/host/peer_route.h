/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The route from the virtual machine to a process of this host that urxed has introduced: a
 * program, or the device process of another machine. Frames go to that process's inbox; the kernel
 * copies payloads (samehost/peer.h).
 */
#ifndef URXE_VM_HOST_PEER_ROUTE_H
#define URXE_VM_HOST_PEER_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>
#include <samehost/peer.h>
#include <vnic/inbox.h>

/*
 * If the inbox was full for PEER_ROUTE_STALLED_NS, or another process held its lock for so long,
 * frames go by the switch for PEER_ROUTE_DETOUR_NS. With a shorter PEER_ROUTE_STALLED_NS frames
 * would be reordered whenever the process that holds the lock loses the processor
 * (docs/decisions.md).
 */
#define PEER_ROUTE_STALLED_NS 100000000u
#define PEER_ROUTE_DETOUR_NS  10000000u

struct peer_route {
	uint8_t mac[6]; /* of the process's queue pairs */
	struct vnic_outbox *outbox;
	struct peer *peer;
	uint64_t stuck_since;  /* since when the inbox takes no frame; 0: it takes frames */
	uint64_t detour_until; /* frames go by the switch until then */
};

/*
 * Opens a route by the descriptors of an introduction, which the route owns from now on, also on
 * failure. `own` and `other` are the numbers (VNIC_BLOCK) of this process and of the other one. The
 * caller sets route->mac. Returns 0 or a negative errno value.
 */
int peer_route_open(struct peers *peers, const int fds[VNIC_INBOX_FDS], uint16_t mtu, uint32_t own,
		    uint32_t other, struct peer_route **route);
void peer_route_close(struct peer_route *route);

/* Whether the route, which the caller has found by a QPN, leads to queue pairs with that MAC. */
bool peer_route_leads_to(const struct peer_route *route, const uint8_t mac[6]);
/* Whether frames go to the inbox now: it is not closed, and no detour by the switch lasts. */
static inline bool peer_route_is_open(const struct peer_route *route, uint64_t now)
{
	return now >= route->detour_until && !vnic_outbox_closed(route->outbox);
}

/*
 * Sends up to n frames, at least 1 and at most PEER_ROUTE_BURST, and returns how many the inbox
 * took. Fewer: the next frame has to wait, or peer_route_is_open is false now.
 */
#define PEER_ROUTE_BURST 32
uint32_t peer_route_send(struct peer_route *route, uint64_t now, const struct urxe_frame *frames,
			 uint32_t n);

#endif
