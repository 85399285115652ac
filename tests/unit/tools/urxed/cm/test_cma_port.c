/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rules for sharing rdma_cm ports, and the choice of the listener for a request. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "urxed/cm/cma_port.h"

#define TCP 0x106
#define UDP 0x111

static struct cma_addr v4(uint32_t ip, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct cma_addr a;

	in.sin_addr.s_addr = htonl(ip);
	assert_int_equal(cma_addr_from(&a, &in, sizeof(in)), 0);
	return a;
}

static struct cma_addr v6(uint8_t last, uint16_t port)
{
	struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct cma_addr a;

	in.sin6_addr.s6_addr[0] = last ? 0xfd : 0;
	in.sin6_addr.s6_addr[15] = last;
	assert_int_equal(cma_addr_from(&a, &in, sizeof(in)), 0);
	return a;
}

#define ONE 0x0a000001u
#define TWO 0x0a000002u

static int take(struct cma_ports *p, struct cma_binding *u, struct cma_addr addr, bool reuse)
{
	*u = (struct cma_binding){.addr = addr, .reuseaddr = reuse};
	return cma_port_bind(p, u, TCP, 0);
}

static void bound_port_is_refused_to_others(void **state)
{
	struct cma_ports p = {0};
	struct cma_binding a, b, c, d, e;

	(void)state;
	assert_int_equal(take(&p, &a, v4(ONE, 7), false), 0);
	assert_int_equal(take(&p, &b, v4(ONE, 7), false), -EADDRINUSE);
	assert_int_equal(take(&p, &b, v4(TWO, 7), false), 0);
	assert_int_equal(take(&p, &c, v4(0, 7), false), -EADDRNOTAVAIL);
	assert_int_equal(take(&p, &c, v4(0, 8), false), 0);
	assert_int_equal(take(&p, &d, v4(ONE, 8), false), -EADDRNOTAVAIL);
	d = (struct cma_binding){.addr = v4(ONE, 7)};
	assert_int_equal(cma_port_bind(&p, &d, UDP, 0), 0);
	cma_port_release(&p, &a);
	cma_port_release(&p, &a);
	assert_int_equal(take(&p, &e, v4(ONE, 7), false), 0);
	cma_port_close(&p);
}

static void reuseaddr_shares_a_port_until_one_listens(void **state)
{
	struct cma_ports p = {0};
	struct cma_binding a, b, c;

	(void)state;
	assert_int_equal(take(&p, &a, v4(ONE, 7), true), 0);
	assert_int_equal(take(&p, &b, v4(ONE, 7), true), 0);
	assert_int_equal(take(&p, &c, v4(ONE, 7), false), -EADDRINUSE);
	assert_int_equal(cma_port_listen(&p, &a), -EADDRINUSE);
	cma_port_release(&p, &b);
	assert_int_equal(cma_port_listen(&p, &a), 0);
	assert_int_equal(take(&p, &b, v4(ONE, 7), true), -EADDRINUSE);
	cma_port_close(&p);
}

static void afonly_separates_ipv4_and_ipv6(void **state)
{
	struct cma_ports p = {0};
	struct cma_binding a, b;

	(void)state;
	assert_int_equal(take(&p, &a, v6(0, 7), false), 0);
	assert_int_equal(take(&p, &b, v4(0, 7), false), -EADDRNOTAVAIL);
	cma_port_release(&p, &a);
	a = (struct cma_binding){.addr = v6(0, 7), .afonly = true};
	b = (struct cma_binding){.addr = v4(0, 7), .afonly = true};
	assert_int_equal(cma_port_bind(&p, &a, TCP, 0), 0);
	assert_int_equal(cma_port_bind(&p, &b, TCP, 0), 0);
	cma_port_close(&p);
}

static void port_0_assigns_a_free_port(void **state)
{
	struct cma_ports p = {0};
	struct cma_binding a, b;

	(void)state;
	assert_int_equal(take(&p, &a, v4(ONE, 0), false), 0);
	assert_in_range(a.addr.port, CMA_PORT_FIRST, CMA_PORT_LAST);
	assert_int_equal(take(&p, &b, v4(ONE, 0), false), 0);
	assert_int_not_equal(a.addr.port, b.addr.port);
	cma_port_close(&p);
}

