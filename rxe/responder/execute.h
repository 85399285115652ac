/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Executes the request packet with the expected PSN. responder.c is the caller. */
#ifndef URXE_RESPONDER_EXECUTE_H
#define URXE_RESPONDER_EXECUTE_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

/* Not a syndrome: the packet was dropped and counted, and gets no answer. */
#define RESP_DROPPED 0xff
/*
 * Not a syndrome, nor enum resp_refusal. The request ends rights that peers may still use in a
 * copy, so the request cannot be executed yet. The caller keeps it and tries again, or drops and
 * counts it.
 */
#define RESP_POSTPONED 0xfb

/* Returns 0 (the packet was executed), RESP_DROPPED, RESP_POSTPONED, or the reason of a refusal. If
 * the service is reliable, the caller passes this reason to resp_refuse(). `flags`: enum
 * urxe_opcode_flag of the opcode. */
uint8_t resp_execute(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags);
/* Whether the QP's access rights, and the packet's key and range, permit the READ. */
bool resp_may_read(const struct urxe_qp *qp, const struct urxe_packet *p);

#endif
