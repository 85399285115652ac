/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Converts the payload reference of a frame in an inbox to the engine's structure. */
#ifndef URXE_SAMEHOST_REFERENCE_H
#define URXE_SAMEHOST_REFERENCE_H

#include <rxe/rxe.h>
#include <vnic/inbox.h>

struct peer;

/* The reference that the frame carries. `sender`: the peer that has the queue pair
 * reference.qpn. The result points into the frame. */
static inline struct urxe_reference reference_of(const struct vnic_frame *frame,
						 struct peer *sender)
{
	return (struct urxe_reference){
		.address = frame->reference.address,
		.length = frame->reference.length,
		.packets = frame->reference.packets,
		.generation = frame->reference.generation,
		.n_pieces = frame->reference.n_pieces,
		.sender = sender,
		.pieces = frame->data + frame->len,
	};
}

#endif
