/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows (IBA volume 1, 10.6.7): keys for a part of a region. Send requests bind and
 * invalidate them.
 *
 * A window keeps the upper 24 bits of its key and owns all 256 keys with these bits. So a bind,
 * which changes the low 8 bits, never collides with the key of another object.
 */
#ifndef URXE_MEMORY_MW_H
#define URXE_MEMORY_MW_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

#include "memory/mr.h"

/* The access flags of a window: the rights that it grants to peers, and ZERO_BASED. */
#define MW_RIGHTS                                                                         \
	(URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_ATOMIC | URXE_ACCESS_REMOTE_READ | \
	 URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT | URXE_ACCESS_ZERO_BASED)

/*
 * Whether the region's PD and rights permit to bind the window to it with these rights (IBA C10-72
 * to C10-75); false if mr is NULL. A flush right needs the same right of the region. mw_bind checks
 * the window's own rules and the address range.
 */
bool mw_region_permits(const struct urxe_mw *mw, const struct urxe_mr *mr, uint32_t access);
/*
 * Withdraws the key's rights from the copy transport, before a request binds or invalidates its
 * window. False: a peer still copies from or to this device, by any key; the caller calls this
 * again later. True also if no bound window has the key.
 */
bool mw_withdraw_key(struct urxe_dev *dev, uint32_t key);
/* Executes a bind request of the QP. False: a rule forbids it, and the window keeps its
 * binding. */
bool mw_bind(struct urxe_qp *qp, const struct urxe_mw_bind *bind);
/*
 * Executes an invalidation by the QP or its peer. False: the key is not that of a type 2 window
 * that the QP has bound. Type 1 windows, unbound windows and regions cannot be invalidated by a
 * request (IBA 10.6.5).
 */
bool mw_invalidate(struct urxe_qp *qp, uint32_t key);
/* Publishes the rights of a window for the copy transport, if it is bound and its region is one
 * mapped piece. */
void mw_publish(const struct urxe_mw *mw);
/* Unbinds the type 2 windows of a QP that is destroyed. */
void mw_unbind_all(struct urxe_qp *qp);

#endif
