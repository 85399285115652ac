/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's end of the attach socket, without uplinks and without its loop: this
 * thread is the daemon, others make the driver's calls that wait for it.
 */
#ifndef URXE_TEST_SERVER_H
#define URXE_TEST_SERVER_H

#include <stdatomic.h>

#include <vnic/driver.h>

#include "urxed/session/session.h"

struct server {
	char run_dir[32];
	int listen_fd;
	struct host host; /* has 10.0.0.1 */
	struct neigh neigh;
	struct vswitch sw;
	struct lease_store lease_store;
	struct sessions sessions;
};

/* Makes a run directory and listens there; server_begin comes next. DPDK has to be up. */
void server_open(struct server *s);
/* After server_end; nothing is left. */
void server_close(struct server *s);

/* A daemon begins, with what another one may have left on record; and ends. */
void server_begin(struct server *s, uint64_t now);
void server_end(struct server *s);

/* Takes what sockets have, as the daemon does between two runs of the switch. */
void server_take_events(struct server *s, uint64_t now);

/* A process; the first member of what a test has of one. */
struct server_process {
	struct vnic_attach_welcome who;
	struct vnic_driver *driver;
	int status; /* of the last call */
	atomic_bool done;
};

/* Makes a driver's call in a thread, and serves it until it has set `done`. */
void server_call(void *(*call)(void *), struct server_process *p, void (*serve)(void));

#endif
