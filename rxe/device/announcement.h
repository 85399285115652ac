/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the engine does after an announcement (rxe/announcement.h): connections that have lost
 * packets in an absence repeat them, or ask for them, at once rather than at their next deadline.
 */
#ifndef URXE_DEVICE_ANNOUNCEMENT_H
#define URXE_DEVICE_ANNOUNCEMENT_H

#include <stdbool.h>

#include <rxe/rxe.h>

/* Returns false if the frame, which may have any length, is not RARP (RFC 903); else handles it as
 * an announcement of its source MAC. */
bool announcement_input(struct urxe_dev *dev, const struct urxe_frame *frame);

#endif
