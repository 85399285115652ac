/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Execution of the memory placement extensions: FLUSH and ATOMIC WRITE (Annex A19). */
#ifndef URXE_RESPONDER_FLUSH_ATOMIC_WRITE_H
#define URXE_RESPONDER_FLUSH_ATOMIC_WRITE_H

#include <stdint.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

/* The rights (enum urxe_access) that a FLUSH needs, by its placement types. */
uint32_t place_flush_access(const struct urxe_packet *p);
/* Each returns 0, or the reason of a refusal for resp_refuse(). */
uint8_t place_flush(struct urxe_qp *qp, const struct urxe_packet *p);
uint8_t place_atomic_write(struct urxe_qp *qp, const struct urxe_packet *p);

#endif
