/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/record.h>

#include "sim/alloc.h"
#include "sim/world.h"

/* Longest time between two recordings, ns. */
#define GAP_NS 1000000
/* A run of bulk traffic records gigabytes: a longer recording ends. */
#define TAPE_MAX (64u << 20)

static bool write_tape(void *arg, const uint8_t *bytes, size_t n)
{
	struct tape *tape = arg;
	uint8_t *grown;
	size_t room = tape->room ? tape->room : 65536;

	if (tape->n + n > TAPE_MAX && n != URXE_RECORD_END)
		return false;
	while (room < tape->n + n)
		room *= 2;
	if (room > tape->room) {
		grown = sim_alloc(room);
		if (tape->n)
			memcpy(grown, tape->bytes, tape->n);
		free(tape->bytes);
		tape->bytes = grown;
		tape->room = room;
	}
	memcpy(tape->bytes + tape->n, bytes, n);
	tape->n += n;
	return true;
}

static void plan_recording(struct record *record, uint64_t now)
{
	record->next = now + 1 + rand_next(&record->rand) % GAP_NS;
}

void record_begin(struct world *world)
{
	const struct scenario *s = &world->scenario;

	world->record = (struct record){.rand = {s->seed ^ 0x7265636f7264}, .left = s->record};
	plan_recording(&world->record, world->now);
}

void record_turn(struct simhost *host)
{
	struct record *record = &host->world->record;
	const struct urxe_recorder recorder = {
		.arg = &host->tape, .write = write_tape, .whole_frames = true};
	int rc;

	if (!record->left || !host->dev || host->world->now < record->next ||
	    !rand_chance(&record->rand, 0.5))
		return;
	record_end(host);
	record->left--;
	plan_recording(record, host->world->now);
	rc = urxe_record_start(host->dev, host->world->now, &recorder);
	if (rc)
		world_fail(host->world, "host %u: no recording: %d", host->id, rc);
}

static void check_replay(struct simhost *host)
{
	struct record *record = &host->world->record;
	struct urxe_replay replay = {0};
	int rc = urxe_replay(&replay, host->tape.bytes, host->tape.n);

	if (rc)
		world_fail(host->world,
			   "host %u: the replay of its recording differs (%d) at %" PRIu64
			   " ns, after %" PRIu64 " calls: expected event %d, was %d",
			   host->id, rc, replay.time, replay.calls,
			   replay.has_expected ? replay.expected.kind : -1,
			   replay.has_actual ? replay.actual.kind : -1);
	else if (!replay.stopped && !replay.lost)
		world_fail(host->world, "host %u: the recording has no end", host->id);
	record->replayed++;
	record->n_calls += replay.calls;
	record->n_bytes += host->tape.n;
}

void record_end(struct simhost *host)
{
	if (!host->tape.n)
		return;
	if (host->dev)
		urxe_record_stop(host->dev);
	check_replay(host);
	free(host->tape.bytes);
	host->tape = (struct tape){0};
}
