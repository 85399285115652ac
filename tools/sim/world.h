/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A simulated world: hosts, the network between them, connections with traffic,
 * and the time. All of it follows from the scenario.
 */
#ifndef URXE_SIM_WORLD_H
#define URXE_SIM_WORLD_H

#include <stdio.h>

#include "sim/events.h"
#include "sim/fabric.h"
#include "sim/rand.h"
#include "sim/scenario.h"
#include "sim/simconn.h"
#include "sim/simhost.h"

struct atomic_op;
struct trace;

/* The phases of a world's life, each with a line about it. */
enum phase { PHASE_SETUP, PHASE_TRAFFIC, PHASE_QUIET, PHASE_CHECK };

struct world {
	struct scenario scenario;
	struct rand rand;
	struct trace *trace; /* NULL = none */
	uint64_t now;        /* ns */
	struct events events;
	struct fabric fabric;
	struct simhost *host;
	uint32_t n_hosts;
	struct simconn *conn;
	uint32_t n_conns;
	uint32_t size;                  /* bytes of the longest message... */
	uint32_t size_bits;             /* ...and the power of two above it */
	bool disorder;                  /* the network repeats or overtakes frames */
	bool calm;                      /* it does nothing but carry them */
	bool live;                      /* applications take their turns */
	uint32_t open;                  /* streams that are not done */
	uint32_t n_waiting;             /* hosts whose engine has a deadline */
	uint64_t received;              /* frames given to hosts */
	uint64_t requests;              /* posted */
	uint64_t activity;              /* posts and completions: whether applications get on */
	uint64_t idle_turns;            /* turns since then */
	uint64_t warm_from, warm_until; /* ns; between them goodput counts */
	/* The longest queue of the switch in that time. */
	uint32_t hot_host;
	uint64_t hot_max;
	double hot_mean;
	uint64_t n_events;
	struct atomic_op *atomics;
	uint32_t n_atomics, atomics_room;
	uint8_t *scratch; /* a message */
	uint8_t *arrived; /* a message with its GRH */

	char failure[320]; /* "" = none; the first one stays */
	/* The hosts that it is about; n_hosts = all. */
	uint32_t failed_host[2];
};

/* Runs a world through its phases; `told` hears when each is over. False: failure says why. */
bool world_run(struct world *world, const struct scenario *scenario, struct trace *trace,
	       void (*told)(void *arg, enum phase phase, struct world *world), void *arg);
void world_free(struct world *world);

/* Notes the first failure; the caller gives up its work. */
void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_fail_stream(const struct stream *stream, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A line in the trace, where there is one. */
void world_note(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A frame that a host sends, for the trace. */
void world_trace(struct world *world, const struct simhost *from, const uint8_t *data,
		 uint32_t len);
void world_stream_done(struct stream *stream);
/* Lets time pass without the applications until nothing moves; false: something still does at
 * `until`. */
bool world_settle(struct world *world, uint64_t until);
/* The counters of all hosts together. */
void world_sum_counters(const struct world *world, struct urxe_counters *sum);

#endif
