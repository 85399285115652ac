/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resolves next hops by the kernel's tables of routes and neighbours, for source addresses that the
 * kernel has, too. neigh.c, kernel_sync and cma_resolve.c call this. neigh.c keeps the requests
 * that wait for the kernel to resolve a neighbour.
 */
#ifndef URXE_URXED_HOSTNET_ROUTE_H
#define URXE_URXED_HOSTNET_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/hostnet/neigh.h"
#include "urxed/kernel/iface.h"
#include "urxed/kernel/netlink.h"

/*
 * Time that an entry waits for the kernel's answer. Then neigh.c ends the requests with
 * -EHOSTUNREACH, except persistent ones, for which it asks the kernel again. It is longer than the
 * 3 s after which the kernel gives up by default, and shorter than the 5 s that a device process of
 * a virtual machine waits (vnic/common/attach_socket.h).
 */
#define ROUTE_TIMEOUT_NS 4000000000ull

struct route {
	struct netlink *netlink;
	const struct iface_table *ifaces;
	struct neigh *neigh; /* entries of `neigh` wait for the kernel */
};

/*
 * Finds the next hop to w->ip by the kernel's routes from its address `from`. With v1 only on-link
 * destinations are reachable, because RoCEv1 has no IP header to route. Sets w->ip (which stays the
 * same for an on-link destination), w->hop_limit and w->ifindex. Returns 0, or -ENETUNREACH: no
 * next hop exists.
 */
int route_find_hop(struct route *r, const struct host_address *from, bool v1,
		   struct neigh_waiter *w);
/*
 * Finds the MAC of the next hop w->ip among the kernel's neighbours. Returns 0 with the MAC in
 * *hop, and sets w->permanent to whether the kernel never checks it. Returns -EINPROGRESS if the
 * kernel has no usable MAC: it has been asked to resolve it, and route_neigh_changed handles its
 * answer. -EHOSTUNREACH: the kernel has refused that request.
 */
int route_find_mac(struct route *r, struct neigh_waiter *w, struct vnic_next_hop *hop);

/*
 * Returns the host's address from which packets to `to` leave by the kernel's best route: the
 * source that the kernel names, else another address of that interface. That other address
 * is not link-local if the destination is behind a router, which forwards no packets from such an
 * address. NULL: there is no route or no such address, or the route leaves by no uplink.
 */
const struct host_address *route_choose_source(struct route *r, const uint8_t to[16]);

/*
 * Returns the error with which the kernel refuses packets to `to` that have no source yet: -EINVAL
 * for a route of type blackhole, -EHOSTUNREACH for unreachable, -EACCES for prohibit. Otherwise
 * returns -ENETUNREACH, also if the kernel has a usable route.
 */
int route_refusal(struct route *r, const uint8_t to[16]);

/* Makes the kernel resolve the entry's neighbour; route_neigh_changed handles the answer. */
void route_solicit_entry(struct route *r, const struct neigh_entry *e);
/*
 * Calls neigh_kernel_answer for an entry if the kernel has resolved the neighbour, or has failed
 * to. Does nothing for an entry without waiters, because the kernel keeps the MAC of a station that
 * has left.
 */
void route_complete_entry(struct route *r, struct neigh_entry *e);

/* Handles an RTM_NEWNEIGH. message NULL: notifications were lost, so any neighbour may have
 * changed. */
void route_neigh_changed(struct route *r, const struct nlmsghdr *message);

/* --- Parsers of the kernel's answers, for route.c and its test: callbacks of netlink.h. */

/* Read from an RTM_NEWROUTE by route_parse_route, whose `result` it is. */
struct route_result {
	bool found;
	bool routed; /* the next hop is a router */
	uint8_t next_hop[16];
	uint8_t hop_limit;
	int ifindex;
	uint8_t source[16]; /* all zero = the kernel names none */
};
void route_parse_route(void *result, const struct nlmsghdr *message);

/* Read from an RTM_NEWNEIGH by route_parse_neigh, whose `neigh` it is. */
struct route_neigh {
	int ifindex; /* 0 = no neighbour found */
	uint8_t ip[16];
	uint16_t state; /* NUD_* */
	bool has_mac;
	uint8_t mac[ETHER_MAC_LEN];
};
void route_parse_neigh(void *neigh, const struct nlmsghdr *message);

#endif
