/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Delivery: counts a frame at its ports, shows it to the capture tap, and hands it to a process's
 * NIC or to the transmit queue of an uplink or VM. forward.c and switch.c call it. sw->now is the
 * time of the run.
 */
#ifndef URXE_URXED_SWITCH_DELIVER_H
#define URXE_URXED_SWITCH_DELIVER_H

#include <stdbool.h>

#include "urxed/switch/frame.h"
#include "urxed/switch/switch.h"

/*
 * Budget of a process for the time that its frames wait for full processes and VMs; once it is
 * spent, a frame to a full one is dropped at once. Each frame of the process that a receiver or an
 * uplink takes gives back a 256th, and each time without a wait a tenth of itself. The budget is
 * the sender's, so no number of slow receivers can hold up its frames to others for longer. 100 ms,
 * because a receiver may lose its core for some time slices; 256 frames, because so many fit into a
 * sender's ring.
 */
#define SWITCH_STALL_NS     100000000ull
#define SWITCH_STALL_FRAMES 256u
#define SWITCH_STALL_REST   10u
/*
 * An uplink that takes no frame for so long is stalled, and the frames in its queue are dropped.
 * Shorter than for a process, because the uplink is hardware or has a thread of its own.
 */
#define SWITCH_UPLINK_STALL_NS 10000000ull
/* Delay before the next try on a full uplink: about the time that some long frames take. */
#define SWITCH_RETRY_NS 50000ull

/*
 * Counts a frame that came from a port. `reason` is SWITCH_NO_DROP unless the frame is dropped. A
 * frame that had to wait was counted at its first try, and is not counted again.
 */
void switch_count_in(struct vswitch *sw, struct switch_port *port, const struct switch_frame *f,
		     enum switch_drop reason);
/* Counts a frame that a port got. */
void switch_count_out(struct vswitch *sw, struct switch_port *port, const struct switch_frame *f);

/*
 * Brings the budget of a process up to date. Call it in each run before the first frame of the
 * process.
 */
void switch_settle(const struct vswitch *sw, struct switch_port *from);
/*
 * Hands a frame to a process. `sender`: the process whose frame it is, NULL if the frame cannot
 * wait. Returns false if the frame must wait: the caller calls again in a later run. True: the
 * process has the frame, or it was dropped.
 */
bool switch_deliver(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		    struct switch_port *sender);
/* Copies a frame into the transmit queue of an uplink or VM; otherwise as switch_deliver. */
bool switch_enqueue(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		    struct switch_port *sender);
/* Counts the frames that were lost with the transmit queue of an uplink or VM (uplink_free_queue).
 */
void switch_count_lost(struct switch_port *port);
/*
 * Sends the transmit queue of an uplink or VM as far as its port accepts frames. Drops the rest if
 * the port has accepted none for SWITCH_UPLINK_STALL_NS. Calls switch_count_lost.
 */
void switch_flush(struct vswitch *sw, struct switch_port *port);

#endif
