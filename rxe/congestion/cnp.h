/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Congestion notification packets (IBA Annex A17.9): a receiver sends them for
 * packets that a switch has marked, no more than one per QP and interval.
 */
#ifndef URXE_CNP_H
#define URXE_CNP_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

/* Between two CNPs of a QP, where the owner names nothing: what NICs keep to, ns. */
#define CNP_DEFAULT_INTERVAL_NS 50000

/* The QP took a packet; if it was marked (RFC 3168: CE), its sender is to hear of it. */
void cnp_mark(struct urxe_qp *qp, const struct urxe_packet *p);
/* Writes the CNP that is due; false where it cannot be. */
bool cnp_output(struct urxe_qp *qp, struct urxe_frame *frame);

#endif
