/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Neighbours: which MAC has an address (ARP, RFC 826; ND, RFC 4861).
 *
 * Sans-IO: frames and the time come in, frames and answers go out through the
 * callbacks. From an address that the kernel has too, the kernel's routes and
 * neighbours lead (route.h). From others, destinations outside the subnets of our
 * addresses are unreachable.
 */
#ifndef URXE_URXED_HOSTNET_NEIGH_H
#define URXE_URXED_HOSTNET_NEIGH_H

#include <stdint.h>

#include "urxed/hostnet/host.h"

#define NEIGH_TRIES      3
#define NEIGH_TRY_NS     1000000000ull  /* between tries (RFC 4861, 10: RETRANS_TIMER) */
#define NEIGH_LIFE_NS    60000000000ull /* before a known neighbour is asked again */
#define NEIGH_ENTRIES    256
#define NEIGH_FRAME_ROOM 128 /* bytes; none of our frames is longer */

/* Somebody who waits for a next hop. Its owner keeps it in place until answered or forgotten. */
enum neigh_asker { NEIGH_FOR_SESSION, NEIGH_FOR_GSI, NEIGH_FOR_CMA };

struct neigh_waiter {
	struct neigh_waiter *next;
	uint8_t asker;     /* enum neigh_asker, whom the answer is for; set once it waits */
	uint8_t ip[16];    /* of the next hop */
	uint8_t hop_limit; /* by the route to the destination */
	int ifindex;       /* the kernel asks there; 0 = we do */
	uint64_t due;      /* when the kernel should have an answer */
};

/* Where a frame came from a VM: it asks for all of the host's addresses, and nobody else answers.
 */
#define NEIGH_VM -2

struct neigh_ops {
	void (*send)(void *ctx, int uplink, const uint8_t *frame, uint32_t len);
	/* mac of an uplink, which our ARP and ND frames carry */
	const uint8_t *(*mac)(void *ctx, int uplink);
	/* status 0, or -EHOSTUNREACH or -ENETUNREACH and hop is NULL */
	void (*answer)(void *ctx, struct neigh_waiter *w, int status,
		       const struct vnic_next_hop *hop);
};

struct route;

enum neigh_state { NEIGH_FREE, NEIGH_ASKING, NEIGH_KNOWN };

struct neigh_entry {
	enum neigh_state state;
	uint8_t ip[16];
	uint8_t mac[ETHER_MAC_LEN];
	struct host_address from; /* our address in its subnet */
	uint32_t tries;
	uint64_t due; /* next try, or end of life */
};

struct neigh {
	const struct host *host;
	struct route *route; /* of the kernel; NULL = there is none to ask */
	bool vms; /* there are some, which the kernel cannot find: who is on the link is asked here
		   */
	const struct neigh_ops *ops;
	void *ctx;
	struct neigh_waiter *waiters;
	uint32_t asking; /* entries in that state */
	struct neigh_entry entries[NEIGH_ENTRIES];
};

void neigh_init(struct neigh *n, const struct host *host, const struct neigh_ops *ops, void *ctx);

/*
 * The next hop to dgid, seen from entry sgid_index of the GID table. -EINPROGRESS: w
 * waits, and ops->answer will come. -ENETUNREACH, -EHOSTUNREACH, -EINVAL: there is none.
 */
int neigh_resolve(struct neigh *n, uint64_t now, uint8_t sgid_index, const uint8_t dgid[16],
		  struct neigh_waiter *w, struct vnic_next_hop *hop);

/* The host's addresses have changed: what was asked for one that has gone is not reached. */
void neigh_host_changed(struct neigh *n);
/* w waits no more; nothing where it does not. */
void neigh_cancel(struct neigh *n, const struct neigh_waiter *w);

/* Takes an ARP or ND frame that came in on an uplink or NEIGH_VM: learns from it, answers it. */
void neigh_input(struct neigh *n, uint64_t now, int uplink, const uint8_t *frame, uint32_t len);

/* Does what is due; returns when it wants to be called next, UINT64_MAX = never. */
uint64_t neigh_tick(struct neigh *n, uint64_t now);

#endif
