/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Access to the memory of the held receive request (objects/completion.h: hold_recv). */
#ifndef URXE_RESPONDER_HELD_RECV_H
#define URXE_RESPONDER_HELD_RECV_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* Lists the contiguous parts of `len` bytes of the held request's memory, from `offset` on, and
 * returns their number. 0: there are too many, a key does not grant the write, or memory is
 * unmapped. */
uint32_t resp_extents(const struct urxe_qp *qp, uint32_t offset, uint32_t len,
		      struct urxe_extent extents[URXE_REFERENCE_PIECES]);
/* Copies into the segments of the held request, from `offset` on. False: a key does not grant the
 * write, or memory is unmapped; a part may have been copied. */
bool resp_scatter(struct urxe_qp *qp, uint32_t offset, const uint8_t *src, uint32_t len);

#endif
