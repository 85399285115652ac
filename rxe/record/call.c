/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "record/call.h"

#include <stdlib.h>
#include <string.h>

#include <rxe/opcode.h>
#include <rxe/packet.h>

#include "record/fields.h"

/* --- Requests. */

static void call_segments_fields(struct state_stream *s, struct call *call,
				 const struct urxe_seg **segs, uint32_t *n)
{
	if (!s->restoring && *n > CALL_SEGS)
		*n = CALL_SEGS;
	state_u32_max(s, n, CALL_SEGS);
	for (uint32_t i = 0; i < *n; i++) {
		struct urxe_seg seg = s->restoring ? (struct urxe_seg){0} : (*segs)[i];

		segment_fields(s, &seg);
		if (s->restoring)
			call->space->segs[i] = seg;
	}
	if (s->restoring)
		*segs = call->space->segs;
}

static void datagram_fields(struct state_stream *s, struct call *call)
{
	struct urxe_send_wr *wr = &call->send;
	bool has_path = wr->path;
	struct urxe_path path;

	state_bool(s, &has_path);
	if (!has_path)
		return;
	path = s->restoring ? (struct urxe_path){0} : *wr->path;
	path_fields(s, &path);
	state_u32s(s, &wr->remote_qpn, &wr->remote_qkey);
	state_u16(s, &wr->pkey_index);
	if (!s->restoring)
		return;
	call->space->path = path;
	wr->path = &call->space->path;
}

/* The members that the opcode uses. */
static void opcode_fields(struct state_stream *s, struct urxe_send_wr *wr)
{
	switch (wr->opcode) {
	case URXE_WR_BIND_MW: bind_fields(s, &wr->bind); break;
	case URXE_WR_REG_MR: fast_reg_fields(s, &wr->fast_reg); break;
	case URXE_WR_FLUSH:
		state_u8s(s, &wr->flush.placement, &wr->flush.selectivity);
		state_u32(s, &wr->flush.length);
		break;
	case URXE_WR_COMPARE_SWAP:
	case URXE_WR_FETCH_ADD: state_u64s(s, &wr->compare_add, &wr->swap); break;
	default: break;
	}
}

static void send_fields(struct state_stream *s, struct call *call)
{
	static const uint8_t no_data[URXE_MAX_INLINE];
	struct urxe_send_wr *wr = &call->send;

	state_u64(s, &wr->wr_id);
	state_u32s(s, &wr->opcode, &wr->flags);
	state_bool(s, &wr->cqes_unpolled);
	state_u32s(s, &wr->imm, &wr->inline_len);
	call_segments_fields(s, call, &wr->segs, &wr->n_segs);
	state_u32(s, &wr->invalidate_key);
	state_u64(s, &wr->remote_addr);
	state_u32(s, &wr->rkey);
	opcode_fields(s, wr);
	datagram_fields(s, call);
	if (!s->restoring)
		return;
	/* The engine refuses requests with more inline data; a replay needs only a too large
	 * number. */
	if (wr->inline_len > URXE_MAX_INLINE)
		wr->inline_len = UINT32_MAX;
	wr->inline_data = no_data;
}

static void recv_fields(struct state_stream *s, struct call *call)
{
	state_u64(s, &call->recv.wr_id);
	call_segments_fields(s, call, &call->recv.segs, &call->recv.n_segs);
}

/* --- Other calls. */

static void output_fields(struct state_stream *s, struct call *call)
{
	state_u32_max(s, &call->output.n, CALL_FRAMES);
	for (uint32_t i = 0; i < call->output.n && i < CALL_FRAMES; i++) {
		uint32_t room = s->restoring ? 0 : call->output.frames[i].room;

		if (room > CALL_FRAME_ROOM)
			room = CALL_FRAME_ROOM;
		state_u32_max(s, &room, CALL_FRAME_ROOM);
		if (s->restoring)
			call->space->room[i] = room;
	}
}

static void modify_fields(struct state_stream *s, struct call *call)
{
	struct urxe_qp_attr *attr = &call->attr;

	path_fields(s, &attr->path);
	state_u32s(s, &attr->rq_psn, &attr->sq_psn, &attr->rate_limit);
	state_u8s(s, &attr->cur_state, &attr->path_mtu, &attr->max_dest_rd_atomic, &attr->port,
		  &attr->path_mig_state);
	state_bool(s, &attr->en_sqd_async_notify);
	state_u8(s, &attr->state);
	state_u32s(s, &attr->qkey, &attr->access);
	state_u8s(s, &attr->timeout, &attr->retry_cnt, &attr->rnr_retry, &attr->min_rnr_timer,
		  &attr->max_rd_atomic);
	state_u16(s, &attr->pkey_index);
	state_u32(s, &attr->dest_qpn);
}

