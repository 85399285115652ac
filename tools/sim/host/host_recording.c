/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/host_recording.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/record.h>

#include "sim/alloc.h"
#include "sim/world.h"

/* The next recording begins within this time, ns. */
#define GAP_NS 1000000
/* A recording ends before it has more bytes than this: bulk traffic would fill gigabytes. */
#define RECORDING_MAX (64u << 20)
/* Probability that the state of a recorded host is saved before it runs. */
#define SAVES 0.02

static bool write_recording(void *arg, const uint8_t *bytes, size_t n)
{
	struct host_recording *recording = arg;
	uint8_t *grown;
	size_t room = recording->room ? recording->room : 65536;

	if (recording->n + n > RECORDING_MAX && n != URXE_RECORD_END)
		return false;
	while (room < recording->n + n)
		room *= 2;
	if (room > recording->room) {
		grown = sim_alloc(room);
		if (recording->n)
			memcpy(grown, recording->bytes, recording->n);
		free(recording->bytes);
		recording->bytes = grown;
		recording->room = room;
	}
	memcpy(recording->bytes + recording->n, bytes, n);
	recording->n += n;
	return true;
}

static void plan_recording(struct sim_recordings *recordings, uint64_t now)
{
	recordings->next = now + 1 + rand_next(&recordings->rand) % GAP_NS;
}

void sim_recordings_init(struct world *world)
{
	const struct scenario *s = &world->scenario;

	world->recordings =
		(struct sim_recordings){.rand = {s->seed ^ 0x7265636f7264}, .left = s->record};
	plan_recording(&world->recordings, world->now);
}

/* Saves the host's state, and lets the host go on as after an abandoned migration. */
static void save_state(struct simhost *host)
{
	const struct urxe_state_save how = {.tag = NULL};
	uint8_t *state;
	size_t length;
	int rc = urxe_state_save(host->dev, host->world->now, &how, &state, &length);

	if (rc)
		world_fail(host->world, "host %u: its state could not be saved: %d", host->id, rc);
	else
		urxe_state_free(state);
}

void host_recording_turn(struct simhost *host)
{
	struct sim_recordings *recordings = &host->world->recordings;
	const struct urxe_recorder recorder = {
		.arg = &host->recording, .write = write_recording, .whole_frames = true};
	int rc;

	if (host->recording.n && rand_chance(&recordings->rand, SAVES))
		save_state(host);
	if (!recordings->left || !host->dev || host->world->now < recordings->next ||
	    !rand_chance(&recordings->rand, 0.5))
		return;
	host_recording_finish(host);
	recordings->left--;
	plan_recording(recordings, host->world->now);
	rc = urxe_record_start(host->dev, host->world->now, &recorder);
	if (rc)
		world_fail(host->world, "host %u: no recording: %d", host->id, rc);
}

static void check_replay(struct simhost *host)
{
	struct sim_recordings *recordings = &host->world->recordings;
	struct urxe_replay replay = {0};
	int rc = urxe_replay(&replay, host->recording.bytes, host->recording.n);

	if (rc)
		world_fail(host->world,
			   "host %u: the replay of its recording differs (%d) at %" PRIu64
			   " ns, after %" PRIu64 " calls: expected event %d, was %d",
			   host->id, rc, replay.time, replay.calls,
			   replay.has_expected ? replay.expected.kind : -1,
			   replay.has_actual ? replay.actual.kind : -1);
	else if (!replay.has_end && !replay.lost)
		world_fail(host->world, "host %u: the recording has no end", host->id);
	recordings->replayed++;
	recordings->n_calls += replay.calls;
	recordings->n_bytes += host->recording.n;
}

void host_recording_finish(struct simhost *host)
{
	if (!host->recording.n)
		return;
	if (host->dev)
		urxe_record_stop(host->dev);
	check_replay(host);
	free(host->recording.bytes);
	host->recording = (struct host_recording){0};
}
