/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Next hops by the kernel: its routes say whether a destination is on the link or behind a router,
 * and its neighbour table has, or finds out, the MAC. neigh.c calls this, and keeps those who wait.
 */
#ifndef URXE_URXED_HOSTNET_ROUTE_H
#define URXE_URXED_HOSTNET_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/hostnet/iface.h"
#include "urxed/hostnet/neigh.h"
#include "urxed/hostnet/netlink.h"

/* A kernel with default settings gives up after 3 s, and a client waits for 5 s. */
#define ROUTE_PATIENCE_NS 4000000000ull

struct route {
	struct netlink *netlink;
	const struct iface_table *ifaces;
	struct neigh *neigh; /* has the entries that wait for the kernel */
};

/*
 * The next hop to w->ip from an address that the kernel has; a RoCEv1 packet reaches only its own
 * link. Sets w->ip, w->hop_limit and w->ifindex. 0: hop has the MAC; -EINPROGRESS: the kernel looks
 * for it, and route_neigh_changed will hear; -ENETUNREACH, -EHOSTUNREACH.
 */
int route_resolve(struct route *r, const struct host_address *from, bool v1, struct neigh_waiter *w,
		  struct vnic_next_hop *hop);

/* The kernel tells of a neighbour (RTM_NEWNEIGH); NULL: of any, since messages were lost. */
void route_neigh_changed(struct route *r, const struct nlmsghdr *message);

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
