/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Window of an RC requester: how many of its packets may be unacknowledged (docs/recovery.md).
 * Losses shrink the QP's own window. Without go-back-N, QPs whose peers are on other hosts share
 * another limit: the largest windows of two QPs, which fill half a receive ring on the way. Those
 * of all QPs would not fit.
 */
#ifndef URXE_REQUESTER_WINDOW_H
#define URXE_REQUESTER_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "objects/device.h"
#include "objects/qp.h"

/* Sets req.window to its maximum. The QP has no outstanding PSN. */
void window_init(struct urxe_qp *qp);
/* The caller has set the QP's path, or restored the QP: limits req.window to the path's maximum,
 * and sets req.remote. */
void window_path_changed(struct urxe_qp *qp);
/* The requester has found a loss: shrinks req.window, once for all losses of one window. */
void window_lost(struct urxe_qp *qp);
/* An acknowledgement has moved req.una: enlarges a window that losses have shrunk. */
void window_acked(struct urxe_qp *qp);

/*
 * Whether the window allows a request with so many PSNs: a READ has one for each response. A window
 * that has become smaller stops the requester only behind a packet that asks for an
 * acknowledgement. Behind another packet only a probe would end the wait.
 */
bool window_allows(const struct urxe_qp *qp, uint32_t span);

/* Whether the next packet of a retransmission may be sent. False only if payload references were
 * sent: in packets, their payloads may need more slots than an inbox has. */
bool window_allows_resend(const struct urxe_qp *qp);

/* This QP's part of the limit that QPs with req.remote share, packets: at least 4, unless
 * req.window is less; at most req.window. */
uint32_t window_share(const struct urxe_qp *qp);

/* The PSNs of `window` frames of `frame_span` PSNs each, at most dev->referred_packets. */
uint32_t window_in_frames(const struct urxe_qp *qp, uint32_t window, uint32_t frame_span);

/* Packets of this QP that may be unacknowledged now: req.window, or less if more than two QPs share
 * the limit. More may be outstanding, because they were sent before dev->unacked_qps grew. */
static inline uint32_t window_now(const struct urxe_qp *qp)
{
	return qp->req.remote && qp->dev->unacked_qps > 2 ? window_share(qp) : qp->req.window;
}

#endif
