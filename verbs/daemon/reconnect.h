/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The time from a daemon's end to the start of the next.
 *
 * The process looks for another one in the same run directory for
 * URXE_RECONNECT_S seconds, 5 where that is not set, and claims its lease there.
 * Meanwhile its queue pairs stay as they are: requests can be posted, the
 * engine's time stands still, and no frame comes or goes. Those that were on
 * their way are lost, as on a cable. Requests to the daemon wait (port/port.c). When the
 * time is over, or the lease is not to be had, the device dies.
 *
 * All functions want the port's lock.
 */
#ifndef URXE_VERBS_DAEMON_RECONNECT_H
#define URXE_VERBS_DAEMON_RECONNECT_H

#include <stdbool.h>
#include <stdint.h>

struct outage {
	bool on;
	uint64_t since; /* both clock_monotonic */
	uint64_t until;
};

/* How often to look for a daemon, nanoseconds. */
#define OUTAGE_LOOK 20000000u

/* For how long to look, nanoseconds. Without the lock, too. */
uint64_t outage_patience(void);
/* The daemon has gone. */
void outage_begin(void);
/* Looks for another; the lock is free meanwhile. For the engine's thread. */
void outage_look(void);

#endif
