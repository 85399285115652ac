/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Responder: executes requests and answers them (IBA volume 1, 9.7.4, 9.7.5, 9.8). */
#ifndef URXE_RESP_H
#define URXE_RESP_H

#include <stdbool.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

void resp_packet(struct urxe_qp *qp, const struct urxe_packet *p);
/* Writes the next response; false where none is due. */
bool resp_output(struct urxe_qp *qp, struct urxe_frame *frame);
/* Ends every receive request of a QP's own queue with a flush error. */
void resp_flush(struct urxe_qp *qp);

#endif
