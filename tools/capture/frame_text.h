/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Describes frames as text, for the lines and pcapng comments of urxe capture. */
#ifndef URXE_CAPTURE_FRAME_TEXT_H
#define URXE_CAPTURE_FRAME_TEXT_H

#include <stdint.h>

#include <rxe/packet.h>

#define FRAME_TEXT 256 /* bytes, with the NUL */

/*
 * Parses a frame as an engine does, and checks its ICRC. Returns 0, or the reason for which an
 * engine drops the frame. *p has all headers only if the result is 0 or URXE_DROP_BAD_ICRC.
 */
enum urxe_drop frame_parse(struct urxe_packet *p, const uint8_t *frame, uint32_t len);

/* Writes the two addresses of frame_addresses separately: the IP addresses, the GIDs of RoCEv1, or
 * the MACs of a frame that is not RoCE. "?": the frame is shorter than an Ethernet header. */
void frame_ends(char source[FRAME_TEXT], char destination[FRAME_TEXT], const uint8_t *frame,
		uint32_t len);

/* Writes "192.0.2.1 > 192.0.2.2"; the MACs if the frame is not RoCE. */
void frame_addresses(char text[FRAME_TEXT], const uint8_t *frame, uint32_t len);

/*
 * Writes "RC_SEND_ONLY QP 0x001000 PSN 7" or the like, with the syndrome of an acknowledgement and
 * the reason for which an engine would drop the packet; for other frames words such as "ARP", or
 * the EtherType.
 */
void frame_words(char text[FRAME_TEXT], const uint8_t *frame, uint32_t len);

#endif
