/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The route from a program, or from a virtual machine's device process, to another such process of
 * this host that urxed has introduced. Frames go to that process's inbox; the kernel copies
 * payloads (samehost/peer.h).
 */
#ifndef URXE_VERBS_SAMEHOST_PEER_ROUTE_H
#define URXE_VERBS_SAMEHOST_PEER_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rxe/rxe.h>
#include <vnic/inbox.h>

#include "peer.h"

/*
 * If an inbox has been full, or its lock word held, for this time, frames go by the switch instead.
 * Its receiver, or the sender that holds the lock word, has had no processor for some time slices,
 * or is stopped. A shorter time reorders frames whenever a sender loses the processor while it
 * holds a lock word: with 1 ms, MPI's alltoall of eight ranks on two processors took 2.2 to 2.8
 * times as long beside other load (docs/decisions.md).
 */
#define PEER_ROUTE_STALLED_NS 100000000u
/*
 * Once an inbox was full or locked for PEER_ROUTE_STALLED_NS, frames to it go by the switch for
 * this time, and then to the inbox again. A shorter time would change between the two more often,
 * and each change reorders frames, which costs the receiver.
 */
#define PEER_ROUTE_DETOUR_NS 10000000u

struct peer_route {
	uint8_t mac[6]; /* of the process's queue pairs */
	struct vnic_outbox *outbox;
	struct peer *peer;     /* the inbox's owner */
	uint64_t stuck_since;  /* since when the inbox takes no frame; 0: it takes frames */
	uint64_t detour_until; /* frames go by the switch until then */
	enum vnic_bypass_counter detour_reason; /* counts those frames; only in engine/tx.c */
};

/*
 * Makes the route to the process behind `outbox`, which the route owns from now on. `process`: the
 * block (VNIC_BLOCK) of one of that process's QPNs. NULL: no memory, and the outbox is closed.
 */
struct peer_route *peer_route_open(struct peers *peers, struct vnic_outbox *outbox,
				   const uint8_t mac[6], uint32_t process);
void peer_route_close(struct peer_route *route);

/* Whether there is a route, which the caller has found by a QPN, and it leads to queue pairs with
 * that MAC. */
static inline bool peer_route_leads_to(const struct peer_route *route, const uint8_t mac[6])
{
	return route && !memcmp(mac, route->mac, sizeof(route->mac));
}

/* Whether no thread takes frames from the inbox any more. */
static inline bool peer_route_has_ended(const struct peer_route *route)
{
	return vnic_outbox_closed(route->outbox) || peer_has_ended(route->peer);
}

/* Call it when the inbox has refused a frame. True: the inbox has taken none for
 * PEER_ROUTE_STALLED_NS, so the frames to it go by the switch from now on (detour_until). */
bool peer_route_stalls(struct peer_route *route, uint64_t now);

/* The payload reference of a frame in an inbox, all 0 without one. Its list of pieces is behind the
 * frame, in place of the ICRC. */
static inline struct vnic_reference peer_route_reference(const struct urxe_frame *frame)
{
	if (!frame->reference.length)
		return (struct vnic_reference){0};
	return (struct vnic_reference){
		.address = frame->reference.address,
		.length = frame->reference.length,
		.packets = frame->reference.packets,
		.generation = frame->reference.generation,
		.qpn = frame->reference.src_qpn,
		.n_pieces = frame->reference.n_pieces,
	};
}

/*
 * Sets *to, for the engine, to a frame that came by the own inbox (`from_inbox`) or by the switch.
 * `sender`: the route to the process that has the queue pair from->reference.qpn; NULL: none.
 * False: the frame references memory of a process that is not known.
 */
static inline bool peer_route_convert(const struct peer_route *sender,
				      const struct vnic_frame *from, bool from_inbox,
				      struct urxe_frame *to)
{
	*to = (struct urxe_frame){
		.data = from->data,
		.len = from->len + (from_inbox ? URXE_ICRC_LEN : 0),
		.without_icrc = from_inbox,
	};
	if (!from->reference.length)
		return true;
	if (!sender)
		return false;
	to->reference = (struct urxe_reference){
		.address = from->reference.address,
		.length = from->reference.length,
		.packets = from->reference.packets,
		.generation = from->reference.generation,
		.n_pieces = from->reference.n_pieces,
		.sender = sender->peer,
		.pieces = from->data + from->len,
	};
	return true;
}

#endif
