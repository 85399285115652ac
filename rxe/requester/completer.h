/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completer: takes responses and completes the requests that they answer (IBA volume 1, 9.7.6). */
#ifndef URXE_REQUESTER_COMPLETER_H
#define URXE_REQUESTER_COMPLETER_H

#include <rxe/packet.h>
#include <rxe/rxe.h>

/* Handles a response packet that has passed the checks of device/input.c for this QP. */
void comp_packet(struct urxe_qp *qp, const struct urxe_packet *p);
/* The QP's retry timer has fallen due: retransmit_timer decides, and without a retry left the
 * oldest request fails with URXE_WC_RETRY_EXC_ERR. */
void comp_retransmit_timer(struct urxe_qp *qp);

#endif
