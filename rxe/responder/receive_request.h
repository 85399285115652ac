/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The receive request that the responder fills. */
#ifndef URXE_RESP_RECV_H
#define URXE_RESP_RECV_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* Takes a receive request unless one is held already; false where there is none. */
bool resp_want_recv(struct urxe_qp *qp);
/* The addresses of bytes of the held request; 0: not all of its segments are in one piece. */
uint32_t resp_extents(const struct urxe_qp *qp, uint32_t offset, uint32_t len,
		      struct urxe_extent extents[URXE_MAX_SGE]);
/* Copies into the held request's segments; false where a key does not grant it. */
bool resp_scatter(struct urxe_qp *qp, uint32_t offset, const uint8_t *src, uint32_t len);
/* Completes the held request; wc says all but whose it is. */
void resp_complete_recv(struct urxe_qp *qp, struct urxe_wc *wc);
void resp_fail_recv(struct urxe_qp *qp, enum urxe_wc_status status);
/* Ends every receive request of a QP's own queue with a flush error. */
void resp_flush(struct urxe_qp *qp);

#endif
