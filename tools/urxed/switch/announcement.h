/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Announcements of stations: RARP, gratuitous ARP and unsolicited neighbour advertisements. A
 * hypervisor or a guest sends them after a migration. When forward.c sees one, it sends the
 * processes the RARP frame of urxe_announcement_build, because their engines know no ARP.
 * rxe/announcement.h describes what an engine does then.
 */
#ifndef URXE_URXED_SWITCH_ANNOUNCEMENT_H
#define URXE_URXED_SWITCH_ANNOUNCEMENT_H

#include <stdbool.h>

#include "urxed/switch/classify.h"

/*
 * Whether the frame is sent to a group and announces its sender, the station with the frame's
 * source MAC. MACs in the ARP, RARP or ND packet are not read. The frame has a complete Ethernet
 * header.
 */
bool is_announcement(const struct frame_class *s);

#endif
