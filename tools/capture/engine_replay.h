/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replays the recording of a process with the captured frames, for urxe replay --engine. The engine
 * repeats the recorded calls (rxe/state/replay.c); this file gives it the frames, and prints what
 * happens.
 */
#ifndef URXE_CAPTURE_ENGINE_REPLAY_H
#define URXE_CAPTURE_ENGINE_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/record.h>

#include "capture/recording_file.h"

/* X(identifier, name in JSON, meaning): how a replay ends */
#define ENGINE_REPLAY_LIST(X)                                                                    \
	X(SAME, "same", "the engine did the same")                                               \
	X(CAPTURE_ENDS, "capture_ends", "the engine did the same, up to the end of the capture") \
	X(FRAME_MISSING, "frame_missing", "the capture lacks a frame that the engine received")  \
	X(DIFFERENT, "different", "the engine did something else")                               \
	X(DAMAGED, "damaged", "the recording is damaged, or the file ends within its state")     \
	X(NO_STATE, "no_state", "the process could not be recorded")                             \
	X(NO_MEMORY, "no_memory", "too little memory for the recorded device or the capture")    \
	X(OTHER_VERSION, "other_version", "another version of urxe has made the recording")

#define ENGINE_REPLAY_ENUM(id, name, text) ENGINE_REPLAY_##id,
enum engine_replay_end { ENGINE_REPLAY_LIST(ENGINE_REPLAY_ENUM) ENGINE_REPLAY_COUNT };

#define ENGINE_REPLAY_TEXT 320

struct engine_replay {
	const struct recording *recording;
	const struct recording_file *capture;
	bool any_port;      /* the capture does not name the process's port: use the frames of all
			       ports */
	uint32_t next;      /* index of the next captured frame to look at */
	uint32_t next_sent; /* index of the next captured frame to compare with what the engine
			       sends */
	/* Lists of the captured frames that the process sent, in a hash table by their headers: the
	 * heads, and the next element of each frame. */
	uint32_t *sent_lists, *sent_next;
	uint32_t n_lists; /* a power of 2 */
	/* engine_replay_run calls it with a line of text for each NAK, drop, error and asynchronous
	 * event, and if `all` is set, for each other event. NULL: no lines. */
	void (*line)(void *arg, const char *text);
	void *arg;
	bool all;

	/* Results. */
	enum engine_replay_end end;
	struct urxe_replay replay;
	uint64_t received;
	uint64_t sent, sent_captured; /* frames sent, and those of them that the capture has */
	uint64_t naks_received, naks_sent;
	uint64_t drops[URXE_DROP_COUNT];
	uint64_t completions;
	uint64_t errors[URXE_WC_RNR_RETRY_EXC_ERR + 1]; /* completions by status; [0] stays 0 */
	uint64_t async;                                 /* asynchronous events */
	char expected[ENGINE_REPLAY_TEXT]; /* DIFFERENT: the event of the recording; "" = none */
	char actual[ENGINE_REPLAY_TEXT]; /* DIFFERENT: what the engine did instead; "" = nothing */
};

/*
 * Runs a replay, and sets the results. The caller has set recording, capture, line, arg and all;
 * the other members are 0.
 */
void engine_replay_run(struct engine_replay *r);
/* Whether r->end is ENGINE_REPLAY_SAME or ENGINE_REPLAY_CAPTURE_ENDS. */
bool engine_replay_is_same(const struct engine_replay *r);

/* Prints the results as text to standard output, or as JSON. */
void engine_replay_print(const struct engine_replay *r);
/*
 * One JSON object:
 *   process, pid, port, result (a name above), duration_ns, calls, whole (replay.has_end)
 *   received, sent, sent_captured, naks_received, naks_sent
 *   drops        {name: frames}, names of rxe/counters.h, without zeros
 *   completions, errors {name: completions}, async_events
 *   expected, actual: null, or text
 *   capture_lost: frames of the switch that urxe capture lost, whichever their port
 */
void engine_replay_print_json(const struct engine_replay *r);

#endif
