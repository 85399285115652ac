/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* GID indices of addresses while addresses are added and removed; addresses of --address. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "urxed/hostnet/host.h"

/* 192.0.2.N, on uplink 0 and in no VLAN. */
static struct host_address v4(uint8_t n)
{
	struct host_address a = {.prefix_len = IP_V4_BITS + 24};

	ip_from_v4(a.ip, (const uint8_t[]){192, 0, 2, n});
	return a;
}

static uint32_t follow(struct host *h, const char *last_bytes)
{
	struct host_address list[256];
	uint32_t n;

	for (n = 0; last_bytes[n]; n++)
		list[n] = v4((uint8_t)last_bytes[n]);
	return host_set_kernel_addresses(h, list, n);
}

/* The last bytes by index, '.' for a free one. */
static void expect(const struct host *h, const char *last_bytes)
{
	uint32_t i;

	for (i = 0; i < HOST_ADDRESSES; i++) {
		const struct host_address *a = host_address_by_gid(h, i);
		char found = a ? (char)a->ip[15] : '.';

		assert_int_equal(found, i < strlen(last_bytes) ? last_bytes[i] : '.');
		assert_ptr_equal(a, host_address_by_gid(h, HOST_ADDRESSES + i));
	}
}

static void address_keeps_its_gid_index(void **state)
{
	struct host h;

	(void)state;
	host_init(&h);
	assert_int_equal(follow(&h, "abc"), 0);
	expect(&h, "abc");
	follow(&h, "cba");
	expect(&h, "abc");
	follow(&h, "c");
	expect(&h, "..c");
	/* A new address gets an index that was never used. */
	follow(&h, "cd");
	expect(&h, "..cd");
	/* An address that returns gets its old index. */
	follow(&h, "bcd");
	expect(&h, ".bcd");
	follow(&h, "");
	expect(&h, "");
	follow(&h, "dcba");
	expect(&h, "abcd");
}

/* When all indices have been used, the index that is free for the longest is reused first. */
static void longest_free_index_is_reused_first(void **state)
{
	struct host h;

	(void)state;
	host_init(&h);
	assert_int_equal(follow(&h, "abcdefghijklmnop"), 0);
	follow(&h, "abcdefghijlmnop");
	follow(&h, "acdefghijlmnop");
	follow(&h, "acdefghijlmnopX");
	expect(&h, "a.cdefghijXlmnop");
	follow(&h, "acdefghijlmnopXY");
	expect(&h, "aYcdefghijXlmnop");
}

static void address_beyond_the_table_gets_the_next_free_index(void **state)
{
	struct host h;

	(void)state;
	host_init(&h);
	assert_int_equal(follow(&h, "abcdefghijklmnopqr"), 2);
	expect(&h, "abcdefghijklmnop");
	assert_int_equal(follow(&h, "abcdefgijklmnopqr"), 1);
	expect(&h, "abcdefgqijklmnop");
}

/*
 * Any station can make 16 addresses by a router advertisement. They must leave indices to the
 * host's other addresses, and keep those that they have, because queue pairs use them.
 */
static void dynamic_addresses_leave_indices_to_others(void **state)
{
	struct host_address list[HOST_ADDRESSES + 2];
	struct host h;

	(void)state;
	host_init(&h);
	for (uint8_t i = 0; i < HOST_ADDRESSES + 2; i++) {
		list[i] = v4('a' + i);
		list[i].dynamic = i > 0 && i <= HOST_DYNAMIC_ADDRESSES + 1;
	}
	assert_int_equal(host_set_kernel_addresses(&h, list, 14), 1);
	expect(&h, "abcdefghijklm");
	assert_int_equal(host_set_kernel_addresses(&h, list, 17), 1);
	expect(&h, "abcdefghijklmopq");
	assert_int_equal(host_set_kernel_addresses(&h, list, 18), 2);
	expect(&h, "abcdefghijklmopq");
	/* An index of a dynamic one that has gone is free for the next. */
	list[1] = list[0];
	assert_int_equal(host_set_kernel_addresses(&h, list, 17), 0);
	expect(&h, "ancdefghijklmopq");
}