static void qp_fields(struct state_stream *s, struct call *call)
{
	struct urxe_qp_init *init = &call->qp.init;

	state_u8(s, &init->type);
	state_bools(s, &init->sq_sig_all, &init->block_self_mcast);
	state_u32s(s, &init->pd, &init->cap.max_send_wr, &init->cap.max_recv_wr,
		   &init->cap.max_send_sge, &init->cap.max_recv_sge, &init->cap.max_inline);
	state_u64s(s, &call->qp.send_cq, &call->qp.recv_cq, &call->qp.srq);
}

static void srq_fields(struct state_stream *s, struct call *call)
{
	state_u32s(s, &call->srq.pd, &call->srq.max_wr, &call->srq.max_sge);
}

static void extent_fields(struct state_stream *s, struct urxe_extent *extent)
{
	uint64_t addr = (uintptr_t)extent->addr;

	state_u64s(s, &addr, &extent->length);
	if (s->restoring)
		extent->addr = (void *)(uintptr_t)addr;
}

static void bytes_fields(struct state_stream *s, struct call *call)
{
	extent_fields(s, &call->bytes);
}

void extents_fields(struct state_stream *s, struct record_extents *list)
{
	list->n = state_count(s, list->n, 16);
	if (s->restoring) {
		list->extents = calloc(list->n + (size_t)1, sizeof(*list->extents));
		if (!list->extents)
			state_fail(s, -ENOMEM);
	}
	for (uint32_t i = 0; i < list->n && state_ok(s); i++)
		extent_fields(s, &list->extents[i]);
}

static void mr_fields(struct state_stream *s, struct call *call)
{
	struct urxe_mr_attr *mr = &call->mr;
	/* A recording device only reads the extents. */
	struct record_extents list = {(struct urxe_extent *)(uintptr_t)mr->extents, mr->n_extents};

	state_u32s(s, &mr->pd, &mr->access);
	state_u64s(s, &mr->iova, &mr->length);
	state_u32(s, &mr->key);
	extents_fields(s, &list);
	if (s->restoring) {
		mr->extents = call->space->extents = list.extents;
		mr->n_extents = list.n;
	}
}

static void pd_field(struct state_stream *s, struct call *call)
{
	state_u32(s, &call->mw.pd);
}

static void mw_fields(struct state_stream *s, struct call *call)
{
	pd_field(s, call);
	state_u8(s, &call->mw.type);
}

static void gid_fields(struct state_stream *s, struct call *call)
{
	state_bytes(s, call->gid.gid.raw, sizeof(call->gid.gid.raw));
}

static void gid_set_fields(struct state_stream *s, struct call *call)
{
	gid_fields(s, call);
	state_bool(s, &call->gid.valid);
}

static void u16_field(struct state_stream *s, struct call *call)
{
	state_u16(s, &call->u16);
}

static const struct form {
	const char *name;
	uint8_t members;
	void (*fields)(struct state_stream *s, struct call *call);
} forms[] = {
#define CALL_FORM(id, name, members, fields) [CALL_##id] = {name, members, fields},
	CALL_LIST(CALL_FORM)
#undef CALL_FORM
};

const char *call_name(enum call_kind kind)
{
	return forms[kind].name;
}

void call_fields(struct state_stream *s, struct call *call)
{
	const struct form *form = &forms[call->kind];

	if (form->members & NOW)
		state_u64(s, &call->now);
	if (form->members & QPN)
		state_u24(s, &call->qpn);
	if (form->members & KEY)
		state_u32(s, &call->key);
	if (form->members & VALUE)
		state_u32(s, &call->value);
	if (form->members & CONTEXT)
		state_u64(s, &call->context);
	if (form->members & FLAG)
		state_bool(s, &call->flag);
	if (form->fields)
		form->fields(s, call);
}

/* --- Received frames, and answers of callbacks. */

