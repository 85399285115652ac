/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests for routes, and parsing of the kernel's route and neighbour messages, well-formed
 * and damaged.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include "urxed/hostnet/arp_nd.h"
#include "urxed/hostnet/route.h"

static const uint8_t v4[4] = {192, 0, 2, 9}, v6[16] = {0x20, 1, 0xd, 0xb8, [15] = 9};
static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
static const uint8_t zero_mac[6];

static uint8_t room[1024] __attribute__((aligned(4)));
static struct nlmsghdr *const message = (struct nlmsghdr *)room;

static void begin_route(uint8_t family, uint8_t type)
{
	struct rtmsg *route;

	mnl_nlmsg_put_header(room)->nlmsg_type = RTM_NEWROUTE;
	route = mnl_nlmsg_put_extra_header(message, sizeof(*route));
	route->rtm_family = family;
	route->rtm_type = type;
}

static void begin_neighbour(uint16_t nud, const uint8_t *ip, uint16_t ip_len)
{
	struct ndmsg *neighbour;

	mnl_nlmsg_put_header(room)->nlmsg_type = RTM_NEWNEIGH;
	neighbour = mnl_nlmsg_put_extra_header(message, sizeof(*neighbour));
	neighbour->ndm_family = ip_len == 4 ? AF_INET : AF_INET6;
	neighbour->ndm_ifindex = 5;
	neighbour->ndm_state = nud;
	mnl_attr_put(message, NDA_DST, ip_len, ip);
}

/* --- In place of the kernel */

static struct {
	uint8_t mac[6]; /* of all neighbours */
	/* The interfaces of its routes from a given source address, and from any; 0 = there is
	 * none. */
	uint32_t interface_from_source, interface_from_any;
	uint16_t nud;                 /* of all neighbours; 0 = the kernel has none */
	uint32_t requested_interface; /* of the last request for a route */
	uint32_t solicited, solicited_interface;
	uint8_t source[16]; /* of its IPv6 routes; :: = the kernel names none */
	bool on_link;       /* IPv6 destinations have no gateway */
} kernel;

int __wrap_netlink_request(struct netlink *n, struct nlmsghdr *request, netlink_fn each, void *ctx);

/* IPv4 destinations are on-link; IPv6 has a gateway. */
static int give_route(const struct nlmsghdr *request, netlink_fn each, void *ctx)
{
	const struct rtmsg *asked = mnl_nlmsg_get_payload(request);
	const uint8_t family = asked->rtm_family;
	const struct nlattr *at[RTA_MAX + 1] = {0};
	uint32_t ifindex;

	netlink_attributes(request, sizeof(struct rtmsg), at, RTA_MAX);
	kernel.requested_interface = netlink_number(at[RTA_OIF]);
	ifindex = at[RTA_SRC] ? kernel.interface_from_source : kernel.interface_from_any;
	if (!ifindex)
		return -ENETUNREACH;
	begin_route(family, RTN_UNICAST);
	if (family == AF_INET6 && !kernel.on_link)
		mnl_attr_put(message, RTA_GATEWAY, 16, v6);
	if (family == AF_INET6)
		mnl_attr_put(message, RTA_PREFSRC, 16, kernel.source);
	mnl_attr_put_u32(message, RTA_OIF, ifindex);
	each(ctx, message);
	return 0;
}

static int give_neighbour(const struct nlmsghdr *request, netlink_fn each, void *ctx)
{
	const struct ndmsg *asked = mnl_nlmsg_get_payload(request);

	if (!kernel.nud)
		return -ENOENT;
	if (asked->ndm_family == AF_INET)
		begin_neighbour(kernel.nud, v4, 4);
	else
		begin_neighbour(kernel.nud, v6, 16);
	mnl_attr_put(message, NDA_LLADDR, 6, kernel.mac);
	each(ctx, message);
	return 0;
}

int __wrap_netlink_request(struct netlink *n, struct nlmsghdr *request, netlink_fn each, void *ctx)
{
	(void)n;
	if (request->nlmsg_type == RTM_GETROUTE)
		return give_route(request, each, ctx);
	if (request->nlmsg_type == RTM_GETNEIGH)
		return give_neighbour(request, each, ctx);
	assert_int_equal(request->nlmsg_type, RTM_NEWNEIGH);
	kernel.solicited++;
	kernel.solicited_interface =
		(uint32_t)((const struct ndmsg *)mnl_nlmsg_get_payload(request))->ndm_ifindex;
	return 0;
}

