/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/cm/cma_port.h"

#include <errno.h>
#include <stddef.h>

static bool is_at(const struct cma_binding *u, const struct cma_addr *addr, uint8_t own_index)
{
	return cma_addr_has_same_ip(&u->addr, addr) &&
	       (!cma_addr_is_link_local(addr) || u->own_index == own_index);
}

/* Returns 0 if both bindings may have the same port of the same port space; otherwise an error of
 * cma_port_bind. reuseaddr: u may also share the port with bindings that set SO_REUSEADDR. */
static int check_conflict(const struct cma_binding *u, const struct cma_binding *other,
			  bool reuseaddr)
{
	if (u->restorer && u->restorer == other->restorer)
		return 0;
	if (reuseaddr && other->reuseaddr && !other->listening)
		return 0;
	if (u->afonly && other->afonly && u->addr.family != other->addr.family)
		return 0;
	if (cma_addr_is_any_or_loopback(&u->addr) || cma_addr_is_any_or_loopback(&other->addr))
		return -EADDRNOTAVAIL;
	return is_at(u, &other->addr, other->own_index) ? -EADDRINUSE : 0;
}

/* Ephemeral ports are consecutive, so the modulo spreads them evenly over the buckets. */
static const struct cma_bindings *find_bucket(const struct cma_ports *p, uint16_t port)
{
	return &p->bindings[port % CMA_PORT_BUCKETS];
}

static int check_port(const struct cma_ports *p, const struct cma_binding *u, uint16_t ps,
		      uint16_t port, bool reuseaddr)
{
	const struct cma_binding *other;
	int rc;

	LIST_FOREACH(other, find_bucket(p, port), link)
	{
		if (other == u || other->ps != ps || other->addr.port != port)
			continue;
		rc = check_conflict(u, other, reuseaddr);
		if (rc)
			return rc;
	}
	return 0;
}

static bool is_free(const struct cma_ports *p, uint16_t ps, uint16_t port)
{
	const struct cma_binding *other;

	LIST_FOREACH(other, find_bucket(p, port), link)
	if (other->ps == ps && other->addr.port == port)
		return false;
	return true;
}

/* Returns the next free ephemeral port of the port space; 0: none is free. Searches on from the
 * last port tried, so that a port that was just released is not assigned again at once. */
static uint16_t find_free_port(struct cma_ports *p, uint16_t ps)
{
	const uint32_t n = CMA_PORT_LAST - CMA_PORT_FIRST + 1;

	for (uint32_t tries = 0; tries < n; tries++) {
		uint16_t port = (uint16_t)(CMA_PORT_FIRST + p->tried++ % n);

		if (is_free(p, ps, port))
			return port;
	}
	return 0;
}

static bool is_ephemeral(uint16_t port)
{
	return port >= CMA_PORT_FIRST && port <= CMA_PORT_LAST;
}

static struct user_counts *find_counts(struct cma_ports *p, uint16_t port)
{
	return is_ephemeral(port) ? &p->ephemeral : &p->other;
}

static int take_port(struct cma_ports *p, uid_t user, uint16_t port)
{
	return user_counts_take(find_counts(p, port), user,
				is_ephemeral(port) ? CMA_PORTS_EPHEMERAL : CMA_PORTS_OTHER);
}

static void insert_binding(struct cma_ports *p, struct cma_binding *u)
{
	LIST_INSERT_HEAD(&p->bindings[u->addr.port % CMA_PORT_BUCKETS], u, link);
}

int cma_port_bind(struct cma_ports *p, struct cma_binding *u, uint16_t ps, uid_t user)
{
	uint16_t port = u->addr.port ? u->addr.port : find_free_port(p, ps);
	int rc = port ? check_port(p, u, ps, port, u->reuseaddr) : -EADDRNOTAVAIL;

	if (!rc)
		rc = take_port(p, user, port);
	if (rc)
		return rc;
	u->ps = ps;
	u->user = user;
	u->addr.port = port;
	if (u->addr.family == CMA_AF_IB) {
		u->addr.service_id |= port;
		u->addr.mask = UINT64_MAX;
	}
	insert_binding(p, u);
	return 0;
}

int cma_port_restore(struct cma_ports *p, struct cma_binding *u)
{
	int rc = u->ps ? user_counts_add(find_counts(p, u->addr.port), u->user) : 0;

	if (rc)
		u->ps = 0;
	if (u->ps)
		insert_binding(p, u);
	return rc;
}

int cma_port_listen(const struct cma_ports *p, struct cma_binding *u)
{
	int rc = u->reuseaddr ? check_port(p, u, u->ps, u->addr.port, false) : 0;

	u->listening = !rc;
	return rc;
}

void cma_port_release(struct cma_ports *p, struct cma_binding *u)
{
	if (!u->ps)
		return;
	LIST_REMOVE(u, link);
	user_counts_drop(find_counts(p, u->addr.port), u->user);
	u->ps = 0;
	u->listening = false;
}

void cma_port_close(struct cma_ports *p)
{
	user_counts_free(&p->ephemeral);
	user_counts_free(&p->other);
}

bool cma_port_has_listener(const struct cma_ports *p, uint16_t ps, uint16_t port)
{
	const struct cma_binding *u;

	LIST_FOREACH(u, find_bucket(p, port), link)
	if (u->listening && u->ps == ps && u->addr.port == port)
		return true;
	return false;
}

/* Whether the listener u gets requests to the address. A wildcard listener accepts IPv4 and IPv6
 * unless afonly is set. An AF_IB listener accepts none, because a GID of RoCE is an IP address. */
static bool accepts_address(const struct cma_binding *u, const struct cma_addr *addr,
			    uint8_t own_index)
{
	if (u->addr.family == CMA_AF_IB)
		return false;
	if (cma_addr_is_any_or_loopback(&u->addr))
		return !u->afonly || u->addr.family == addr->family;
	return is_at(u, addr, own_index);
}

struct cma_binding *cma_port_find_listener(const struct cma_ports *p, uint16_t ps, uint16_t port,
					   const struct cma_addr *addr, uint8_t own_index)
{
	struct cma_binding *u;

	LIST_FOREACH(u, find_bucket(p, port), link)
	if (u->listening && u->ps == ps && u->addr.port == port &&
	    accepts_address(u, addr, own_index))
		return u;
	return NULL;
}