/* That of --address counts as none. */
static void dynamic_address_may_be_named_by_an_option(void **state)
{
	struct host_address list[HOST_DYNAMIC_ADDRESSES + 1];
	struct host h;

	(void)state;
	host_init(&h);
	assert_int_equal(host_add_text(&h, "192.0.2.97/24", 0), 0);
	for (uint8_t i = 0; i < HOST_DYNAMIC_ADDRESSES + 1; i++) {
		list[i] = v4('a' + i);
		list[i].dynamic = true;
	}
	assert_int_equal(host_set_kernel_addresses(&h, list, HOST_DYNAMIC_ADDRESSES + 1), 0);
	expect(&h, "abcdefghijklm");
}

static void first_of_duplicate_addresses_counts(void **state)
{
	struct host_address list[3] = {v4(1), v4(1), v4(1)};
	struct host h;

	(void)state;
	host_init(&h);
	list[1].uplink = 1;
	list[2].vlan = 7;
	assert_int_equal(host_set_kernel_addresses(&h, list, 3), 0);
	/* The same IP in another VLAN is another address. */
	assert_int_equal(h.addresses[0].uplink, 0);
	assert_int_equal(h.addresses[1].vlan, 7);
	assert_null(host_address_by_gid(&h, 2));
	/* The address moves to the other uplink and keeps its index. */
	host_set_kernel_addresses(&h, list + 1, 2);
	assert_int_equal(h.addresses[0].uplink, 1);
	assert_int_equal(h.addresses[1].vlan, 7);
	assert_null(host_address_by_gid(&h, 2));
}

/* A configured address stays, whether or not the kernel has it. */
static void configured_addresses_survive_kernel_changes(void **state)
{
	struct host h;

	(void)state;
	host_init(&h);
	follow(&h, "a"); /* 97 */
	assert_int_equal(host_add_text(&h, "192.0.2.97/24", 0), 0);
	assert_int_equal(host_add_text(&h, "192.0.2.98/24", 0), 0);
	expect(&h, "ab");
	assert_true(h.addresses[0].kernel);
	assert_false(h.addresses[1].kernel);
	follow(&h, "b");
	expect(&h, "ab");
	assert_false(h.addresses[0].kernel);
	assert_true(h.addresses[1].kernel);
	follow(&h, "");
	expect(&h, "ab");
	assert_false(h.addresses[1].kernel);
}

static void expect_on(const struct host_address *a, int uplink, uint8_t prefix_len)
{
	assert_int_equal(a->uplink, uplink);
	assert_int_equal(a->prefix_len, IP_V4_BITS + prefix_len);
}

/* The kernel's uplink and prefix length count while the kernel has the address, --address' later.
 */
static void configured_address_returns_from_the_kernel(void **state)
{
	struct host_address kernel = v4('a');
	struct host h;

	(void)state;
	host_init(&h);
	kernel.uplink = 1;
	kernel.prefix_len = IP_V4_BITS + 32;
	assert_int_equal(host_add_text(&h, "192.0.2.97/24", 0), 0);
	host_set_kernel_addresses(&h, &kernel, 1);
	expect_on(&h.addresses[0], 1, 32);
	host_set_kernel_addresses(&h, &kernel, 1);
	follow(&h, "");
	expect_on(&h.addresses[0], 0, 24);
	/* The kernel had the address before the daemon. */
	host_init(&h);
	host_set_kernel_addresses(&h, &kernel, 1);
	assert_int_equal(host_add_text(&h, "192.0.2.97/24", 0), 0);
	expect_on(&h.addresses[0], 1, 32);
	follow(&h, "");
	expect_on(&h.addresses[0], 0, 24);
}

/* After a restart, addresses get their old indices, in any order of arrival. */
static void reserved_index_waits_for_its_address(void **state)
{
	struct host_address b = v4('b'), d = v4('d');
	struct host h;

	(void)state;
	host_init(&h);
	host_reserve_index(&h, 0, b.ip, 0);
	host_reserve_index(&h, 2, d.ip, 0);
	follow(&h, "abcd");
	expect(&h, "badc");
	/* The reserved address is in a VLAN, so it is another one. */
	host_init(&h);
	host_reserve_index(&h, 0, b.ip, 7);
	follow(&h, "b");
	expect(&h, ".b");
}

