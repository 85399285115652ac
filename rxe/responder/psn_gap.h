/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A PSN gap: the responder has received requests behind a missing one (IBA volume 1, 9.7.4.1.2,
 * ghost PSNs; docs/recovery.md). These functions keep such requests, and an expected one that has
 * to wait (RESP_POSTPONED), and decide when the responder sends the sequence NAK. responder.c is
 * the caller.
 */
#ifndef URXE_RESPONDER_PSN_GAP_H
#define URXE_RESPONDER_PSN_GAP_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>

#include "objects/out_of_order.h"
#include "objects/qp_state.h"

struct urxe_qp;

/* Default time before the NAK of a gap, ns: the missing packet may be late rather than lost. */
#define PSN_GAP_REORDER_NS 5000

void psn_gap_init(struct psn_gap *gap);
/* A request arrived that is `ahead` PSNs after the expected one: keeps a copy or drops it, and
 * sends the NAK of the gap or starts the timer for it. */
void psn_gap_early_packet(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t ahead);
/* The expected request arrived while the QP was in_gap: stops the gap's timer, and learns
 * repair_ns. in_gap stays set while later requests are kept, or dropped ones were not named by a
 * NAK. */
void psn_gap_filled(struct urxe_qp *qp);
/* Takes the kept request with the expected PSN; the caller passes it to out_of_order_give_back.
 * NULL: the request is missing. If later ones are kept, or were dropped (psn_gap.dropped), they are
 * behind the next gap, whose timer starts. */
struct out_of_order_packet *psn_gap_next_kept(struct urxe_qp *qp);
/* Keeps a copy of the expected request, and starts the gap timer (COPIES_AGAIN_NS). When the timer
 * falls due, the caller takes the request by psn_gap_next_kept. False: the payload is a reference,
 * or no buffer is free. */
bool psn_gap_keep_expected(struct urxe_qp *qp, const struct urxe_packet *p);
/* As psn_gap_keep_expected, for a request that the caller has taken by psn_gap_next_kept. */
void psn_gap_put_back(struct urxe_qp *qp, struct out_of_order_packet *kept);
/* Whether the expected request is kept. */
bool psn_gap_has_expected(const struct urxe_qp *qp);
/*
 * The device was absent (rxe/announcement.h), or the peer has answered only a repetition: the
 * expected request and the responder's last responses may be lost. Without a gap, starts the gap
 * timer for 3 ms plus `delay` ns. If no request arrives, psn_gap_time_out calls
 * resp_repeat_and_nak as soon as no response is due any more. If still no request arrives, it
 * calls that function again 12 ms later. If a gap's NAK was already repeated for the last time,
 * sends this NAK again at once. Does nothing while a gap's timer runs, while another NAK is due or
 * was sent, and in RESP_UNKNOWN.
 */
void psn_gap_suspect(struct urxe_qp *qp, uint64_t delay);
/* The gap timer has fallen due, and the expected request is not kept: sends the gap's NAK, or calls
 * resp_repeat_and_nak if psn_gap_suspect started the timer. */
void psn_gap_time_out(struct urxe_qp *qp);

#endif
