/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of work requests: completions, flushes and the error state of a QP. Requester, responder
 * and the copy transport call this file. A completion that is lost fails the QP, and a QP that
 * fails completes its requests, so both stand in one file.
 */
#ifndef URXE_COMPLETION_H
#define URXE_COMPLETION_H

#include <stdbool.h>

#include <rxe/rxe.h>

/* --- Send requests. */

/* Completes the oldest request. */
void complete_send(struct urxe_qp *qp, enum urxe_wc_status status);
/* Completes the oldest requests as long as they are local ones that were executed. */
void complete_executed_sends(struct urxe_qp *qp);
/* Completes the oldest request in an error of the connection (IBA 9.9.2.4, class B). */
void fail_send(struct urxe_qp *qp, enum urxe_wc_status status);
/* Completes all requests of the queue with a flush error. */
void flush_sends(struct urxe_qp *qp);

/* --- The receive request that the responder fills. */

/* Takes a receive request, unless the QP holds one already; false if the queue is empty. */
bool hold_recv(struct urxe_qp *qp);
/* Completes the held request; fills in wc->wr_id, qp_ctx and qpn. */
void complete_recv(struct urxe_qp *qp, struct urxe_wc *wc);
void fail_recv(struct urxe_qp *qp, enum urxe_wc_status status);
/* Completes all receive requests of the QP's own queue with a flush error. */
void flush_recvs(struct urxe_qp *qp);

/* Adds a completion of the QP to the CQ; if it is lost, the QP fails. */
void complete_request(struct urxe_qp *qp, struct urxe_cq *cq, const struct urxe_wc *wc);

/* --- Error state. */

/* Enters the error state and flushes both queues; a NAK that is due is still sent. */
void qp_error(struct urxe_qp *qp);
/* As qp_error, and reports the asynchronous event. */
void qp_error_event(struct urxe_qp *qp, enum urxe_async event);

#endif
