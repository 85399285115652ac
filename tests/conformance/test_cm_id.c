/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* IDs of rdma_cm before they are connected: addresses, ports, options, and the order of things. */
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

static void spaces(void)
{
	static const enum rdma_port_space known[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB};
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		id = cm_create(channel, known[i]);
		rule(id->ps == known[i], "an ID is in the port space %#x", known[i]);
		rule_errno(0, cm_errno(rdma_destroy_id(id)), "and goes");
	}
	rule_errno(EINVAL, cm_errno(rdma_create_id(channel, &id, NULL, 0x1234)),
		   "there is no port space 0x1234");
}

static void binding(void)
{
	union cm_addr foreign = {.v4 = {.sin_family = AF_INET}};
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP);

	MUST(inet_pton(AF_INET, "203.0.113.77", &foreign.v4.sin_addr) == 1);
	rule_errno(EADDRNOTAVAIL, bind_to(id, foreign), "another host's address cannot be had");
	rule_errno(0, bind_to(id, cm_own(0)), "one's own can, after that");
	rule(port_of(id) >= 1024, "with a port that was free");
	rule(id->verbs && !strcmp(ibv_get_device_name(id->verbs->device),
				  ibv_get_device_name(hca.context->device)),
	     "and the device that has the address");
	rule_errno(EINVAL, bind_to(id, cm_own(0)), "once");
	id = cm_create(channel, RDMA_PS_TCP);
	rule_errno(0, bind_to(id, cm_any(AF_INET, 0)), "all addresses can be had together");
	rule(!id->verbs, "which are no device's");
}

static void ports(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *a = cm_create(channel, RDMA_PS_TCP),
			  *b = cm_create(channel, RDMA_PS_TCP),
			  *other = cm_create(channel, RDMA_PS_UDP);
	uint16_t port;

	MUST(!bind_to(a, cm_own(0)));
	port = port_of(a);
	rule_errno(EADDRINUSE, bind_to(b, cm_own(port)), "an address has each port once");
	rule_errno(EADDRNOTAVAIL, bind_to(b, cm_any(AF_INET, port)),
		   "nor can it be had of all addresses");
	rule_errno(0, bind_to(other, cm_own(port)), "another port space has its own");
	MUST(!rdma_destroy_id(a));
	rule_errno(0, bind_to(b, cm_any(AF_INET, port)), "who goes gives its port back");
	a = cm_create(channel, RDMA_PS_TCP);
	rule_errno(EADDRNOTAVAIL, bind_to(a, cm_own(port)), "who has all addresses has each");
}

static void unprivileged_ports(void)
{
	struct rdma_cm_id *id;

	privilege_drop(CAP_NET_BIND_SERVICE);
	id = cm_create(cm_open(), RDMA_PS_TCP);
	rule_errno(EACCES, bind_to(id, cm_own(1023)), "ports below 1024 want CAP_NET_BIND_SERVICE");
}

static struct rdma_cm_id *sharer(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP);
	int on = 1;

	MUST(!set_option(id, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	return id;
}

static void sharing(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *a = sharer(channel), *b = sharer(channel), *c;
	int off = 0;

	MUST(!bind_to(a, cm_own(0)));
	rule_errno(0, bind_to(b, cm_own(port_of(a))), "two share a port if both will");
	c = cm_create(channel, RDMA_PS_TCP);
	rule_errno(EADDRINUSE, bind_to(c, cm_own(port_of(a))), "but not with one who will not");
	rule_errno(EINVAL, set_option(a, RDMA_OPTION_ID_REUSEADDR, &off, sizeof(off)),
		   "who is bound sticks to it");
	rule_errno(EADDRINUSE, cm_errno(rdma_listen(a, 1)), "nobody listens at a shared port");
	MUST(!rdma_destroy_id(b));
	rule_errno(0, cm_errno(rdma_listen(a, 1)), "who has it alone does");
	rule_errno(EADDRINUSE, bind_to(sharer(channel), cm_own(port_of(a))),
		   "and shares it no more");
}

static void families(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *v4 = cm_create(channel, RDMA_PS_TCP),
			  *v6 = cm_create(channel, RDMA_PS_TCP);
	int on = 1;

	MUST(!bind_to(v4, cm_any(AF_INET, 0)));
	rule_errno(EADDRNOTAVAIL, bind_to(v6, cm_any(AF_INET6, port_of(v4))),
		   "all of IPv6 has IPv4, too");
	rule_errno(0, set_option(v6, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)),
		   "unless it is for its family only");
	rule_errno(0, bind_to(v6, cm_any(AF_INET6, port_of(v4))), "then both have the port");
}

