/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Delivers frames: counts a frame at its ports, shows it to the capture tap, and hands it to a
 * process's NIC, or to the transmit queue of an uplink or VM. forward.c and switch.c call this.
 * sw->now is the time of the run.
 */
#ifndef URXE_URXED_SWITCH_DELIVER_H
#define URXE_URXED_SWITCH_DELIVER_H

#include <stdbool.h>

#include "urxed/switch/frame.h"
#include "urxed/switch/switch.h"

/*
 * Budget of each sending process for the time that its frames wait for full processes and VMs. When
 * it is spent, the switch drops a frame to a full receiver at once. Each frame of the process that
 * a receiver or uplink takes gives back a 256th of the budget, and time without a wait gives back a
 * tenth of that time. The budget is the sender's, so however many slow receivers it has, its frames
 * to others wait no longer than that. 100 ms, because a receiver may lose its core for some time
 * slices; 256 frames, because a sender's ring holds that many.
 */
#define SWITCH_STALL_NS     100000000ull
#define SWITCH_STALL_FRAMES 256u
#define SWITCH_STALL_REST   10u
/* If an uplink or VM takes no frame for this time, the switch drops the frames in its queue. The
 * time is shorter than for a process, because the uplink is hardware or has a thread of its own. */
#define SWITCH_UPLINK_STALL_NS 10000000ull
/* Delay before the next try on a full uplink: about the time in which it sends some long frames. */
#define SWITCH_RETRY_NS 50000ull

/* Counts a frame that came from a port. `reason` is the reason why the frame is dropped, or
 * SWITCH_NO_DROP. A frame that had to wait is not counted again: its first try was counted. */
void switch_count_in(struct vswitch *sw, struct switch_port *port, const struct switch_frame *f,
		     enum switch_drop reason);
/* Counts a frame that a port has got. */
void switch_count_out(struct vswitch *sw, struct switch_port *port, const struct switch_frame *f);

/*
 * Brings the budget of a process up to date. Call it in each run before the first frame of the
 * process.
 */
void switch_settle(const struct vswitch *sw, struct switch_port *from);
/*
 * Hands a frame to a process. `sender`: the process that sent the frame, or NULL if the frame must
 * not wait. Returns true if the process has the frame, or the frame was dropped. Returns false if
 * the frame must wait: the caller calls again in a later run.
 */
bool switch_deliver(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		    struct switch_port *sender);
/* Copies a frame into the transmit queue of an uplink or VM; otherwise as switch_deliver. */
bool switch_enqueue(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		    struct switch_port *sender);
/*
 * Counts the frames in the transmit queue of an uplink or VM that uplink_free_queue has discarded.
 */
void switch_count_lost(struct switch_port *port);
/* Sends from the transmit queue of an uplink or VM as many frames as its port accepts. Drops the
 * rest if the port has accepted none for SWITCH_UPLINK_STALL_NS. Calls switch_count_lost. */
void switch_flush(struct vswitch *sw, struct switch_port *port);

#endif
