/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The recording of a device, while the device records (recorder.c) or replays (state/replay.c). */
#ifndef URXE_RECORD_DEVICE_RECORDING_H
#define URXE_RECORD_DEVICE_RECORDING_H

#include "record/recorder.h"

struct player;

/* What a device that repeats a recording does: compares an event, gives a recorded answer, or posts
 * the receive requests that the recorded device's owner posted within `refill`. */
struct player_ops {
	void (*event)(struct player *p, struct urxe_replay_event *actual);
	bool (*answer)(struct player *p, enum record_question question);
	void (*refill)(struct player *p);
};

struct device_recording {
	struct player *player;           /* NULL: the device records; else it replays */
	const struct player_ops *replay; /* if the device replays */
	struct urxe_recorder to;         /* if the device records */
	struct state_stream stream;      /* of one record; the buffer is reused for the next one */
	uint32_t questions[QUESTION_COUNT]; /* number within the call, by enum record_question */
};

/* Begins a record of enum record_kind, and returns the stream to which the caller writes the
 * fields; then the caller calls record_end. */
struct state_stream *record_begin(struct urxe_dev *dev, uint32_t kind);
/* Hands the record to the owner. If there was no memory or room for it, the recording ends, because
 * it would have a gap: dev->recording is NULL then. */
void record_end(struct urxe_dev *dev);

#endif