static int forget_kernel(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	memcpy(kernel.mac, mac, sizeof(mac));
	return 0;
}

/* --- Requests */

static int find_hop(struct route *r, const struct host_address *from, struct neigh_waiter *w,
		    struct vnic_next_hop *hop)
{
	return route_find_hop(r, from, false, w) ?: route_find_mac(r, w, hop);
}

/* The host knows a bond by its first member; the kernel has routes of each member's interface. */
static void route_leaves_by_the_interface_with_the_address(void **state)
{
	const struct iface_table ifaces = {.n_uplinks = 2,
					   .n = 3,
					   .ifaces = {{.ifindex = 7},
						      {.ifindex = 9, .uplink = 1},
						      {.ifindex = 11, .uplink = 1, .vlan = 5}}};
	struct host_address from = {.valid = true, .kernel = true, .member = 1};
	struct route r = {.ifaces = &ifaces};
	struct neigh_waiter w = {0};
	struct vnic_next_hop hop;

	(void)state;
	ip_from_v4(from.ip, v4);
	ip_from_v4(w.ip, (uint8_t[]){198, 51, 100, 5});
	assert_int_equal(find_hop(&r, &from, &w, &hop), -ENETUNREACH);
	assert_int_equal(kernel.requested_interface, 9);
	from.vlan = 5;
	assert_int_equal(find_hop(&r, &from, &w, &hop), -ENETUNREACH);
	assert_int_equal(kernel.requested_interface, 11);
}

/* Address resolution for the host 192.0.2.1, by the kernel's neighbours, and its answers. */
static struct {
	struct neigh neigh;
	struct host host;
	struct iface_table ifaces;
	struct route route;
	uint8_t peer[16];
	uint32_t probes;
	uint32_t answers;
	int status;
	uint8_t mac[6];
} resolution;

static void on_probe(void *ctx, int uplink, const uint8_t *frame, uint32_t len)
{
	(void)ctx;
	(void)uplink;
	(void)frame;
	(void)len;
	resolution.probes++;
}

static const uint8_t *on_mac(void *ctx, int uplink)
{
	(void)ctx;
	(void)uplink;
	return resolution.host.mac;
}

static void on_answer(void *ctx, struct neigh_waiter *w, int status,
		      const struct vnic_next_hop *hop)
{
	(void)ctx;
	(void)w;
	resolution.answers++;
	resolution.status = status;
	if (hop)
		memcpy(resolution.mac, hop->mac, sizeof(resolution.mac));
}

static void begin_resolution(void)
{
	static const struct neigh_ops ops = {on_probe, on_mac, on_answer};

	memset(&resolution, 0, sizeof(resolution));
	kernel.interface_from_source = kernel.interface_from_any = 5;
	resolution.ifaces =
		(struct iface_table){.n_uplinks = 1, .n = 1, .ifaces = {{.ifindex = 5}}};
	resolution.route = (struct route){.ifaces = &resolution.ifaces, .neigh = &resolution.neigh};
	ip_from_v4(resolution.peer, v4);
	host_init(&resolution.host);
	assert_int_equal(host_add_text(&resolution.host, "192.0.2.1/24", 0), 0);
	resolution.host.addresses[0].kernel = true;
	neigh_init(&resolution.neigh, &resolution.host, &ops, NULL);
	resolution.neigh.route = &resolution.route;
}

static int resolve(struct neigh_waiter *w)
{
	struct vnic_next_hop hop;

	return neigh_resolve(&resolution.neigh, 1, 0, 0, resolution.peer, w, &hop);
}

static int resolve_persistently(struct neigh_waiter *w)
{
	struct vnic_next_hop hop;

	return neigh_resolve_persistently(&resolution.neigh, 1, 0, 0, resolution.peer, w, &hop);
}

