/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * End-to-end credits on the requester's side (IBA volume 1, 9.7.7.2): the number of messages for
 * which the peer has receive requests.
 *
 * The limit here counts only messages that use up a receive request, from the newest acknowledged
 * one on. The specification's limit, MSN plus credits, counts all messages: it never allows more.
 */
#ifndef URXE_REQUESTER_E2E_CREDITS_H
#define URXE_REQUESTER_E2E_CREDITS_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

struct send_wqe;

/* An acknowledgement of new requests had this credit code: sets or raises the limit, or removes it
 * if the code is AETH_CREDITS_INVALID. */
void credit_take(struct urxe_qp *qp, uint8_t code);
/* A repeated ACK had this credit code; true if the code grants more credits. `refused`: an RNR NAK
 * has come before, which shows that the peer limits a requester that has got no credits yet. */
bool credit_take_more(struct urxe_qp *qp, uint8_t code, bool refused);
/*
 * Whether the next packet of the request may be sent. Without a credit, the requester sends the
 * first packet when all earlier ones are acknowledged: the peer accepts it, or answers with an RNR
 * NAK. The other packets follow after its acknowledgement. So a WRITE with immediate of several
 * packets may get its RNR NAK at the last one. If the newest packet has not asked for an
 * acknowledgement, because the peer's first credits came after it, the requester sends one more
 * packet without a credit. That packet asks for an acknowledgement; else only a probe would end the
 * wait.
 */
bool credit_allows(const struct urxe_qp *qp, const struct send_wqe *wqe);
/* Whether the requester, for lack of credits, has to stop after this packet of request `cur`;
 * `last`: the packet is the request's last one. */
bool credit_stops(const struct urxe_qp *qp, bool last);

#endif
