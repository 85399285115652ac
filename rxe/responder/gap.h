/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A responder's gap: requests came whose turn is not yet, since some before them
 * lack (IBA volume 1, 9.7.4.1.2, ghost PSNs; docs/recovery.md).
 */
#ifndef URXE_GAP_H
#define URXE_GAP_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>

#include "objects/qp_state.h"
#include "objects/reorder.h"

struct urxe_qp;

/* A gap is taken for reordering this long, where the owner says nothing. */
#define GAP_REORDER_NS 5000

void gap_init(struct gap *gap);
/* A request came `ahead` PSNs before its turn. */
void gap_packet(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t ahead);
/* The expected request is here, of a QP that is in_gap. */
void gap_filled(struct urxe_qp *qp);
/* The kept request whose turn it is, to be given back with reorder_give_back; NULL: it lacks. */
struct reorder_packet *gap_next(struct urxe_qp *qp);
/* The QP's gap timer has fallen due. */
void gap_timer(struct urxe_qp *qp);

#endif
