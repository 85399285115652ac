/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxed's one thread: clients, the switch, neighbours, and when to sleep. */
#ifndef URXE_URXED_DAEMON_H
#define URXE_URXED_DAEMON_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "urxed/switch/switch.h"
#include "urxed/uplink/impair.h"

#define DAEMON_ADDRESSES 16
#define DAEMON_FDB       64
#define DAEMON_PKEYS     16
#define DAEMON_ERROR     512

struct daemon_options {
	/* Each text is well-formed: options.h has checked it. */
	const char *run_dir; /* absolute */
	const char *uplinks[SWITCH_UPLINKS];
	uint32_t n_uplinks;
	const char *addresses[DAEMON_ADDRESSES];
	uint32_t n_addresses;
	const char *pkeys[DAEMON_PKEYS];
	uint32_t n_pkeys;
	uint16_t mtu; /* bytes of Ethernet payload; 0 = as much as the uplinks carry */
	const char *fdb[DAEMON_FDB]; /* "MAC[@VLAN]=PORT" */
	uint32_t n_fdb;
	gid_t group;                /* its members may attach; 0 = root's daemon is root's alone */
	struct uplink_impair fault; /* of every uplink */
	bool own_dir; /* the run directory goes with the daemon, even if it did not make it */
	bool private; /* leave when no client has been there for a while */
};

struct daemon;

/* The signals that the daemon takes, from a descriptor: SIGTERM, SIGINT, SIGHUP, SIGUSR1. */
void daemon_signals(sigset_t *set);

/*
 * Opens everything and listens: clients can connect from then on. On error
 * nothing is left and `error` has one sentence. The daemon's signals must be blocked.
 */
int daemon_start(const struct daemon_options *options, struct daemon **daemon,
		 char error[DAEMON_ERROR]);
/* Serves until a signal ends it, or a private daemon has nobody left to serve. */
int daemon_run(struct daemon *daemon);
/* Removes all that daemon_start made. */
void daemon_stop(struct daemon *daemon);

#endif
