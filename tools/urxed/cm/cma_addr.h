/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses and ports of rdma_cm IDs. */
#ifndef URXE_URXED_CM_CMA_ADDR_H
#define URXE_URXED_CM_CMA_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define CMA_AF_IB 27 /* AF_IB, which libc does not know */

struct cma_addr {
	uint16_t family; /* AF_INET, AF_INET6, CMA_AF_IB; 0 = there is none */
	uint16_t port;   /* host byte order; 0 = none */
	uint32_t scope;  /* of a link-local IPv6 address, as it was given */
	uint8_t ip[16];  /* IPv4 as ::ffff:a.b.c.d; AF_IB: a GID */
	/* AF_IB: a service ID as far as the mask says, in host byte order; the port is in it. */
	uint64_t service_id, mask;
};

/* -EINVAL: it is none of these families, or too short for its own. */
int cma_addr_from(struct cma_addr *a, const void *sockaddr, uint32_t len);
/* Bytes of the family's sockaddr; 0 where there is no address. */
uint32_t cma_addr_size(const struct cma_addr *a);
/* Bytes written: 0 where there is no address, or no room. */
uint32_t cma_addr_to(const struct cma_addr *a, void *sockaddr, uint32_t room);

/* Also where it is written as one of IPv6, ::ffff:a.b.c.d. */
bool cma_addr_v4(const struct cma_addr *a);
bool cma_addr_any(const struct cma_addr *a);
/* Of a multicast group. */
bool cma_addr_group(const struct cma_addr *a);
/* Of IPv6, where it says nothing without a scope. */
bool cma_addr_link_local(const struct cma_addr *a);
bool cma_addr_loopback(const struct cma_addr *a);
/* The wildcard or loopback: for the kernel's rdma_cm, too, who listens at either is heard at
 * all addresses. */
bool cma_addr_everywhere(const struct cma_addr *a);
/* Also where one says the same in the other family. The ports do not count. */
bool cma_addr_same(const struct cma_addr *a, const struct cma_addr *b);
/* The wildcard address of a family. */
struct cma_addr cma_addr_wildcard(uint16_t family);

#endif
