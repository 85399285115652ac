/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recordings of simulated hosts (--record): from a random moment on, a host records its device
 * (rxe/record.h). When the recording ends, it is replayed: the replay has to do the same.
 */
#ifndef URXE_SIM_HOST_RECORD_H
#define URXE_SIM_HOST_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "sim/rand.h"

struct simhost;
struct world;

struct record {
	struct rand rand;
	uint64_t left;     /* recordings to come */
	uint64_t next;     /* time from which the next one may begin, ns */
	uint64_t replayed; /* recordings that were replayed */
	uint64_t n_calls;  /* of all replays */
	uint64_t n_bytes;  /* of all recordings */
};

/* A recording in progress. */
struct tape {
	uint8_t *bytes;
	size_t n, room;
};

void record_begin(struct world *world);
/* Whenever a host is about to run: may begin a recording. */
void record_turn(struct simhost *host);
/* Before the host's engine is destroyed, and at the end: replays the recording. */
void record_end(struct simhost *host);

#endif
