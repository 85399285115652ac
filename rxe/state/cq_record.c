/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues, and the completions in them, which the owner keeps. */
#include "objects/cq.h"

#include "objects/device.h"
#include "state/state_records.h"

/* Bytes of a completion in the stream. */
#define COMPLETION_LEN 45

static void list_cq(struct state_device *d, struct urxe_cq *cq, uint64_t tag)
{
	object_restored(d, &(struct urxe_state_object){
				   .kind = URXE_STATE_CQ, .id = d->cqs.n, .tag = tag, .cq = cq});
	state_list_add(d, &d->cqs, cq);
}

void cq_record(struct state_device *d, struct urxe_cq *cq)
{
	struct state_stream *s = &d->stream;
	uint64_t tag = cq ? object_tag(d, URXE_STATE_CQ, cq->ctx) : 0;
	int rc;

	state_begin(s, STATE_RECORD_CQ);
	state_u64(s, &tag);
	if (!cq && state_ok(s)) {
		rc = urxe_cq_create(d->dev, object_context(d, URXE_STATE_CQ, d->cqs.n, tag), &cq);
		if (rc)
			state_fail(s, rc);
		else
			list_cq(d, cq, tag);
	}
	if (!cq)
		return;
	state_u8_max(s, &cq->armed, CQ_ARMED_NEXT);
	state_bool(s, &cq->overrun);
	state_end(s);
}

void cq_field(struct state_device *d, struct urxe_cq **cq)
{
	struct state_stream *s = &d->stream;
	uint32_t number = s->restoring ? 0 : (*cq)->number;

	state_u32(s, &number);
	if (!s->restoring)
		return;
	state_require(s, number < d->cqs.n);
	*cq = state_ok(s) ? d->cqs.object[number] : NULL;
}

/* --- Completions. */

static void completion_fields(struct state_device *d, struct urxe_wc *wc)
{
	struct state_stream *s = &d->stream;
	struct urxe_qp *qp;

	state_u64(s, &wc->wr_id);
	state_u32_max(s, &wc->status, URXE_WC_RNR_RETRY_EXC_ERR);
	state_u32s(s, &wc->opcode, &wc->byte_len, &wc->imm, &wc->invalidated_key);
	state_u24s(s, &wc->qpn, &wc->src_qpn);
	state_u32(s, &wc->flags);
	state_u16(s, &wc->pkey_index);
	state_u8(s, &wc->sl);
	state_u8_max(s, &wc->net, URXE_NET_IPV6);
	state_bool(s, &wc->solicited);
	/* The QP may have been destroyed after its completion. */
	qp = s->restoring ? idmap_find(&d->dev->qps, wc->qpn) : NULL;
	if (s->restoring)
		wc->qp_ctx = qp ? qp->ctx : NULL;
}

static void save_completions(struct state_device *d, void *ctx)
{
	uint32_t n = 0;
	struct urxe_wc wc = {0};

	while (d->save->completion && d->save->completion(d->save->arg, ctx, n, &wc))
		n++;
	state_count(&d->stream, n, COMPLETION_LEN);
	for (uint32_t i = 0; i < n; i++) {
		wc = (struct urxe_wc){0};
		if (d->save->completion(d->save->arg, ctx, i, &wc))
			completion_fields(d, &wc);
	}
}

static void restore_completions(struct state_device *d, void *ctx)
{
	int rc;

	for (uint32_t n = state_count(&d->stream, 0, COMPLETION_LEN); n; n--) {
		struct urxe_wc wc = {0};

		completion_fields(d, &wc);
		if (!state_ok(&d->stream))
			return;
		rc = d->restore->completion ? d->restore->completion(d->restore->arg, ctx, &wc) : 0;
		if (rc)
			state_fail(&d->stream, rc);
	}
}

void completions_record(struct state_device *d, uint32_t i)
{
	struct state_stream *s = &d->stream;
	struct urxe_cq *cq = s->restoring ? NULL : d->cqs.object[i];

	state_begin(s, STATE_RECORD_COMPLETIONS);
	cq_field(d, &cq);
	if (cq && s->restoring)
		restore_completions(d, cq->ctx);
	else if (cq)
		save_completions(d, cq->ctx);
	state_end(s);
}
