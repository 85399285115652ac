/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A station announces itself, for example a virtual machine after a migration: packets sent to it
 * meanwhile are lost, so requesters repeat them at once rather than at their next deadline.
 */
#ifndef URXE_ANNOUNCEMENT_H
#define URXE_ANNOUNCEMENT_H

#include <stdbool.h>

#include <rxe/rxe.h>

/* Returns false if the frame is no announcement (RARP, RFC 903), of any length. */
bool announcement_input(struct urxe_dev *dev, const struct urxe_frame *frame);

#endif
