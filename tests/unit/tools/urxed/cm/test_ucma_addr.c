/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of /dev/infiniband/rdma_cm: binding, resolving and querying, compared with the kernel.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>

#include "descriptor_limit.h"
#include "ucma_programs.h"
#include "urxed/hostnet/route.h"

struct sockaddr_ib {
	uint16_t family, pkey;
	uint32_t flowinfo;
	uint8_t gid[16];
	uint64_t service_id, mask, scope_id;
};

static int bind_ib(uint32_t id, const struct sockaddr_ib *addr)
{
	struct rdma_ucm_bind request = {.id = id, .addr_size = sizeof(*addr)};

	memcpy(&request.addr, addr, sizeof(*addr));
	return COMMAND(&a, BIND, request, 0);
}

static struct rdma_ucm_query_addr_resp query(uint32_t id, uint32_t option)
{
	const struct rdma_ucm_query request = {.id = id, .option = option};
	struct rdma_ucm_query_addr_resp response = {0};

	assert_int_equal(COMMAND(&a, QUERY, request, sizeof(response)), 0);
	memcpy(&response, answer.out, answer.reply.out);
	return response;
}

/* librdmacm binds the wildcard to detect AF_IB; RoCE supports no other AF_IB address. */
static void af_ib_binds_the_wildcard_only(void **state)
{
	struct sockaddr_ib addr = {.family = CMA_AF_IB,
				   .service_id = htobe64(0x1060000),
				   .mask = htobe64(0xffffffffffff0000)};
	struct rdma_ucm_resolve_addr request = {.dst_size = sizeof(addr)};
	struct rdma_ucm_query_addr_resp response;
	uint32_t id;

	(void)state;
	id = create_ib(&a, QPT_RC);
	addr.gid[15] = 2;
	assert_int_equal(bind_ib(id, &addr), -ENODEV);
	/* The subnet prefix of most InfiniBand ports looks like a link-local IPv6 address. */
	addr.gid[0] = 0xfe;
	addr.gid[1] = 0x80;
	assert_int_equal(bind_ib(id, &addr), -ENODEV);
	memset(addr.gid, 0, sizeof(addr.gid));
	assert_int_equal(bind_ib(id, &addr), 0);
	response = query(id, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(response.src_size, sizeof(addr));
	memcpy(&addr, &response.src_addr, sizeof(addr));
	assert_int_equal(be64toh(addr.service_id) >> 16, RDMA_PS_TCP);
	assert_in_range(be64toh(addr.service_id) & 0xffff, CMA_PORT_FIRST, CMA_PORT_LAST);
	destroy(&a, id);

	id = create(&a, RDMA_PS_UDP, 1);
	addr.service_id = htobe64(0x1060000 | PORT);
	assert_int_equal(bind_ib(id, &addr), -EPROTONOSUPPORT);
	addr.service_id = htobe64(0x1110000 | PORT);
	assert_int_equal(bind_ib(id, &addr), 0);
	/* An AF_IB listener gets no request that was made for an IP address. */
	assert_int_equal(listen_on(&a, id, 5), 0);
	id = client(RDMA_PS_UDP);
	assert_int_equal(connect_to(&a, id, 0, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_UNREACHABLE).status, CM_SIDR_REJECT);

	request.id = create(&a, RDMA_PS_TCP, 1);
	memcpy(&request.dst_addr, &addr, sizeof(addr));
	assert_int_equal(COMMAND(&a, RESOLVE_ADDR, request, 0), -ENODEV);
}

/* As in the kernel, loopback has no device, except on a host without uplinks. */
static void loopback_has_no_device_if_an_uplink_exists(void **state)
{
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);

	(void)state;
	assert_int_equal(bind_to(&a, id, INADDR_LOOPBACK, 0), 0);
	assert_int_equal(be64toh(query(id, RDMA_USER_CM_QUERY_ADDR).node_guid),
			 cma_node_guid(&loop.host));
	for (uint32_t i = 0; i < HOST_ADDRESSES; i++)
		loop.host.addresses[i].uplink = 0;
	id = create(&a, RDMA_PS_TCP, 0xb);
	assert_int_equal(bind_to(&a, id, INADDR_LOOPBACK, 0), 0);
	assert_int_equal(query(id, RDMA_USER_CM_QUERY_ADDR).node_guid, 0);
	assert_int_equal(query(id, RDMA_USER_CM_QUERY_ADDR).src_size, sizeof(struct sockaddr_in));
}

