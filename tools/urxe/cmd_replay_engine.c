/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/cmd_replay_engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/engine_replay.h"
#include "capture/recording_file.h"
#include "common/command_line.h"
#include "common/log.h"

static bool is_wanted(const struct recording_process *process, const char *wanted)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", process->pid);
	return !wanted || !strcmp(wanted, pid) || !strcmp(wanted, process->program) ||
	       !strcmp(wanted, process->port);
}

static void print_line(void *arg, const char *text)
{
	(void)arg;
	puts(text);
}

/* Replays a process and prints the result. True: the engine did the same as in the recording. */
static bool replay_process(const struct replay_engine_options *a, const struct recording *recording,
			   const struct recording_file *capture)
{
	const struct recording_process *process = &recording->process;
	struct engine_replay replay = {.recording = recording,
				       .capture = capture,
				       .line = a->json ? NULL : print_line,
				       .all = a->all};

	if (!a->json)
		printf("%s, process %d, port %s:\n", process->program, process->pid, process->port);
	engine_replay_run(&replay);
	(a->json ? engine_replay_print_json : engine_replay_print)(&replay);
	return engine_replay_is_same(&replay);
}

static int replay_processes(const struct replay_engine_options *a,
			    const struct recording_file *state,
			    const struct recording_file *capture)
{
	uint32_t n = 0, same = 0;

	if (a->json)
		putchar('[');
	for (uint32_t i = 0; i < state->n_recordings; i++) {
		if (!is_wanted(&state->recordings[i].process, a->process))
			continue;
		if (a->json && n)
			fputs(",\n ", stdout);
		n++;
		same += replay_process(a, &state->recordings[i], capture);
	}
	if (a->json)
		puts("]");
	fflush(stdout);
	if (!state->n_recordings)
		log_line("%s has no state of a process: urxe capture --state writes it",
			 a->recordings);
	else if (!n)
		log_line("%s has no state of a process %s", a->recordings, a->process);
	return n && same == n ? 0 : STATUS_FAILED;
}

int cmd_replay_engine(const struct replay_engine_options *a)
{
	struct recording_file state = {0}, capture = {0};
	const bool one_file = !strcmp(a->recordings, a->capture);
	char error[RECORDING_ERROR];
	int rc = STATUS_FAILED;

	if (!recording_file_open(&state, a->recordings, error) ||
	    (!one_file && !recording_file_open(&capture, a->capture, error)))
		log_line("%s", error);
	else
		rc = replay_processes(a, &state, one_file ? &state : &capture);
	recording_file_close(&state);
	recording_file_close(&capture);
	return rc;
}
