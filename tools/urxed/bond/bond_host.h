/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connects a bond with the host: sends the bond's probes and announcements through the switch, to
 * the host's neighbours and with the host's addresses, and reports the links of the members to the
 * bond.
 */
#ifndef URXE_URXED_BOND_BOND_HOST_H
#define URXE_URXED_BOND_BOND_HOST_H

#include <stdint.h>

#include "urxed/switch/switch.h"

/* Makes a bond of all uplinks of the switch to an Ethernet; does nothing for BOND_NONE. */
void bond_host_start(struct vswitch *sw, uint64_t now, enum bond_mode mode);
/* Reads the links and runs the bond's timers; returns the time of the next one in ns. */
uint64_t bond_host_tick(struct vswitch *sw, uint64_t now);
/*
 * Call it before bond_host_tick while processes have packet sockets on members. It reads the
 * kernel's counters of the members that carry frames. If within a second these members together
 * have carried many frames that the switch has not counted, the bond is busy, as after RoCE frames
 * (bond_note_sent). If a member has received any frame since the last call, a late answer to a
 * probe does not count against it (bond_note_heard).
 */
void bond_host_count_frames(struct vswitch *sw, uint64_t now);
/*
 * Sends an answer of ARP or ND through the member by which the question came. If that member
 * carries no other frames, the source is the MAC of its probes, so that bridges do not learn the
 * host's MAC there.
 */
void bond_host_answer(struct vswitch *sw, uint32_t uplink, const uint8_t *frame, uint32_t len);

#endif
