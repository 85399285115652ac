/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The destinations of a frame: which ports get a copy, by its origin, its headers and the
 * forwarding database. forward.c asks for them.
 */
#ifndef URXE_URXED_SWITCH_DESTINATION_H
#define URXE_URXED_SWITCH_DESTINATION_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/classify.h"
#include "urxed/switch/switch.h"

struct switch_dest {
	uint32_t out;                /* bit mask of uplinks and VMs */
	struct switch_port *process; /* the process that has the destination QPN; NULL = none */
	bool listeners;              /* all processes that have joined any group */
	bool daemon;                 /* the daemon's ARP and ND (neigh.h) */
	bool gsi;                    /* the daemon's QP1 (gsi.h) */
	/* All processes get urxe_announcement_build's frame: the station announces itself. */
	bool announced;
};

/*
 * switch_dest_from_process sets the destinations of a frame that has passed the source checks, and
 * so does switch_dest_from_station. Returns the reason to drop the frame, valid only if *dest has
 * no destination.
 */
enum switch_drop switch_dest_from_process(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *dest);
enum switch_drop switch_dest_from_station(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *dest);
/*
 * Sets the destinations of a frame of the daemon's own: the uplink of that index (negative: none)
 * and the VMs. If the forwarding database knows the MAC of a unicast frame, the frame goes only to
 * the MAC's port, and only if that port is one of these. Other uplinks get no copy, because a copy
 * there would need another source MAC.
 */
void switch_dest_from_urxed(const struct vswitch *sw, int uplink, const struct frame_class *s,
			    struct switch_dest *dest);
/*
 * Returns the longest Ethernet payload, in bytes, that the NIC of the station with that MAC is
 * expected to take; at most host->mtu.
 */
uint16_t switch_mtu_to(const struct vswitch *sw, const struct fdb_key *key);
/*
 * Sets the destinations of a frame from the host's QP1: the QP1 itself if it is to the host's MAC,
 * else uplinks and VMs.
 */
void switch_dest_from_gsi(const struct vswitch *sw, const struct frame_class *s,
			  struct switch_dest *dest);

#endif
