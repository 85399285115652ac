/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which ports are in use, in each port space, by whom and with which address: the
 * kernel's rules (drivers/infiniband/core/cma.c) for who may share one.
 */
#ifndef URXE_URXED_CM_CMA_PORT_H
#define URXE_URXED_CM_CMA_PORT_H

#include <sys/queue.h>

#include "urxed/cm/cma_addr.h"

/* Ports that are given to who asks for none, as Linux's ip_local_port_range is at first. */
#define CMA_PORT_FIRST 32768
#define CMA_PORT_LAST  60999
#define CMA_PORT_LOW   1024 /* from here on anybody may have them */

struct cma_binding {
	LIST_ENTRY(cma_binding) link;
	uint16_t ps;          /* port space; 0 = it has no port */
	struct cma_addr addr; /* with the port */
	bool reuseaddr;
	bool afonly; /* an IPv6 address is none for IPv4 */
	bool listening;
};
LIST_HEAD(cma_bindings, cma_binding);

#define CMA_PORT_BUCKETS 1024u

struct cma_ports {
	struct cma_bindings users[CMA_PORT_BUCKETS]; /* by the port */
	uint32_t n;                                  /* of them */
	uint32_t last;                               /* port that was given most recently */
};

/*
 * Gives the user the address's port, or one that is free where that is 0. -EADDRINUSE:
 * somebody has that port at that address; -EADDRNOTAVAIL: at all addresses, or would
 * have at one of all; or there is no free one.
 */
int cma_port_bind(struct cma_ports *p, struct cma_binding *u, uint16_t ps);
/* The user is going to listen, which those that share its port by SO_REUSEADDR cannot, too. */
int cma_port_listen(const struct cma_ports *p, struct cma_binding *u);
/* The user has the port that it had, as it was found to be in nobody's way. */
void cma_port_restore(struct cma_ports *p, struct cma_binding *u);
/* Nothing where it has none. */
void cma_port_release(struct cma_ports *p, struct cma_binding *u);
/* Whether anybody listens to a port, at whatever address. */
bool cma_port_has_listener(const struct cma_ports *p, uint16_t ps, uint16_t port);
/* Who listens to a port for what comes to an address; NULL: nobody. */
struct cma_binding *cma_port_find_listener(const struct cma_ports *p, uint16_t ps, uint16_t port,
					   const struct cma_addr *addr);

#endif
