/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What leaves the switch: frames are counted at the ports, shown to the tap, and given
 * to processes, uplinks and virtual machines. The time is that of the run under way.
 */
#ifndef URXE_URXED_SWITCH_DELIVER_H
#define URXE_URXED_SWITCH_DELIVER_H

#include <stdbool.h>

#include "urxed/switch/frame.h"
#include "urxed/switch/switch.h"

/* A process that has lost its core for some time slices is not stalled yet: 100 ms. */
#define SWITCH_STALL_NS 100000000ull
/* An uplink is hardware or a thread of its own: 10 ms. */
#define SWITCH_UPLINK_STALL_NS 10000000ull
/* How long to leave a full uplink alone: about what it takes to send a few long frames. */
#define SWITCH_RETRY_NS 50000ull

/*
 * A frame has come from a port, and if `reason` is a reason, goes no further. One that
 * had to wait has come before.
 */
void switch_count_in(struct vswitch *sw, struct switch_port *port, const struct switch_frame *f,
		     enum switch_drop reason);
/* A port got a frame. */
void switch_count_out(struct vswitch *sw, struct switch_port *port, const struct switch_frame *f);

/* Gives a frame to a process. False: it has to wait, which only one that can wait does. */
bool switch_deliver(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		    bool can_wait);
/* Copies a frame into the queue of an uplink or VM; as switch_deliver. */
bool switch_enqueue(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		    bool can_wait);
/* Sends what the queue of an uplink or VM holds, as far as it takes it, and drops what is too old.
 */
void switch_flush(struct vswitch *sw, struct switch_port *port);

#endif
