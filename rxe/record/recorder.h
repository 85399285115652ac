/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hooks of recordings. Each entry point in CALL_LIST records its call, usually by RECORD_ENTRY.
 * Each place that calls the owner calls one of the functions below, if HAS_RECORDING. A device that
 * records writes a record. A device that replays a recording (state/replay.c) records no calls, and
 * compares each event with its record.
 */
#ifndef URXE_RECORD_RECORDER_H
#define URXE_RECORD_RECORDER_H

#include "record/call.h"

struct urxe_dev;

/* True for a device that records, and for a device that replays a recording. */
#define HAS_RECORDING(dev) __builtin_expect((dev)->recording != NULL, 0)

/* Records a call of this kind, with these members of struct call. */
#define RECORD_ENTRY(dev, call_kind, ...)                                                        \
	do {                                                                                     \
		if (HAS_RECORDING(dev))                                                          \
			record_call(dev, &(struct call){.kind = CALL_##call_kind, __VA_ARGS__}); \
	} while (0)

void record_call(struct urxe_dev *dev, struct call *call);
/* Records a received frame; called within urxe_input, before the frame is processed. */
void record_received(struct urxe_dev *dev, const struct urxe_frame *frame);
void record_post_recv(const struct urxe_rq *rq, const struct urxe_recv_wr *wr);
void record_qp_create(struct urxe_dev *dev, const struct urxe_qp_init *init);
void record_sent(struct urxe_dev *dev, const struct urxe_frame *frames, uint32_t n);
void record_drop(struct urxe_dev *dev, enum urxe_drop drop);
void record_completion(struct urxe_dev *dev, void *cq_ctx, const struct urxe_wc *wc);
void record_comp_event(struct urxe_dev *dev, void *cq_ctx);
void record_async(struct urxe_dev *dev, enum urxe_async event, void *ctx);
/* Records that the callback urxe_ops.refill begins, or has ended if not `begins`. */
void record_refill(struct urxe_dev *dev, bool begins);

/* Records the extents of a page list that the owner has resolved. Does nothing in a replay. */
void record_pages(struct urxe_dev *dev, const struct urxe_extent *extents, uint32_t n);

/*
 * Returns the answer with which the caller goes on. `answer` is what the owner's callback returned.
 * A device that records writes a record if `answer` is not the usual one, and returns `answer`. A
 * device that replays returns the recorded answer instead.
 */
bool record_answer(struct urxe_dev *dev, enum record_question question, bool answer);

#endif
