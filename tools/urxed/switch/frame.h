/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A frame on its way through the switch, as one or two pieces of memory. */
#ifndef URXE_URXED_SWITCH_FRAME_H
#define URXE_URXED_SWITCH_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <vnic/device.h>

#include "urxed/switch/classify.h"

/*
 * The head is the switch's checked copy. The rest may lie in memory that a process still writes to,
 * so its content may differ at each read.
 */
struct switch_frame {
	struct iovec parts[2];
	uint32_t n;
	uint32_t len;       /* bytes of all parts */
	uint32_t flow;      /* destination QPN, which chooses the receive queue; 0 = none */
	uint32_t bond_flow; /* chooses the bond's member by which the frame leaves */
	bool from_host;     /* on an uplink outside a bond, the source MAC becomes the uplink's */
};

/* Makes the switch_frame of a frame in memory that nobody else writes to. */
struct switch_frame switch_frame_whole(const uint8_t *data, uint32_t len);
/*
 * Makes the switch_frame of a process's frame: the checked head, which is in *s and must stay
 * there, and the rest in the process's memory.
 */
struct switch_frame switch_frame_of_process(const struct frame_class *s,
					    const struct vnic_tx_frame *f);
/* Copies the whole frame, f->len bytes, to `to`. */
void switch_frame_copy(uint8_t *to, const struct switch_frame *f);

#endif
