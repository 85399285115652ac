/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Header prediction: packets of a connection have the same addresses. A QP stores the Ethernet,
 * IPv4 and UDP headers of a packet that passed all checks. A packet with the same headers needs
 * only its transport headers parsed. device/input.c is the caller.
 */
#ifndef URXE_DEVICE_HEADER_PREDICTION_H
#define URXE_DEVICE_HEADER_PREDICTION_H

#include <stdbool.h>
#include <stdint.h>

struct urxe_dev;
struct urxe_frame;
struct urxe_packet;
struct urxe_qp;

/*
 * The QP of a frame whose headers match the prediction. Fills in p, except members that the QP has:
 * MACs, GIDs and the UDP source port. NULL: the caller has to parse and check the whole frame.
 */
struct urxe_qp *predict_parse(const struct urxe_dev *dev, const struct urxe_frame *frame,
			      struct urxe_packet *p);
/* Stores the headers of a frame that passed the address checks of its connected QP. */
void predict_learn(struct urxe_qp *qp, const struct urxe_frame *frame, const struct urxe_packet *p);

#endif
