/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reconnection: the time from a daemon's end to the start of the next one.
 *
 * The process looks for another daemon in the same run directory for URXE_RECONNECT_S seconds
 * (default 5), and claims its lease from it. Meanwhile its queue pairs stay as they are, and the
 * program can post requests. Frames in flight at the daemon are lost, as on a cable. Requests to
 * the daemon wait (port/daemon_requests.c).
 *
 * Without a direct uplink, the engine's time stands still, and no frame is sent or received. With
 * one, the engine goes on: frames pass to other hosts and to inboxes, and frames for the switch are
 * lost.
 *
 * When the time is over, or the daemon refuses the lease, the device dies.
 *
 * Functions need the lock of the port, unless their comment says otherwise.
 */
#ifndef URXE_VERBS_DAEMON_RECONNECT_H
#define URXE_VERBS_DAEMON_RECONNECT_H

#include <stdbool.h>
#include <stdint.h>

struct reconnect {
	bool active;
	uint64_t since; /* these three: clock_monotonic */
	uint64_t until;
	uint64_t next; /* the next attempt, not before */
};

/* Nanoseconds between two attempts. */
#define RECONNECT_INTERVAL_NS 20000000u

/* Nanoseconds until the process gives up. Also without the lock. */
uint64_t reconnect_timeout(void);
/* The daemon has ended. */
void reconnect_begin(void);
/* Tries once to attach to another daemon; the lock is free meanwhile. In the engine thread. */
void reconnect_try(void);

#endif
