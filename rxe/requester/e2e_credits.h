/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * End-to-end credits as the requester takes them (IBA volume 1, 9.7.7.2): how many
 * messages that use up a receive request the peer is ready for.
 *
 * The limit counts these messages alone, from the newest that was acknowledged on.
 * The specification's, MSN plus credits, counts all messages, and so lets no more through.
 */
#ifndef URXE_CREDIT_H
#define URXE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

struct send_wqe;

/* An acknowledgement of something brought a credit code. */
void credit_take(struct urxe_qp *qp, uint8_t code);
/* An ACK said again what was acknowledged last; whether it promises more. */
bool credit_take_more(struct urxe_qp *qp, uint8_t code);
/*
 * Whether the next packet of the request may go. Without a credit, one packet of it
 * goes once all before it is acknowledged, and asks: a peer that has a receive by then
 * takes it, another answers with an RNR NAK. The rest follows when it was taken.
 */
bool credit_allows(const struct urxe_qp *qp, const struct send_wqe *wqe);
/* Whether the sender stops behind the packet that it sends of request `cur`, its last or not. */
bool credit_stops(const struct urxe_qp *qp, bool last);

#endif
