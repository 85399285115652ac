/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's end of the attach socket, without uplinks and main loop: this thread is the daemon,
 * and other threads make the driver's calls that wait for it.
 */
#ifndef URXE_TEST_SERVER_H
#define URXE_TEST_SERVER_H

#include <stdatomic.h>

#include <vnic/driver.h>

#include "urxed/session/session.h"

struct server {
	char run_dir[32];
	int listen_fd;
	struct host host;       /* has 10.0.0.1 */
	struct uplink *uplinks; /* NULL: none */
	uint32_t n_uplinks;
	struct neigh neigh;
	struct vswitch sw;
	struct lease_store lease_store;
	struct sessions sessions;
};

/* Makes a run directory and listens in it; server_begin follows. DPDK must be initialised. */
void server_open(struct server *s);
/* Call after server_end; removes the run directory. */
void server_close(struct server *s);

/* Starts a daemon, with the records of an earlier one; server_end stops it. */
void server_begin(struct server *s, uint64_t now);
void server_end(struct server *s);

/* Handles pending messages, as the daemon does between two runs of the switch. */
void server_take_events(struct server *s, uint64_t now);

/* A process; a test's own structure for a process begins with it. */
struct server_process {
	struct vnic_attach_welcome who;
	struct vnic_driver *driver;
	int status; /* result of the last call */
	atomic_bool done;
};

/* Threads in which a process attaches to the server that was opened last, or claims the leases of
 * p->who again; the result is p->status. */
void *server_attach_thread(void *p);
void *server_claim_thread(void *p);

/* Makes a driver's call in a thread, and serves the call until it has set `done`. */
void server_call(void *(*call)(void *), struct server_process *p, void (*serve)(void));

/* Connects, sends a HELLO that claims the blocks of the process, and returns the socket without
 * waiting for the answer. */
int server_send_claim(const struct server *s, const struct server_process *p);

#endif
