/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/cm/cma_addr.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/ether.h"

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static void from_v4(struct cma_addr *a, const struct sockaddr_in *in)
{
	memcpy(a->ip, mapped, sizeof(mapped));
	memcpy(a->ip + sizeof(mapped), &in->sin_addr, sizeof(in->sin_addr));
	a->port = ntohs(in->sin_port);
}

static void from_v6(struct cma_addr *a, const struct sockaddr_in6 *in)
{
	memcpy(a->ip, &in->sin6_addr, sizeof(a->ip));
	a->port = ntohs(in->sin6_port);
	a->scope = in->sin6_scope_id;
	a->flow = ntohl(in->sin6_flowinfo);
}

/* struct sockaddr_ib, as rdma-core and the kernel lay it out. */
struct sockaddr_of_ib {
	uint16_t family;
	uint16_t pkey;
	uint32_t flowinfo;
	uint8_t gid[16];
	uint64_t service_id;
	uint64_t mask;
	uint64_t scope_id;
};

static void from_ib(struct cma_addr *a, const struct sockaddr_of_ib *in)
{
	memcpy(a->ip, in->gid, sizeof(a->ip));
	a->mask = be64toh(in->mask);
	a->service_id = be64toh(in->service_id) & a->mask;
	a->port = (uint16_t)a->service_id;
}

uint32_t cma_addr_size(const struct cma_addr *a)
{
	switch (a->family) {
	case AF_INET: return sizeof(struct sockaddr_in);
	case AF_INET6: return sizeof(struct sockaddr_in6);
	case CMA_AF_IB: return sizeof(struct sockaddr_of_ib);
	default: return 0;
	}
}

int cma_addr_from(struct cma_addr *a, const void *sockaddr, uint32_t len)
{
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_of_ib ib;
	} in;
	uint32_t size;

	*a = (struct cma_addr){0};
	if (len < sizeof(a->family))
		return -EINVAL;
	memcpy(&a->family, sockaddr, sizeof(a->family));
	size = cma_addr_size(a);
	if (!size || len < size)
		return -EINVAL;
	memcpy(&in, sockaddr, size);
	if (a->family == AF_INET)
		from_v4(a, &in.v4);
	else if (a->family == AF_INET6)
		from_v6(a, &in.v6);
	else
		from_ib(a, &in.ib);
	return 0;
}

uint32_t cma_addr_to(const struct cma_addr *a, void *sockaddr, uint32_t room)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
				  .sin6_port = htons(a->port),
				  .sin6_flowinfo = htonl(a->flow),
				  .sin6_scope_id = a->scope};
	struct sockaddr_of_ib ib = {.family = CMA_AF_IB,
				    .service_id = htobe64(a->service_id),
				    .mask = htobe64(a->mask)};
	uint32_t size = cma_addr_size(a);

	if (size > room)
		return 0;
	memcpy(&v4.sin_addr, a->ip + sizeof(mapped), sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, a->ip, sizeof(v6.sin6_addr));
	memcpy(ib.gid, a->ip, sizeof(ib.gid));
	memcpy(sockaddr,
	       a->family == AF_INET    ? (const void *)&v4
	       : a->family == AF_INET6 ? (const void *)&v6
				       : (const void *)&ib,
	       size);
	return size;
}

bool cma_addr_is_v4(const struct cma_addr *a)
{
	return !memcmp(a->ip, mapped, sizeof(mapped));
}

bool cma_addr_is_any(const struct cma_addr *a)
{
	static const uint8_t zero[16];

	return cma_addr_is_v4(a) ? !memcmp(a->ip + sizeof(mapped), zero, 4)
				 : !memcmp(a->ip, zero, sizeof(zero));
}

bool cma_addr_is_loopback(const struct cma_addr *a)
{
	static const uint8_t v6[16] = {[15] = 1};

	return cma_addr_is_v4(a) ? a->ip[12] == 127 : !memcmp(a->ip, v6, sizeof(v6));
}

bool cma_addr_is_any_or_loopback(const struct cma_addr *a)
{
	return cma_addr_is_any(a) || cma_addr_is_loopback(a);
}

bool cma_addr_is_link_local(const struct cma_addr *a)
{
	return ip_is_link_local(a->ip);
}

bool cma_addr_is_multicast(const struct cma_addr *a)
{
	return cma_addr_is_v4(a) ? a->ip[12] >> 4 == 14 : a->ip[0] == 0xff;
}

bool cma_addr_has_same_ip(const struct cma_addr *a, const struct cma_addr *b)
{
	return !memcmp(a->ip, b->ip, sizeof(a->ip));
}

struct cma_addr cma_addr_wildcard(uint16_t family)
{
	struct cma_addr a = {.family = family};

	if (family == AF_INET)
		memcpy(a.ip, mapped, sizeof(mapped));
	return a;
}
