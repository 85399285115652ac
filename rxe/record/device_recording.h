/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The recording of a device, while the device records (recorder.c) or replays (state/replay.c). */
#ifndef URXE_RECORD_DEVICE_RECORDING_H
#define URXE_RECORD_DEVICE_RECORDING_H

#include "record/recorder.h"

struct player;

/*
 * What a device that repeats a recording does: compares an event, gives a recorded answer, or posts
 * the receive requests that the owner posted within `refill`.
 */
struct player_ops {
	void (*event)(struct player *p, struct urxe_replay_event *actual);
	bool (*answer)(struct player *p, enum record_question question);
	void (*refill)(struct player *p);
};

struct device_recording {
	struct player *player;           /* NULL: the device records; else it replays */
	const struct player_ops *replay; /* if the device replays */
	struct urxe_recorder to;         /* if the device records */
	struct state_stream stream;      /* of one record; its buffer is kept */
	uint32_t asked[QUESTION_COUNT];  /* within the call */
};

/* Begins a record of enum record_kind, and returns the stream to which the caller writes fields;
 * then record_end. */
struct state_stream *record_begin(struct urxe_dev *dev, uint32_t kind);
/* Hands the record to the owner. Without memory or room the recording has a gap, so it ends:
 * dev->recording is NULL then. */
void record_end(struct urxe_dev *dev);

#endif