/* As in the kernel, the peer's address has no value yet, but the family of the own one. */
static void bound_id_has_a_peer_address_of_its_family(void **state)
{
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);
	struct rdma_ucm_query_addr_resp response;
	struct sockaddr_in in;

	(void)state;
	assert_int_equal(bind_to(&a, id, INADDR_ANY, PORT), 0);
	response = query(id, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(response.dst_size, sizeof(in));
	memcpy(&in, &response.dst_addr, sizeof(in));
	assert_int_equal(in.sin_family, AF_INET);
	assert_int_equal(in.sin_port + in.sin_addr.s_addr, 0);
}

static void query_returns_addresses_and_path(void **state)
{
	static const uint8_t zero[16];
	struct rdma_ucm_query request = {.option = RDMA_USER_CM_QUERY_PATH};
	struct rdma_ucm_query_addr_resp response;
	struct rdma_ucm_query_path_resp paths;
	const uint8_t *own;
	struct sockaddr_ib ib;
	struct sockaddr_in in;
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);

	(void)state;
	response = query(id, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(response.src_size + response.dst_size + response.node_guid, 0);
	response = query(id, RDMA_USER_CM_QUERY_GID);
	memcpy(&ib, &response.src_addr, sizeof(ib));
	assert_memory_equal(ib.gid, zero, sizeof(ib.gid));
	id = client(RDMA_PS_TCP);
	response = query(id, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(response.src_size, sizeof(in));
	assert_int_equal(response.dst_size, sizeof(in));
	assert_int_equal(response.port_num, 1);
	/* As in the kernel: an Ethernet address has no P_Key. */
	assert_int_equal(response.pkey, 0);
	assert_int_equal(be64toh(response.node_guid), cma_node_guid(&loop.host));
	memcpy(&in, &response.dst_addr, sizeof(in));
	assert_int_equal(ntohs(in.sin_port), PORT);
	response = query(id, RDMA_USER_CM_QUERY_GID);
	memcpy(&ib, &response.dst_addr, sizeof(ib));
	assert_int_equal(response.dst_size, sizeof(ib));
	assert_int_equal(be64toh(ib.service_id), 0x1060000 | PORT);
	own = loop.host.addresses[cma_find_id(&loop.ucma.cma, id)->sgid_index].ip;
	assert_memory_equal(ib.gid, own, sizeof(ib.gid));

	request.id = id;
	assert_int_equal(COMMAND(&a, QUERY, request, 7), -ENOSPC);
	assert_int_equal(COMMAND(&a, QUERY, request, 79), 0);
	assert_int_equal(answer.reply.out, sizeof(paths));
	assert_int_equal(COMMAND(&a, QUERY, request, 400), 0);
	assert_int_equal(answer.reply.out, sizeof(paths) + sizeof(struct ib_path_rec_data));
	memcpy(&paths, answer.out, sizeof(paths));
	assert_int_equal(paths.num_paths, 1);
	/* The destination's GID in the record, and the hop limit behind the flow label. */
	assert_memory_equal(answer.out + 16 + 8, own, 16);
	assert_int_equal(answer.out[16 + 47], 64);
	request.option = RDMA_USER_CM_QUERY_ADDR;
	assert_int_equal(COMMAND(&a, QUERY, request, 271), -ENOSPC);
	request.option = 4;
	assert_int_equal(COMMAND(&a, QUERY, request, 400), -ENOSYS);
}

/* The errno value with which the kernel refuses each request for a route. */
static int refusal;

int __wrap_netlink_request(struct netlink *n, struct nlmsghdr *request, netlink_fn each, void *ctx);

int __wrap_netlink_request(struct netlink *n, struct nlmsghdr *request, netlink_fn each, void *ctx)
{
	(void)n;
	(void)each;
	(void)ctx;
	assert_int_equal(request->nlmsg_type, RTM_GETROUTE);
	return -refusal;
}

/* As in the kernel: routes of the types blackhole, unreachable and prohibit, in this order. */
static void route_that_refuses_packets_has_its_own_error(void **state)
{
	static const int refusals[] = {EINVAL, EHOSTUNREACH, EACCES},
			 others[] = {ENETUNREACH, EAGAIN};
	const struct iface_table ifaces = {.n_uplinks = 0};
	struct route route = {.ifaces = &ifaces, .neigh = &loop.neigh};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_ucm_resolve_ip request = {.timeout_ms = 1000};

	(void)state;
	loop.neigh.route = &route;
	request.id = create(&a, RDMA_PS_TCP, 0xa);
	in.sin_addr.s_addr = htonl(0x08080808);
	memcpy(&request.dst_addr, &in, sizeof(in));
	for (int i = 0; i < 3; i++) {
		refusal = refusals[i];
		assert_int_equal(COMMAND(&a, RESOLVE_IP, request, 0), -refusal);
	}
	for (int i = 0; i < 2; i++) {
		refusal = others[i];
		assert_int_equal(COMMAND(&a, RESOLVE_IP, request, 0), -ENETUNREACH);
	}
	expect_no_event(&a);
	loop.neigh.route = NULL;
}

static void resolve_without_route_fails_at_once(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_ucm_resolve_ip request = {.timeout_ms = 1000};

	(void)state;
	request.id = create(&a, RDMA_PS_TCP, 0xa);
	in.sin_addr.s_addr = htonl(0x08080808);
	memcpy(&request.dst_addr, &in, sizeof(in));
	assert_int_equal(COMMAND(&a, RESOLVE_IP, request, 0), -ENETUNREACH);
	expect_no_event(&a);
	/* The ID may resolve another destination. */
	assert_int_equal(resolve(&a, request.id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
}

static int resolve_ip(uint32_t id, const char *ip)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_ucm_resolve_ip request = {.id = id, .timeout_ms = 1000};

	assert_int_equal(inet_pton(AF_INET, ip, &in.sin_addr), 1);
	memcpy(&request.dst_addr, &in, sizeof(in));
	return COMMAND(&a, RESOLVE_IP, request, 0);
}

static void expect_source(uint32_t id, const char *ip)
{
	struct rdma_ucm_query request = {.option = RDMA_USER_CM_QUERY_ADDR, .id = id};
	struct rdma_ucm_query_addr_resp response;
	struct sockaddr_in in;

	assert_int_equal(COMMAND(&a, QUERY, request, sizeof(response)), 0);
	memcpy(&response, answer.out, sizeof(response));
	memcpy(&in, &response.src_addr, sizeof(in));
	assert_int_equal(in.sin_addr.s_addr, inet_addr(ip));
}

/* As in the kernel, loopback is no source of packets to other hosts. */
static void loopback_does_not_reach_other_hosts(void **state)
{
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);

	(void)state;
	assert_int_equal(host_add_text(&loop.host, "192.0.2.1/24", 0), 0);
	assert_int_equal(bind_to(&a, id, INADDR_LOOPBACK, 0), 0);
	assert_int_equal(resolve_ip(id, "192.0.2.9"), -EINVAL);
	expect_no_event(&a);
	assert_int_equal(resolve_ip(id, "192.0.2.1"), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
}

/* On a host without an interface of its own, programs name 127.0.0.1 and a group. */
static void loopback_reaches_multicast_groups(void **state)
{
	uint32_t id = create(&a, RDMA_PS_UDP, 0xa);

	(void)state;
	assert_int_equal(bind_to(&a, id, INADDR_LOOPBACK, 0), 0);
	assert_int_equal(resolve_ip(id, "230.0.0.1"), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
}

/* As in the kernel, the ID may use another source for the next destination. */
static void failed_resolve_binds_to_no_source(void **state)
{
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);

	(void)state;
	assert_int_equal(host_add_text(&loop.host, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_add_text(&loop.host, "198.51.100.1/24", 0), 0);
	assert_int_equal(resolve_ip(id, "192.0.2.9"), 0);
	loop_pass(&loop, 2 * SECOND);
	assert_int_equal((int)get_event(&a, CMA_ADDR_ERROR).status, -ETIMEDOUT);
	expect_source(id, "0.0.0.0");
	assert_int_equal(resolve_ip(id, "198.51.100.1"), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	expect_source(id, "198.51.100.1");
}

static struct in_addr peer_of(const struct loop_program *p, uint32_t id)
{
	struct rdma_ucm_query request = {.option = RDMA_USER_CM_QUERY_ADDR, .id = id};
	struct rdma_ucm_query_addr_resp response;
	struct sockaddr_in in;

	assert_int_equal(COMMAND(p, QUERY, request, sizeof(response)), 0);
	memcpy(&response, answer.out, sizeof(response));
	memcpy(&in, &response.dst_addr, sizeof(in));
	assert_int_equal(in.sin_family, AF_INET);
	return in.sin_addr;
}

/* On a host without IPv4 addresses, loopback and the wildcard are addresses of this host, too. */
static void ipv4_loopback_works_with_ipv6_addresses_only(void **state)
{
	static const char *const destinations[] = {"127.0.0.1", "0.0.0.0"};
	uint32_t id;

	(void)state;
	for (uint32_t i = 0; i < HOST_ADDRESSES; i++)
		if (ip_is_v4(loop.host.addresses[i].ip))
			loop.host.addresses[i].valid = false;
	listener(5);
	for (uint32_t i = 0; i < 2; i++) {
		id = create(&a, RDMA_PS_TCP, 0xa);
		assert_int_equal(resolve_ip(id, destinations[i]), 0);
		get_event(&a, CMA_ADDR_RESOLVED);
		expect_source(id, "127.0.0.1");
		assert_int_equal(peer_of(&a, id).s_addr, htonl(INADDR_LOOPBACK));
		assert_int_equal(resolve_route(&a, id), 0);
		get_event(&a, CMA_ROUTE_RESOLVED);
		assert_int_equal(connect_to(&a, id, LOOP_QPN + i, 0), 0);
		loop_run(&loop);
		id = get_event(&b, CMA_CONNECT_REQUEST).id;
		assert_int_equal(peer_of(&b, id).s_addr, htonl(INADDR_LOOPBACK));
	}
}

static struct host_address *find_own(const char *ip)
{
	uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff};

	assert_int_equal(inet_pton(AF_INET, ip, mapped + 12), 1);
	return loop.host.addresses + (host_find_address(&loop.host, mapped) - loop.host.addresses);
}

static void expect_source_is_gone(uint32_t id)
{
	assert_int_equal(resolve_ip(id, "198.51.100.1"), -EINVAL);
	assert_int_equal(resolve_ip(id, "198.51.100.2"), -EINVAL);
	assert_int_equal(resolve(&a, id), -EINVAL);
	expect_no_event(&a);
}

/* As in the kernel, an ID keeps its address: no other address of the host becomes the source. */
static void lost_address_is_no_source(void **state)
{
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa), resolved = create(&a, RDMA_PS_TCP, 0xa);
	struct rdma_ucm_query_addr_resp response;
	struct host_address *lost;
	struct sockaddr_ib gid;

	(void)state;
	assert_int_equal(host_add_text(&loop.host, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_add_text(&loop.host, "198.51.100.1/24", 0), 0);
	lost = find_own("192.0.2.1");
	assert_int_equal(bind_to(&a, id, 0xc0000201, 0), 0);
	assert_int_equal(resolve_ip(resolved, "192.0.2.1"), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	lost->valid = false;
	expect_source_is_gone(id);
	/* The entry of the GID table now belongs to another address. */
	lost->valid = true;
	lost->ip[15]++;
	expect_source_is_gone(id);
	response = query(resolved, RDMA_USER_CM_QUERY_GID);
	memcpy(&gid, &response.src_addr, sizeof(gid));
	assert_memory_equal(gid.gid, in6addr_any.s6_addr, sizeof(gid.gid));
	lost->ip[15]--;
	assert_int_equal(resolve_ip(id, "198.51.100.1"), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
}

static struct sockaddr_in6 sockaddr6(const char *ip)
{
	struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};

	assert_int_equal(inet_pton(AF_INET6, ip, &in.sin6_addr), 1);
	return in;
}

static int resolve_ip6(uint32_t id, const char *ip)
{
	const struct rdma_ucm_resolve_ip request = {
		.id = id, .timeout_ms = 1000, .dst_addr = sockaddr6(ip)};

	return COMMAND(&a, RESOLVE_IP, request, 0);
}

static uint32_t create_at(const char *ip)
{
	const struct rdma_ucm_bind_ip request = {.id = create(&a, RDMA_PS_TCP, 0xa),
						 .addr = sockaddr6(ip)};

	assert_int_equal(COMMAND(&a, BIND_IP, request, 0), 0);
	return request.id;
}

/* getaddrinfo(3) returns such addresses on a host that has IPv6 addresses only. */
static void ipv4_mapped_destination_uses_an_ipv4_source(void **state)
{
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);

	(void)state;
	assert_int_equal(host_add_text(&loop.host, "192.0.2.1/24", 0), 0);
	assert_int_equal(resolve_ip6(id, "::ffff:192.0.2.2"), 0);
	assert_ptr_equal(&loop.host.addresses[cma_find_id(&loop.ucma.cma, id)->sgid_index],
			 find_own("192.0.2.1"));
	id = create(&a, RDMA_PS_TCP, 0xa);
	assert_int_equal(resolve_ip6(id, "::ffff:127.0.0.1"), 0);
	assert_true(ip_is_v4(cma_own_address(cma_find_id(&loop.ucma.cma, id))->ip));
}

/* As in the kernel, no route leads from an IPv6 address to an IPv4 address, or back. */
static void source_does_not_reach_the_other_family(void **state)
{
	uint32_t id;

	(void)state;
	assert_int_equal(host_add_text(&loop.host, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_add_text(&loop.host, "2001:db8::1/64", 0), 0);
	id = create_at("2001:db8::1");
	assert_int_equal(resolve_ip6(id, "::ffff:192.0.2.2"), -ENETUNREACH);
	assert_int_equal(resolve_ip6(id, "::ffff:192.0.2.1"), -ENETUNREACH);
	assert_int_equal(resolve_ip6(id, "::ffff:127.0.0.1"), -ENETUNREACH);
	expect_no_event(&a);
	assert_int_equal(resolve_ip6(id, "::1"), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	id = create_at("::ffff:192.0.2.1");
	assert_int_equal(resolve_ip6(id, "2001:db8::2"), -ENETUNREACH);
	assert_int_equal(resolve_ip6(id, "::"), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
}

/* As in the kernel, a program can choose the flow label by its source address. */
static void flow_label_is_that_of_the_source(void **state)
{
	struct rdma_ucm_bind_ip request = {.id = create(&a, RDMA_PS_TCP, 0xa)};
	struct rdma_ucm_query_addr_resp response;
	struct sockaddr_in6 in;

	(void)state;
	assert_int_equal(host_add_text(&loop.host, "2001:db8::1/64", 0), 0);
	request.addr = sockaddr6("2001:db8::1");
	request.addr.sin6_flowinfo = htonl(0xf0012345);
	assert_int_equal(COMMAND(&a, BIND_IP, request, 0), 0);
	response = query(request.id, RDMA_USER_CM_QUERY_ADDR);
	memcpy(&in, &response.src_addr, sizeof(in));
	assert_int_equal(ntohl(in.sin6_flowinfo), 0xf0012345);
	assert_int_equal(resolve_ip6(request.id, "2001:db8::1"), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	assert_int_equal(cma_path(cma_find_id(&loop.ucma.cma, request.id)).flow_label, 0x12345);
}

static void listener_accepts_its_address_family(void **state)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	struct rdma_ucm_bind_ip request = {.id = 0};
	uint32_t id, server;

	(void)state;
	/* A listener at the IPv4 wildcard gets no requests by IPv6. */
	server = listener(5);
	id = create(&a, RDMA_PS_TCP, 0xa);
	assert_int_equal(resolve6(&a, id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&a, id), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_CONSUMER);
	destroy(&b, server);
	/* A link-local address needs a scope. */
	request.id = create(&b, RDMA_PS_TCP, 0xb);
	any.sin6_addr.s6_addr[0] = 0xfe;
	any.sin6_addr.s6_addr[1] = 0x80;
	request.addr = any;
	assert_int_equal(COMMAND(&b, BIND_IP, request, 0), -EINVAL);
	/* A listener at the IPv6 wildcard gets both. */
	any.sin6_addr = in6addr_any;
	request.addr = any;
	assert_int_equal(COMMAND(&b, BIND_IP, request, 0), 0);
	assert_int_equal(listen_on(&b, request.id, 5), 0);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	get_event(&b, CMA_CONNECT_REQUEST);
}

/* An ID that is bound to the host's link-local address on an interface. */
static uint32_t create_in_scope(uint32_t ifindex, uint16_t port, uint64_t uid)
{
	struct sockaddr_in6 in = {
		.sin6_family = AF_INET6, .sin6_scope_id = ifindex, .sin6_port = htons(port)};
	struct rdma_ucm_bind_ip request = {.id = create(&b, RDMA_PS_TCP, uid)};

	memcpy(&in.sin6_addr, loop.host.addresses[0].ip, sizeof(in.sin6_addr));
	request.addr = in;
	assert_int_equal(COMMAND(&b, BIND_IP, request, 0), 0);
	return request.id;
}

static uint8_t index_in_scope(uint32_t ifindex)
{
	return cma_find_id(&loop.ucma.cma, create_in_scope(ifindex, 0, 0xb))->sgid_index;
}

/* Two interfaces have the same link-local address, as that of a VLAN and its parent. */
static struct host_address *add_vlan(void)
{
	struct host_address *own = loop.host.addresses;

	assert_true(own[0].valid && own[0].ip[0] == 0xfe);
	own[3] = own[0];
	own[3].vlan = 100;
	return own;
}

static void scope_chooses_among_link_local_addresses(void **state)
{
	struct host_address *own = add_vlan();

	(void)state;
	assert_int_equal(index_in_scope(1), 0);
	/* Interface 1 is lo in every network namespace. */
	strcpy(own[3].ndev, "lo");
	assert_int_equal(index_in_scope(1), 3);
	strcpy(own[0].ndev, "eth0");
	assert_int_equal(index_in_scope(1), 3);
	/* No address is on an interface that does not exist. */
	assert_int_equal(index_in_scope(0x7ffffff), 0);
}

/* The C library finds the name of an interface only with a free descriptor. */
static void scope_counts_without_free_descriptors(void **state)
{
	struct host_address *own = add_vlan();
	struct rlimit limit;
	uint8_t index;

	(void)state;
	strcpy(own[0].ndev, "eth0");
	own[0].ifindex = 0x7ffffff;
	strcpy(own[3].ndev, "lo");
	own[3].ifindex = 1;
	limit = descriptor_limit_reach();
	index = index_in_scope(1);
	descriptor_limit_restore(&limit);
	assert_int_equal(index, 3);
	assert_int_equal(index_in_scope(0x7ffffff), 0);
	assert_int_equal(index_in_scope(0x7fffffe), 0);
}

/* Listeners on both interfaces share a port, and each gets the requests of its interface. */
static void link_local_listener_belongs_to_its_interface(void **state)
{
	struct host_address *own = add_vlan();
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);
	struct rdma_ucm_resolve_ip resolve = {.id = id, .timeout_ms = 1000};

	(void)state;
	strcpy(own[0].ndev, "eth0");
	strcpy(own[3].ndev, "lo");
	assert_int_equal(listen_on(&b, create_in_scope(0x7ffffff, PORT, 0xe0), 5), 0);
	assert_int_equal(listen_on(&b, create_in_scope(1, PORT, 0xe3), 5), 0);
	resolve.dst_addr = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = htons(PORT), .sin6_scope_id = 0x7ffffff};
	memcpy(&resolve.dst_addr.sin6_addr, own[0].ip, sizeof(own[0].ip));
	assert_int_equal(COMMAND(&a, RESOLVE_IP, resolve, 0), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&a, id), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	assert_int_equal(loop.flying[0].path.sgid_index, 0);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_CONNECT_REQUEST).uid, 0xe0);
}

static void link_local_source_has_the_scope_of_the_destination(void **state)
{
	struct sockaddr_in6 in = {
		.sin6_family = AF_INET6, .sin6_port = htons(PORT), .sin6_scope_id = 0x7ffffff};
	struct rdma_ucm_resolve_ip request = {.id = create(&a, RDMA_PS_TCP, 0xa),
					      .timeout_ms = 1000};
	struct rdma_ucm_query query = {.option = RDMA_USER_CM_QUERY_ADDR, .id = request.id};
	struct rdma_ucm_query_addr_resp response;

	(void)state;
	memcpy(&in.sin6_addr, loop.host.addresses[0].ip, sizeof(in.sin6_addr));
	memcpy(&request.dst_addr, &in, sizeof(in));
	assert_int_equal(COMMAND(&a, RESOLVE_IP, request, 0), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	assert_int_equal(COMMAND(&a, QUERY, query, sizeof(response)), 0);
	memcpy(&response, answer.out, sizeof(response));
	memcpy(&in, &response.src_addr, sizeof(in));
	assert_int_equal(in.sin6_scope_id, 0x7ffffff);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(af_ib_binds_the_wildcard_only),
		TEST(loopback_has_no_device_if_an_uplink_exists),
		TEST(bound_id_has_a_peer_address_of_its_family),
		TEST(query_returns_addresses_and_path),
		TEST(route_that_refuses_packets_has_its_own_error),
		TEST(resolve_without_route_fails_at_once),
		TEST(loopback_does_not_reach_other_hosts),
		TEST(loopback_reaches_multicast_groups),
		TEST(failed_resolve_binds_to_no_source),
		TEST(ipv4_loopback_works_with_ipv6_addresses_only),
		TEST(lost_address_is_no_source),
		TEST(ipv4_mapped_destination_uses_an_ipv4_source),
		TEST(source_does_not_reach_the_other_family),
		TEST(flow_label_is_that_of_the_source),
		TEST(listener_accepts_its_address_family),
		TEST(scope_chooses_among_link_local_addresses),
		TEST(scope_counts_without_free_descriptors),
		TEST(link_local_listener_belongs_to_its_interface),
		TEST(link_local_source_has_the_scope_of_the_destination),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
