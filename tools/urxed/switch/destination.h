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
	struct switch_port *process; /* or NULL */
	bool listeners;              /* all processes that receive multicast */
	bool daemon;                 /* its ARP and ND */
	bool gsi;                    /* its QP1 */
	bool announced;              /* all processes: the station announces itself */
};

/*
 * Both set the destinations of an allowed frame, and return the reason to drop the frame if there
 * are none.
 */
enum switch_drop switch_dest_from_process(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *dest);
enum switch_drop switch_dest_from_station(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *dest);
/*
 * A frame of the daemon's own goes to one uplink and to VMs. Another uplink would need another
 * source MAC.
 */
void switch_dest_from_urxed(const struct vswitch *sw, int uplink, const struct frame_class *s,
			    struct switch_dest *dest);
/*
 * The longest Ethernet payload, at most host->mtu bytes, that the NIC of the station with that MAC
 * is expected to take.
 */
uint16_t switch_mtu_to(const struct vswitch *sw, const struct fdb_key *key);
/* A frame of the host's QP1. */
void switch_dest_from_gsi(const struct vswitch *sw, const struct frame_class *s,
			  struct switch_dest *dest);

#endif