/* The kernel gives up after three questions. It gets further ones for a persistent waiter. */
static void kernel_is_asked_again_for_a_persistent_waiter(void **state)
{
	struct neigh_waiter persistent, other;

	(void)state;
	begin_resolution();
	assert_int_equal(resolve_persistently(&persistent), -EINPROGRESS);
	assert_int_equal(resolve(&other), -EINPROGRESS);
	kernel.nud = NUD_FAILED;
	route_neigh_changed(&resolution.route, NULL);
	assert_int_equal(resolution.answers, 1);
	assert_int_equal(resolution.status, -EHOSTUNREACH);
	assert_int_equal(kernel.solicited, 2);
	assert_int_equal(neigh_tick(&resolution.neigh, 1 + ROUTE_TIMEOUT_NS),
			 1 + 2 * ROUTE_TIMEOUT_NS);
	assert_int_equal(kernel.solicited, 3);
	kernel.nud = NUD_REACHABLE;
	route_neigh_changed(&resolution.route, NULL);
	assert_int_equal(resolution.answers, 2);
	assert_int_equal(resolution.status, 0);
	assert_memory_equal(resolution.mac, mac, sizeof(mac));
	neigh_fini(&resolution.neigh);
}

/*
 * The kernel loses its neighbour while the station with the MAC known before is probed. A request
 * then waits for the result of the probes, and does not delay them.
 */
static void lost_neighbour_of_the_kernel_delays_no_probe(void **state)
{
	struct neigh_waiter persistent, other;

	(void)state;
	begin_resolution();
	kernel.nud = NUD_REACHABLE;
	assert_int_equal(resolve(&other), 0);
	kernel.mac[5] ^= 1;
	assert_int_equal(resolve_persistently(&persistent), -EINPROGRESS);
	assert_int_equal(resolution.probes, 1);
	kernel.nud = 0;
	assert_int_equal(resolve(&other), -EINPROGRESS);
	for (uint64_t i = 1; i <= NEIGH_PROBES; i++)
		neigh_tick(&resolution.neigh, 1 + i * NEIGH_PROBE_NS);
	assert_int_equal(resolution.probes, NEIGH_PROBES);
	assert_int_equal(resolution.answers, 2);
	assert_int_equal(resolution.status, 0);
	assert_memory_equal(resolution.mac, kernel.mac, sizeof(kernel.mac));
	neigh_fini(&resolution.neigh);
}

/* Begins with a neighbour that the kernel has, and that neigh_probe_station probes. */
static void begin_probed_resolution(void)
{
	struct neigh_waiter w;

	begin_resolution();
	kernel.nud = NUD_REACHABLE;
	assert_int_equal(resolve(&w), 0);
	assert_true(neigh_probe_station(&resolution.neigh, NEIGH_QUIET_NS, 1, 0, mac));
	assert_int_equal(resolution.probes, 1);
}

static void leave_probes_unanswered(void)
{
	for (uint64_t i = 1; i <= NEIGH_PROBES; i++)
		neigh_tick(&resolution.neigh, NEIGH_QUIET_NS + i * NEIGH_PROBE_NS);
}

/*
 * neigh_probe_station probes a neighbour that the kernel still has. Programs get the kernel's MAC
 * meanwhile, and the probes go on.
 */
static void probed_neighbour_of_the_kernel_stays_reachable(void **state)
{
	struct vnic_next_hop hop;
	struct neigh_waiter w;

	(void)state;
	begin_probed_resolution();
	assert_int_equal(
		neigh_resolve(&resolution.neigh, NEIGH_QUIET_NS, 0, 0, resolution.peer, &w, &hop),
		0);
	assert_memory_equal(hop.mac, mac, sizeof(mac));
	leave_probes_unanswered();
	assert_int_equal(resolution.probes, NEIGH_PROBES + 1);
	neigh_fini(&resolution.neigh);
}

/* The kernel learns another MAC of a neighbour that neigh_probe_station probes. */
static void probed_neighbour_gets_the_kernels_new_mac(void **state)
{
	struct neigh_waiter w;

	(void)state;
	begin_probed_resolution();
	kernel.mac[5] ^= 1;
	assert_int_equal(resolve(&w), -EINPROGRESS);
	leave_probes_unanswered();
	assert_int_equal(resolution.answers, 1);
	assert_int_equal(resolution.status, 0);
	assert_memory_equal(resolution.mac, kernel.mac, sizeof(kernel.mac));
	neigh_fini(&resolution.neigh);
}

