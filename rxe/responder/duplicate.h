/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests of a reliable connection that the responder has executed before (IBA 9.7.5.1). For
 * responder.c. */
#ifndef URXE_RESPONDER_DUPLICATE_H
#define URXE_RESPONDER_DUPLICATE_H

#include <stdint.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

/* Repeats the answer of a request with an old PSN, without a second execution; drops the packet if
 * the answer is not known any more. `flags`: of the opcode. */
void resp_duplicate(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags);

#endif
