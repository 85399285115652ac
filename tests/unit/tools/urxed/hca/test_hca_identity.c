/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The identity of a host without an uplink that has an HCA. */
#include "fake_sysfs.h"

#include "urxed/hca/hca_identity.h"

static struct hca_list list;
static struct host host;

static const struct hca_port *scan_one(void)
{
	hca_scan(sys, NULL, &list);
	assert_int_equal(list.n, 1);
	return &list.ports[0];
}

static void host_has_mac_addresses_and_mtu_of_its_hca(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
	const struct hca_port *p;

	(void)state;
	make_roce("hca0", "eth0");
	put("net/eth0/ifindex", "5");
	p = scan_one();
	host_init(&host);
	hca_identity_set_mac(p, &host);
	assert_memory_equal(host.mac, "\x52\x54\x00\x12\x34\x56", 6);
	assert_int_equal(hca_identity_set_addresses(p, &host), 0);
	assert_int_equal(host.addresses[0].ip[0], 0xfe);
	assert_int_equal(host.addresses[0].prefix_len, 64);
	assert_memory_equal(host.addresses[1].ip, v4, 16);
	assert_string_equal(host.addresses[1].ndev, "eth0");
	assert_int_equal(host.addresses[1].ifindex, 5);
	assert_false(host.addresses[2].valid); /* the two types of one GID are one address */
	assert_true(host.mtu > 1024 && host.mtu < 1500);
	/* Addresses keep their index. */
	drop("infiniband/hca0/ports/1/gids/0");
	drop("infiniband/hca0/ports/1/gids/1");
	make_gid("hca0", 1, 0, GID_V4, "IB/RoCE v1", "eth0");
	assert_int_equal(hca_identity_set_addresses(scan_one(), &host), 0);
	assert_false(host.addresses[0].valid);
	assert_memory_equal(host.addresses[1].ip, v4, 16);
}

static void largest_mtu_is_no_limit(void **state)
{
	(void)state;
	make_roce("hca0", "eth0");
	put("infiniband/hca0/ports/1/active_mtu", "4096");
	host_init(&host);
	hca_identity_set_addresses(scan_one(), &host);
	assert_int_equal(host.mtu, HOST_MTU);
}

static void gids_that_are_no_addresses_are_left_out(void **state)
{
	(void)state;
	make_roce("hca0", "eth0");
	make_gid("hca0", 1, 0, "ff02:0000:0000:0000:0000:0000:0000:0001", "RoCE v2", "eth0");
	make_gid("hca0", 1, 1, "0000:0000:0000:0000:0000:ffff:e000:0001", "RoCE v2", "eth0");
	make_gid("hca0", 1, 3, "0000:0000:0000:0000:0000:ffff:0000:0001", "RoCE v2", "eth0");
	host_init(&host);
	hca_identity_set_addresses(scan_one(), &host);
	assert_false(host.addresses[0].valid);
}

static void unknown_mac_is_not_taken(void **state)
{
	struct hca_port p = {.n_gids = 0};
	uint8_t mac[6];

	(void)state;
	host_init(&host);
	memcpy(mac, host.mac, 6);
	hca_identity_set_mac(&p, &host);
	assert_memory_equal(host.mac, mac, 6);
	p.mac[0] = 0x33; /* a group's */
	hca_identity_set_mac(&p, &host);
	assert_memory_equal(host.mac, mac, 6);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_sysfs, remove_sysfs)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(host_has_mac_addresses_and_mtu_of_its_hca),
		TEST(largest_mtu_is_no_limit),
		TEST(gids_that_are_no_addresses_are_left_out),
		TEST(unknown_mac_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
