/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which addresses and ports an ID has, and where it finds its peer. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <cm/ip.h>

#include "urxed/cm/cma.h"

#define NS_PER_MS 1000000ull

static void use_address(struct cma_id *id, const struct host_address *own)
{
	id->has_device = true;
	id->sgid_index = (uint8_t)(own - id->cma->host->addresses);
}

/* Loopback is at any address of the host, one of the family's if there is one. */
static const struct host_address *loopback_address(const struct host *host,
						   const struct cma_addr *addr)
{
	const struct host_address *any = NULL;
	struct cma_addr own = {0};

	for (uint32_t i = 0; i < HOST_ADDRESSES; i++) {
		const struct host_address *a = &host->addresses[i];

		if (!a->valid)
			continue;
		memcpy(own.ip, a->ip, sizeof(own.ip));
		any = any ? any : a;
		if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)a->ip) ==
		    (addr->family == AF_INET))
			return a;
	}
	return any;
}

static const struct host_address *own_address(const struct cma_id *id, const struct cma_addr *addr)
{
	return cma_addr_loopback(addr) ? loopback_address(id->cma->host, addr)
				       : host_find_address(id->cma->host, addr->ip);
}

/* 0: the service ID is of none that this ID could have. */
static uint16_t ib_port_space(const struct cma_id *id, const struct cma_addr *addr)
{
	static const uint16_t spaces[] = {CM_PS_IB, CM_PS_TCP, CM_PS_UDP};
	uint64_t mask = addr->mask & ~(uint64_t)UINT16_MAX;

	for (uint32_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if ((id->ps == CM_PS_IB || id->ps == spaces[i]) &&
		    (addr->service_id & mask) == (cm_service_id(spaces[i], 0) & mask))
			return spaces[i];
	return 0;
}

/* Where a port is to be taken. -EPROTONOSUPPORT: nowhere. */
static int port_space(struct cma_id *id, uint16_t *ps)
{
	struct cma_addr *addr = &id->src.addr;

	*ps = addr->family == CMA_AF_IB ? ib_port_space(id, addr) : id->ps;
	if (addr->family == CMA_AF_IB)
		addr->service_id = cm_service_id(*ps, addr->port);
	return *ps ? 0 : -EPROTONOSUPPORT;
}

/*
 * Loopback is no address of a device, as with the kernel, so that libfabric looks for one that its
 * peers can reach. Where the host has no uplink no interface has any: there it is the device's.
 */
static const struct host_address *bound_to_loopback(const struct host *host,
						    const struct cma_addr *addr)
{
	const struct host_address *own = loopback_address(host, addr);

	return own && own->uplink == HOST_NO_UPLINK ? own : NULL;
}

static bool is_own(const struct cma_id *id, const struct cma_addr *addr,
		   const struct host_address **own)
{
	const struct host *host = id->cma->host;

	*own = NULL;
	if (cma_addr_loopback(addr))
		*own = bound_to_loopback(host, addr);
	else if (!cma_addr_any(addr))
		*own = host_find_address(host, addr->ip);
	return cma_addr_everywhere(addr) || *own;
}

int cma_bind(struct cma_id *id, const struct cma_addr *addr)
{
	const struct host_address *own;
	uint16_t ps;
	int rc;

	if (id->state != CMA_IDLE || (cma_addr_link_local(addr) && !addr->scope))
		return -EINVAL;
	/* As the kernel: a port of RoCE has no GID that is none of IP's. */
	if (addr->family == CMA_AF_IB && !cma_addr_any(addr))
		return -ENODEV;
	if (!is_own(id, addr, &own))
		return -EADDRNOTAVAIL;
	if (addr->port && addr->port < CMA_PORT_LOW && !id->low_ports)
		return -EACCES;
	id->src.addr = *addr;
	if (!id->afonly_set)
		id->src.afonly = addr->family == AF_INET;
	rc = port_space(id, &ps);
	if (!rc)
		rc = cma_port_bind(&id->cma->ports, &id->src, ps);
	if (rc)
		return rc;
	if (own)
		use_address(id, own);
	id->state = CMA_ADDR_BOUND;
	return 0;
}

/* Takes the host's address as the ID's own where that has none. */
static void set_source(struct cma_id *id, const struct host_address *own)
{
	use_address(id, own);
	if (cma_addr_any(&id->src.addr)) {
		memcpy(id->src.addr.ip, own->ip, sizeof(own->ip));
		id->src.addr.family = id->dst.family;
	}
}

void cma_resolved(struct cma_id *id, int status)
{
	id->state = status ? CMA_ADDR_BOUND : CMA_STATE_ADDR_RESOLVED;
	cma_emit(id, status ? CMA_ADDR_ERROR : CMA_ADDR_RESOLVED, status);
}

void cma_neigh_answer(struct neigh_waiter *w, int status)
{
	struct cma_id *id = (struct cma_id *)((char *)w - offsetof(struct cma_id, waiter));

	LIST_REMOVE(id, wait_link);
	id->waiting = false;
	/* The kernel goes on asking until the time is over. */
	cma_resolved(id, status == -EHOSTUNREACH ? -ETIMEDOUT : status);
}

void cma_stop_waiting(struct cma_id *id)
{
	if (!id->waiting)
		return;
	neigh_cancel(id->cma->neigh, &id->waiter);
	LIST_REMOVE(id, wait_link);
	id->waiting = false;
}

/* Asks for the way from one of our addresses. -ENETUNREACH: it leads nowhere. */
static int try_source(struct cma_id *id, const struct host_address *own)
{
	uint8_t index = (uint8_t)(own - id->cma->host->addresses);
	struct vnic_next_hop hop;

	return neigh_resolve(id->cma->neigh, id->cma->now, index, id->dst.ip, &id->waiter, &hop);
}

/*
 * By what the address is, not by how it is written: where a host has addresses of IPv6 alone
 * getaddrinfo(3) says ::ffff:192.0.2.2 for 192.0.2.2.
 */
static bool same_family(const struct cma_addr *dst, const struct host_address *a)
{
	return cma_addr_v4(dst) ==
	       !!IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)a->ip);
}

