/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requester/window.h"

#include <string.h>

#include "objects/device.h"
#include "objects/qp.h"

/* Least window after losses, packets. */
#define WINDOW_MIN 16
/* All QPs with peers on other hosts share so many largest windows: half of a receive ring. */
#define SHARED_WINDOWS 2
/* Least share of a QP, packets. With less, a QP would too often wait for an acknowledgement. */
#define SHARE_MIN 4

static bool is_fixed(const struct urxe_qp *qp)
{
	return qp->dev->attr.go_back_n;
}

static bool is_local(const struct urxe_qp *qp)
{
	const struct urxe_dev *dev = qp->dev;

	return !memcmp(qp->attr.path.dmac, dev->attr.mac, sizeof(dev->attr.mac));
}

static uint32_t max_window(const struct urxe_qp *qp)
{
	const struct urxe_dev *dev = qp->dev;
	uint32_t fit = dev->window_bytes / qp->mtu;

	if (is_local(qp))
		return dev->attr.max_packets;
	return fit < dev->window_packets ? fit : dev->window_packets;
}

void window_init(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	req->window = max_window(qp);
	req->window_may_grow = req->window_lossy = false;
	req->window_mark = req->psn;
	qp_update_unacked(qp);
}

void window_path_changed(struct urxe_qp *qp)
{
	const uint32_t max = max_window(qp);

	if (qp->req.window > max)
		qp->req.window = max;
	/* A QP that has sent references may have more packets outstanding than its window. */
	qp->req.frame_span = 0;
	qp->req.remote = qp->type == URXE_QPT_RC && !is_fixed(qp) && !is_local(qp);
	qp_update_unacked(qp);
}

uint32_t window_in_frames(const struct urxe_qp *qp, uint32_t window, uint32_t frame_span)
{
	uint32_t most = qp->dev->referred_packets;

	if (frame_span <= 1)
		return window;
	return window < most / frame_span ? window * frame_span : most;
}

bool window_allows(const struct urxe_qp *qp, uint32_t span)
{
	const struct requester *req = &qp->req;
	uint32_t wanted = requester_outstanding(req) + span;

	return req->psn == req->una ||
	       wanted <= window_in_frames(qp, window_now(qp), req->frame_span) ||
	       (!req->asks_ack && wanted <= window_in_frames(qp, max_window(qp), req->frame_span));
}

bool window_allows_resend(const struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;

	return urxe_psn_diff(req->resend.psn, req->una) < (int32_t)max_window(qp);
}

uint32_t window_share(const struct urxe_qp *qp)
{
	uint32_t share = SHARED_WINDOWS * max_window(qp) / qp->dev->unacked_qps;

	if (share < SHARE_MIN)
		share = SHARE_MIN;
	return share < qp->req.window ? share : qp->req.window;
}

/* Changes of the window: a loss shrinks it by an eighth, a window without a loss enlarges it by a
 * quarter. */

void window_lost(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t now = window_now(qp), less = now - now / 8;

	if (is_fixed(qp) || req->window_lossy)
		return;
	req->window_lossy = true;
	req->window_mark = req->psn;
	if (less < WINDOW_MIN)
		return;
	req->window = less;
	req->window_may_grow = true;
}

static void grow_window(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t max = max_window(qp), more = req->window + req->window / 4 + 1;

	req->window_may_grow = more < max;
	if (req->window < max)
		req->window = more < max ? more : max;
}

void window_acked(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	qp_update_unacked(qp);
	if (urxe_psn_diff(req->una, req->window_mark) < 0)
		return;
	if (!req->window_lossy && req->window_may_grow)
		grow_window(qp);
	req->window_lossy = false;
	req->window_mark = req->psn;
}