/* Each ephemeral port is assigned once; then bind fails until a port is released. */
static void bind_fails_when_all_ports_are_used(void **state)
{
	enum { ALL = CMA_PORT_LAST - CMA_PORT_FIRST + 1 };
	static struct cma_binding users[ALL], extra;
	static struct cma_ports p;

	(void)state;
	for (int i = 0; i < ALL; i++)
		assert_int_equal(take(&p, &users[i], v4(ONE, 0), false), 0);
	assert_int_equal(p.ephemeral.total + p.other.total, ALL);
	assert_int_equal(take(&p, &extra, v4(ONE, 0), false), -EADDRNOTAVAIL);
	assert_int_equal(take(&p, &extra, v4(TWO, 0), false), -EADDRNOTAVAIL);
	cma_port_release(&p, &users[7]);
	assert_int_equal(take(&p, &extra, v4(ONE, 0), false), 0);
	assert_int_equal(extra.addr.port, CMA_PORT_FIRST + 7);
	cma_port_close(&p);
}

static void find_listener_matches_address_and_family(void **state)
{
	const struct cma_addr one = v4(ONE, 0), six = v6(1, 0);
	struct cma_ports p = {0};
	struct cma_binding a, b;

	(void)state;
	assert_int_equal(take(&p, &a, v4(ONE, 7), false), 0);
	assert_null(cma_port_find_listener(&p, TCP, 7, &one, 0));
	assert_false(cma_port_has_listener(&p, TCP, 7));
	assert_int_equal(cma_port_listen(&p, &a), 0);
	assert_true(cma_port_has_listener(&p, TCP, 7));
	assert_false(cma_port_has_listener(&p, UDP, 7));
	assert_ptr_equal(cma_port_find_listener(&p, TCP, 7, &one, 0), &a);
	assert_null(cma_port_find_listener(&p, UDP, 7, &one, 0));
	assert_null(cma_port_find_listener(&p, TCP, 8, &one, 0));
	assert_null(cma_port_find_listener(&p, TCP, 7, &six, 0));
	assert_int_equal(take(&p, &b, v6(0, 8), false), 0);
	assert_int_equal(cma_port_listen(&p, &b), 0);
	assert_ptr_equal(cma_port_find_listener(&p, TCP, 8, &six, 0), &b);
	assert_ptr_equal(cma_port_find_listener(&p, TCP, 8, &one, 0), &b);
	b.afonly = true;
	assert_null(cma_port_find_listener(&p, TCP, 8, &one, 0));
	cma_port_close(&p);
}

/* As in the kernel, a listener at 127.0.0.1 or ::1 listens at all addresses. */
static void loopback_listener_accepts_all_addresses(void **state)
{
	struct cma_addr one = v4(ONE, 0), loop6 = v6(1, 8);
	struct cma_ports p = {0};
	struct cma_binding a, b;

	(void)state;
	assert_int_equal(take(&p, &a, v4(0x7f000001, 7), false), 0);
	assert_int_equal(cma_port_listen(&p, &a), 0);
	assert_ptr_equal(cma_port_find_listener(&p, TCP, 7, &one, 0), &a);
	assert_int_equal(take(&p, &b, v4(ONE, 7), false), -EADDRNOTAVAIL);
	loop6.ip[0] = 0;
	assert_int_equal(take(&p, &b, loop6, false), 0);
	assert_int_equal(cma_port_listen(&p, &b), 0);
	assert_ptr_equal(cma_port_find_listener(&p, TCP, 8, &one, 0), &b);
	cma_port_close(&p);
}

