/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "cma_addr.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

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
}

int cma_addr_from(struct cma_addr *a, const void *sockaddr, uint32_t len)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;
	uint16_t family;

	*a = (struct cma_addr){0};
	if (len < sizeof(family))
		return -EINVAL;
	memcpy(&family, sockaddr, sizeof(family));
	if (family != AF_INET && family != AF_INET6)
		return -EAFNOSUPPORT;
	if (len < (family == AF_INET ? sizeof(v4) : sizeof(v6)))
		return -EINVAL;
	a->family = family;
	if (family == AF_INET) {
		memcpy(&v4, sockaddr, sizeof(v4));
		from_v4(a, &v4);
	} else {
		memcpy(&v6, sockaddr, sizeof(v6));
		from_v6(a, &v6);
	}
	return 0;
}

uint32_t cma_addr_to(const struct cma_addr *a, void *sockaddr, uint32_t room)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	struct sockaddr_in6 v6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(a->port), .sin6_scope_id = a->scope};
	uint32_t len = a->family == AF_INET ? sizeof(v4) : sizeof(v6);

	memcpy(&v4.sin_addr, a->ip + sizeof(mapped), sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, a->ip, sizeof(v6.sin6_addr));
	if (!a->family || len > room)
		return 0;
	memcpy(sockaddr, a->family == AF_INET ? (const void *)&v4 : (const void *)&v6, len);
	return len;
}

static bool is_v4(const struct cma_addr *a)
{
	return !memcmp(a->ip, mapped, sizeof(mapped));
}

bool cma_addr_any(const struct cma_addr *a)
{
	static const uint8_t zero[16];

	return is_v4(a) ? !memcmp(a->ip + sizeof(mapped), zero, 4)
			: !memcmp(a->ip, zero, sizeof(zero));
}

bool cma_addr_loopback(const struct cma_addr *a)
{
	static const uint8_t v6[16] = {[15] = 1};

	return is_v4(a) ? a->ip[12] == 127 : !memcmp(a->ip, v6, sizeof(v6));
}

bool cma_addr_link_local(const struct cma_addr *a)
{
	return a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

bool cma_addr_group(const struct cma_addr *a)
{
	return is_v4(a) ? a->ip[12] >> 4 == 14 : a->ip[0] == 0xff;
}

bool cma_addr_same(const struct cma_addr *a, const struct cma_addr *b)
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
