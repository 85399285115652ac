/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames in words, for a line of urxe capture and for comments. */
#ifndef URXE_CAPTURE_FRAME_TEXT_H
#define URXE_CAPTURE_FRAME_TEXT_H

#include <stdint.h>

#define FRAME_TEXT 256 /* bytes, with the NUL */

/* "192.0.2.1 > 192.0.2.2"; MACs where it is no RoCE. */
void frame_addresses(char text[FRAME_TEXT], const uint8_t *frame, uint32_t len);

/*
 * What it is: "RC_SEND_ONLY QP 0x001000 PSN 7", with what an acknowledgement says and what an
 * engine would drop it for; or "ARP" and the like.
 */
void frame_words(char text[FRAME_TEXT], const uint8_t *frame, uint32_t len);

#endif
