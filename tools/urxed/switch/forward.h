/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Moving frames through the switch.
 *
 * Between processes nothing is lost: a frame whose receiver has no buffer stays in the
 * sender's ring, and what is behind it too, until the receiver gives buffers back. One
 * that does not for 100 ms is stalled, and loses its frames.
 */
#ifndef URXE_URXED_SWITCH_FORWARD_H
#define URXE_URXED_SWITCH_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/switch.h"

/* Moves a burst from every port. False: nothing moved. */
bool switch_run(struct vswitch *sw, uint64_t now);
/* When to run again though nobody rings; UINT64_MAX = never. */
uint64_t switch_deadline(const struct vswitch *sw, uint64_t now);
/* Tells all drivers that the daemon sleeps, or does no longer. */
void switch_set_sleeping(struct vswitch *sw, bool asleep);

/*
 * Moves what a port has posted so far, as far as its receivers have room: for one
 * that is about to stop or to leave. The others hear of it from switch_run.
 */
void switch_drain(struct vswitch *sw, uint64_t now, struct switch_port *port);

/*
 * Sends a frame of the daemon's own, which is meant for what an uplink leads to; VMs
 * are on the same Ethernet.
 */
void switch_send(struct vswitch *sw, int uplink, const uint8_t *frame, uint32_t len);
/* Sends a frame of the host's QP1, from the host's MAC: to another host, or to itself. */
void switch_send_gsi(struct vswitch *sw, const uint8_t *frame, uint32_t len);

#endif
