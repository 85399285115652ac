/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Joins a bond to the host: bond_host.c sends the bond's probes and announcements through the
 * switch, to the host's neighbours and with the host's addresses. It also reports the links of the
 * members to the bond.
 */
#ifndef URXE_URXED_BOND_BOND_HOST_H
#define URXE_URXED_BOND_BOND_HOST_H

#include <stdint.h>

#include "urxed/switch/switch.h"

/* Makes a bond of all Ethernet uplinks of the switch; BOND_NONE: does nothing. */
void bond_host_start(struct vswitch *sw, uint64_t now, enum bond_mode mode);
/* Reads the links and runs the bond's timers; returns the next deadline. */
uint64_t bond_host_tick(struct vswitch *sw, uint64_t now);
/*
 * Call it before bond_host_tick while processes have packet sockets on members. It reads the
 * kernel's counters of the members that carry frames. If within a second these members together
 * have sent and received many frames that the switch has not counted, the bond is busy, as after
 * RoCE frames (bond_note_sent). A member that has received any frame since the last call is excused
 * for a late answer to a probe (bond_note_heard).
 */
void bond_host_count_frames(struct vswitch *sw, uint64_t now);
/*
 * Sends an answer of ARP or ND through the member by which the question came. A member that carries
 * no other frames sends from the MAC of its probes, so that bridges do not learn the host's MAC
 * there.
 */
void bond_host_answer(struct vswitch *sw, uint32_t uplink, const uint8_t *frame, uint32_t len);

#endif
