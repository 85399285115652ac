/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The recording of a device, while the device records (recorder.c) or replays (player.c). */
#ifndef URXE_RECORD_DEVICE_RECORDING_H
#define URXE_RECORD_DEVICE_RECORDING_H

#include "record/recorder.h"

struct player;

struct device_recording {
	struct player *player;          /* NULL: the device records; else it replays */
	struct urxe_recorder to;        /* if the device records */
	struct state_stream stream;     /* of one record; its buffer is kept */
	uint32_t asked[QUESTION_COUNT]; /* within the call */
};

/* The device repeats a recording: compares an event, gives a recorded answer, or posts the receive
 * requests that the owner posted within `refill`. */
void player_event(struct player *p, struct urxe_replay_event *actual);
bool player_answer(struct player *p, enum record_question question);
void player_refill(struct player *p);

#endif
