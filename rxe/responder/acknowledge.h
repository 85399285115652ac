/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which acknowledgement the responder has to send next; resp_output.c sends it.
 * verbs/poll/delayed_ack.h postpones ACKs. */
#ifndef URXE_RESPONDER_ACKNOWLEDGE_H
#define URXE_RESPONDER_ACKNOWLEDGE_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* Whether a SEND or WRITE has begun whose last packet has not been executed. */
bool resp_is_in_message(const struct urxe_qp *qp);
/* Makes an ACK of the newest executed request due, and schedules the QP: urxe_output sends it. */
void resp_ack(struct urxe_qp *qp);
/* As resp_ack, after a duplicate. Does nothing if the peer would take the ACK's PSN, which is very
 * old, for a future one. */
void resp_ack_again(struct urxe_qp *qp);
/* A receive request was posted to the QP's own queue: if the last ACK told the peer of 0 credits,
 * or an RNR NAK was due since, makes an ACK due that tells of the request. Not with go-back-N. */
void resp_recv_posted(struct urxe_qp *qp);
/* Refusals that need more than a syndrome: the NAK has another asynchronous event than its syndrome
 * usually has, or none. */
enum resp_refusal {
	/* AETH_NAK_INVALID_REQUEST with the event QP_ACCESS_ERR (IBA 11.6.3.2): an atomic or ATOMIC
	 * WRITE is not aligned, a READ, WRITE or ATOMIC WRITE has a wrong length, or too many
	 * READs, atomics, ATOMIC WRITEs and FLUSHes are outstanding. */
	RESP_ACCESS_VIOLATION = 0xfe,
	/* These have no event, because the receive request has completed with the error: */
	RESP_RECV_TOO_SHORT = 0xfd, /* AETH_NAK_INVALID_REQUEST */
	RESP_RECV_FAILED = 0xfc,    /* AETH_NAK_REMOTE_OP */
};
/* Makes a NAK of the expected PSN due. `refusal`: the NAK's syndrome, or enum resp_refusal. Unless
 * the syndrome is a sequence error or RNR, the QP enters the error state. */
void resp_refuse(struct urxe_qp *qp, uint8_t refusal);
/* A request failed, and the peer gets no NAK for it (IBA 9.9.6.3, class J): the QP enters the error
 * state. Answers to earlier requests are still sent. */
void resp_fail_without_nak(struct urxe_qp *qp);
/*
 * Makes an ACK due, and then a sequence NAK of the expected PSN, although no later request has
 * arrived. The ACK replaces one that may be lost; the NAK asks for requests that may be lost. After
 * Linux' rxe has repeated requests by itself, it heeds the NAK only if an ACK of something new
 * comes before. If a message is in progress and its newest packet is not acknowledged, the ACK ends
 * before that packet, and the NAK asks for the packet. Also repeats a response that may be lost
 * (resource_repeat_newest). A peer that has nothing outstanding ignores these packets.
 */
void resp_repeat_and_nak(struct urxe_qp *qp);
/* The requester repeats requests: starts the timer of the ACK that follows the last repetition
 * (resp_ack_at_last). No effect with go-back-N. */
void resp_start_ack_timer(struct urxe_qp *qp);
/*
 * The timer of resp_start_ack_timer has fired, or the QP ends before: makes the ACK due. In the
 * middle of a message the ACK is of all executed packets but the newest. There is none if its PSN
 * would be that of a READ or an atomic, or if a repeated request was the last to arrive.
 */
void resp_ack_at_last(struct urxe_qp *qp);

#endif
