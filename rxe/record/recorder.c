/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "record/device_recording.h"

#include <stdlib.h>
#include <string.h>

#include "objects/cq.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "objects/rq.h"

/* Bytes at both ends of a frame that its digest covers: the headers, and the ICRC. */
#define DIGEST_HEAD 128
#define DIGEST_TAIL 16

#define FNV_BASIS 2166136261u
#define FNV_PRIME 16777619u

/* Extends the hash by FNV-1a. A CRC-32 would be useless: the ICRC is one, too, so the CRC-32 of a
 * small packet with its ICRC would not depend on the packet's PSN. */
static uint32_t digest_bytes(uint32_t hash, const uint8_t *data, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		hash = (hash ^ data[i]) * FNV_PRIME;
	return hash;
}

uint32_t urxe_record_digest(const uint8_t *data, uint32_t len)
{
	const uint32_t head = len < DIGEST_HEAD ? len : DIGEST_HEAD;
	const uint32_t tail = len - head < DIGEST_TAIL ? len - head : DIGEST_TAIL;
	const uint32_t hash = digest_bytes(FNV_BASIS ^ len, data, head);

	return digest_bytes(hash, data + len - tail, tail);
}

/* --- Records. */

struct state_stream *record_begin(struct urxe_dev *dev, uint32_t kind)
{
	struct state_stream *s = &dev->recording->stream;

	s->at = 0;
	s->depth = 0;
	state_begin(s, kind);
	return s;
}

static void end_recording(struct urxe_dev *dev, enum record_kind reason)
{
	struct device_recording *r = dev->recording;
	const uint8_t last[URXE_RECORD_END] = {(uint8_t)reason};

	r->to.write(r->to.arg, last, sizeof(last));
	dev->recording = NULL;
	free(r->stream.out);
	free(r);
}

void record_end(struct urxe_dev *dev)
{
	struct device_recording *r = dev->recording;
	struct state_stream *s = &r->stream;

	state_end(s);
	if (!state_ok(s) || !r->to.write(r->to.arg, s->out, s->at))
		end_recording(dev, RECORD_LOST);
}

static void record_empty(struct urxe_dev *dev, uint32_t kind)
{
	record_begin(dev, kind);
	record_end(dev);
}

static void record_event(struct urxe_dev *dev, struct urxe_replay_event *event)
{
	struct state_stream *s;

	if (dev->recording->player) {
		dev->recording->replay->event(dev->recording->player, event);
		return;
	}
	s = record_begin(dev, event_record(event->kind));

	event_fields(s, event);
	record_end(dev);
}

/* --- Calls. */

void record_call(struct urxe_dev *dev, struct call *call)
{
	struct device_recording *r = dev->recording;
	struct state_stream *s;

	if (r->player)
		return;
	s = record_begin(dev, RECORD_CALL + call->kind);
	memset(r->questions, 0, sizeof(r->questions));
	call_fields(s, call);
	record_end(dev);
}

void record_received(struct urxe_dev *dev, const struct urxe_frame *frame)
{
	struct record_frame fields = {
		.without_icrc = frame->without_icrc,
		.from_wire = frame->from_wire,
		.len = frame->len,
		.reference = frame->reference.length,
		.packets = frame->reference.packets,
		.data = frame->data,
	};
	struct state_stream *s;

	if (dev->recording->player)
		return;
	s = record_begin(dev, RECORD_FRAME);
	/* Frames of an inbox or of the process's own packet socket did not pass the switch, so no
	 * capture has them. */
	fields.whole = dev->recording->to.whole_frames || frame->without_icrc || frame->from_wire;
	/* A frame without ICRC may end before the ICRC's bytes in the owner's buffer. */
	if (frame->without_icrc && fields.len >= URXE_ICRC_LEN)
		fields.len -= URXE_ICRC_LEN;
	if (!fields.whole)
		fields.digest = urxe_record_digest(frame->data, frame->len);
	frame_fields(s, &fields);
	record_end(dev);
}

void record_post_recv(const struct urxe_rq *rq, const struct urxe_recv_wr *wr)
{
	struct call call = {.kind = rq->qp ? CALL_POST_RECV : CALL_POST_SRQ, .recv = *wr};

	if (rq->qp)
		call.qpn = rq->qp->qpn;
	else
		call.context = (uintptr_t)rq->attr.ctx;
	record_call(rq->dev, &call);
}

void record_qp_create(struct urxe_dev *dev, const struct urxe_qp_init *init)
{
	struct call call = {
		.kind = CALL_QP_CREATE, .context = (uintptr_t)init->ctx, .qpn = init->qpn};

	call.qp.init = *init;
	call.qp.send_cq = (uintptr_t)init->send_cq->ctx;
	call.qp.recv_cq = (uintptr_t)init->recv_cq->ctx;
	call.qp.srq = init->srq ? (uintptr_t)init->srq->attr.ctx : 0;
	record_call(dev, &call);
}

/* --- What the engine does. */

void record_sent(struct urxe_dev *dev, const struct urxe_frame *frames, uint32_t n)
{
	struct urxe_replay_event event = {.kind = URXE_REPLAY_SENT};

	for (uint32_t i = 0; i < n && dev->recording; i++) {
		event_set_headers(&event, &frames[i]);
		record_event(dev, &event);
	}
}

void record_drop(struct urxe_dev *dev, enum urxe_drop drop)
{
	record_event(dev, &(struct urxe_replay_event){.kind = URXE_REPLAY_DROPPED, .drop = drop});
}

void record_completion(struct urxe_dev *dev, void *cq_ctx, const struct urxe_wc *wc)
{
	record_event(dev, &(struct urxe_replay_event){.kind = URXE_REPLAY_COMPLETION,
						      .context = (uintptr_t)cq_ctx,
						      .wc = *wc});
}

void record_comp_event(struct urxe_dev *dev, void *cq_ctx)
{
	record_event(dev, &(struct urxe_replay_event){.kind = URXE_REPLAY_COMP_EVENT,
						      .context = (uintptr_t)cq_ctx});
}

void record_async(struct urxe_dev *dev, enum urxe_async event, void *ctx)
{
	record_event(dev, &(struct urxe_replay_event){.kind = URXE_REPLAY_ASYNC,
						      .async = event,
						      .context = (uintptr_t)ctx});
}

void record_refill(struct urxe_dev *dev, bool begins)
{
	if (!dev->recording->player)
		record_empty(dev, begins ? RECORD_REFILL : RECORD_REFILLED);
	else if (begins)
		dev->recording->replay->refill(dev->recording->player);
}

bool record_answer(struct urxe_dev *dev, enum record_question question, bool answer)
{
	struct record_answer fields = {.question = question};
	bool usual = question < QUESTION_PATH_CUT;

	if (dev->recording->player)
		return dev->recording->replay->answer(dev->recording->player, question);
	fields.ordinal = dev->recording->questions[question]++;
	if (answer != usual) {
		answer_fields(record_begin(dev, RECORD_ANSWER), &fields);
		record_end(dev);
	}
	return answer;
}

void record_pages(struct urxe_dev *dev, const struct urxe_extent *extents, uint32_t n)
{
	struct record_extents fields = {(struct urxe_extent *)(uintptr_t)extents, n};

	if (dev->recording->player)
		return;
	extents_fields(record_begin(dev, RECORD_PAGES), &fields);
	record_end(dev);
}

/* --- End. */

void urxe_record_stop(struct urxe_dev *dev)
{
	if (dev->recording)
		end_recording(dev, RECORD_STOPPED);
}

bool urxe_recording(const struct urxe_dev *dev)
{
	return dev->recording;
}
