/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Congestion notification packets (IBA Annex A17.9): a receiver answers packets that a switch has
 * marked (CE) with CNPs, at most one per QP and interval. */
#ifndef URXE_CONGESTION_CNP_H
#define URXE_CONGESTION_CNP_H

#include <stdbool.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

/* Default interval between two CNPs of a QP, as NICs have it, ns. */
#define CNP_DEFAULT_INTERVAL_NS 50000
/* Most CNPs of a device per interval: congestion on many QPs must not cause a flood of CNPs. */
#define CNP_MAX_PER_INTERVAL 256

/* The QP has accepted a packet: makes a CNP due if the packet is marked (RFC 3168: CE), unless the
 * limits above or URXE_CONGESTION_NONE forbid it. Multicast datagrams and CNPs get none. */
void cnp_mark(struct urxe_qp *qp, const struct urxe_packet *p);
/* Writes the CNP that is due into the frame. False: the device's GID table no longer has the CNP's
 * source GID, and the CNP is dropped. */
bool cnp_output(struct urxe_qp *qp, struct urxe_frame *frame);

#endif
