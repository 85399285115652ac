/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A frame on its way through the switch, as one or two pieces of memory. */
#ifndef URXE_URXED_SWITCH_FRAME_H
#define URXE_URXED_SWITCH_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <vnic/device.h>

#include "urxed/switch/classify.h"

/* The head is a copy that the switch has checked. The rest may lie in memory to which a process
 * still writes, so its content may differ at each read. */
struct switch_frame {
	struct iovec parts[2];
	uint32_t n;
	uint32_t len;       /* bytes of all parts */
	uint32_t flow;      /* destination QPN, which chooses the receive queue; 0 = none */
	uint32_t bond_flow; /* number by which a bond chooses the member for the frame */
	bool from_host;     /* on an uplink outside a bond, the switch sets the source MAC */
};

/* Makes the switch_frame of a frame in memory that no other process writes to. */
struct switch_frame switch_frame_whole(const uint8_t *data, uint32_t len);
/* Makes the switch_frame of a process's frame: the head is the checked copy in *s, which must stay
 * there, and the rest is in the process's memory. */
struct switch_frame switch_frame_of_process(const struct frame_class *s,
					    const struct vnic_tx_frame *f);
/* Copies the whole frame, f->len bytes, to `to`. */
void switch_frame_copy(uint8_t *to, const struct switch_frame *f);

#endif
