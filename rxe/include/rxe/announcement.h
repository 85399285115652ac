/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Announcements: a RARP frame (RFC 903) tells an engine that a station was absent and is back, for
 * example a virtual machine after its migration. Frames to it and from it were lost meanwhile.
 * urxe_input takes such a frame from anywhere:
 *
 * - From another MAC: reliable connections to that station send again at once what it has not
 *   acknowledged, if it has left a probe unanswered.
 * - From the device's own MAC: the device itself was absent. Each reliable connection sends again
 *   at once what its peer has not acknowledged, if the peer has been silent for 0.5 ms and a round
 *   trip of the device's own time. If no request comes within 3 ms, it sends its last answer again,
 *   and asks its peer to repeat what was lost.
 *
 * The owner of a device builds the second one when the device continues on another host, or when
 * the kernel reports that the host has moved.
 */
#ifndef URXE_RXE_ANNOUNCEMENT_H
#define URXE_RXE_ANNOUNCEMENT_H

#include <stdint.h>

/* The shortest frame of Ethernet, without FCS, bytes. */
#define URXE_ANNOUNCEMENT_LEN 60

/* Builds the broadcast frame by which the station `mac` announces itself. */
void urxe_announcement_build(uint8_t frame[URXE_ANNOUNCEMENT_LEN], const uint8_t mac[6]);

#endif
