/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recordings of simulated hosts (--record): from a random moment on, a host records its device
 * (rxe/record.h). When the recording ends, the host replays it, and the replay has to do the same.
 * During a recording, the host's state is saved now and then.
 */
#ifndef URXE_SIM_HOST_HOST_RECORDING_H
#define URXE_SIM_HOST_HOST_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "sim/rand.h"

struct simhost;
struct world;

/* The recordings of a run, of all its hosts. */
struct sim_recordings {
	struct rand rand;
	uint64_t left;     /* recordings to come */
	uint64_t next;     /* time from which the next one may begin, ns */
	uint64_t replayed; /* recordings that were replayed */
	uint64_t n_calls;  /* of all replays */
	uint64_t n_bytes;  /* of all recordings */
};

/* A recording in progress, of one host. */
struct host_recording {
	uint8_t *bytes;
	size_t n, room;
};

/* Takes the number of recordings from the scenario, and chooses the time of the first one. */
void sim_recordings_init(struct world *world);
/* The world calls this before a host runs. The function may save the state of a host that is
 * recorded, and may begin a recording; before that it ends and replays the host's earlier one. */
void host_recording_turn(struct simhost *host);
/*
 * Ends and replays the host's recording, if there is one; a replay that differs fails the world.
 * Call it before the host's engine is destroyed, and at the end of the run.
 */
void host_recording_finish(struct simhost *host);

#endif
