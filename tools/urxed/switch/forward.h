/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Moves frames through the switch; the daemon's main loop calls it.
 *
 * If a frame of a process has one receiver (process, uplink or VM), which has no room, the frame
 * and those behind it wait in the sender's ring. The switch drops the frame only if the sender
 * ends, or has spent its budget for such waits (deliver.h). A frame to several receivers does not
 * wait: a receiver without a buffer misses its copy.
 */
#ifndef URXE_URXED_SWITCH_FORWARD_H
#define URXE_URXED_SWITCH_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/switch.h"

/*
 * Limit of the frames of processes in one run, where each copy of a multicast frame counts. A
 * thousand processes that send to a thousand listeners must not keep the daemon from other work for
 * seconds.
 */
#define SWITCH_RUN_FRAMES 256
/*
 * Moves a burst of frames from every port, uplinks first. Stops after SWITCH_RUN_FRAMES frames of
 * processes; the process that has sent nothing for longest comes first. Returns false if it moved
 * no frame.
 */
bool switch_run(struct vswitch *sw, uint64_t now);
/* Returns the time in ns when the main loop must call switch_run although no descriptor of a port
 * reports work; UINT64_MAX = never. */
uint64_t switch_deadline(const struct vswitch *sw, uint64_t now);
/* Tells the vNIC drivers of all processes whether the daemon sleeps: while it does, they ring
 * doorbells. */
void switch_set_sleeping(struct vswitch *sw, bool asleep);

/*
 * Moves the frames that a process's port has posted so far, at most SWITCH_RUN_FRAMES. If a
 * receiver has no room, the frames behind wait (port->waiting). Returns the number of moved and
 * dropped frames, each copy counted. Sessions call it before they handle a message or a hang-up of
 * the process. The next switch_run notifies the receivers.
 */
uint32_t switch_drain(struct vswitch *sw, uint64_t now, struct switch_port *port);

/*
 * Call it when the port's process has ended, after switch_drain. Sends the frame that the process
 * has stored for this case with vnic_driver_set_last_frame, if any. After this no frame of the port
 * waits.
 */
void switch_send_last(struct vswitch *sw, uint64_t now, struct switch_port *port);

/*
 * Moves the frames that remain in the ring of the virtual machine's port at `index`
 * (switch_add_vm_port), at most NETDEV_SHM_DEPTH, when the machine's process has ended. A receiver
 * without room misses its frames. The next switch_run notifies processes.
 */
void switch_drain_vm_port(struct vswitch *sw, uint64_t now, uint32_t index);

/* Sends a frame of the daemon's own to VMs, and to the uplink of that index (negative: to no
 * uplink); switch_dest_from_urxed chooses among these. */
void switch_send(struct vswitch *sw, int uplink, const uint8_t *frame, uint32_t len);
/*
 * Sends a frame of the daemon's own through the bond's member with that uplink index, and to no VM.
 */
void switch_send_by(struct vswitch *sw, uint32_t uplink, const uint8_t *frame, uint32_t len);
/* Returns whether the transmit queues of all uplinks to an Ethernet have room for n frames of the
 * daemon's own. If not, switch_deadline comes soon, and the caller asks again then. */
bool switch_has_room(struct vswitch *sw, uint32_t n);
/*
 * Call it when this host was absent: it has migrated, or a bond of the kernel has changed its
 * active member. Sends the announcement of the host's MAC to all processes (rxe/announcement.h).
 * Within 2 s after the last such announcement it sends none and returns false, because the kernel
 * reports one absence several times.
 */
bool switch_host_returned(struct vswitch *sw, uint64_t now);
/* Sends a frame of the host's QP1 to another host or to the host itself. The source MAC is the
 * host's. */
void switch_send_gsi(struct vswitch *sw, const uint8_t *frame, uint32_t len);

#endif
