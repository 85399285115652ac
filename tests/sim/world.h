/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A simulated world: two hosts, a bad cable, connections with random traffic
 * both ways. All of it follows from the options.
 */
#ifndef URXE_SIM_WORLD_H
#define URXE_SIM_WORLD_H

#include "pair.h"
#include "stream.h"

#define WORLD_MAX_CONNS 4

struct options {
	uint64_t seed;
	double loss; /* with as much duplication and reordering, and a quarter of corruption */
	struct trace *trace; /* NULL = none */
};

struct conn {
	struct conn_attr attr;
	struct endpoint end[2];
	struct stream stream[2]; /* [i] goes from end i to the other */
	struct inbox *inbox[2];  /* where stream[!i] arrives */
};

struct world {
	struct options options;
	struct rand rand;
	bool wild; /* the cable also duplicates and reorders */
	struct pair *pair;
	uint32_t n_conns;
	struct conn conn[WORLD_MAX_CONNS];
	struct inbox inbox[2][WORLD_MAX_CONNS];
	uint32_t n_inboxes[2];   /* one a connection, or one for all with a SRQ */
	uint32_t shared_word[2]; /* offset of the word on node i that all streams add to */
	uint64_t shared_sum[2];
	uint32_t mem_used[2];
	uint64_t activity; /* posts and completions: whether the application got on */
	char failure[320]; /* "" = none; the first one stays */
};

/* Runs a world to its end. False: world_failure says why. */
bool world_run(struct world *world, const struct options *options);

/* Notes the first failure; the caller gives up its work. */
void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line in the trace, where there is one. */
void world_note(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes a piece of a node's memory; returns its offset. */
uint32_t world_alloc(struct world *world, unsigned side, uint32_t length);
/* The connection whose QP of that side has the number; NULL = none. */
struct conn *world_conn(struct world *world, unsigned side, uint32_t qpn);

#endif
