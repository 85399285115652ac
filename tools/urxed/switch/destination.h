/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways through the switch: where the copies of a frame go, by where it came from, its
 * destination and what was learned.
 */
#ifndef URXE_URXED_SWITCH_DESTINATION_H
#define URXE_URXED_SWITCH_DESTINATION_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/classify.h"
#include "urxed/switch/switch.h"

struct switch_dest {
	uint32_t out;                /* bits of uplinks and VMs */
	struct switch_port *process; /* or NULL */
	bool listeners;              /* all processes that hear multicast */
	bool daemon;                 /* its ARP and ND, */
	bool gsi;                    /* its QP1 */
};

/* Both set the way of what may be sent, and return why that goes nowhere where it has no end. */
enum switch_drop switch_dest_from_process(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *way);
enum switch_drop switch_dest_from_station(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *way);
/* Of a frame of the daemon's own: not to another uplink, where it would have another source. */
void switch_dest_from_urxed(const struct vswitch *sw, int uplink, const struct frame_class *s,
			    struct switch_dest *way);
/* Of a frame of the host's QP1. */
void switch_dest_from_gsi(const struct vswitch *sw, const struct frame_class *s,
			  struct switch_dest *way);

#endif