/*
 * The kernel keeps the entry of a neighbour that has left. No program waits for the neighbour, so
 * that entry does not make it come back.
 */
static void silent_neighbour_does_not_return_from_the_kernels_entry(void **state)
{
	const uint64_t later = NEIGH_QUIET_NS + NEIGH_PROBES * NEIGH_PROBE_NS + NEIGH_TRY_NS;

	(void)state;
	begin_probed_resolution();
	kernel.nud = NUD_STALE;
	leave_probes_unanswered();
	route_neigh_changed(&resolution.route, NULL);
	neigh_tick(&resolution.neigh, later);
	assert_false(neigh_probe_station(&resolution.neigh, later + NEIGH_QUIET_NS, 1, 0, mac));
	neigh_fini(&resolution.neigh);
}

/* Begins a request for a probed neighbour that the kernel has lost. */
static void await_kernel_during_probes(struct neigh_waiter *w)
{
	struct vnic_next_hop hop;

	begin_probed_resolution();
	kernel.nud = 0;
	assert_int_equal(neigh_resolve_persistently(&resolution.neigh, NEIGH_QUIET_NS, 0, 0,
						    resolution.peer, w, &hop),
			 -EINPROGRESS);
	kernel.nud = NUD_REACHABLE;
	kernel.mac[5] ^= 1;
}

static void expect_kernels_mac(void)
{
	assert_int_equal(resolution.answers, 1);
	assert_int_equal(resolution.status, 0);
	assert_memory_equal(resolution.mac, kernel.mac, sizeof(kernel.mac));
	neigh_fini(&resolution.neigh);
}

/* The kernel resolves the neighbour during the probes. */
static void kernels_answer_during_probes_counts(void **state)
{
	struct neigh_waiter w;

	(void)state;
	await_kernel_during_probes(&w);
	route_neigh_changed(&resolution.route, NULL);
	assert_int_equal(resolution.answers, 0);
	leave_probes_unanswered();
	expect_kernels_mac();
}

/* The same MAC as before is no news for the probes, but for those who wait. */
static void kernels_same_answer_during_probes_counts(void **state)
{
	struct neigh_waiter w;

	(void)state;
	await_kernel_during_probes(&w);
	kernel.mac[5] ^= 1;
	route_neigh_changed(&resolution.route, NULL);
	expect_kernels_mac();
}

/* Also if the kernel has told of its answer before. */
static void kernels_answer_before_the_next_question_counts(void **state)
{
	struct neigh_waiter w;

	(void)state;
	await_kernel_during_probes(&w);
	for (uint64_t i = 1; i < 20; i++)
		neigh_tick(&resolution.neigh, NEIGH_QUIET_NS + i * NEIGH_PROBE_NS);
	expect_kernels_mac();
}

/* A VLAN interface that was made again has another index. */
static void kernel_is_asked_for_the_interface_of_now(void **state)
{
	struct neigh_waiter w;

	(void)state;
	begin_resolution();
	assert_int_equal(resolve_persistently(&w), -EINPROGRESS);
	resolution.ifaces.ifaces[0].ifindex = 6;
	neigh_tick(&resolution.neigh, 1 + ROUTE_TIMEOUT_NS);
	assert_int_equal(kernel.solicited, 2);
	assert_int_equal(kernel.solicited_interface, 6);
	neigh_cancel(&resolution.neigh, &w);
	neigh_fini(&resolution.neigh);
}

/*
 * The address of the host has no neighbours by its prefix; the kernel's route says that the peer is
 * on-link. With virtual machines or a bond the daemon looks for the peer.
 */
static void daemon_seeks_neighbours_that_are_on_link_by_a_route(void **state)
{
	const struct neigh_ingress ingress = {.uplink = 1};
	struct neigh_waiter w;

	(void)state;
	begin_resolution();
	resolution.host.addresses[0].prefix_len = 128;
	resolution.neigh.vm_mask = 2;
	assert_int_equal(resolve(&w), -EINPROGRESS);
	assert_int_equal(resolution.probes, 1);
	assert_int_equal(kernel.solicited, 0);
	neigh_learn_claim(&resolution.neigh, &ingress, resolution.peer, mac, NEIGH_CLAIM_REPLACES);
	assert_int_equal(resolution.answers, 1);
	assert_int_equal(resolution.status, 0);
	assert_memory_equal(resolution.mac, mac, sizeof(mac));
	neigh_fini(&resolution.neigh);
}

