/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_event.h"

#include "hca_device.h"
#include "objects/hca_cq.h"
#include "objects/hca_qp.h"
#include "objects/hca_srq.h"

/* Limit for one call: an HCA that raises events without end must not keep the thread. */
#define EVENTS_MAX 64
/* Calls of hca_poll() before an asynchronous event, so that peers that send without end do not
 * delay the event for ever. */
#define POLLS_MAX 512

/* Passes completion events to the engine, and before each event completions: the program that the
 * event wakes must find some. */
void hca_handle_comp_events(struct hca *hca)
{
	struct ibv_cq *ibv;
	void *cq;

	for (int i = 0; i < EVENTS_MAX; i++) {
		if (hca->verbs->get_cq_event(hca->channel, &ibv, &cq))
			return;
		hca->verbs->ack_cq_events(ibv, 1);
		hca_poll(hca);
		hca_cq_event(cq);
	}
}

/* Call it when the HCA has dropped completions of the CQ (overrun). No queue pair of the CQ can go
 * on then, or flush its requests: tells the engine, which fails them and flushes the requests. */
static void fail_cq(struct hca *hca, struct hca_cq *cq)
{
	struct hca_qp *qp;

	cq->overrun = true;
	LIST_FOREACH(qp, &hca->qps, link)
	qp->ends_at_once |= qp->send_cq == cq || qp->recv_cq == cq;
	/* NULL: the engine has destroyed the CQ already. */
	if (cq->cq)
		urxe_offload_cq_lost(cq->cq);
}

/* The object of an asynchronous event: a queue pair, by its QPN, a CQ or an SRQ. */
struct subject {
	uint32_t qpn;
	struct hca_cq *cq;
	struct hca_srq *srq;
};

/* Returns the object of the event; all members are 0 if the event has no object. Call it before the
 * event is acknowledged: until then the object exists, because its destruction waits for the
 * acknowledgement. */
static struct subject find_subject(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return (struct subject){.qpn = event->element.qp->qp_num};
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return (struct subject){.srq = event->element.srq->srq_context};
	case IBV_EVENT_CQ_ERR: return (struct subject){.cq = event->element.cq->cq_context};
	default: return (struct subject){0};
	}
}

static void handle_event(struct hca *hca, enum ibv_event_type type, const struct subject *of)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		urxe_offload_qp_event(hca->dev, of->qpn, (enum urxe_async)type);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		/* NULL: the engine has destroyed the SRQ already. */
		if (of->srq->srq)
			urxe_offload_srq_event(of->srq->srq, (enum urxe_async)type);
		break;
	case IBV_EVENT_CQ_ERR: fail_cq(hca, of->cq); break;
	case IBV_EVENT_DEVICE_FATAL: hca->dead = true; break;
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_PORT_ACTIVE: hca_read_gids(hca); break;
	default: break;
	}
}

bool hca_pass_completions(struct hca *hca)
{
	int polls = 0;

	while (hca_poll(hca))
		if (++polls == POLLS_MAX)
			return false;
	return !hca->skipped;
}

/*
 * Passes asynchronous events to the engine, and completions before each event: the program may
 * destroy the queue pair once it has the event and finds its CQs empty. Acknowledges the event
 * before it passes completions: meanwhile the engine, or another thread, may destroy the queue
 * pair, and the destruction waits for the acknowledgement.
 */
void hca_handle_async_events(struct hca *hca)
{
	struct ibv_async_event event;
	struct subject of;

	for (int i = 0; i < EVENTS_MAX && !hca->dead; i++) {
		if (hca->verbs->get_async_event(hca->context, &event))
			return;
		of = find_subject(&event);
		hca->verbs->ack_async_event(&event);
		hca_pass_completions(hca);
		handle_event(hca, event.event_type, &of);
	}
}
