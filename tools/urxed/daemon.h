/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon itself: opens sockets, uplinks, switch and rdma_cm, and runs their event loop in one
 * thread. main.c calls this.
 */
#ifndef URXE_URXED_DAEMON_H
#define URXE_URXED_DAEMON_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "urxed/hca/hca_select.h"
#include "urxed/switch/switch.h"
#include "urxed/uplink/direct_uplink_trust.h"
#include "urxed/uplink/fault_option.h"

#define DAEMON_ADDRESSES 16
#define DAEMON_FDB       64
#define DAEMON_PKEYS     16
#define DAEMON_ERROR     512

struct daemon_options {
	/* options_set has checked the syntax of the texts, except that of uplinks. */
	const char *run_dir; /* absolute */
	const char *uplinks[SWITCH_UPLINKS];
	uint32_t n_uplinks;
	enum bond_mode bond;
	const char *addresses[DAEMON_ADDRESSES];
	uint32_t n_addresses;
	const char *pkeys[DAEMON_PKEYS];
	uint32_t n_pkeys;
	uint16_t mtu; /* bytes of Ethernet payload; 0 = as much as the uplinks carry */
	const char *fdb[DAEMON_FDB]; /* "MAC[@VLAN]=PORT" or "ADDR[@VLAN]=MAC" */
	uint32_t n_fdb;
	gid_t group;                 /* its members may attach; 0 = only the daemon's own user */
	struct uplink_impair impair; /* applied to every uplink */
	struct hca_choice hca;
	const char *device; /* name of the RDMA device; NULL = HOST_DEVICE */
	struct direct_uplink_trust direct_uplink;
	/* Beside root and the daemon's own user, these users may connect ports for virtual
	 * machines. */
	struct user_list vm_users;
	bool own_dir; /* daemon_stop removes the run directory, even one that existed before */
	bool private; /* end when no client has been connected for 5 s */
};

struct daemon;

/* The signals that the daemon reads from a signalfd: SIGTERM, SIGINT, SIGHUP, SIGUSR1. */
void daemon_signals(sigset_t *set);

/*
 * Opens everything and listens: clients can connect from then on. The caller has blocked
 * daemon_signals. Returns 0 or a negative errno value; on error nothing is left to stop, and
 * `error` has one sentence.
 */
int daemon_start(const struct daemon_options *options, struct daemon **daemon,
		 char error[DAEMON_ERROR]);
/*
 * Serves clients until SIGTERM, SIGINT or SIGHUP arrives, or until a private daemon has had no
 * client for 5 s. At SIGUSR1 it logs its counters. Returns 0.
 */
int daemon_run(struct daemon *daemon);
/* Closes and removes everything that daemon_start has made. */
void daemon_stop(struct daemon *daemon);

#endif
