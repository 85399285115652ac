/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "event.h"

#include "device.h"
#include "objects/cq.h"
#include "objects/qp.h"
#include "objects/srq.h"

/* Events that one call handles, so that an HCA that raises events without end stops nobody. */
#define EVENTS_MAX 64

/* Completions before their event: the program that it wakes must find them. */
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

/*
 * The HCA has dropped completions: no queue pair of the CQ can go on. The engine may destroy the
 * HCA's queue pair on its event.
 */
static void fail_cq(struct hca *hca, const struct hca_cq *cq)
{
	struct hca_qp *qp = LIST_FIRST(&hca->qps);

	while (qp) {
		struct hca_qp *next = LIST_NEXT(qp, link);

		if (qp->send_cq == cq || qp->recv_cq == cq)
			urxe_offload_qp_event(hca->dev, hca_qp_number(qp), URXE_ASYNC_QP_FATAL);
		qp = next;
	}
}

/* The element of an event names an object that exists: its destruction waits for the event. */
static void handle_event(struct hca *hca, const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		urxe_offload_qp_event(hca->dev, event->element.qp->qp_num,
				      (enum urxe_async)event->event_type);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		urxe_offload_srq_event(((struct hca_srq *)event->element.srq->srq_context)->srq,
				       (enum urxe_async)event->event_type);
		break;
	case IBV_EVENT_CQ_ERR: fail_cq(hca, event->element.cq->cq_context); break;
	case IBV_EVENT_DEVICE_FATAL: hca->dead = true; break;
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_PORT_ACTIVE: hca_read_gids(hca); break;
	default: break;
	}
}

/*
 * The event is acknowledged first: the engine may destroy the queue pair on it, which would wait
 * for the acknowledgement.
 */
void hca_handle_async_events(struct hca *hca)
{
	struct ibv_async_event event;

	for (int i = 0; i < EVENTS_MAX && !hca->dead; i++) {
		if (hca->verbs->get_async_event(hca->context, &event))
			return;
		hca->verbs->ack_async_event(&event);
		handle_event(hca, &event);
	}
}
