/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A simulation: hosts, the network between them, connections with traffic, and virtual time. The
 * scenario determines all of it. cmd_sim.c and scenario_table.c run it.
 */
#ifndef URXE_SIM_WORLD_H
#define URXE_SIM_WORLD_H

#include <stdio.h>

#include "sim/events.h"
#include "sim/host/host_recording.h"
#include "sim/host/member.h"
#include "sim/host/migrate.h"
#include "sim/host/simconn.h"
#include "sim/host/simhost.h"
#include "sim/network/fabric.h"
#include "sim/rand.h"
#include "sim/scenario/scenario.h"

struct atomic_op;
struct trace;

/* The phases of a simulation, in order. */
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
	uint32_t size;               /* bytes of the longest message... */
	uint32_t size_bits;          /* ...and the least n, 1 to 31, with 2^n >= size */
	bool reorders_or_duplicates; /* the network duplicates or reorders frames */
	/* No frame is lost, corrupted, reordered, duplicated or queued, and no host moves. */
	bool undisturbed;
	bool live; /* applications run: they poll completions and post requests */
	struct migrate migrate;
	struct sim_recordings recordings;
	struct members members;
	uint32_t open;                  /* streams that are not done */
	uint32_t n_waiting;             /* hosts that are frozen, or whose engine has a deadline */
	uint64_t received;              /* frames delivered to hosts */
	struct rand failure_rand;       /* for failure.h */
	struct rand drain_rand;         /* for drain.h */
	struct rand resize_rand;        /* for resizes of SRQs */
	struct rand change_rand;        /* for change.h */
	struct rand event_rand;         /* for requests for events, and UDP GSO */
	uint64_t requests;              /* posted requests */
	uint64_t activity;              /* posts and completions */
	uint64_t idle_turns;            /* turns of applications since the last activity */
	uint64_t warm_from, warm_until; /* ns; the measurement of goodput begins and ends */
	/* The longest queue of the switch between warm_from and warm_until. */
	uint32_t hot_host;
	uint64_t hot_max;
	double hot_mean;
	struct atomic_op *atomics;
	uint32_t n_atomics, atomics_room;
	uint8_t *scratch; /* room for the content of a message */
	uint8_t *arrived; /* room for a received message with its GRH */

	char failure[320]; /* the first failure; "" = none */
	/* The hosts that the failure concerns; n_hosts = all. */
	uint32_t failed_host[2];
	/* The enum urxe_wc_status of the request that failed; 0 = no request's failure. */
	uint32_t failed_status;
};

/*
 * Creates *world, runs all phases, and calls `on_phase` after the setup and after each later phase
 * that does not fail. False: `failure` has the reason. The caller calls world_free in each case.
 */
bool world_run(struct world *world, const struct scenario *scenario, struct trace *trace,
	       void (*on_phase)(void *arg, enum phase phase, struct world *world), void *arg);
void world_free(struct world *world);

/* Record a failure, unless one is recorded already. The caller must return then, and the simulation
 * handles no further event. world_fail_stream also records the hosts of the stream. */
void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_fail_stream(const struct stream *stream, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes a line to the trace, if a trace is open. */
void world_note(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes a frame that a host sends to the trace. */
void world_trace(struct world *world, const struct simhost *from, const uint8_t *data,
		 uint32_t len);
/* Counts the stream as done. The caller calls this once, when all its requests are complete. */
void world_stream_done(struct stream *stream);
/*
 * Stops all applications, and handles events up to the time `until`. False: events are left, also
 * because a timer spins or a check has failed.
 */
bool world_settle(struct world *world, uint64_t until);
/* The number of frames that did not arrive, or not as they were sent. */
uint64_t world_lost_frames(const struct world *world);
/* Sums the counters of all hosts. */
void world_sum_counters(const struct world *world, struct urxe_counters *sum);

#endif
