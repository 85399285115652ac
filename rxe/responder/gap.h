/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A gap: the responder has received requests behind a missing one (IBA volume 1, 9.7.4.1.2, ghost
 * PSNs; docs/recovery.md). This file keeps them and decides when to send the sequence NAK.
 */
#ifndef URXE_GAP_H
#define URXE_GAP_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>

#include "objects/qp_state.h"
#include "objects/reorder.h"

struct urxe_qp;

/* Default time before a gap gets its NAK: the missing packet may only be reordered; ns. */
#define GAP_REORDER_NS 5000

void gap_init(struct gap *gap);
/* A request arrived that is `ahead` PSNs behind the expected one. */
void gap_packet(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t ahead);
/* The expected request arrived while the QP was in_gap. */
void gap_filled(struct urxe_qp *qp);
/* The kept request with the expected PSN, to be freed with reorder_give_back; NULL: it is missing.
 */
struct reorder_packet *gap_next(struct urxe_qp *qp);
/* The gap timer has fallen due: sends the NAK. */
void gap_time_out(struct urxe_qp *qp);

#endif
