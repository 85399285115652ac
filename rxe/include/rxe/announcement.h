/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Announcements: a RARP frame (RFC 903) tells an engine that a station was absent and is back, for
 * example a virtual machine after its migration. Frames to the station and from it were lost
 * meanwhile. urxe_input accepts any RARP frame. The Ethernet source MAC names the station:
 *
 * - Another MAC than the device's: a peer was absent. If a probe (docs/recovery.md) to this peer is
 *   unanswered, or a local ACK timeout expired since the peer's last response, the requester sends
 *   all outstanding packets again at once. Otherwise the requester sends them again after the peer
 *   has been silent for a round trip, at least 0.5 ms. At most eight announcements count until the
 *   peer answers or a timeout expires.
 * - The device's own MAC: the device itself was absent. Each requester sends all outstanding
 *   packets again once its peer has been silent for a round trip and for 0.5 ms, not counting the
 *   time of the absence. An acknowledgement in that time cancels this. Each responder that gets no
 *   request within 3 ms repeats its last response or ACK, and again 12 ms later if still no request
 *   has arrived. Each time the responder also sends a sequence NAK of the expected PSN, so that the
 *   peer repeats lost requests. The engine delays the NAK of each further connection by 1 us; one
 *   call of urxe_output sends all NAKs that are due. A frame with this MAC has no effect if it came
 *   from the wire (urxe_frame.from_wire) or the device has go_back_n.
 *
 * "Requester" and "responder" are those of reliable connections that the engine executes. The owner
 * of a device builds the frame with the device's own MAC in two cases: the device continues on
 * another host, or the kernel reports that the host has moved.
 */
#ifndef URXE_RXE_ANNOUNCEMENT_H
#define URXE_RXE_ANNOUNCEMENT_H

#include <stdint.h>

/* The shortest frame of Ethernet, without FCS, bytes. */
#define URXE_ANNOUNCEMENT_LEN 60

/* Builds the broadcast frame by which the station `mac` announces itself. */
void urxe_announcement_build(uint8_t frame[URXE_ANNOUNCEMENT_LEN], const uint8_t mac[6]);

#endif
