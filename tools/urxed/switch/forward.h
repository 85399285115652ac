/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Moves frames through the switch; the daemon's main loop calls it.
 *
 * A frame from one process to one other process is not lost: if the receiver has no buffer, the
 * frame and those behind it stay in the sender's ring, unless the sender has spent its budget for
 * such waits (deliver.h). A frame to several receivers does not wait: a receiver without a buffer
 * misses its copy.
 */
#ifndef URXE_URXED_SWITCH_FORWARD_H
#define URXE_URXED_SWITCH_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/switch.h"

/*
 * Limit of the frames of processes in one run, where each copy of a multicast one counts. A
 * thousand processes that send to a thousand listeners must not keep the daemon from other work for
 * seconds.
 */
#define SWITCH_RUN_FRAMES 256
/*
 * Moves a burst of frames from every port. After SWITCH_RUN_FRAMES frames of processes it stops.
 * The processes that have sent nothing for longest come first. Returns false if it moved no frame.
 */
bool switch_run(struct vswitch *sw, uint64_t now);
/*
 * Returns the time in ns when switch_run must be called although no descriptor of a port reports
 * work; UINT64_MAX = never.
 */
uint64_t switch_deadline(const struct vswitch *sw, uint64_t now);
/*
 * Tells the vNIC drivers of all processes whether the daemon sleeps, so that they must ring
 * doorbells.
 */
void switch_set_sleeping(struct vswitch *sw, bool asleep);

/*
 * Moves the frames that a process's port has posted so far, SWITCH_RUN_FRAMES at most, as far as
 * receivers have room: the next ones wait (port->waiting). Returns the number of moved or dropped
 * frames, each copy counted. Sessions call it before they handle a message or a hang-up. The
 * receivers are notified by the next switch_run.
 */
uint32_t switch_drain(struct vswitch *sw, uint64_t now, struct switch_port *port);

/*
 * The port's process has ended: sends the frame that the process stored for this case with
 * vnic_driver_set_last_frame, if any. Call switch_drain first. No frame of the port waits
 * afterwards.
 */
void switch_send_last(struct vswitch *sw, uint64_t now, struct switch_port *port);

/*
 * Moves the frames that the process of the machine's port at `index` (switch_add_vm_port) has left
 * in the port's ring, NETDEV_SHM_DEPTH at most. A receiver without room misses its frames.
 * Processes are notified by the next switch_run.
 */
void switch_drain_vm_port(struct vswitch *sw, uint64_t now, uint32_t index);

/*
 * Sends a frame of the daemon's own to the uplink of that index (negative: to none) and to VMs
 * (switch_dest_from_urxed).
 */
void switch_send(struct vswitch *sw, int uplink, const uint8_t *frame, uint32_t len);
/* Sends a frame of the daemon's own by the bond's member with that uplink index, and to no VM. */
void switch_send_by(struct vswitch *sw, uint32_t uplink, const uint8_t *frame, uint32_t len);
/*
 * Whether the transmit queues of all uplinks to an Ethernet have room for n frames of the daemon's
 * own. If not, switch_deadline is soon, and the caller asks again.
 */
bool switch_has_room(struct vswitch *sw, uint32_t n);
/*
 * Call it when this host was absent: it has migrated, or a bond of the kernel has changed its
 * active member. Sends the announcement of the host's MAC to all processes (rxe/announcement.h).
 * Within 2 s after the last such announcement, sends none and returns false, because the kernel
 * reports one absence several times.
 */
bool switch_host_returned(struct vswitch *sw, uint64_t now);
/* Sends a frame of the host's QP1, from the host's MAC, to another host or to the host itself. */
void switch_send_gsi(struct vswitch *sw, const uint8_t *frame, uint32_t len);

#endif