/*
 * With a source address the kernel may give an IPv6 route by another interface than the requested
 * one: one hop of several, or the only route of the host. The same address can be that of another
 * router in the source's network.
 */
static void route_by_another_interface_does_not_count(void **state)
{
	const struct iface_table ifaces = {.n_uplinks = 1, .n = 1, .ifaces = {{.ifindex = 9}}};
	const struct host_address from = {.valid = true, .kernel = true, .ip = {0x20, 1}};
	struct route r = {.ifaces = &ifaces};
	const struct {
		uint32_t from_source, from_any;
		int rc;
	} rows[] = {{9, 0, 0}, {8, 0, -ENETUNREACH}, {8, 9, 0}, {8, 8, -ENETUNREACH}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct neigh_waiter w = {.ip = {0x20, 2}};
		struct vnic_next_hop hop;

		kernel.interface_from_source = rows[i].from_source;
		kernel.interface_from_any = rows[i].from_any;
		kernel.nud = NUD_REACHABLE;
		assert_int_equal(find_hop(&r, &from, &w, &hop), rows[i].rc);
		assert_int_equal(kernel.requested_interface, 9);
		if (!rows[i].rc)
			assert_memory_equal(w.ip, v6, 16);
	}
}

static int choose_source(const uint8_t to[16])
{
	const struct host_address *a = route_choose_source(&resolution.route, to);

	return a ? (int)(a - resolution.host.addresses) : -1;
}

/* Routers forward no packets from link-local addresses (RFC 4291, 2.5.6). */
static void router_gets_no_link_local_source(void **state)
{
	static const uint8_t far[16] = {0x20, 2, [15] = 9}, near[16] = {0xfe, 0x80, [15] = 9};
	struct host *h = &resolution.host;

	(void)state;
	begin_resolution();
	assert_int_equal(host_add_text(h, "fe80::1/64", 0), 0);
	h->addresses[1].kernel = true;
	kernel.source[0] = 0x20;
	assert_int_equal(choose_source(far), -1);
	assert_int_equal(choose_source(near), 1);
	kernel.on_link = true;
	assert_int_equal(choose_source(far), 1);
	kernel.on_link = false;
	assert_int_equal(host_add_text(h, "2001:db8::1/64", 0), 0);
	h->addresses[2].kernel = true;
	assert_int_equal(choose_source(far), 2);
	/* The kernel itself chooses one if it has no other address. */
	memcpy(kernel.source, h->addresses[1].ip, sizeof(kernel.source));
	assert_int_equal(choose_source(far), 1);
	neigh_fini(&resolution.neigh);
}

/* More peers of a user than the user may have neighbours, behind a router that has not answered. */
static void router_answers_all_its_peers(void **state)
{
	static struct neigh_waiter waiters[NEIGH_ENTRIES];
	uint8_t to[16] = {0x20, 2};
	struct vnic_next_hop hop;

	(void)state;
	begin_resolution();
	assert_int_equal(host_add_text(&resolution.host, "2001:db8::1/64", 0), 0);
	resolution.host.addresses[1].kernel = true;
	for (uint32_t i = 0; i < NEIGH_ENTRIES; i++) {
		to[14] = (uint8_t)(i >> 8);
		to[15] = (uint8_t)i;
		assert_int_equal(
			(i % 2 ? neigh_resolve : neigh_resolve_persistently)(
				&resolution.neigh, 1, geteuid() + 1, 1, to, &waiters[i], &hop),
			-EINPROGRESS);
	}
	kernel.nud = NUD_REACHABLE;
	route_neigh_changed(&resolution.route, NULL);
	assert_int_equal(resolution.answers, NEIGH_ENTRIES);
	neigh_tick(&resolution.neigh, 2);
	assert_int_equal(resolution.answers, NEIGH_ENTRIES);
	assert_int_equal(resolution.status, 0);
	neigh_fini(&resolution.neigh);
}

