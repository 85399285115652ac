/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* IDs of rdma_cm before a connection: addresses, ports, options, and the order of calls. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <linux/capability.h>
#include <string.h>

#include "cm.h"
#include "hca.h"
#include "privilege.h"
#include "rule.h"
#include "suite.h"

static int bind_to(struct rdma_cm_id *id, union cm_addr addr)
{
	return cm_errno(rdma_bind_addr(id, &addr.any));
}

static uint16_t port_of(struct rdma_cm_id *id)
{
	return ntohs(rdma_get_src_port(id));
}

static int set_option(struct rdma_cm_id *id, int name, const void *value, size_t len)
{
	return cm_errno(rdma_set_option(id, RDMA_OPTION_ID, name, (void *)(uintptr_t)value, len));
}

static void test_port_spaces(void)
{
	static const enum rdma_port_space known[] = {RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP,
						     RDMA_PS_IB};
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		id = cm_create(channel, known[i]);
		rule(id->ps == known[i], "an ID of port space %#x can be created", known[i]);
		rule_errno(0, cm_errno(rdma_destroy_id(id)), "an ID can be destroyed");
	}
	rule_errno(EINVAL, cm_errno(rdma_create_id(channel, &id, NULL, 0x1234)),
		   "port space 0x1234 is refused");
}

static void test_bind_address(void)
{
	union cm_addr foreign = {.v4 = {.sin_family = AF_INET}};
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP);

	MUST(inet_pton(AF_INET, "203.0.113.77", &foreign.v4.sin_addr) == 1);
	rule_errno(EADDRNOTAVAIL, bind_to(id, foreign),
		   "an address of another host cannot be bound");
	rule_errno(0, bind_to(id, cm_own(0)), "an own address can be bound after a failed bind");
	rule(port_of(id) >= 1024, "binding to port 0 chooses a free port");
	rule(id->verbs && !strcmp(ibv_get_device_name(id->verbs->device),
				  ibv_get_device_name(hca.context->device)),
	     "a bound ID uses the device with the address");
	rule_errno(EINVAL, bind_to(id, cm_own(0)), "a second bind is refused");
	id = cm_create(channel, RDMA_PS_TCP);
	rule_errno(0, bind_to(id, cm_any(AF_INET, 0)), "the wildcard address can be bound");
	rule(!id->verbs, "an ID with the wildcard address has no device");
}

static void test_port_is_exclusive(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *a = cm_create(channel, RDMA_PS_TCP),
			  *b = cm_create(channel, RDMA_PS_TCP),
			  *other = cm_create(channel, RDMA_PS_UDP);
	uint16_t port;

	MUST(!bind_to(a, cm_own(0)));
	port = port_of(a);
	rule_errno(EADDRINUSE, bind_to(b, cm_own(port)),
		   "a port of an address cannot be bound twice");
	rule_errno(EADDRNOTAVAIL, bind_to(b, cm_any(AF_INET, port)),
		   "a bound port cannot be bound to the wildcard address");
	rule_errno(0, bind_to(other, cm_own(port)), "another port space has its own ports");
	MUST(!rdma_destroy_id(a));
	rule_errno(0, bind_to(b, cm_any(AF_INET, port)), "destroying an ID frees its port");
	a = cm_create(channel, RDMA_PS_TCP);
	rule_errno(EADDRNOTAVAIL, bind_to(a, cm_own(port)),
		   "a wildcard port cannot be bound to an address");
}

static void test_privileged_ports_need_a_capability(void)
{
	struct rdma_cm_id *id;

	privilege_drop(CAP_NET_BIND_SERVICE);
	id = cm_create(cm_open(), RDMA_PS_TCP);
	rule_errno(EACCES, bind_to(id, cm_own(1023)), "ports below 1024 need CAP_NET_BIND_SERVICE");
}

