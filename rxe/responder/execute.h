/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Execution of the request packet that the responder expects. */
#ifndef URXE_RESP_EXEC_H
#define URXE_RESP_EXEC_H

#include <stdint.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

/* No syndrome: the packet is dropped and counted, as if it was lost. */
#define RESP_DROPPED 0xff

/* Returns 0, or the AETH syndrome that a reliable service answers with. */
uint8_t resp_execute(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags);

#endif
