/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "device/rx_prefetch.h"

#include <stddef.h>

#include <rxe/fetch.h>
#include <rxe/rxe.h>

#include "objects/device.h"
#include "objects/qp.h"
#include "wire/header_prediction.h"

/* Of fewer, what a frame needs comes from a cache in less time than it takes to ask for it. Where
 * that ends was measured, with 1 MiB of second-level cache a core. */
#define FEW_QPS 512

bool urxe_ahead_pays(const struct urxe_dev *dev)
{
	return dev->qps.used > FEW_QPS;
}

/* The lines of struct urxe_qp that any packet needs. */
static void fetch_common(const struct urxe_qp *qp)
{
	urxe_fetch(qp, offsetof(struct urxe_qp, req.recv_seq));
	urxe_fetch(&qp->resp, 1);
	urxe_fetch(&qp->timer, 1);
}

static void fetch_requester(const struct urxe_qp *qp)
{
	urxe_fetch(&qp->req.recv_seq,
		   offsetof(struct requester, answered) - offsetof(struct requester, recv_seq));
}

void ahead_fetch_requester(const struct urxe_qp *qp)
{
	fetch_common(qp);
	fetch_requester(qp);
	urxe_fetch(&qp->header, 1);
	urxe_fetch(&qp->counters.event[URXE_EVENT_DIRECT_REQUESTS], 1);
}

/* A request is executed, and acknowledged soon; a response completes requests. */
static void fetch_receiver(const struct urxe_qp *qp, bool is_response)
{
	fetch_common(qp);
	urxe_fetch(&qp->predict, 1);
	if (is_response)
		fetch_requester(qp);
	else
		urxe_fetch(&qp->header, 1);
}

static void fetch_owner(const struct urxe_qp *qp, enum urxe_fetch_part part)
{
	const struct urxe_ops *ops = qp->dev->attr.ops;

	if (ops->fetch)
		ops->fetch(qp->ctx, part);
}

static void fetch_queues(const struct urxe_qp *qp, bool is_response)
{
	if (is_response) {
		urxe_fetch(sq_wqe(&qp->sq, qp->sq.tail), sizeof(struct send_wqe));
	} else {
		urxe_fetch(qp->rq, 1);
	}
	fetch_owner(qp, is_response ? URXE_FETCH_SENDS : URXE_FETCH_RECEIVES);
}

struct ahead ahead_burst(struct urxe_dev *dev, const struct urxe_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		predict_fetch(dev, &frames[i]);
	return (struct ahead){.dev = dev, .frames = frames, .n = n};
}

/* That of frame i, until frame i + AHEAD_FRAMES takes its place. */
static struct urxe_qp **qp_of(struct ahead *ahead, uint32_t i)
{
	return &ahead->qps[i % AHEAD_FRAMES];
}

/* It is for the same QP as the one before it, for which all was fetched. */
static bool goes_on(struct ahead *ahead, uint32_t i)
{
	return i && *qp_of(ahead, i) == *qp_of(ahead, i - 1);
}

static void find_qp(struct ahead *ahead, uint32_t i)
{
	struct urxe_qp *qp = predict_qp(ahead->dev, &ahead->frames[i]);

	*qp_of(ahead, i) = qp;
	if (qp && !goes_on(ahead, i))
		fetch_receiver(qp, predict_is_response(&ahead->frames[i]));
}

/* Those of frames in between are the ones before. */
static void fetch_requests(struct ahead *ahead, uint32_t i)
{
	const struct urxe_qp *qp = *qp_of(ahead, i);
	bool is_response = predict_is_response(&ahead->frames[i]), on = goes_on(ahead, i);

	if (!is_response)
		rq_fetch(qp->rq, on ? AHEAD_STEP : 0);
	if (!on)
		fetch_owner(qp, is_response ? URXE_FETCH_SEND_RING : URXE_FETCH_RECEIVE_RING);
}

/* Before the first frames i goes below 0, and that is beyond the last one, too. */
void ahead_fetch(struct ahead *ahead, uint32_t i)
{
	uint32_t n = ahead->n;

	if (i < n)
		find_qp(ahead, i);
	i -= AHEAD_STEP;
	if (i < n && *qp_of(ahead, i) && !goes_on(ahead, i))
		fetch_queues(*qp_of(ahead, i), predict_is_response(&ahead->frames[i]));
	i -= AHEAD_STEP;
	if (i < n && *qp_of(ahead, i))
		fetch_requests(ahead, i);
}