/* The kernel gives every address on an interface without ARP the MAC of that interface. */
static void neighbour_with_the_mac_of_the_interface_does_not_count(void **state)
{
	struct iface_table ifaces = {.n_uplinks = 1, .n = 1, .ifaces = {{.ifindex = 9}}};
	const struct host_address from = {.valid = true, .kernel = true, .ip = {0x20, 1}};
	struct route r = {.ifaces = &ifaces};
	struct neigh_waiter w = {.ip = {0x20, 2}};
	struct vnic_next_hop hop;

	(void)state;
	kernel.interface_from_source = 9;
	kernel.nud = NUD_REACHABLE;
	assert_int_equal(find_hop(&r, &from, &w, &hop), 0);
	memcpy(ifaces.ifaces[0].mac, mac, sizeof(mac));
	assert_int_equal(find_hop(&r, &from, &w, &hop), -EINPROGRESS);
}

/* --- Parsing */

static void put_hop_limit(uint32_t limit)
{
	struct nlattr *metrics = mnl_attr_nest_start(message, RTA_METRICS);

	mnl_attr_put_u32(message, RTAX_HOPLIMIT, limit);
	mnl_attr_nest_end(message, metrics);
}

static struct route_result way_of(void)
{
	struct route_result way = {0};

	route_parse_route(&way, message);
	return way;
}

static void on_link_destination_is_its_own_next_hop(void **state)
{
	struct route_result way;

	(void)state;
	begin_route(AF_INET, RTN_UNICAST);
	mnl_attr_put(message, RTA_DST, 4, v4);
	way = way_of();
	assert_true(way.found && !way.routed);
	assert_int_equal(way.hop_limit, 64);
}

static void routed_destination_has_its_gateway(void **state)
{
	struct route_result way;
	struct {
		uint16_t family;
		uint8_t ip[16];
	} via = {AF_INET6, {0}};

	(void)state;
	begin_route(AF_INET, RTN_UNICAST);
	mnl_attr_put(message, RTA_GATEWAY, 4, v4);
	mnl_attr_put_u32(message, RTA_OIF, 9);
	mnl_attr_put(message, RTA_PREFSRC, 4, v4);
	put_hop_limit(17);
	way = way_of();
	assert_true(way.found && way.routed);
	assert_true(ip_is_v4(way.next_hop));
	assert_memory_equal(way.next_hop + 12, v4, 4);
	assert_int_equal(way.hop_limit, 17);
	assert_int_equal(way.ifindex, 9);
	assert_memory_equal(way.source + 12, v4, 4);
	begin_route(AF_INET6, RTN_UNICAST);
	mnl_attr_put(message, RTA_GATEWAY, 16, v6);
	put_hop_limit(300);
	way = way_of();
	assert_true(way.routed);
	assert_memory_equal(way.next_hop, v6, 16);
	assert_int_equal(way.hop_limit, 64);
	/* An IPv4 destination behind an IPv6 router. */
	begin_route(AF_INET, RTN_UNICAST);
	memcpy(via.ip, v6, 16);
	mnl_attr_put(message, RTA_VIA, sizeof(via), &via);
	way = way_of();
	assert_true(way.routed);
	assert_memory_equal(way.next_hop, v6, 16);
}

/* Local, broadcast, prohibited and missing routes. */
static void destination_without_route_is_unreachable(void **state)
{
	static const uint8_t types[] = {RTN_LOCAL,     RTN_BROADCAST,   RTN_MULTICAST,
					RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT};

	(void)state;
	for (size_t i = 0; i < sizeof(types); i++) {
		begin_route(AF_INET, types[i]);
		assert_false(way_of().found);
	}
	begin_route(AF_INET, RTN_UNICAST);
	message->nlmsg_type = RTM_NEWADDR;
	assert_false(way_of().found);
}

static struct route_neigh neighbour_of(void)
{
	struct route_neigh n = {0};

	route_parse_neigh(&n, message);
	return n;
}

