/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ports of rdma_cm IDs: which ID is bound to which port of which port space, and which IDs may
 * share a port. The rules are those of the kernel's drivers/infiniband/core/cma.c. The files cma*.c
 * call these functions.
 */
#ifndef URXE_URXED_CM_CMA_PORT_H
#define URXE_URXED_CM_CMA_PORT_H

#include <sys/queue.h>
#include <sys/types.h>

#include "urxed/cm/cma_addr.h"
#include "urxed/session/user_counts.h"

/* Range of ephemeral ports: Linux's default of ip_local_port_range. */
#define CMA_PORT_FIRST        32768
#define CMA_PORT_LAST         60999
#define CMA_PORT_UNPRIVILEGED 1024 /* lower ports need CAP_NET_BIND_SERVICE */
/*
 * The number of ephemeral ports, and of the others, in one port space. A user's quota (quota.h) of
 * either kind counts the user's ports of all port spaces together, so that each space has free ones
 * for every user.
 */
#define CMA_PORTS_EPHEMERAL (CMA_PORT_LAST - CMA_PORT_FIRST + 1)
#define CMA_PORTS_OTHER     (65536 - CMA_PORTS_EPHEMERAL)

struct cma_binding {
	LIST_ENTRY(cma_binding) link;
	uint16_t ps;          /* port space; 0 = not bound */
	uid_t user;           /* the user whose quota counts the port */
	struct cma_addr addr; /* address and port */
	/* Index of the host's address that `addr` means if it is link-local, because several
	 * interfaces may have the same link-local address. */
	uint8_t own_index;
	bool reuseaddr;
	bool afonly; /* an IPv6 wildcard does not include IPv4 */
	bool listening;
	/*
	 * PID of the process that restores the ID, until cma_thaw. 0: no process restores it, or
	 * the daemon does not see the PID. Bindings with the same restorer do not conflict: the
	 * saved process held all of them, though its options may since have changed.
	 */
	pid_t restorer;
};
LIST_HEAD(cma_bindings, cma_binding);

#define CMA_PORT_BUCKETS 1024u

struct cma_ports {
	struct cma_bindings bindings[CMA_PORT_BUCKETS]; /* by port modulo CMA_PORT_BUCKETS */
	uint32_t tried; /* ephemeral ports tried so far; the next search goes on behind them */
	struct user_counts ephemeral, other; /* number of bindings of each user, by kind of port */
};

/*
 * Binds u to the port of u->addr, or to a free port if that is 0. Returns -EADDRINUSE if another ID
 * has the port at the same address; -EADDRNOTAVAIL if another ID has the port, and one of the two
 * addresses is the wildcard or loopback, or if no port is free; -ENOSPC if the user's quota of
 * ports is used up; or -ENOMEM.
 */
int cma_port_bind(struct cma_ports *p, struct cma_binding *u, uint16_t ps, uid_t user);
/* Marks u as a listener. Returns -EADDRINUSE or -EADDRNOTAVAIL if another ID shares the port by
 * SO_REUSEADDR. */
int cma_port_listen(const struct cma_ports *p, struct cma_binding *u);
/* Adds a binding that an earlier daemon has checked; does nothing if u is not bound. Returns 0 or
 * -ENOMEM. */
int cma_port_restore(struct cma_ports *p, struct cma_binding *u);
/* Unbinds u, which then no longer listens; does nothing if u is not bound. */
void cma_port_release(struct cma_ports *p, struct cma_binding *u);
/* Frees the counts of users; the caller has released all bindings. */
void cma_port_close(struct cma_ports *p);
/* Returns whether an ID listens at the port, at any address. */
bool cma_port_has_listener(const struct cma_ports *p, uint16_t ps, uint16_t port);
/* Returns the listener for a request to that address and port; own_index as in struct cma_binding.
 * NULL: there is none. */
struct cma_binding *cma_port_find_listener(const struct cma_ports *p, uint16_t ps, uint16_t port,
					   const struct cma_addr *addr, uint8_t own_index);

#endif
