/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which acknowledgement the responder has to send next; resp_output.c sends it. */
#ifndef URXE_ACKNOWLEDGE_H
#define URXE_ACKNOWLEDGE_H

#include <stdint.h>

#include <rxe/rxe.h>

/* Makes an ACK of the newest executed request due. */
void resp_ack(struct urxe_qp *qp);
/* As resp_ack, after a duplicate; nothing if that ACK would name too old a PSN. */
void resp_ack_again(struct urxe_qp *qp);
/* A receive request was posted to the QP's own queue: if the peer waits for one, makes an ACK due
 * that tells of it. */
void resp_recv_posted(struct urxe_qp *qp);
/* Makes a NAK due. A NAK that is neither a sequence error nor RNR ends the connection. */
void resp_refuse(struct urxe_qp *qp, uint8_t syndrome);
/*
 * Ends the connection without a NAK (IBA 9.9.6.3, class J). Requests before the one that failed get
 * their answers.
 */
void resp_fail_without_nak(struct urxe_qp *qp);
/* The requester repeats requests: starts the timer of the ACK that follows the last repetition. */
void resp_came_again(struct urxe_qp *qp);

#endif
