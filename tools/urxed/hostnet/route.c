/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/route.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <stddef.h>

/* Hop limit of a route that names none (Linux' ip_default_ttl and hop_limit). */
#define DEFAULT_HOP_LIMIT 64

/* In these states the kernel never checks the MAC, because an administrator or a routing daemon has
 * set it. */
#define NUD_FIXED (NUD_PERMANENT | NUD_NOARP)
/* In these states the kernel sends packets to the MAC (NUD_VALID). */
#define NUD_USABLE (NUD_FIXED | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE)

/* --- Parsing of the kernel's messages */

static bool read_ip(uint8_t ip[16], const struct nlattr *attr, uint8_t family)
{
	const void *p = netlink_value(attr, family == AF_INET ? 4 : 16);

	if (!p || (family != AF_INET && family != AF_INET6))
		return false;
	if (family == AF_INET)
		ip_from_v4(ip, p);
	else
		memcpy(ip, p, 16);
	return true;
}

/* Reads a router's address of the other address family (RFC 8950). Returns false if it is not
 * valid. */
static bool read_via(uint8_t ip[16], const struct nlattr *attr)
{
	const struct rtvia *via = netlink_value(attr, sizeof(*via) + 4);

	if (!via)
		return false;
	if (via->rtvia_family == AF_INET)
		ip_from_v4(ip, via->rtvia_addr);
	else if (via->rtvia_family == AF_INET6 && netlink_value(attr, sizeof(*via) + 16))
		memcpy(ip, via->rtvia_addr, 16);
	else
		return false;
	return true;
}

static uint8_t hop_limit(const struct nlattr *metrics)
{
	const struct nlattr *at[RTAX_MAX + 1] = {0};
	uint32_t limit;

	if (metrics)
		netlink_nested(metrics, at, RTAX_MAX);
	limit = netlink_number(at[RTAX_HOPLIMIT]);
	return limit && limit <= UINT8_MAX ? (uint8_t)limit : DEFAULT_HOP_LIMIT;
}

void route_parse_route(void *ctx, const struct nlmsghdr *message)
{
	struct route_result *result = ctx;
	const struct rtmsg *route = mnl_nlmsg_get_payload(message);
	const struct nlattr *at[RTA_MAX + 1] = {0};

	if (message->nlmsg_type != RTM_NEWROUTE ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*route) || route->rtm_type != RTN_UNICAST)
		return;
	netlink_attributes(message, sizeof(*route), at, RTA_MAX);
	result->routed = read_ip(result->next_hop, at[RTA_GATEWAY], route->rtm_family) ||
			 read_via(result->next_hop, at[RTA_VIA]);
	result->hop_limit = hop_limit(at[RTA_METRICS]);
	result->ifindex = (int)netlink_number(at[RTA_OIF]);
	read_ip(result->source, at[RTA_PREFSRC], route->rtm_family);
	result->found = true;
}

void route_parse_neigh(void *neigh, const struct nlmsghdr *message)
{
	struct route_neigh *n = neigh;
	const struct ndmsg *neighbour = mnl_nlmsg_get_payload(message);
	const struct nlattr *at[NDA_MAX + 1] = {0};
	const void *mac;

	if (message->nlmsg_type != RTM_NEWNEIGH ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*neighbour))
		return;
	netlink_attributes(message, sizeof(*neighbour), at, NDA_MAX);
	if (!read_ip(n->ip, at[NDA_DST], neighbour->ndm_family))
		return;
	n->ifindex = neighbour->ndm_ifindex;
	n->state = neighbour->ndm_state;
	mac = netlink_value(at[NDA_LLADDR], ETHER_MAC_LEN);
	n->has_mac = mac && !ether_is_zero(mac) && n->state & NUD_USABLE;
	if (n->has_mac)
		memcpy(n->mac, mac, ETHER_MAC_LEN);
}

/* --- Requests to the kernel */

static uint8_t family_of(const uint8_t ip[16])
{
	return ip_is_v4(ip) ? AF_INET : AF_INET6;
}

static void put_ip_attribute(struct nlmsghdr *request, uint16_t type, const uint8_t ip[16])
{
	if (ip_is_v4(ip))
		mnl_attr_put(request, type, 4, ip + IP_V4_BITS / 8);
	else
		mnl_attr_put(request, type, 16, ip);
}

/* Asks the kernel for a route. `from` NULL: from any address; ifindex 0: by any interface. Returns
 * as netlink_request, and sets result->found if the answer has a route. */
