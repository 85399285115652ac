/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows (IBA volume 1, 10.6.7): keys for a part of a region, which send
 * requests bind, rebind and invalidate.
 *
 * A window keeps the upper 24 bits of its key for life and owns all 256 keys
 * with them, so a binding, which changes the low 8, can meet no other's key.
 */
#ifndef URXE_MW_H
#define URXE_MW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#include "objects/mr.h"

/*
 * Before a request binds or invalidates the window with that key: ends the direct transport's use
 * of the key. False: a peer still copies by it, so the request has to wait.
 */
bool mw_release_key(struct urxe_dev *dev, uint32_t key);
/* Executes a bind request of the QP. False where a rule forbids it; then nothing has changed. */
bool mw_bind(struct urxe_qp *qp, const struct urxe_mw_bind *bind);
/*
 * Executes an invalidation that the QP or its peer asks for. False where the key
 * is not that of a type 2 window that the QP has bound: a type 1 window, an
 * unbound one and a region are not invalidated so (IBA 10.6.5).
 */
bool mw_invalidate(struct urxe_qp *qp, uint32_t key);
/* Publishes the rights of a bound window for the direct transport. */
void mw_publish(const struct urxe_mw *mw);
/* Unbinds the type 2 windows of a QP that goes away. */
void mw_release(struct urxe_qp *qp);

#endif
