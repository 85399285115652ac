/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Responder: executes requests and decides on their answers (IBA volume 1, 9.7.4, 9.7.5, 9.8). */
#ifndef URXE_RESPONDER_RESPONDER_H
#define URXE_RESPONDER_RESPONDER_H

#include <rxe/packet.h>
#include <rxe/rxe.h>

/* Handles a request packet that has passed the checks of device/input.c for this QP. */
void resp_packet(struct urxe_qp *qp, const struct urxe_packet *p);
/* The gap timer has fallen due: executes kept requests if the expected one is among them; else
 * calls psn_gap_time_out. */
void resp_gap_time_out(struct urxe_qp *qp);

#endif
