/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decides which frames count that a bond's members receive, and by which member a frame leaves.
 * forward.c calls this.
 *
 * If the members are on one Ethernet, a broadcast, or a frame to a MAC that bridges do not know,
 * arrives at each member. Only one of these copies counts.
 */
#ifndef URXE_URXED_BOND_BOND_FILTER_H
#define URXE_URXED_BOND_BOND_FILTER_H

#include <stdint.h>

#include "urxed/switch/classify.h"
#include "urxed/switch/switch.h"

enum bond_verdict {
	BOND_ACCEPT,      /* forward it like a frame of an uplink without a bond */
	BOND_DAEMON_ONLY, /* ARP or ND: only the daemon gets it, not the virtual machines */
	BOND_PROBE_REPLY, /* the answer to a probe */
	BOND_DROP,        /* a copy of another frame, the host's own frame, or a frame for others */
};

/* Decides what the switch does with a frame that a member has received. Tells sw->bond of RoCE
 * frames and of frames at a wrong member; of the answer to a probe the caller tells it. */
enum bond_verdict bond_filter_check(struct vswitch *sw, uint32_t uplink,
				    const struct frame_class *s);

/* Returns a number for bond_choose that is the same for all frames of a connection in one
 * direction. */
uint32_t bond_filter_flow(const struct frame_class *s);
/* Notes a RoCE frame that leaves by the bond. Rounds also probe the receiver of a recent unicast
 * one, if it is on-link. */
void bond_filter_note_sent(struct vswitch *sw, const struct frame_class *s);

#endif
