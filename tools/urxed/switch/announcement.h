/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Detects announcements of stations: RARP, gratuitous ARP and unsolicited neighbour advertisements,
 * which a hypervisor or a guest sends after a migration. When forward.c sees one, it sends
 * processes the RARP frame of urxe_announcement_build instead, because their engines know no ARP.
 * rxe/announcement.h describes what an engine does then.
 */
#ifndef URXE_URXED_SWITCH_ANNOUNCEMENT_H
#define URXE_URXED_SWITCH_ANNOUNCEMENT_H

#include <stdbool.h>

#include "urxed/switch/classify.h"

/*
 * Whether the frame is sent to a group and announces its sender: the station whose MAC is the
 * frame's source MAC. Does not read MACs in the ARP, RARP or ND packet. The frame has a complete
 * Ethernet header.
 */
bool is_announcement(const struct frame_class *s);

#endif
