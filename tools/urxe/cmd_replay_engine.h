/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The command urxe replay --engine: reads the files, and replays each recorded process by
 * engine_replay_run (capture/engine_replay.h). cmd_replay.c calls it.
 */
#ifndef URXE_URXE_CMD_REPLAY_ENGINE_H
#define URXE_URXE_CMD_REPLAY_ENGINE_H

#include <stdbool.h>

struct replay_engine_options {
	const char *recordings; /* file of urxe capture --state */
	const char *capture;    /* file with the frames; may be the same */
	const char *process;    /* PID, program or port; NULL = all processes */
	bool all;               /* print all events */
	bool json;
};

/* Performs the command; returns the exit status. */
int cmd_replay_engine(const struct replay_engine_options *a);

#endif
