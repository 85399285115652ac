/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The error state of a QP, and its event Last WQE Reached. Requester, responder, device/ and
 * offload/ call this file; completion.c calls it when a completion is lost.
 */
#ifndef URXE_OBJECTS_QP_ERROR_H
#define URXE_OBJECTS_QP_ERROR_H

#include <rxe/rxe.h>

/*
 * Enters the error state, unless the QP is in it: flushes both queues. A NAK that is due, and the
 * responses before it, are still sent.
 */
void qp_error(struct urxe_qp *qp);
/*
 * For a QP in the error state, after its flush: tells the owner once that the QP takes no more
 * requests of its SRQ (IBA 11.6.3, Last WQE Reached). No effect on a QP without SRQ, or on an
 * offloaded one: the HCA reports the event when it has taken its last receive.
 */
void tell_last_wqe(struct urxe_qp *qp);
/* As qp_error, and reports the asynchronous event, unless the QP is in the error state already. */
void qp_error_event(struct urxe_qp *qp, enum urxe_async event);

#endif