void frame_fields(struct state_stream *s, struct record_frame *frame)
{
	state_bools(s, &frame->without_icrc, &frame->from_wire, &frame->whole);
	state_u32_max(s, &frame->len, UINT16_MAX);
	state_u32s(s, &frame->reference, &frame->packets);
	if (!frame->whole) {
		state_u32(s, &frame->digest);
	} else if (!s->restoring) {
		state_bytes(s, (uint8_t *)(uintptr_t)frame->data, frame->len);
	} else {
		frame->data = state_take(s, frame->len);
	}
}

void timer_fields(struct state_stream *s, struct record_timer *timer)
{
	state_u24(s, &timer->qpn);
	state_u8s(s, &timer->kind, &timer->number);
	state_u64(s, &timer->queued);
}

void answer_fields(struct state_stream *s, struct record_answer *answer)
{
	state_u8_max(s, &answer->question, QUESTION_COUNT - 1);
	state_u32(s, &answer->ordinal);
}

/* --- What the engine did. */

enum record_kind event_record(enum urxe_replay_kind kind)
{
	return RECORD_SENT + (kind - URXE_REPLAY_SENT);
}

static void sent_fields(struct state_stream *s, struct urxe_replay_event *event)
{
	state_u32_max(s, &event->frame_len, UINT16_MAX);
	state_u32_max(s, &event->data_len, URXE_RECORD_HEADERS);
	if (s->restoring)
		event->data = state_take(s, event->data_len);
	else
		state_bytes(s, (uint8_t *)(uintptr_t)event->data, event->data_len);
}

/* A drop's reason, by its name, because the numbers differ between versions of urxe. A name that
 * this version does not know is read as URXE_DROP_NONE. */
static void drop_field(struct state_stream *s, enum urxe_drop *drop)
{
	char name[32] = "";

	if (!s->restoring)
		for (size_t i = 0; i < sizeof(name) - 1 && urxe_drop_name(*drop)[i]; i++)
			name[i] = urxe_drop_name(*drop)[i];
	state_bytes(s, name, sizeof(name));
	if (!s->restoring)
		return;
	name[sizeof(name) - 1] = '\0';
	*drop = URXE_DROP_NONE;
	for (uint32_t i = 1; i < URXE_DROP_COUNT; i++)
		if (!strcmp(name, urxe_drop_name((enum urxe_drop)i)))
			*drop = (enum urxe_drop)i;
}

static void completion_fields(struct state_stream *s, struct urxe_wc *wc)
{
	state_u64(s, &wc->wr_id);
	state_u32s(s, &wc->qpn, &wc->status);
	if (wc->status != URXE_WC_SUCCESS)
		return;
	state_u32s(s, &wc->opcode, &wc->byte_len, &wc->imm, &wc->invalidated_key, &wc->src_qpn,
		   &wc->flags);
	state_u16(s, &wc->pkey_index);
	state_u8s(s, &wc->sl, &wc->net);
	state_bool(s, &wc->solicited);
}

void event_fields(struct state_stream *s, struct urxe_replay_event *event)
{
	uint32_t number = event->async;

	switch (event->kind) {
	case URXE_REPLAY_SENT: sent_fields(s, event); break;
	case URXE_REPLAY_DROPPED: drop_field(s, &event->drop); break;
	case URXE_REPLAY_COMPLETION:
		state_u64(s, &event->context);
		completion_fields(s, &event->wc);
		break;
	case URXE_REPLAY_COMP_EVENT: state_u64(s, &event->context); break;
	case URXE_REPLAY_ASYNC:
		state_u64(s, &event->context);
		state_u32_max(s, &number, UINT8_MAX);
		event->async = (enum urxe_async)number;
		break;
	default: break;
	}
}

/* A recording has no contents of memory, so the header of an ATOMIC ACKNOWLEDGE ends before the
 * original value. */
#define ATOMIC_ACK_LEN 8

void event_set_headers(struct urxe_replay_event *event, const struct urxe_frame *frame)
{
	struct urxe_packet packet;
	uint32_t n = frame->len;

	if (!urxe_packet_parse(&packet, frame->data, frame->len)) {
		n = (uint32_t)(packet.payload - frame->data);
		if (urxe_opcodes[packet.opcode].flags & URXE_OPF_ATOMIC_ACK_ETH)
			n -= ATOMIC_ACK_LEN;
	}
	event->data = frame->data;
	event->data_len = n < URXE_RECORD_HEADERS ? n : URXE_RECORD_HEADERS;
	event->frame_len = frame->len;
}
