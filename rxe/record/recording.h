/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What recorder.c and player.c share: a device records its calls, or repeats those of a recording.
 */
#ifndef URXE_RECORD_RECORDING_H
#define URXE_RECORD_RECORDING_H

#include "record/recorder.h"

struct player;

struct recording {
	struct player *player; /* NULL: the device records */
	struct urxe_recorder to;
	struct state_stream stream;     /* of one record; its buffer is kept */
	uint32_t asked[QUESTION_COUNT]; /* within the call */
};

/* The device repeats a recording: compares an event, gives a recorded answer, or posts the receive
 * requests that the owner posted within `refill`. */
void player_event(struct player *p, struct urxe_replay_event *actual);
bool player_answer(struct player *p, enum record_question question);
void player_refill(struct player *p);

#endif
