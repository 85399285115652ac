/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of work requests: completions, flushes, the error state of a QP, and its event
 * LAST_WQE_REACHED. Requester, responder and the copy transport call these functions. A completion
 * that is lost fails the QP, and a QP that fails completes its requests.
 */
#ifndef URXE_OBJECTS_COMPLETION_H
#define URXE_OBJECTS_COMPLETION_H

#include <stdbool.h>

#include <rxe/rxe.h>

/* --- Send requests. */

/* Takes the oldest request out of the send queue. A success that is not signaled adds no
 * completion; all else adds one to the send CQ. */
void complete_send(struct urxe_qp *qp, enum urxe_wc_status status);
/* Completes with success the oldest requests that were executed without packets
 * (send_wqe.executed), up to the first other request. */
void complete_executed_sends(struct urxe_qp *qp);
/* Completes the oldest request with an error. RC: then calls qp_error (IBA 9.9.2.4, class B). UC
 * and UD: the QP enters SQE and its other send requests are flushed; the receive queue goes on. */
void fail_send(struct urxe_qp *qp, enum urxe_wc_status status);
/* Completes all send requests with a flush error. Does nothing while the HCA has some of them: the
 * HCA completes these first, and then the engine calls this function again. */
void flush_sends(struct urxe_qp *qp);

/* --- The receive request that the responder fills. */

/* The request that hold_recv() would give; NULL: none. */
const struct recv_wqe *next_recv(struct urxe_qp *qp);
/* Takes a receive request from the queue into qp->resp.wqe, unless one is there already. False: the
 * queue is empty, also after urxe_ops.refill. */
bool hold_recv(struct urxe_qp *qp);
/* Completes the held request; fills in wc->wr_id, qp_ctx and qpn. */
void complete_recv(struct urxe_qp *qp, struct urxe_wc *wc);
/* Completes the held request with an error. Does not change the QP's state. */
void fail_recv(struct urxe_qp *qp, enum urxe_wc_status status);
/* Completes the held request, and all requests of the QP's own queue, with a flush error. Requests
 * in a SRQ stay there. Does nothing while the HCA has requests of the QP's own queue. */
void flush_recvs(struct urxe_qp *qp);

/* Adds a completion of the QP to the CQ. If the CQ is full, the completion is lost, and all QPs of
 * the CQ enter the error state (cq_overrun). If the CQ was overrun before, the completion is lost,
 * and this QP enters the error state. */
void complete_request(struct urxe_qp *qp, struct urxe_cq *cq, const struct urxe_wc *wc);

/* --- Error state. */

/*
 * Enters the error state, unless the QP is in it: flushes both queues. Responses, ACKs and NAKs
 * that are due are still sent.
 */
void qp_error(struct urxe_qp *qp);
/*
 * For a QP in the error state, after its flush: reports once that the QP takes no more requests of
 * its SRQ (IBA 11.6.3, Last WQE Reached). No effect on a QP without SRQ, or on an
 * offloaded one: the HCA reports the event when it has taken its last receive.
 */
void tell_last_wqe(struct urxe_qp *qp);
/* As qp_error, and reports the asynchronous event, unless the QP is in the error state already. */
void qp_error_event(struct urxe_qp *qp, enum urxe_async event);

#endif
