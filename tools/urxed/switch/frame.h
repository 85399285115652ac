/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A frame on its way through the switch. */
#ifndef URXE_URXED_SWITCH_FRAME_H
#define URXE_URXED_SWITCH_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <vnic/device.h>

#include "urxed/switch/classify.h"

/*
 * The head is a copy, which was checked. The rest may lie in memory that a process
 * writes to, so it may be another thing each time that it is read.
 */
struct switch_frame {
	struct iovec parts[2];
	uint32_t n;
	uint32_t len;   /* bytes of all parts */
	uint32_t flow;  /* for the receiver's queues: the destination QPN; 0 = none */
	bool from_host; /* its source MAC is that of the uplink by which it leaves */
};

/* One that nobody changes any more. */
struct switch_frame switch_frame_whole(const uint8_t *data, uint32_t len);
/* What classify_frame has seen of a process's frame, and behind it the rest where the process has
 * it.
 */
struct switch_frame switch_frame_of_process(const struct frame_class *s,
					    const struct vnic_tx_frame *f);
/* Writes f->len bytes. */
void switch_frame_copy(uint8_t *to, const struct switch_frame *f);

#endif
