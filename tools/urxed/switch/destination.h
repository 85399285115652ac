/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds the destinations of a frame: which ports get a copy, by the frame's origin, its headers and
 * the forwarding database. forward.c calls this, and the CM calls switch_mtu_to. */
#ifndef URXE_URXED_SWITCH_DESTINATION_H
#define URXE_URXED_SWITCH_DESTINATION_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/classify.h"
#include "urxed/switch/switch.h"

struct switch_dest {
	uint32_t out;                /* bit mask of uplinks and VMs */
	struct switch_port *process; /* the process that has the destination QPN; NULL = none */
	bool listeners;              /* to all processes that have joined any group */
	bool daemon;                 /* to the daemon's ARP and ND (neigh.h) */
	bool gsi;                    /* to the daemon's QP1 (gsi.h) */
	/* All processes get urxe_announcement_build's frame, because the frame announces its
	 * sender. */
	bool announced;
};

/*
 * Both set *dest to the destinations of a frame: that of a process which has passed the source
 * checks, and that of a station. They return the reason to drop the frame, which is valid only if
 * *dest has no destination.
 */
enum switch_drop switch_dest_from_process(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *dest);
enum switch_drop switch_dest_from_station(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *dest);
/*
 * Sets the destinations of a frame of the daemon's own. They are the VMs, and the uplink of that
 * index (negative: none). If the forwarding database knows the MAC of a unicast frame, the frame
 * goes only to the MAC's port, and only if that port is one of these. If the MAC is unknown, ports
 * with pinned MACs get no copy. Other uplinks get no copy, because it would need another source MAC
 * there.
 */
void switch_dest_from_urxed(const struct vswitch *sw, int uplink, const struct frame_class *s,
			    struct switch_dest *dest);
/* Returns the longest Ethernet payload, in bytes, that the NIC of the station with that MAC
 * probably takes; at most host->mtu. */
uint16_t switch_mtu_to(const struct vswitch *sw, const struct fdb_key *key);
/* Sets the destinations of a frame from the host's QP1: QP1 itself if the frame is to the host's
 * MAC, else uplinks and VMs. */
void switch_dest_from_gsi(const struct vswitch *sw, const struct frame_class *s,
			  struct switch_dest *dest);

#endif
