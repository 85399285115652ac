/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Next hops by the kernel: its routes say whether a destination is on the link or behind a
 * router, and its neighbour table has, or finds out, the MAC.
 *
 * Nothing is kept here but who waits, so nothing can be out of date.
 */
#ifndef URXE_URXED_HOSTNET_ROUTE_H
#define URXE_URXED_HOSTNET_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/hostnet/iface.h"
#include "urxed/hostnet/neigh.h"
#include "urxed/hostnet/netlink.h"

struct route {
	struct netlink *netlink;
	const struct iface_table *ifaces;
	struct neigh *neigh; /* gives the answers */
	struct neigh_waiter *waiters;
};

/*
 * The next hop to w->ip from an address that the kernel has; a RoCEv1 packet reaches only its own
 * link. Results as of neigh_resolve.
 */
int route_resolve(struct route *r, uint64_t now, const struct host_address *from, bool v1,
		  struct neigh_waiter *w, struct vnic_next_hop *hop);
/* w, which waits here, does so no more. */
void route_cancel(struct route *r, const struct neigh_waiter *w);

/* The kernel tells of a neighbour (RTM_NEWNEIGH); NULL: of any, since messages were lost. */
void route_neigh_changed(struct route *r, const struct nlmsghdr *message);
/* Gives up who has waited for too long; returns when it wants to be called next. */
uint64_t route_tick(struct route *r, uint64_t now);

/* --- Answers of the kernel, for route.c and its test. */

/* From RTM_NEWROUTE. */
struct route_result {
	bool found;
	bool routed; /* the next hop is a router */
	uint8_t next_hop[16];
	uint8_t hop_limit;
};
void route_parse_route(struct route_result *way, const struct nlmsghdr *message);

/* From RTM_NEWNEIGH. */
struct route_neigh {
	int ifindex; /* 0 = none was found */
	uint8_t ip[16];
	uint16_t state; /* NUD_* */
	bool has_mac;
	uint8_t mac[ETHER_MAC_LEN];
};
void route_parse_neigh(struct route_neigh *n, const struct nlmsghdr *message);

#endif
