/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Announces a virtual machine that has come from another host: switches between the hosts learn
 * from its frames where its MAC is now. The machine keeps MAC and addresses, so caches of its
 * neighbours stay valid. The frames are RARP requests, which no host answers, as QEMU sends them.
 */
#ifndef URXE_VM_HOST_ANNOUNCER_H
#define URXE_VM_HOST_ANNOUNCER_H

#include <stdbool.h>
#include <stdint.h>

struct switch_link;

struct announcer {
	uint32_t left;    /* frames to be sent; 0 = none */
	uint64_t next_at; /* ns of CLOCK_MONOTONIC, as all times here */
};

/* Begins an announcement: the next announcer_tick sends its first frame. */
void announcer_begin(struct announcer *a, uint64_t now);
/*
 * Sends a frame if one is due. Returns the time of the next call; UINT64_MAX: all are sent, or the
 * link is down: call it again when the link is up. *began: this was the first frame.
 */
uint64_t announcer_tick(struct announcer *a, struct switch_link *link, uint64_t now, bool *began);

#endif