static void neighbour_states_are_parsed(void **state)
{
	static const struct {
		uint16_t nud;
		bool usable;
	} rows[] = {{NUD_REACHABLE, true},   {NUD_STALE, true},     {NUD_DELAY, true},
		    {NUD_PROBE, true},       {NUD_PERMANENT, true}, {NUD_NONE, false},
		    {NUD_INCOMPLETE, false}, {NUD_FAILED, false},   {NUD_NOARP, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct route_neigh n;

		begin_neighbour(rows[i].nud, v6, 16);
		mnl_attr_put(message, NDA_LLADDR, 6, mac);
		n = neighbour_of();
		assert_int_equal(n.ifindex, 5);
		assert_memory_equal(n.ip, v6, 16);
		assert_int_equal(n.has_mac, rows[i].usable);
		if (n.has_mac)
			assert_memory_equal(n.mac, mac, 6);
	}
	begin_neighbour(NUD_PERMANENT, v6, 16);
	mnl_attr_put(message, NDA_LLADDR, 6, zero_mac);
	assert_false(neighbour_of().has_mac);
	/* Without a MAC address, or with a short one, in any state. */
	begin_neighbour(NUD_REACHABLE, v4, 4);
	assert_false(neighbour_of().has_mac);
	mnl_attr_put(message, NDA_LLADDR, 5, mac);
	assert_false(neighbour_of().has_mac);
	assert_int_equal(neighbour_of().ip[12], 192);
}

static void take_damaged(uint32_t len)
{
	struct nlmsghdr *copy = malloc(len);
	struct route_neigh n = {0};
	struct route_result way = {0};

	assert_non_null(copy);
	memcpy(copy, room, len);
	copy->nlmsg_len = len;
	route_parse_route(&way, copy);
	route_parse_neigh(&n, copy);
	assert_true(!way.found || way.hop_limit);
	free(copy);
}

/* Each message is cut at every length and has every bit flipped: no read beyond its end. */
static void damaged_messages_are_ignored(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		uint32_t len, bit;

		if (kind == 0) {
			begin_route(AF_INET6, RTN_UNICAST);
			put_hop_limit(9);
			mnl_attr_put(message, RTA_GATEWAY, 16, v6);
		} else if (kind == 1) {
			begin_route(AF_INET, RTN_UNICAST);
			mnl_attr_put(message, RTA_VIA, 6, "\2\0\1\2\3\4");
		} else {
			begin_neighbour(NUD_REACHABLE, v6, 16);
			mnl_attr_put(message, NDA_LLADDR, 6, mac);
		}
		for (len = NLMSG_HDRLEN; len <= message->nlmsg_len; len++)
			take_damaged(len);
		for (bit = NLMSG_HDRLEN * 8; bit < message->nlmsg_len * 8; bit++) {
			room[bit / 8] ^= (uint8_t)(1 << bit % 8);
			take_damaged(message->nlmsg_len);
			room[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(route_leaves_by_the_interface_with_the_address,
				       forget_kernel),
		cmocka_unit_test_setup(kernel_is_asked_again_for_a_persistent_waiter,
				       forget_kernel),
		cmocka_unit_test_setup(lost_neighbour_of_the_kernel_delays_no_probe, forget_kernel),
		cmocka_unit_test_setup(probed_neighbour_of_the_kernel_stays_reachable,
				       forget_kernel),
		cmocka_unit_test_setup(probed_neighbour_gets_the_kernels_new_mac, forget_kernel),
		cmocka_unit_test_setup(silent_neighbour_does_not_return_from_the_kernels_entry,
				       forget_kernel),
		cmocka_unit_test_setup(kernels_answer_during_probes_counts, forget_kernel),
		cmocka_unit_test_setup(kernels_same_answer_during_probes_counts, forget_kernel),
		cmocka_unit_test_setup(kernels_answer_before_the_next_question_counts,
				       forget_kernel),
		cmocka_unit_test_setup(kernel_is_asked_for_the_interface_of_now, forget_kernel),
		cmocka_unit_test_setup(daemon_seeks_neighbours_that_are_on_link_by_a_route,
				       forget_kernel),
		cmocka_unit_test_setup(route_by_another_interface_does_not_count, forget_kernel),
		cmocka_unit_test_setup(router_gets_no_link_local_source, forget_kernel),
		cmocka_unit_test_setup(router_answers_all_its_peers, forget_kernel),
		cmocka_unit_test_setup(neighbour_with_the_mac_of_the_interface_does_not_count,
				       forget_kernel),
		cmocka_unit_test(on_link_destination_is_its_own_next_hop),
		cmocka_unit_test(routed_destination_has_its_gateway),
		cmocka_unit_test(destination_without_route_is_unreachable),
		cmocka_unit_test(neighbour_states_are_parsed),
		cmocka_unit_test(damaged_messages_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
