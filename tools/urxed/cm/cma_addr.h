/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses and ports of rdma_cm IDs. */
#ifndef URXE_URXED_CM_CMA_ADDR_H
#define URXE_URXED_CM_CMA_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define CMA_AF_IB 27 /* AF_IB, which libc does not define */

struct cma_addr {
	uint16_t family; /* AF_INET, AF_INET6, CMA_AF_IB; 0 = no address */
	uint16_t port;   /* host byte order; 0 = none */
	uint32_t scope;  /* AF_INET6: sin6_scope_id */
	uint32_t flow;   /* sin6_flowinfo, host byte order; 0 after a checkpoint */
	uint8_t ip[16];  /* IPv4 as ::ffff:a.b.c.d; AF_IB: a GID */
	/* Only for AF_IB, in host byte order; the low 16 bits of service_id are the port. */
	uint64_t service_id, mask;
};

/* Returns -EINVAL if the family is not AF_INET, AF_INET6 or AF_IB, or len is too short for the
 * family. */
int cma_addr_from(struct cma_addr *a, const void *sockaddr, uint32_t len);
/* Returns the size in bytes of the family's sockaddr; 0: not AF_INET, AF_INET6 or AF_IB. */
uint32_t cma_addr_size(const struct cma_addr *a);
/* Returns the number of bytes written; 0: another family, or `room` is too small. */
uint32_t cma_addr_to(const struct cma_addr *a, void *sockaddr, uint32_t room);

/* True also for AF_INET6 with ::ffff:a.b.c.d. */
bool cma_addr_is_v4(const struct cma_addr *a);
bool cma_addr_is_any(const struct cma_addr *a);
bool cma_addr_is_multicast(const struct cma_addr *a);
/* True for fe80::/10 only. */
bool cma_addr_is_link_local(const struct cma_addr *a);
bool cma_addr_is_loopback(const struct cma_addr *a);
/* True for the wildcard and for loopback: as in the kernel's rdma_cm, a listener at either of them
 * listens at all addresses. */
bool cma_addr_is_any_or_loopback(const struct cma_addr *a);
/* Compares the IPs only, not family and port: 192.0.2.1 has the same IP as ::ffff:192.0.2.1. */
bool cma_addr_has_same_ip(const struct cma_addr *a, const struct cma_addr *b);
/* Returns the wildcard address of a family. */
struct cma_addr cma_addr_wildcard(uint16_t family);

#endif
