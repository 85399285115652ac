/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests of a reliable connection that the responder has executed before (IBA 9.7.5.1).
 * responder.c is the caller. */
#ifndef URXE_RESPONDER_DUPLICATE_H
#define URXE_RESPONDER_DUPLICATE_H

#include <stdint.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

/*
 * Answers a request with an old PSN, without a second execution. A READ: sends the data again. An
 * atomic operation, FLUSH or ATOMIC WRITE: sends the first result again. A SEND or WRITE: sends an
 * ACK if the packet asks for it, or later (resp_start_ack_timer). Drops a request whose result is
 * no longer kept, or that differs from the original. `flags`: enum urxe_opcode_flag of the opcode.
 */
void resp_duplicate(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags);

#endif
