/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Binds an rdma_cm ID to an address, resolves its destination, and makes it a listener (cma.h). */
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <cm/ip.h>

#include "urxed/cm/cma.h"
#include "urxed/hostnet/route.h"

#define NS_PER_MS 1000000ull

static void set_device(struct cma_id *id, const struct host_address *own)
{
	id->has_device = true;
	id->sgid_index = id->src.own_index = (uint8_t)(own - id->cma->host->addresses);
}

/* Compares address formats instead of dst->family: on a host that has only IPv6 addresses,
 * getaddrinfo(3) returns ::ffff:192.0.2.2 with AF_INET6 for 192.0.2.2. */
static bool has_same_family(const struct cma_addr *dst, const struct host_address *a)
{
	return cma_addr_is_v4(dst) == ip_is_v4(a->ip);
}

/* Returns the host's address that stands for loopback: preferably one of the family of `addr`, else
 * one of the other family. NULL: the host has no address. */
static const struct host_address *find_loopback_address(const struct host *host,
							const struct cma_addr *addr)
{
	const struct host_address *any = NULL;

	for (uint32_t i = 0; i < HOST_ADDRESSES; i++) {
		const struct host_address *a = &host->addresses[i];

		if (!a->valid)
			continue;
		any = any ? any : a;
		if (has_same_family(addr, a))
			return a;
	}
	return any;
}

/* Compares names only if the index is unknown, because if_indextoname needs a free descriptor. */
static bool is_on_interface(const struct host_address *a, uint32_t ifindex)
{
	char name[IF_NAMESIZE];

	if (a->ifindex || !a->ndev[0])
		return a->ifindex == ifindex;
	return if_indextoname(ifindex, name) && !strcmp(a->ndev, name);
}

/* Whether the host's address is on the interface that the link-local address `addr` names. Also
 * true if `addr` is not link-local or names no interface, or if the host has no address on that
 * interface. */
static bool is_in_scope(const struct host *host, const struct cma_addr *addr,
			const struct host_address *own)
{
	if (!cma_addr_is_link_local(addr) || !addr->scope || is_on_interface(own, addr->scope))
		return true;
	for (uint32_t i = 0; i < HOST_ADDRESSES; i++)
		if (host->addresses[i].valid && is_on_interface(&host->addresses[i], addr->scope))
			return false;
	return true;
}

static const struct host_address *find_host_address(const struct host *host,
						    const struct cma_addr *addr)
{
	for (uint32_t i = 0; i < HOST_ADDRESSES; i++) {
		const struct host_address *a = &host->addresses[i];

		if (a->valid && !memcmp(a->ip, addr->ip, sizeof(a->ip)) &&
		    is_in_scope(host, addr, a))
			return a;
	}
	return NULL;
}

static const struct host_address *find_own_address(const struct cma_id *id,
						   const struct cma_addr *addr)
{
	return cma_addr_is_loopback(addr) ? find_loopback_address(id->cma->host, addr)
					  : find_host_address(id->cma->host, addr);
}

/* Returns the port space of an AF_IB address, by its service ID and mask. 0: it has none that this
 * ID may use. */
