/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Live migration of simulated hosts (--migrate): at random moments the simulator freezes hosts and
 * saves the state of their engines. Some time later each host continues with another engine, in
 * other memory. Frames that arrive at a frozen host are lost. When a host continues, the engines of
 * its peers, its own engine, both or neither get an announcement (--announce, rxe/announcement.h).
 */
#ifndef URXE_SIM_HOST_MIGRATE_H
#define URXE_SIM_HOST_MIGRATE_H

#include <stdint.h>

#include "sim/rand.h"

struct simhost;
struct world;

struct migrate {
	struct rand rand;
	uint64_t left;      /* migrations to come, of one or more hosts at a time */
	uint64_t timeout;   /* ns; the shortest local ACK timeout of the reliable connections */
	uint64_t pause;     /* ns; longest time for which a host is frozen, if scenario.pause is
			       BY_SEED */
	uint64_t next_gap;  /* ns; mean time from the end of this migration to the next one */
	uint32_t in_motion; /* hosts that are about to be frozen, or are frozen */
	uint64_t n_moves;   /* hosts that have moved */
	uint64_t missed;    /* frames that arrived while their host was frozen */
	uint64_t bytes;     /* of all saved states */
};

/* Plans the first migration. */
void migrate_start(struct world *world);
/*
 * Handles EVENT_MOVE: freezes the host, or lets a frozen one continue. After the end of the traffic
 * it freezes no host any more.
 */
void migrate_host(struct simhost *host);
/* Frees the saved state of a host, if it has one. */
void migrate_free(struct simhost *host);

#endif
