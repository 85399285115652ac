/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe replay --engine: replays the recorded processes of a capture. cmd_replay.c calls it. */
#ifndef URXE_URXE_REPLAY_ENGINE_H
#define URXE_URXE_REPLAY_ENGINE_H

#include <stdbool.h>

struct replay_engine_arguments {
	const char *state;   /* file with the recordings */
	const char *capture; /* file with the frames; may be the same */
	const char *process; /* PID, program or port; NULL = all processes */
	bool all;            /* print all events */
	bool json;
};

/* Returns the exit status. */
int replay_engine(const struct replay_engine_arguments *a);

#endif
