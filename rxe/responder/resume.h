/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The responder of a connection that an HCA has executed before (device/take_over.c).
 * ibv_query_qp(3) tells the HCA's expected PSN, but not whether a message starts there. If the peer
 * may only SEND, that follows from the completions: the packets since the last completed message
 * are those of the message in progress. Else the engine knows neither the address of a message in
 * progress nor the bytes that have arrived. Then resp.message is RESP_UNKNOWN.
 *
 * The peer does not know of the change, and repeats its requests after its ACK timeout, from the
 * oldest unacknowledged request on. So the first packet of the message in progress comes again,
 * with its address. For a WRITE this packet has the length: if the WRITE ends at the expected PSN
 * or later, it is the message in progress, and its execution starts anew. A SEND is placed again
 * into the oldest receive request. The SEND is the message in progress if it continues at the
 * expected PSN.
 *
 * Until the responder has found the message in progress, it sends no NAK, and acknowledges only
 * messages that end before the expected PSN: after an acknowledgement in the middle of a message
 * the peer would never repeat the message's first packet. If the HCA has sent such an
 * acknowledgement, the connection cannot go on: the peer's retries end in IBV_WC_RETRY_EXC_ERR.
 */
#ifndef URXE_RESPONDER_RESUME_H
#define URXE_RESPONDER_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

/* The engine becomes the responder of a connection. resp.psn: PSN of the next message, as counted
 * by completions; `psn`: the HCA's expected PSN; `counted`: the peer may only SEND. */
void resume_start(struct urxe_qp *qp, uint32_t psn, bool counted);
/* A request arrives while resp.message is RESP_UNKNOWN. True: the caller executes the request as
 * usual. False: this function has answered or dropped it. */
bool resume_request(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags);
/* Answers a READ that the HCA has executed before. False: the HCA has not executed the request, the
 * peer may not read there, or no responder resource is free. */
bool resume_read(struct urxe_qp *qp, const struct urxe_packet *p);

#endif