static void sockaddr_conversion_round_trips(void **state)
{
	const struct cma_addr one = v4(ONE, 5), loop = v4(0x7f000001, 0), six = v6(3, 9);
	struct sockaddr_in6 out;
	struct cma_addr again;

	(void)state;
	assert_int_equal(cma_addr_to(&one, &out, sizeof(out)), sizeof(struct sockaddr_in));
	assert_int_equal(cma_addr_from(&again, &out, sizeof(out)), 0);
	assert_memory_equal(&again, &one, sizeof(one));
	assert_int_equal(cma_addr_to(&six, &out, sizeof(out)), sizeof(out));
	assert_int_equal(cma_addr_from(&again, &out, sizeof(out)), 0);
	assert_memory_equal(&again, &six, sizeof(six));
	assert_true(cma_addr_is_loopback(&loop));
	assert_false(cma_addr_is_loopback(&one));
	assert_int_equal(cma_addr_from(&again, &out, 1), -EINVAL);
	assert_int_equal(cma_addr_from(&again, &out, 20), -EINVAL);
	out.sin6_family = AF_UNIX;
	assert_int_equal(cma_addr_from(&again, &out, sizeof(out)), -EINVAL);
	out.sin6_family = CMA_AF_IB;
	assert_int_equal(cma_addr_from(&again, &out, sizeof(out)), -EINVAL);
}

/* A user neither root nor that of this test. */
static uid_t stranger(uint32_t i)
{
	return geteuid() + 1 + i;
}

static struct cma_binding *bind_many(struct cma_ports *p, uid_t user, uint32_t *n)
{
	struct cma_binding *list = calloc(CMA_PORTS_EPHEMERAL, sizeof(*list));
	int rc = 0;

	assert_non_null(list);
	for (*n = 0; *n < CMA_PORTS_EPHEMERAL && !rc; *n += !rc) {
		list[*n].addr = v4(ONE, 0);
		rc = cma_port_bind(p, &list[*n], TCP, user);
	}
	assert_int_equal(rc, -ENOSPC);
	return list;
}

static void release_many(struct cma_ports *p, struct cma_binding *list, uint32_t n)
{
	while (n--)
		cma_port_release(p, &list[n]);
	free(list);
}

/* One user cannot take all ports: each gets half of what the others leave, of each kind. */
static void ports_of_a_user_are_limited(void **state)
{
	struct cma_binding one = {.addr = v4(ONE, 0)}, fixed = {.addr = v4(ONE, 7)}, restored;
	struct cma_binding *first, *second;
	struct cma_ports p = {0};
	uint32_t n, m;

	(void)state;
	first = bind_many(&p, stranger(0), &n);
	assert_int_equal(n, CMA_PORTS_EPHEMERAL / 2);
	/* A port that is given back can be taken again, also by a binding of an earlier daemon. */
	cma_port_release(&p, &first[0]);
	restored = (struct cma_binding){.ps = TCP, .user = stranger(0), .addr = v4(ONE, 60000)};
	assert_int_equal(cma_port_restore(&p, &restored), 0);
	first[0].addr.port = 0;
	assert_int_equal(cma_port_bind(&p, &first[0], TCP, stranger(0)), -ENOSPC);
	cma_port_release(&p, &restored);
	assert_int_equal(cma_port_bind(&p, &first[0], TCP, stranger(0)), 0);
	second = bind_many(&p, stranger(1), &m);
	assert_int_equal(m, CMA_PORTS_EPHEMERAL / 4);
	/* In other port spaces the user has no more, but ports of the other kind; root has no
	 * limit. */
	assert_int_equal(cma_port_bind(&p, &one, UDP, stranger(0)), -ENOSPC);
	assert_int_equal(cma_port_bind(&p, &fixed, TCP, stranger(0)), 0);
	assert_int_equal(cma_port_bind(&p, &one, TCP, 0), 0);
	cma_port_release(&p, &one);
	cma_port_release(&p, &fixed);
	release_many(&p, first, n);
	release_many(&p, second, m);
	assert_int_equal(p.ephemeral.total + p.other.total, 0);
	assert_int_equal(p.ephemeral.total, 0);
	cma_port_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bound_port_is_refused_to_others),
		cmocka_unit_test(reuseaddr_shares_a_port_until_one_listens),
		cmocka_unit_test(afonly_separates_ipv4_and_ipv6),
		cmocka_unit_test(port_0_assigns_a_free_port),
		cmocka_unit_test(bind_fails_when_all_ports_are_used),
		cmocka_unit_test(find_listener_matches_address_and_family),
		cmocka_unit_test(loopback_listener_accepts_all_addresses),
		cmocka_unit_test(sockaddr_conversion_round_trips),
		cmocka_unit_test(ports_of_a_user_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