static int request_route(struct route *r, const struct host_address *from, int ifindex,
			 const uint8_t to[16], uint32_t flags, struct route_result *result)
{
	char buf[NETLINK_REQUEST_ROOM];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buf);
	struct rtmsg *route = mnl_nlmsg_put_extra_header(request, sizeof(*route));
	uint8_t bits = ip_is_v4(to) ? 32 : 128;

	request->nlmsg_type = RTM_GETROUTE;
	route->rtm_family = family_of(to);
	route->rtm_dst_len = bits;
	route->rtm_flags = flags;
	put_ip_attribute(request, RTA_DST, to);
	mnl_attr_put_u32(request, RTA_OIF, (uint32_t)ifindex);
	/* With RoCEv1, source and destination may be of different families; then the request names
	 * no source. */
	if (from && ip_is_v4(from->ip) == ip_is_v4(to)) {
		route->rtm_src_len = bits;
		put_ip_attribute(request, RTA_SRC, from->ip);
	}
	return netlink_request(r->netlink, request, route_parse_route, result);
}

/*
 * Asks the kernel for a route by an interface. If the request names a source address, the kernel's
 * IPv6 may answer by another interface, for instance by the other hop of a multipath route. Without
 * a source it answers by the requested interface only, so the second try names none. Returns as
 * netlink_request; -ENETUNREACH: there is no route by that interface.
 */
static int request_route_by(struct route *r, const struct host_address *from, int ifindex,
			    const uint8_t to[16], struct route_result *result)
{
	int rc = request_route(r, from, ifindex, to, 0, result);

	if (rc || result->ifindex == ifindex)
		return rc;
	*result = (struct route_result){0};
	rc = request_route(r, NULL, ifindex, to, 0, result);
	return rc || result->ifindex == ifindex ? rc : -ENETUNREACH;
}

/*
 * Finds the route to `to` by an interface. First asks for the matching entry of the routing table
 * (RTM_F_FIB_MATCH), which fails if there is none: a plain request by an interface without a route
 * would answer that any IPv4 address is on-link. Returns 0 or -ENETUNREACH.
 */
static int find_route(struct route *r, const struct host_address *from, int ifindex,
		      const uint8_t to[16], struct route_result *result)
{
	int rc = 0;

	*result = (struct route_result){0};
	if (ip_is_v4(to))
		rc = request_route(r, from, ifindex, to, RTM_F_FIB_MATCH, result);
	*result = (struct route_result){0};
	if (!rc)
		rc = request_route_by(r, from, ifindex, to, result);
	if (rc || !result->found)
		return -ENETUNREACH;
	if (!result->routed)
		memcpy(result->next_hop, to, 16);
	return 0;
}

static struct nlmsghdr *start_neighbour_request(char *buf, uint16_t type, int ifindex,
						const uint8_t ip[16], struct ndmsg **neighbour)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(buf);

	request->nlmsg_type = type;
	*neighbour = mnl_nlmsg_put_extra_header(request, sizeof(**neighbour));
	(*neighbour)->ndm_family = family_of(ip);
	(*neighbour)->ndm_ifindex = ifindex;
	put_ip_attribute(request, NDA_DST, ip);
	return request;
}

static bool is_own_mac(const struct route *r, int ifindex, const uint8_t mac[ETHER_MAC_LEN])
{
	const struct iface *iface = r->ifaces->ifaces, *end = iface + r->ifaces->n;

	while (iface < end && iface->ifindex != ifindex)
		iface++;
	return iface < end && ether_same(mac, iface->mac);
}

/*
 * Reads the kernel's entry of a neighbour. On an interface without ARP (IFF_NOARP), the kernel
 * gives neighbours the interface's own MAC, which counts as none here. Returns as netlink_request.
 */
static int find_neighbour(struct route *r, int ifindex, const uint8_t ip[16], struct route_neigh *n)
{
	char buf[NETLINK_REQUEST_ROOM];
	struct ndmsg *neighbour;
	struct nlmsghdr *request =
		start_neighbour_request(buf, RTM_GETNEIGH, ifindex, ip, &neighbour);
	int rc;

	*n = (struct route_neigh){0};
	rc = netlink_request(r->netlink, request, route_parse_neigh, n);
	n->has_mac &= !is_own_mac(r, ifindex, n->mac);
	return rc;
}

/* Makes the kernel resolve a neighbour, as a packet to it would (NTF_USE). Returns as
 * netlink_request. */
static int solicit(struct route *r, int ifindex, const uint8_t ip[16])
{
	char buf[NETLINK_REQUEST_ROOM];
	struct ndmsg *neighbour;
	struct nlmsghdr *request =
		start_neighbour_request(buf, RTM_NEWNEIGH, ifindex, ip, &neighbour);

	request->nlmsg_flags = NLM_F_CREATE;
	neighbour->ndm_flags = NTF_USE;
	return netlink_request(r->netlink, request, NULL, NULL);
}

/* --- Resolution */

