/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions and locks that port*.c and daemon_requests.c share. */
#ifndef URXE_VERBS_PORT_PORT_PRIVATE_H
#define URXE_VERBS_PORT_PORT_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>

#include "port/port.h"

struct urxe_direct_table;

/*
 * Protects attachment, detachment and the number of users of the port. Rank: before port.lock. The
 * handlers of fork hold it.
 */
extern pthread_mutex_t port_open_lock __attribute__((visibility("hidden")));
/*
 * Held by the thread that asks the daemon for more queue pair numbers. Rank: before port.lock;
 * never together with port_open_lock. A forked child initialises it.
 */
extern pthread_mutex_t port_lease_lock __attribute__((visibility("hidden")));

/*
 * Counts one more user if the port is open; each needs a port_close. False: the port is not open.
 */
bool port_ref(void);
/* In a forked child: no user; initialises both locks. */
void port_forget_users(void);

/* Creates port.dev with the attributes of the port; `table` as in struct urxe_dev_attr. */
int port_make_engine(struct urxe_direct_table *table);
/* The same from the stream of a saved process. -EADDRNOTAVAIL: the device has another
 * MAC address. */
int port_restore_engine(const struct port_saved *saved, struct urxe_direct_table *table);
/* Before the first peer. */
void port_init_peers(void);
/* Passes the GIDs, P_Keys and MTU in port.welcome to the engine. */
int port_set_attributes(void);
int port_set_pkeys(void);

/* Installs the handlers of fork, once for each process. */
void port_install_fork_handlers(void);

#endif