/* From the address in the destination's subnet, else from any that a route begins at. */
static int choose_source(struct cma_id *id, const struct host_address **chosen)
{
	const struct host *host = id->cma->host;
	int rc = -ENETUNREACH;

	for (int near = 1; near >= 0; near--) {
		for (uint32_t i = 0; i < HOST_ADDRESSES && rc == -ENETUNREACH; i++) {
			const struct host_address *a = &host->addresses[i];

			if (!a->valid || !same_family(&id->dst, a) ||
			    host_same_subnet(a->ip, id->dst.ip, a->prefix_len) != near)
				continue;
			*chosen = a;
			rc = try_source(id, a);
		}
	}
	return rc;
}

static int find_way(struct cma_id *id)
{
	const struct host_address *own = NULL;
	int rc = 0;

	if (id->has_device)
		own = host_address_by_gid(id->cma->host, id->sgid_index);
	if (cma_addr_any(&id->dst) || own_address(id, &id->dst)) {
		/* To this host: by the address that it is sent to. */
		if (!own)
			own = cma_addr_any(&id->dst) ? loopback_address(id->cma->host, &id->dst)
						     : own_address(id, &id->dst);
		if (!own)
			return -ENODEV;
		memcpy(id->peer, own->ip, sizeof(id->peer));
		if (cma_addr_any(&id->dst))
			memcpy(id->dst.ip, own->ip, sizeof(id->dst.ip));
		else if (!cma_addr_loopback(&id->dst))
			memcpy(id->peer, id->dst.ip, sizeof(id->peer));
	} else {
		memcpy(id->peer, id->dst.ip, sizeof(id->peer));
		rc = own ? try_source(id, own) : choose_source(id, &own);
	}
	if (!rc || rc == -EINPROGRESS)
		set_source(id, own);
	return rc;
}

static int ask(struct cma_id *id)
{
	int rc = find_way(id);

	/* That somebody is not there is learnt only in time; that there is no way, at once. */
	if (rc == -EHOSTUNREACH)
		rc = -ETIMEDOUT;
	if (!rc || rc == -ETIMEDOUT) {
		cma_resolved(id, rc);
		return 0;
	}
	if (rc != -EINPROGRESS)
		return rc;
	id->waiter.asker = NEIGH_FOR_CMA;
	id->waiting = true;
	id->due = id->cma->now + id->timeout_ms * NS_PER_MS;
	LIST_INSERT_HEAD(&id->cma->waiting, id, wait_link);
	return 0;
}

void cma_resolve_again(struct cma_id *id)
{
	int rc = id->state == CMA_ADDR_QUERY && !id->waiting ? ask(id) : 0;

	if (rc)
		cma_resolved(id, rc);
}

int cma_resolve_addr(struct cma_id *id, const struct cma_addr *src, const struct cma_addr *dst,
		     uint32_t timeout_ms)
{
	struct cma_addr wildcard = cma_addr_wildcard(dst->family);
	int rc = 0;

	if (dst->family == CMA_AF_IB)
		return -ENODEV;
	if (id->state == CMA_IDLE)
		rc = cma_bind(id, src && src->family ? src : &wildcard);
	if (rc)
		return rc;
	if (id->state != CMA_ADDR_BOUND || id->src.addr.family != dst->family)
		return -EINVAL;
	id->dst = *dst;
	id->state = CMA_ADDR_QUERY;
	id->timeout_ms = timeout_ms;
	rc = ask(id);
	if (rc)
		id->state = CMA_ADDR_BOUND;
	return rc;
}

int cma_resolve_route(struct cma_id *id)
{
	if (id->state != CMA_STATE_ADDR_RESOLVED)
		return -EINVAL;
	id->state = CMA_STATE_ROUTE_RESOLVED;
	cma_emit(id, CMA_ROUTE_RESOLVED, 0);
	return 0;
}

int cma_set_path(struct cma_id *id, uint8_t traffic_class)
{
	if (!id->has_device)
		return -EINVAL;
	if (id->state == CMA_STATE_ADDR_RESOLVED)
		id->tos = traffic_class;
	return cma_resolve_route(id);
}

int cma_set_reuseaddr(struct cma_id *id, bool on)
{
	if (id->state != CMA_IDLE && (id->state == CMA_LISTEN || !on))
		return -EINVAL;
	id->src.reuseaddr = on;
	return 0;
}

int cma_set_afonly(struct cma_id *id, bool on)
{
	if (id->state != CMA_IDLE && id->state != CMA_ADDR_BOUND)
		return -EINVAL;
	id->src.afonly = on;
	id->afonly_set = true;
	return 0;
}

int cma_listen(struct cma_id *id)
{
	const struct cma_addr wildcard = cma_addr_wildcard(AF_INET);
	int rc = id->state == CMA_IDLE ? cma_bind(id, &wildcard) : 0;

	if (rc)
		return rc;
	if (id->state != CMA_ADDR_BOUND)
		return -EINVAL;
	rc = cma_port_listen(&id->cma->ports, &id->src);
	if (!rc)
		id->state = CMA_LISTEN;
	return rc;
}
