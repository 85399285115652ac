/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An Ethernet frame without FCS, in a buffer of a ring or of an inbox. */
#ifndef URXE_VNIC_FRAME_H
#define URXE_VNIC_FRAME_H

#include <stdint.h>

/*
 * A payload reference: the frame in an inbox has headers only, and its payload is in the sender's
 * memory, from which the receiver reads it.
 */
struct vnic_reference {
	uint64_t address;    /* address of the payload in the sender's process, if n_pieces is 0 */
	uint32_t length;     /* bytes; 0: the frame has no reference */
	uint32_t packets;    /* number of packets that the payload would need in the RoCE message */
	uint32_t generation; /* generation of the sender's references: when the sender changes it,
				this reference is invalid */
	uint32_t qpn;      /* of the sender's queue pair: the receiver's one is connected to it, so
			      the receiver knows the sender's process */
	uint32_t n_pieces; /* of the payload, if it is not one piece; at most VNIC_PIECES_MAX */
	uint32_t reserved; /* 0 */
};

/*
 * If a reference's n_pieces is not 0, that many of these structures follow the frame, at `data` +
 * `len`, in the order of the payload. They are not aligned.
 */
struct vnic_reference_piece {
	uint64_t address; /* in the sender's process */
	uint64_t length;  /* bytes */
};

#define VNIC_PIECES_MAX 128u

/* Maximum length in bytes of a frame that the daemon sends at a process's end: a RoCEv2 ACK over
 * IPv6 in a VLAN fits. */
#define VNIC_LAST_FRAME_MAX 128

struct vnic_frame {
	uint8_t *data;
	uint32_t len;  /* bytes at data */
	uint32_t room; /* size of the buffer at data, bytes */
	struct vnic_reference reference;
};

/* Bytes at frame->data: the frame, and the pieces of its reference behind it. */
static inline uint32_t vnic_frame_bytes(const struct vnic_frame *frame)
{
	return frame->len +
	       frame->reference.n_pieces * (uint32_t)sizeof(struct vnic_reference_piece);
}

#endif
