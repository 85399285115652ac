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
 * Frames of processes wait for a full process or VM so long in all; then the receiver is stalled,
 * and the frames are dropped. The receiver gets this time anew once it has taken
 * SWITCH_STALL_FRAMES of them: a receiver that takes a frame now and then must not stop its
 * senders, whose frames to others wait behind. 100 ms, because a process may lose its core for some
 * time slices; 256 frames, because so many fit into a sender's ring.
 */
#define SWITCH_STALL_NS     100000000ull
#define SWITCH_STALL_FRAMES 256u
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
 * Hands a frame to a process. Returns false if the frame must wait, which only happens with
 * can_wait: the caller calls again in a later run. True: the process has the frame, or it was
 * dropped.
 */
bool switch_deliver(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		    bool can_wait);
/* Copies a frame into the transmit queue of an uplink or VM; result as for switch_deliver. */
bool switch_enqueue(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		    bool can_wait);
/* Counts the frames that were lost with the transmit queue of an uplink or VM (uplink_free_queue).
 */
void switch_count_lost(struct switch_port *port);
/*
 * Sends the transmit queue of an uplink or VM as far as its port accepts frames. Drops the rest if
 * the port has accepted none for SWITCH_UPLINK_STALL_NS. Calls switch_count_lost.
 */
void switch_flush(struct vswitch *sw, struct switch_port *port);

#endif
