/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Executes the request packet with the expected PSN. responder.c is the caller. */
#ifndef URXE_RESP_EXEC_H
#define URXE_RESP_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

/* Not a syndrome: the packet was dropped and counted, and gets no answer. */
#define RESP_DROPPED 0xff

/* Returns 0, RESP_DROPPED, or the AETH syndrome of the NAK that a reliable service sends. */
uint8_t resp_execute(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags);
/* Whether queue pair and region permit the READ. */
bool resp_may_read(const struct urxe_qp *qp, const struct urxe_packet *p);

#endif
