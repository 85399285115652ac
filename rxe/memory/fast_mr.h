/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fast registration (IBA volume 1, 10.6.3.4): send requests of a QP register and invalidate a
 * region. This header also has the invalidation of any key, of such a region or of a window, by a
 * request of the QP or of its peer.
 */
#ifndef URXE_MEMORY_FAST_MR_H
#define URXE_MEMORY_FAST_MR_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

#include "memory/mr.h"

/* As urxe_fast_mr_alloc, but with this first key. No key with the same upper 24 bits may be in use.
 */
int fast_mr_create(struct urxe_dev *dev, uint32_t pd, uint32_t max_extents, uint32_t key,
		   struct urxe_fast_mr **fast);
/* Executes a REG_MR request of the QP. False: a rule forbids it, and nothing has changed. */
bool fast_mr_register(struct urxe_qp *qp, const struct urxe_fast_reg *request);
/*
 * Withdraws the key's rights from the copy transport, before a request invalidates the key. False:
 * a peer still copies, by this or another key, so the request has to wait, and the caller calls
 * this function again later.
 */
bool key_release(struct urxe_dev *dev, uint32_t key);
/*
 * Executes an invalidation by the QP or its peer. False: the key is neither that of a type 2 window
 * that the QP has bound, nor that of a region of fast registration in the QP's protection domain
 * (IBA 10.6.5); or a window is bound to the region.
 */
bool key_invalidate(struct urxe_qp *qp, uint32_t key);

#endif
