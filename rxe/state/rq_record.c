/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues and the receive queues of QPs, with their posted requests. */
#include "objects/rq.h"

#include "state/state_records.h"
#include "util/ring.h"

/* Least bytes of a receive request in the stream. */
#define REQUEST_LEN 12

static void request_fields(struct state_stream *s, struct recv_wqe *wqe, uint32_t max_sge)
{
	uint64_t length;

	state_u64(s, &wqe->wr_id);
	state_u32_max(s, &wqe->n_segs, max_sge);
	for (uint32_t i = 0; i < wqe->n_segs; i++)
		segment_fields(s, &wqe->segs[i]);
	if (!s->restoring)
		return;
	length = sge_length(wqe->segs, wqe->n_segs);
	wqe->length = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
}

/* `head`, the distances of the other indices from it, and the requests from `retired` on. */
static void queue_fields(struct state_stream *s, struct urxe_rq *rq)
{
	uint32_t taken = rq->head - rq->tail, busy = rq->head - rq->retired;

	state_u32(s, &rq->head);
	state_u32_max(s, &busy, rq->attr.max_wr);
	state_u32_max(s, &taken, busy);
	state_require(s, busy <= (s->restoring ? (s->end - s->at) / REQUEST_LEN : busy));
	if (s->restoring) {
		rq->tail = rq->head - (state_ok(s) ? taken : 0);
		rq->retired = rq->head - (state_ok(s) ? busy : 0);
	}
	for (uint32_t i = rq->retired; i != rq->head && state_ok(s); i++)
		request_fields(s, rq_slot(rq, i), rq->attr.max_sge);
}

uint64_t rq_memory(uint32_t max_wr, uint32_t max_sge)
{
	return ring_slots(max_wr) * (sizeof(struct recv_wqe) + max_sge * sizeof(struct urxe_seg));
}

/* --- Shared receive queues. */

static void srq_create(struct state_device *d, struct urxe_rq_attr *attr, uint64_t tag,
		       struct urxe_rq **srq)
{
	struct state_stream *s = &d->stream;
	int rc;

	state_require(s, attr->max_wr <= URXE_MAX_WR && attr->max_sge <= URXE_MAX_SGE);
	if (!state_ok(s))
		return;
	state_spend(s, 1, rq_memory(attr->max_wr, attr->max_sge));
	attr->ctx = object_context(d, URXE_STATE_SRQ, d->srqs.n, tag);
	if (!state_ok(s))
		return;
	rc = urxe_srq_create(d->dev, attr, srq);
	if (rc) {
		state_fail(s, rc);
		return;
	}
	object_restored(d,
			&(struct urxe_state_object){
				.kind = URXE_STATE_SRQ, .id = d->srqs.n, .tag = tag, .srq = *srq});
	state_list_add(d, &d->srqs, *srq);
}

void srq_record(struct state_device *d, struct urxe_rq *srq)
{
	struct state_stream *s = &d->stream;
	struct urxe_rq_attr attr = {0};
	uint64_t tag = 0;

	if (srq) {
		attr = srq->attr;
		tag = object_tag(d, URXE_STATE_SRQ, attr.ctx);
	}
	state_begin(s, STATE_RECORD_SRQ);
	state_u64(s, &tag);
	state_u32s(s, &attr.pd, &attr.max_wr, &attr.max_sge);
	if (s->restoring)
		srq_create(d, &attr, tag, &srq);
	if (!srq)
		return;
	state_u32_max(s, &srq->limit, attr.max_wr);
	queue_fields(s, srq);
	/* A QP copies a request that it takes from an SRQ (resp.copy), so all requests of the SRQ
	 * are posted ones. */
	state_require(s, srq->tail == srq->retired);
	state_end(s);
}

void srq_field(struct state_device *d, struct urxe_rq **srq)
{
	struct state_stream *s = &d->stream;
	bool shared = *srq;
	uint32_t number = *srq ? (*srq)->number : 0;

	state_bool(s, &shared);
	state_u32(s, &number);
	if (!s->restoring)
		return;
	state_require(s, !shared || number < d->srqs.n);
	*srq = shared && state_ok(s) ? d->srqs.object[number] : NULL;
}

/* --- Receive requests of a QP. */

void receives_record(struct state_stream *s, struct urxe_qp *qp)
{
	struct responder *resp = &qp->resp;
	struct urxe_rq *rq = qp->rq;

	state_begin(s, STATE_RECORD_QP_RECEIVES);
	state_bool(s, &resp->has_wqe);
	if (rq->qp) {
		queue_fields(s, rq);
		state_require(s, rq->tail - rq->retired == resp->has_wqe);
		if (s->restoring && resp->has_wqe)
			resp->wqe = rq_slot(rq, rq->retired);
	} else if (resp->has_wqe) {
		request_fields(s, resp->copy, rq->attr.max_sge);
		resp->wqe = resp->copy;
	}
	state_end(s);
}
