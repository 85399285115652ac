/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Window of an RC requester: how many of its packets may be unacknowledged (docs/recovery.md).
 * Losses shrink the QP's own window. QPs whose peers are on other hosts share another limit: each
 * QP alone would fit into the receive rings on the way, but not all of them together.
 */
#ifndef URXE_WINDOW_H
#define URXE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "objects/device.h"
#include "objects/qp.h"

/* Sets the largest window. No PSN is outstanding. */
void window_init(struct urxe_qp *qp);
/* The QP's path was set: whether its peer is on another host is known now. */
void window_set_path(struct urxe_qp *qp);
/* A packet was lost. Losses of one window of packets shrink it once. */
void window_lost(struct urxe_qp *qp);
/* An acknowledgement has moved req.una. */
void window_acked(struct urxe_qp *qp);

/* Packets of this QP that may be unacknowledged while dev->unacked_qps is more than two. */
uint32_t window_share(const struct urxe_qp *qp);

/* Packets of this QP that may be unacknowledged now. Packets that were sent before another QP
 * joined may be more. */
static inline uint32_t window_now(const struct urxe_qp *qp)
{
	return qp->req.remote && qp->dev->unacked_qps > 2 ? window_share(qp) : qp->req.window;
}

#endif
