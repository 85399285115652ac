/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Received frames: from a frame to the QPs that it is for. device.c calls these functions. */
#ifndef URXE_DEVICE_INPUT_H
#define URXE_DEVICE_INPUT_H

#include <rxe/rxe.h>

/* Parses and checks a frame, and passes its packet to the QP or QPs; or drops and counts it. */
void input_frame(struct urxe_dev *dev, const struct urxe_frame *frame);
/*
 * Delivers a datagram that `from` sent to a group to the members on this device: also to `from`,
 * unless `from` blocks its own multicast.
 */
void mcast_loopback(struct urxe_qp *from, const struct urxe_frame *frame);

#endif
