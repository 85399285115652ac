/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Header prediction: what a connection hears has the addresses of the packet before. A QP keeps the
 * Ethernet, IPv4 and UDP headers of one whose addresses it has found right, and of the next ones
 * with the same it looks at the transport's headers alone.
 */
#ifndef URXE_PREDICT_H
#define URXE_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

struct urxe_dev;
struct urxe_frame;
struct urxe_packet;
struct urxe_qp;

/*
 * The QP that a frame is for, where it is as predicted; p is filled in then, but for what the QP
 * knows: MACs, GIDs and the UDP source port. NULL: whatever it is, all of it has to be looked at.
 */
struct urxe_qp *predict_parse(const struct urxe_dev *dev, const struct urxe_frame *frame,
			      struct urxe_packet *p);
/* The frame's addresses are right for its QP, a connected one, for as long as neither's change. */
void predict_learn(struct urxe_qp *qp, const struct urxe_frame *frame, const struct urxe_packet *p);

#endif
