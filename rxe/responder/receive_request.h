/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The receive request that the responder fills. */
#ifndef URXE_RESP_RECV_H
#define URXE_RESP_RECV_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* The addresses of bytes of the held request; 0: not all of its segments are in one piece. */
uint32_t resp_extents(const struct urxe_qp *qp, uint32_t offset, uint32_t len,
		      struct urxe_extent extents[URXE_MAX_SGE]);
/* Copies into the held request's segments; false where a key does not grant it. */
bool resp_scatter(struct urxe_qp *qp, uint32_t offset, const uint8_t *src, uint32_t len);

#endif