static uint16_t find_ib_port_space(const struct cma_id *id, const struct cma_addr *addr)
{
	static const uint16_t spaces[] = {CM_PS_IB, CM_PS_TCP, CM_PS_UDP};
	uint64_t mask = addr->mask & ~(uint64_t)UINT16_MAX;

	for (uint32_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if ((id->ps == CM_PS_IB || id->ps == spaces[i]) &&
		    (addr->service_id & mask) == (cm_service_id(spaces[i], 0) & mask))
			return spaces[i];
	return 0;
}

/* Sets *ps. Returns -EPROTONOSUPPORT if an AF_IB address has a service ID of no port space that
 * this ID may use. */
static int choose_port_space(struct cma_id *id, uint16_t *ps)
{
	struct cma_addr *addr = &id->src.addr;

	*ps = addr->family == CMA_AF_IB ? find_ib_port_space(id, addr) : id->ps;
	if (addr->family == CMA_AF_IB)
		addr->service_id = cm_service_id(*ps, addr->port);
	return *ps ? 0 : -EPROTONOSUPPORT;
}

/*
 * Returns the host's address whose device an ID on loopback gets, if the host has no uplink. NULL
 * if it has one: as in the kernel, the ID then has no device, so that libfabric looks for an
 * address that its peers can reach. Without an uplink no interface has such an address, so loopback
 * belongs to urxe0.
 */
static const struct host_address *find_device_for_loopback(const struct host *host,
							   const struct cma_addr *addr)
{
	const struct host_address *own = find_loopback_address(host, addr);

	return own && own->uplink == HOST_NO_UPLINK ? own : NULL;
}

static bool is_own_address(const struct cma_id *id, const struct cma_addr *addr,
			   const struct host_address **own)
{
	const struct host *host = id->cma->host;

	*own = NULL;
	if (cma_addr_is_loopback(addr))
		*own = find_device_for_loopback(host, addr);
	else if (!cma_addr_is_any(addr))
		*own = find_host_address(host, addr);
	return cma_addr_is_any_or_loopback(addr) || *own;
}

int cma_bind(struct cma_id *id, const struct cma_addr *addr)
{
	const struct host_address *own;
	uint16_t ps;
	int rc;

	if (id->state != CMA_IDLE)
		return -EINVAL;
	/* As in the kernel, because all GIDs of a RoCE port are IP addresses. */
	if (addr->family == CMA_AF_IB && !cma_addr_is_any(addr))
		return -ENODEV;
	if (cma_addr_is_link_local(addr) && !addr->scope)
		return -EINVAL;
	if (!is_own_address(id, addr, &own))
		return -EADDRNOTAVAIL;
	if (addr->port && addr->port < CMA_PORT_UNPRIVILEGED && !id->low_ports)
		return -EACCES;
	id->src.addr = *addr;
	if (own)
		id->src.own_index = (uint8_t)(own - id->cma->host->addresses);
	if (!id->afonly_set)
		id->src.afonly = addr->family == AF_INET;
	rc = choose_port_space(id, &ps);
	if (!rc)
		rc = cma_port_bind(&id->cma->ports, &id->src, ps, id->user);
	if (rc)
		return rc;
	if (own)
		set_device(id, own);
	/* As in the kernel, because programs read the family of the peer's address before they
	 * connect. */
	id->dst = cma_addr_wildcard(addr->family);
	id->state = CMA_ADDR_BOUND;
	return 0;
}

/* Returns false if the destination is IPv4 and the host's address is IPv6. */
static bool fits_destination(const struct cma_id *id, const struct host_address *own)
{
	return !cma_addr_is_v4(&id->dst) || ip_is_v4(own->ip);
}

/*
 * Binds the ID to urxe0. An ID that is bound to the wildcard also gets the host's address that
 * resolve_next_hop has chosen. But if that address is IPv6 and the destination IPv4 loopback, the
 * ID gets the loopback address.
 */
static void set_source(struct cma_id *id)
{
	const struct host_address *own = &id->cma->host->addresses[id->sgid_index];
	const uint8_t *ip = fits_destination(id, own) ? own->ip : id->dst.ip;

	set_device(id, own);
	if (cma_addr_is_any(&id->src.addr)) {
		memcpy(id->src.addr.ip, ip, sizeof(id->src.addr.ip));
		id->src.addr.family = id->dst.family;
		if (cma_addr_is_link_local(&id->src.addr))
			id->src.addr.scope = id->dst.scope;
	}
}

static void finish_resolve_addr(struct cma_id *id, int status)
{
	if (!status)
		set_source(id);
	id->state = status ? CMA_ADDR_BOUND : CMA_STATE_ADDR_RESOLVED;
	cma_emit_event(id, status ? CMA_ADDR_ERROR : CMA_ADDR_RESOLVED, status);
}

/*
 * As in the kernel, the next hop may answer until the program's timeout ends. Before that, neigh.h
 * reports -EHOSTUNREACH only if other requests have displaced this one; the program then gets
 * -ETIMEDOUT.
 */
void cma_neigh_answer(struct neigh_waiter *w, int status, const struct vnic_next_hop *hop)
{
	struct cma_id *id = (struct cma_id *)((char *)w - offsetof(struct cma_id, waiter));

	if (hop)
		memcpy(id->next_hop, hop->mac, sizeof(id->next_hop));
	LIST_REMOVE(id, wait_link);
	id->waiting = false;
	finish_resolve_addr(id, status == -EHOSTUNREACH ? -ETIMEDOUT : status);
}

void cma_cancel_resolve(struct cma_id *id)
{
	if (!id->waiting)
		return;
	neigh_cancel(id->cma->neigh, &id->waiter);
	LIST_REMOVE(id, wait_link);
	id->waiting = false;
}

/*
 * Resolves the next hop from one of the host's addresses. Returns as neigh_resolve_persistently:
 * -ENETUNREACH if there is no route from the address.
 */
static int resolve_from(struct cma_id *id, const struct host_address *own)
{
	uint8_t index = (uint8_t)(own - id->cma->host->addresses);
	struct vnic_next_hop hop;
	int rc = neigh_resolve_persistently(id->cma->neigh, id->cma->now, id->user, index,
					    id->dst.ip, &id->waiter, &hop);

	memcpy(id->next_hop, hop.mac, sizeof(id->next_hop));
	return rc;
}

static bool is_near(const struct host_address *a, const struct cma_addr *dst)
{
	return host_same_subnet(a->ip, dst->ip, a->prefix_len);
}

/* Returns false if routers would not forward packets from the address `a`: it is link-local, and
 * dst is in another subnet (RFC 4291, 2.5.6). */
static bool is_forwarded(const struct host_address *a, const struct cma_addr *dst)
{
	return is_near(a, dst) || !ip_is_link_local(a->ip) || ip_is_link_local(dst->ip) ||
	       cma_addr_is_multicast(dst);
}

/* Tries each address of the host: with `near` those in the destination's subnet, else the others.
 * Returns as resolve_from; -ENETUNREACH: none of them has a route. */
static int resolve_from_each(struct cma_id *id, bool near, const struct host_address **chosen)
{
	const struct host *host = id->cma->host;
	int rc = -ENETUNREACH;

	for (uint32_t i = 0; i < HOST_ADDRESSES && rc == -ENETUNREACH; i++) {
		const struct host_address *a = &host->addresses[i];

		if (!a->valid || !has_same_family(&id->dst, a) || !is_in_scope(host, &id->dst, a) ||
		    is_near(a, &id->dst) != near || !is_forwarded(a, &id->dst))
			continue;
		*chosen = a;
		rc = resolve_from(id, a);
	}
	return rc;
}

/* Returns the source address of the kernel's best route to the destination. NULL: there is no
 * route, the host lacks that address, or the program names another interface. */
static const struct host_address *find_best_source(const struct cma_id *id)
{
	struct route *route = id->cma->neigh->route;
	const struct host_address *a = route ? route_choose_source(route, id->dst.ip) : NULL;

	return a && is_in_scope(id->cma->host, &id->dst, a) ? a : NULL;
}

/* Tries the source of the best route if it is in the destination's subnet (`near`), or if it is
 * outside (not `near`). Otherwise returns -ENETUNREACH. */
static int resolve_from_best(struct cma_id *id, const struct host_address *best, bool near,
			     const struct host_address **chosen)
{
	if (!best || is_near(best, &id->dst) != near)
		return -ENETUNREACH;
	*chosen = best;
	return resolve_from(id, best);
}

/*
 * Prefers source addresses in the destination's subnet to others, and among either kind the source
 * of the kernel's best route, which avoids deprecated addresses that soon disappear. Otherwise
 * takes any address that has a route. Returns as resolve_from.
 */
static int resolve_from_any(struct cma_id *id, const struct host_address **chosen)
{
	const struct host_address *best = find_best_source(id);
	int rc = -ENETUNREACH;

	for (int near = 1; near >= 0 && rc == -ENETUNREACH; near--) {
		rc = resolve_from_best(id, best, near, chosen);
		if (rc == -ENETUNREACH)
			rc = resolve_from_each(id, near, chosen);
	}
	return rc;
}

/* Replaces a wildcard destination by the host's address `own`. If the wildcard is IPv4 and `own`
 * IPv6, replaces it by 127.0.0.1. */
static void set_any_destination(struct cma_id *id, const struct host_address *own)
{
	static const uint8_t loopback[4] = {127, 0, 0, 1};

	if (fits_destination(id, own))
		memcpy(id->dst.ip, own->ip, sizeof(id->dst.ip));
	else
		memcpy(id->dst.ip + IP_V4_BITS / 8, loopback, sizeof(loopback));
}

/* Returns false if of the ID's address and its destination one is IPv4 and the other IPv6. */
static bool is_bound_for_destination(const struct cma_id *id)
{
	const struct cma_addr *src = &id->src.addr, *dst = &id->dst;

	return cma_addr_is_any(src) || cma_addr_is_any(dst) ||
	       cma_addr_is_v4(src) == cma_addr_is_v4(dst);
}

/*
 * Sets `peer`, the GID that packets go to, and resolves its next hop into next_hop. Sets
 * sgid_index, which becomes the source once the next hop is resolved. From loopback to a multicast
 * group, packets carry the host's own address. Returns 0 if the next hop is resolved, or
 * -EINPROGRESS if cma_neigh_answer follows.
 * -EINVAL: the source is loopback, and the destination another host; or the host no longer has the
 * source address.
 * -ENETUNREACH: no route, or of source and destination one is IPv4 and the other IPv6.
 * -ENODEV: the destination is the wildcard, and the host has no address. Other values are errors of
 * neigh_resolve_persistently.
 */
static int resolve_next_hop(struct cma_id *id)
{
	const struct host_address *own = cma_own_address(id);
	int rc = 0;

	if (id->has_device && !own)
		return -EINVAL;
	if (!is_bound_for_destination(id))
		return -ENETUNREACH;
	if (cma_addr_is_any(&id->dst) || find_own_address(id, &id->dst)) {
		/* The destination is this host, so packets go to the host's own address. */
		if (!own)
			own = cma_addr_is_any(&id->dst)
				      ? find_loopback_address(id->cma->host, &id->dst)
				      : find_own_address(id, &id->dst);
		if (!own)
			return -ENODEV;
		memcpy(id->peer, own->ip, sizeof(id->peer));
		memcpy(id->next_hop, id->cma->host->mac, sizeof(id->next_hop));
		if (cma_addr_is_any(&id->dst))
			set_any_destination(id, own);
		else if (!cma_addr_is_loopback(&id->dst))
			memcpy(id->peer, id->dst.ip, sizeof(id->peer));
	} else if (cma_addr_is_loopback(&id->src.addr) && !cma_addr_is_multicast(&id->dst)) {
		return -EINVAL;
	} else {
		memcpy(id->peer, id->dst.ip, sizeof(id->peer));
		rc = own ? resolve_from(id, own) : resolve_from_any(id, &own);
	}
	if (!rc || rc == -EINPROGRESS)
		id->sgid_index = (uint8_t)(own - id->cma->host->addresses);
	return rc;
}

static void note_due(const struct cma_id *id)
{
	if (id->due < id->cma->waiting_due)
		id->cma->waiting_due = id->due;
}

/* Returns the error of a destination without a route, as connect(2) would. */
static int explain_missing_route(const struct cma_id *id)
{
	struct route *route = id->cma->neigh->route;

	return route ? route_refusal(route, id->dst.ip) : -ENETUNREACH;
}

static int start_resolve(struct cma_id *id)
{
	int rc = resolve_next_hop(id);

	/* As for a timeout, the program learns by an event that the neighbour is unreachable. A
	 * missing route is an error of this call. */
	if (rc == -EHOSTUNREACH)
		rc = -ETIMEDOUT;
	if (!rc || rc == -ETIMEDOUT) {
		finish_resolve_addr(id, rc);
		return 0;
	}
	if (rc == -ENETUNREACH)
		return explain_missing_route(id);
	if (rc != -EINPROGRESS)
		return rc;
	id->waiter.asker = NEIGH_FOR_CMA;
	id->waiting = true;
	id->due = id->cma->now + id->timeout_ms * NS_PER_MS;
	note_due(id);
	LIST_INSERT_HEAD(&id->cma->waiting, id, wait_link);
	return 0;
}

void cma_restart_resolve(struct cma_id *id)
{
	bool resumes = id->state == CMA_ADDR_QUERY && !id->waiting && !id->frozen;
	int rc = resumes ? start_resolve(id) : 0;

	if (rc)
		finish_resolve_addr(id, rc);
}

/* Programs may have tens of thousands of IDs in the list, so this function scans it only if one is
 * due. */
void cma_tick_resolve(struct cma *cma)
{
	struct cma_id *id, *after;

	if (cma->now < cma->waiting_due)
		return;
	cma->waiting_due = UINT64_MAX;
	for (id = LIST_FIRST(&cma->waiting); id; id = after) {
		after = LIST_NEXT(id, wait_link);
		if (id->due > cma->now) {
			note_due(id);
			continue;
		}
		cma_cancel_resolve(id);
		finish_resolve_addr(id, -ETIMEDOUT);
	}
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
	rc = start_resolve(id);
	if (rc)
		id->state = CMA_ADDR_BOUND;
	return rc;
}

static int set_route(struct cma_id *id, uint8_t traffic_class)
{
	if (id->state != CMA_STATE_ADDR_RESOLVED)
		return -EINVAL;
	id->state = CMA_STATE_ROUTE_RESOLVED;
	id->route_tos = traffic_class;
	id->route_ack_timeout = id->ack_timeout;
	cma_emit_event(id, CMA_ROUTE_RESOLVED, 0);
	return 0;
}

int cma_resolve_route(struct cma_id *id)
{
	return set_route(id, id->tos);
}

int cma_set_path(struct cma_id *id, uint8_t traffic_class)
{
	return id->has_device ? set_route(id, traffic_class) : -EINVAL;
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