int route_find_hop(struct route *r, const struct host_address *from, bool v1,
		   struct neigh_waiter *w)
{
	const struct iface *iface = iface_find(r->ifaces, from->member, from->vlan);
	struct route_result result;
	int rc;

	if (!iface)
		return -ENETUNREACH;
	rc = find_route(r, from, iface->ifindex, w->ip, &result);
	if (rc || (result.routed && v1))
		return -ENETUNREACH;
	memcpy(w->ip, result.next_hop, sizeof(w->ip));
	w->hop_limit = result.hop_limit;
	w->ifindex = iface->ifindex;
	return 0;
}

int route_find_mac(struct route *r, struct neigh_waiter *w, struct vnic_next_hop *hop)
{
	struct route_neigh n;
	int rc = find_neighbour(r, w->ifindex, w->ip, &n);

	if (rc || !n.has_mac)
		return solicit(r, w->ifindex, w->ip) ? -EHOSTUNREACH : -EINPROGRESS;
	/* A stale MAC is usable at once; this makes the kernel confirm it. */
	if (n.state & NUD_STALE)
		solicit(r, w->ifindex, w->ip);
	w->permanent = n.state & NUD_FIXED;
	memcpy(hop->mac, n.mac, sizeof(hop->mac));
	return 0;
}

const struct host_address *route_choose_source(struct route *r, const uint8_t to[16])
{
	const struct host_address *a = r->neigh->host->addresses, *end = a + HOST_ADDRESSES;
	const struct host_address *chosen = NULL;
	struct route_result result = {0};

	if (request_route(r, NULL, 0, to, 0, &result) || !result.found)
		return NULL;
	for (; a < end; a++) {
		const struct iface *iface = iface_find(r->ifaces, a->member, a->vlan);

		if (!a->valid || !a->kernel || ip_is_v4(a->ip) != ip_is_v4(to) || !iface ||
		    iface->ifindex != result.ifindex)
			continue;
		if (!memcmp(a->ip, result.source, sizeof(a->ip)))
			return a;
		if (!chosen && !(result.routed && ip_is_link_local(a->ip) && !ip_is_link_local(to)))
			chosen = a;
	}
	return chosen;
}

int route_refusal(struct route *r, const uint8_t to[16])
{
	struct route_result result = {0};
	const int rc = request_route(r, NULL, 0, to, 0, &result);

	return rc == -EINVAL || rc == -EHOSTUNREACH || rc == -EACCES ? rc : -ENETUNREACH;
}

/* --- Entries that wait for the kernel */

/* Returns the interface on which the kernel resolves the entry's address. */
static int entry_ifindex(const struct route *r, const struct neigh_entry *e)
{
	const struct iface *iface = iface_find(r->ifaces, e->from.member, e->from.vlan);

	return iface ? iface->ifindex : 0;
}

void route_solicit_entry(struct route *r, const struct neigh_entry *e)
{
	solicit(r, entry_ifindex(r, e), e->key.ip);
}

/* Whether requests wait for the kernel's answer about the entry. In PROBING, too: the kernel's MAC
 * may differ from the one that neigh.c probes. */
static bool awaits_kernel(const struct neigh_entry *e)
{
	return e->key.resolver == NEIGH_BY_KERNEL &&
	       (e->state == NEIGH_INCOMPLETE || e->state == NEIGH_PROBING) &&
	       !(LIST_EMPTY(&e->waiters) && LIST_EMPTY(&e->persistent));
}

void route_complete_entry(struct route *r, struct neigh_entry *e)
{
	struct route_neigh n;

	if (!awaits_kernel(e) || find_neighbour(r, entry_ifindex(r, e), e->key.ip, &n) ||
	    (!n.has_mac && !(n.state & NUD_FAILED)))
		return;
	neigh_kernel_answer(r->neigh, e, n.has_mac ? n.mac : NULL, n.state & NUD_FIXED);
}

static bool concerns_entry(const struct route *r, const struct route_neigh *n,
			   const struct neigh_entry *e)
{
	return !memcmp(e->key.ip, n->ip, sizeof(n->ip)) && entry_ifindex(r, e) == n->ifindex;
}

/*
 * A notification may be older than the request of the entry, so it only causes a look-up in the
 * kernel's table. The kernel reports all neighbours of all interfaces, so only a neighbour for
 * which an entry waits causes one.
 */
void route_neigh_changed(struct route *r, const struct nlmsghdr *message)
{
	struct neigh_table *t = &r->neigh->table;
	struct route_neigh n = {0};
	struct neigh_entry *e;

	if (message)
		route_parse_neigh(&n, message);
	if ((message && !n.ifindex) || !(t->n_incomplete || t->n_probing))
		return;
	for (e = t->entries; e < t->entries + NEIGH_ENTRIES; e++)
		if (!message || concerns_entry(r, &n, e))
			route_complete_entry(r, e);
}