/* All indices are reserved, and the kernel names a new address first. */
static void new_address_takes_no_index_of_one_that_is_there(void **state)
{
	struct host h;

	(void)state;
	host_init(&h);
	for (uint32_t i = 0; i < HOST_ADDRESSES; i++)
		host_reserve_index(&h, i, v4((uint8_t)('a' + i)).ip, 0);
	follow(&h, "qa");
	expect(&h, "aq");
}

static void addresses_are_those_of_a_station(void **state)
{
	static const char *const bad[] = {"::/64",
					  "::1/128",
					  "ff02::1/64",
					  "0.0.0.0/0",
					  "0.1.2.3/8",
					  "127.0.0.1/8",
					  "224.0.0.1/4",
					  "::ffff:127.0.0.1/104",
					  "255.255.255.255/32"};
	static const char *const good[] = {"::2/64",      "1::1/64",     "fe80::1/64",
					   "126.0.0.1/8", "128.0.0.1/8", "223.255.255.254/32",
					   "100::/64"};
	struct host h;

	(void)state;
	host_init(&h);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(host_add_text(&h, bad[i], HOST_NO_UPLINK), -EINVAL);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(host_add_text(&h, good[i], HOST_NO_UPLINK), 0);
}

static void port_notice_has_mtu_link_and_gids(void **state)
{
	struct vnic_attach_port port;
	struct host h;

	(void)state;
	host_init(&h);
	assert_int_equal(host_add_text(&h, "2001:db8::1/64@9", 0), 0);
	h.mtu = 1500;
	h.up = false;
	host_fill_port(&h, &port);
	assert_int_equal(port.link_mtu, 1500);
	assert_int_equal(port.up, 0);
	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++)
		assert_int_equal(port.gids[i].valid, i % HOST_ADDRESSES == 0);
	assert_memory_equal(port.gids[16].raw, port.gids[0].raw, 16);
	assert_int_equal(port.gids[0].v1, 0);
	assert_int_equal(port.gids[16].v1, 1);
	assert_int_equal(port.gids[16].vlan, 9);
}

/* An HCA has the GID of that interface only. */
static void port_notice_has_the_interface_of_a_gid(void **state)
{
	struct host_address a = {
		.ip = {0xfe, 0x80, [15] = 1}, .prefix_len = 64, .vlan = 9, .ifindex = 7};
	struct vnic_attach_port port;
	struct host h;

	(void)state;
	host_init(&h);
	assert_int_equal(host_add_text(&h, "fe80::1/64@9", 0), 0);
	host_set_kernel_addresses(&h, &a, 1);
	host_fill_port(&h, &port);
	assert_int_equal(port.gids[0].ifindex, 7);
	host_set_kernel_addresses(&h, NULL, 0);
	host_fill_port(&h, &port);
	assert_int_equal(port.gids[0].ifindex, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_keeps_its_gid_index),
		cmocka_unit_test(longest_free_index_is_reused_first),
		cmocka_unit_test(address_beyond_the_table_gets_the_next_free_index),
		cmocka_unit_test(dynamic_addresses_leave_indices_to_others),
		cmocka_unit_test(dynamic_address_may_be_named_by_an_option),
		cmocka_unit_test(first_of_duplicate_addresses_counts),
		cmocka_unit_test(configured_addresses_survive_kernel_changes),
		cmocka_unit_test(configured_address_returns_from_the_kernel),
		cmocka_unit_test(reserved_index_waits_for_its_address),
		cmocka_unit_test(new_address_takes_no_index_of_one_that_is_there),
		cmocka_unit_test(addresses_are_those_of_a_station),
		cmocka_unit_test(port_notice_has_mtu_link_and_gids),
		cmocka_unit_test(port_notice_has_the_interface_of_a_gid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
