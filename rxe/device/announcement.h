/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the engine does after an announcement (rxe/announcement.h): connections that have lost
 * packets in an absence repeat the packets, or ask for them, sooner than at their next deadline. */
#ifndef URXE_DEVICE_ANNOUNCEMENT_H
#define URXE_DEVICE_ANNOUNCEMENT_H

#include <stdbool.h>

#include <rxe/rxe.h>

/* Handles a frame of any length as an announcement of its source MAC: a peer's, or this device's
 * own if the device itself was absent, such as during a migration. Returns false if the frame is
 * not RARP (RFC 903), or came from the wire with the device's own MAC. */
bool announcement_input(struct urxe_dev *dev, const struct urxe_frame *frame);

#endif