static struct rdma_cm_id *create_sharing_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP);
	int on = 1;

	MUST(!set_option(id, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	return id;
}

static void test_reuseaddr_shares_a_port(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *a = create_sharing_id(channel), *b = create_sharing_id(channel), *c;
	int off = 0;

	MUST(!bind_to(a, cm_own(0)));
	rule_errno(0, bind_to(b, cm_own(port_of(a))), "two IDs with REUSEADDR can share a port");
	c = cm_create(channel, RDMA_PS_TCP);
	rule_errno(EADDRINUSE, bind_to(c, cm_own(port_of(a))),
		   "an ID without REUSEADDR cannot share the port");
	rule_errno(EINVAL, set_option(a, RDMA_OPTION_ID_REUSEADDR, &off, sizeof(off)),
		   "REUSEADDR of a bound ID cannot be cleared");
	rule_errno(EADDRINUSE, cm_errno(rdma_listen(a, 1)),
		   "an ID with a shared port cannot listen");
	MUST(!rdma_destroy_id(b));
	rule_errno(0, cm_errno(rdma_listen(a, 1)), "an ID with an unshared port can listen");
	rule_errno(EADDRINUSE, bind_to(create_sharing_id(channel), cm_own(port_of(a))),
		   "the port of a listener cannot be shared");
}

static void test_afonly_separates_families(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *v4 = cm_create(channel, RDMA_PS_TCP),
			  *v6 = cm_create(channel, RDMA_PS_TCP);
	int on = 1;

	MUST(!bind_to(v4, cm_any(AF_INET, 0)));
	rule_errno(EADDRNOTAVAIL, bind_to(v6, cm_any(AF_INET6, port_of(v4))),
		   "the IPv6 wildcard includes IPv4");
	rule_errno(0, set_option(v6, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), "AFONLY can be set");
	rule_errno(0, bind_to(v6, cm_any(AF_INET6, port_of(v4))),
		   "with AFONLY both families can have the port");
}

static void test_options(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP), *ud;
	uint8_t value[80] = {14};

	MUST(!bind_to(id, cm_own(0)));
	rule_errno(0, set_option(id, RDMA_OPTION_ID_TOS, value, 1),
		   "the type of service has one byte");
	rule_errno(EINVAL, set_option(id, RDMA_OPTION_ID_TOS, value, 4),
		   "a type of service of four bytes is refused");
	rule_errno(0, set_option(id, RDMA_OPTION_ID_ACK_TIMEOUT, value, 1),
		   "the ACK timeout has one byte");
	rule_errno(EINVAL, set_option(id, RDMA_OPTION_ID_ACK_TIMEOUT, value, 2),
		   "an ACK timeout of two bytes is refused");
	rule_errno(EINVAL, set_option(id, RDMA_OPTION_ID_REUSEADDR, value, 1),
		   "REUSEADDR of one byte is refused");
	rule_errno(EINVAL, set_option(id, RDMA_OPTION_ID_AFONLY, value, 8),
		   "AFONLY of eight bytes is refused");
	rule_errno(ENOSYS, set_option(id, 99, value, 1), "option 99 is refused");
	rule_errno(ENOSYS, cm_errno(rdma_set_option(id, 9, 0, value, 1)),
		   "option level 9 is refused");
	rule_errno(EINVAL,
		   cm_errno(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, value, 71)),
		   "a truncated path record is refused");
	rule_errno(EINVAL,
		   cm_errno(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, value, 72)),
		   "a one-way path record is refused");
	ud = cm_create(channel, RDMA_PS_UDP);
	rule_errno(EINVAL, set_option(ud, RDMA_OPTION_ID_ACK_TIMEOUT, value, 1),
		   "an ACK timeout for UD is refused");
}

static void test_calls_out_of_order_are_refused(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP);
	struct rdma_conn_param param = cm_param(0);

	MUST(!bind_to(id, cm_own(0)));
	rule_errno(EINVAL, cm_errno(rdma_resolve_route(id, 1000)),
		   "a route cannot be resolved without an address");
	rule_errno(EINVAL, cm_errno(rdma_connect(id, &param)),
		   "an ID without a route cannot connect");
	rule_errno(EINVAL, cm_errno(rdma_disconnect(id)), "an unconnected ID cannot disconnect");
	rule_errno(EINVAL, cm_errno(rdma_reject(id, NULL, 0)),
		   "an ID without a request cannot reject");
	rule_errno(0, cm_errno(rdma_listen(id, 1)), "a bound ID can listen");
	rule_errno(EINVAL, cm_errno(rdma_listen(id, 1)), "a second listen is refused");
	rule_errno(EINVAL, cm_errno(rdma_resolve_route(id, 1000)),
		   "a listener cannot resolve a route");
	id = cm_create(channel, RDMA_PS_TCP);
	rule_errno(0, cm_errno(rdma_listen(id, 1)),
		   "an unbound ID listens on the wildcard address");
}

/* AF_IB addresses, as far as Linux supports them on RoCE. */
static void test_af_ib_addresses(void)
{
	struct sockaddr_ib addr = {.sib_family = AF_IB,
				   .sib_sid = htobe64(RDMA_IB_IP_PS_TCP),
				   .sib_sid_mask = htobe64(RDMA_IB_IP_PS_MASK)};
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_IB);

	memcpy(&addr.sib_addr, hca.gid.raw, sizeof(addr.sib_addr));
	rule_errno(ENODEV, cm_errno(rdma_bind_addr(id, (struct sockaddr *)&addr)),
		   "a RoCE GID cannot be bound as an AF_IB address");
	memset(&addr.sib_addr, 0, sizeof(addr.sib_addr));
	rule_errno(0, cm_errno(rdma_bind_addr(id, (struct sockaddr *)&addr)),
		   "the AF_IB wildcard can be bound");
}

/* An address of the local network without a host. */
static void test_unreachable_host_raises_error_event(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP);
	union cm_addr to = cm_own(1), own = cm_own(1);
	int rc;

	if (to.any.sa_family != AF_INET)
		skip_here("the address is none of IPv4");
	to.v4.sin_addr.s_addr ^= htonl(0x55);
	rc = cm_errno(rdma_resolve_addr(id, NULL, &to.any, 1000));
	/* A host without a network reports the error at once. */
	if (rc)
		rule_errno(ENETUNREACH, rc,
			   "without a route to the network the address is unreachable");
	else
		rule(cm_await(channel, RDMA_CM_EVENT_ADDR_ERROR) == -ETIMEDOUT,
		     "the address of a missing host times out");
	rule_errno(0, cm_errno(rdma_resolve_addr(id, NULL, &own.any, 1000)),
		   "the ID can resolve another address afterwards");
	MUST(!cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
}

const struct test cm_id_tests[] = {
	{"spaces", test_port_spaces},
	{"binding", test_bind_address},
	{"ports", test_port_is_exclusive},
	{"unprivileged_ports", test_privileged_ports_need_a_capability},
	{"sharing", test_reuseaddr_shares_a_port},
	{"families", test_afonly_separates_families},
	{"options", test_options},
	{"order", test_calls_out_of_order_are_refused},
	{"gids", test_af_ib_addresses},
	{"unreachable", test_unreachable_host_raises_error_event},
	{NULL, NULL},
};
