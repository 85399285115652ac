/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An Ethernet frame without FCS, in a buffer of a ring or of an inbox. */
#ifndef URXE_VNIC_FRAME_H
#define URXE_VNIC_FRAME_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A payload reference: the frame in an inbox has headers only, and its payload is in the sender's
 * memory, from which the receiver reads it.
 */
struct vnic_reference {
	uint64_t address;    /* address of the payload in the sender's process */
	uint32_t length;     /* bytes */
	uint32_t packets;    /* number of packets that the payload would need in the RoCE message */
	uint32_t generation; /* generation of the sender's references: when the sender changes it,
				this reference is invalid */
	uint32_t process;    /* the sender's number (vnic/inbox.h); 0: the frame has no reference */
};

/* Bytes of a frame that the daemon sends at a process's end: a RoCEv2 ACK over IPv6 in a VLAN fits.
 */
#define VNIC_LAST_FRAME_MAX 128

struct vnic_frame {
	uint8_t *data;
	uint32_t len;  /* bytes at data */
	uint32_t room; /* size of the buffer at data, bytes */
	struct vnic_reference reference;
};

#endif