static void options(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP), *ud;
	uint8_t value[80] = {14};

	MUST(!bind_to(id, cm_own(0)));
	rule_errno(0, set_option(id, RDMA_OPTION_ID_TOS, value, 1), "a type of service is a byte");
	rule_errno(EINVAL, set_option(id, RDMA_OPTION_ID_TOS, value, 4), "not four");
	rule_errno(0, set_option(id, RDMA_OPTION_ID_ACK_TIMEOUT, value, 1),
		   "an ACK timeout is a byte");
	rule_errno(EINVAL, set_option(id, RDMA_OPTION_ID_ACK_TIMEOUT, value, 2), "not two");
	rule_errno(EINVAL, set_option(id, RDMA_OPTION_ID_REUSEADDR, value, 1),
		   "who shares says so by four bytes");
	rule_errno(EINVAL, set_option(id, RDMA_OPTION_ID_AFONLY, value, 8), "not by eight");
	rule_errno(ENOSYS, set_option(id, 99, value, 1), "there is no option 99");
	rule_errno(ENOSYS, cm_errno(rdma_set_option(id, 9, 0, value, 1)), "nor a level 9");
	rule_errno(EINVAL,
		   cm_errno(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, value, 71)),
		   "a path is whole");
	rule_errno(EINVAL,
		   cm_errno(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, value, 72)),
		   "and goes there and back");
	ud = cm_create(channel, RDMA_PS_UDP);
	rule_errno(EINVAL, set_option(ud, RDMA_OPTION_ID_ACK_TIMEOUT, value, 1),
		   "datagrams are not acknowledged");
}

static void order(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP);
	struct rdma_conn_param param = cm_param(0);

	MUST(!bind_to(id, cm_own(0)));
	rule_errno(EINVAL, cm_errno(rdma_resolve_route(id, 1000)),
		   "without an address there is no route");
	rule_errno(EINVAL, cm_errno(rdma_connect(id, &param)), "without a route no connection");
	rule_errno(EINVAL, cm_errno(rdma_disconnect(id)), "which cannot end either");
	rule_errno(EINVAL, cm_errno(rdma_reject(id, NULL, 0)), "without a request no rejection");
	rule_errno(0, cm_errno(rdma_listen(id, 1)), "who is bound may listen");
	rule_errno(EINVAL, cm_errno(rdma_listen(id, 1)), "once");
	rule_errno(EINVAL, cm_errno(rdma_resolve_route(id, 1000)), "and goes nowhere any more");
	id = cm_create(channel, RDMA_PS_TCP);
	rule_errno(0, cm_errno(rdma_listen(id, 1)), "who is not bound listens everywhere");
}

/* What Linux has of it on RoCE. */
static void gids(void)
{
	struct sockaddr_ib addr = {.sib_family = AF_IB,
				   .sib_sid = htobe64(RDMA_IB_IP_PS_TCP),
				   .sib_sid_mask = htobe64(RDMA_IB_IP_PS_MASK)};
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_IB);

	memcpy(&addr.sib_addr, hca.gid.raw, sizeof(addr.sib_addr));
	rule_errno(ENODEV, cm_errno(rdma_bind_addr(id, (struct sockaddr *)&addr)),
		   "a GID is no address of AF_IB");
	memset(&addr.sib_addr, 0, sizeof(addr.sib_addr));
	rule_errno(0, cm_errno(rdma_bind_addr(id, (struct sockaddr *)&addr)), "the wildcard is");
}

/* A host of our network that is not there. */
static void unreachable(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP);
	union cm_addr to = cm_own(1), own = cm_own(1);
	int rc;

	if (to.any.sa_family != AF_INET)
		skip_here("the address is none of IPv4");
	to.v4.sin_addr.s_addr ^= htonl(0x55);
	rc = cm_errno(rdma_resolve_addr(id, NULL, &to.any, 1000));
	/* A host that has no network knows at once. */
	if (rc)
		rule_errno(ENETUNREACH, rc, "who is nowhere cannot be reached");
	else
		rule(cm_await(channel, RDMA_CM_EVENT_ADDR_ERROR) == -ETIMEDOUT,
		     "who is not there does not answer in time");
	rule_errno(0, cm_errno(rdma_resolve_addr(id, NULL, &own.any, 1000)),
		   "the ID may look elsewhere");
	MUST(!cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
}

const struct test cm_id_tests[] = {
	{"spaces", spaces},   {"binding", binding},
	{"ports", ports},     {"unprivileged_ports", unprivileged_ports},
	{"sharing", sharing}, {"families", families},
	{"options", options}, {"order", order},
	{"gids", gids},       {"unreachable", unreachable},
	{NULL, NULL},
};
