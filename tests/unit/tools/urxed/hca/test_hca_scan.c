/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of RDMA ports that is read from sysfs. */
#include "fake_sysfs.h"

#include "urxed/hca/hca_netdev.h"
#include "urxed/hca/hca_scan.h"

static struct hca_list list;

static const struct hca_port *scan_one(void)
{
	hca_scan(sys, NULL, &list);
	assert_int_equal(list.n, 1);
	return &list.ports[0];
}

static void host_without_devices_has_none(void **state)
{
	(void)state;
	hca_scan(sys, NULL, &list);
	assert_int_equal(list.n, 0);
	put("infiniband/abi_version", "6"); /* a file beside the devices */
	hca_scan(sys, NULL, &list);
	assert_int_equal(list.n, 0);
}

static void roce_port_is_read(void **state)
{
	const struct hca_port *p;

	(void)state;
	make_roce("mlx5_0", "eth0");
	put_link("infiniband/mlx5_0/device/driver", "../../../bus/pci/drivers/mlx5_core");
	put("infiniband/mlx5_0/ports/1/pkeys/0", "0xffff");
	put("infiniband/mlx5_0/ports/1/pkeys/1", "0x0000");
	put("infiniband/mlx5_0/ports/1/pkeys/2", "0x8001");
	p = scan_one();
	assert_memory_equal(p->guid, "\x50\x54\x00\xff\xfe\x12\x34\x56", 8);
	assert_int_equal(p->pkeys[0], 0xffff);
	assert_int_equal(p->pkeys[1], 0);
	assert_int_equal(p->pkeys[2], 0x8001);
	assert_int_equal(p->pkeys[3], 0);
	assert_string_equal(p->device, "mlx5_0");
	assert_int_equal(p->number, 1);
	assert_int_equal(p->kind, HCA_ROCE);
	assert_int_equal(p->state, HCA_ACTIVE);
	assert_string_equal(p->driver, "mlx5_core");
	assert_string_equal(p->firmware, "20.31.1014");
	assert_int_equal(p->speed_mbps, 25000);
	assert_true(port_rate_same(p->rate, port_rate_of_link(25000)));
	assert_int_equal(p->mtu, 1024);
	assert_string_equal(p->ndev, "eth0");
	assert_memory_equal(p->mac, "\x52\x54\x00\x12\x34\x56", 6);
	assert_true(p->v1 && p->v2);
	assert_int_equal(p->n_gids, 3);
	assert_false(p->gids[0].v2);
	assert_true(p->gids[1].v2);
	assert_int_equal(p->gids[1].index, 1);
	assert_int_equal(p->gids[2].index, 3);
	assert_memory_equal(p->gids[2].ip, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x01", 16);
}

static void port_kind_follows_node_type_and_link_layer(void **state)
{
	static const struct {
		const char *node_type, *layer;
		enum hca_kind kind;
	} cases[] = {
		{"1: CA", "InfiniBand", HCA_INFINIBAND}, {"1: CA", "Ethernet", HCA_ROCE},
		{"4: RNIC", "Ethernet", HCA_IWARP},      {"5: usNIC", "Ethernet", HCA_OTHER},
		{"1: CA", "Unspecified", HCA_OTHER},     {"CA", "Ethernet", HCA_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_device("dev0", cases[i].node_type);
		make_port("dev0", 1, cases[i].layer, "4: ACTIVE");
		assert_int_equal(scan_one()->kind, cases[i].kind);
	}
}

static void port_states_are_parsed(void **state)
{
	static const struct {
		const char *text;
		enum hca_state state;
	} cases[] = {
		{"1: DOWN", HCA_DOWN},           {"2: INIT", HCA_DOWN},
		{"3: ARMED", HCA_DOWN},          {"4: ACTIVE", HCA_ACTIVE},
		{"5: ACTIVE_DEFER", HCA_ACTIVE}, {"0: NOP", HCA_UNKNOWN},
		{"ACTIVE", HCA_UNKNOWN},         {"", HCA_UNKNOWN},
	};

	(void)state;
	make_device("dev0", "1: CA");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_port("dev0", 1, "Ethernet", cases[i].text);
		assert_int_equal(scan_one()->state, cases[i].state);
	}
}

static void ports_are_in_the_order_of_their_numbers(void **state)
{
	(void)state;
	make_device("mlx5_10", "1: CA");
	make_port("mlx5_10", 1, "InfiniBand", "4: ACTIVE");
	make_device("mlx5_9", "1: CA");
	make_port("mlx5_9", 10, "InfiniBand", "4: ACTIVE");
	make_port("mlx5_9", 2, "InfiniBand", "4: ACTIVE");
	hca_scan(sys, NULL, &list);
	assert_int_equal(list.n, 3);
	assert_string_equal(list.ports[0].device, "mlx5_9");
	assert_int_equal(list.ports[0].number, 2);
	assert_int_equal(list.ports[1].number, 10);
	assert_string_equal(list.ports[2].device, "mlx5_10");
	assert_ptr_equal(hca_find_port(&list, "mlx5_9", 0), &list.ports[0]);
	assert_ptr_equal(hca_find_port(&list, "mlx5_9", 10), &list.ports[1]);
	assert_null(hca_find_port(&list, "mlx5_9", 3));
	assert_null(hca_find_port(&list, "mlx5", 0));
}

static void missing_files_leave_values_unknown(void **state)
{
	const struct hca_port *p;

	(void)state;
	put("infiniband/dev0/ports/1/link_layer", "Ethernet");
	put("infiniband/dev0/node_type", "1: CA");
	p = scan_one();
	assert_int_equal(p->kind, HCA_ROCE);
	assert_int_equal(p->state, HCA_UNKNOWN);
	assert_string_equal(p->driver, "");
	assert_string_equal(p->firmware, "");
	assert_int_equal(p->speed_mbps + p->mtu + p->n_gids, 0);
	assert_memory_equal(p->mac, "\0\0\0\0\0\0", 6);
	drop("infiniband/dev0/ports");
	hca_scan(sys, NULL, &list);
	assert_int_equal(list.n, 0);
}

static void odd_contents_are_left_out(void **state)
{
	static char huge[100000];
	const struct hca_port *p;

	(void)state;
	memset(huge, '7', sizeof(huge));
	make_roce("dev0", "eth0");
	put_bytes("infiniband/dev0/fw_ver", huge, sizeof(huge));
	put_bytes("infiniband/dev0/ports/1/rate", "\0\0", 2);
	put_bytes("infiniband/dev0/ports/1/gids/1", huge, sizeof(huge));
	put("infiniband/dev0/ports/1/gid_attrs/types/0", "RoCE v3");
	make_gid("dev0", 1, 4, "fe80:0000:0000:0000:5054:00ff:fe12:zzzz", "RoCE v2", "eth0");
	make_gid("dev0", 1, 5, GID_V4 ":1", "RoCE v2", "eth0");
	make_gid("dev0", 1, 6, GID_V4, "RoCE v2", "../eth0");
	make_gid("dev0", 1, 7, GID_V4, "RoCE v2", "an-interface-name-that-is-long");
	make_gid("dev0", 1, 8, GID_V4, "RoCE v2", "\033[2J");
	put("infiniband/dev0/ports/0/state", "4: ACTIVE");
	put("infiniband/dev0/ports/256/state", "4: ACTIVE");
	put("infiniband/dev0/ports/x/state", "4: ACTIVE");
	put("infiniband/na\033me/node_type", "1: CA");
	p = scan_one();
	assert_string_equal(p->firmware, "");
	assert_int_equal(p->speed_mbps + p->rate.width, 0);
	assert_int_equal(p->n_gids, 1); /* entry 3 */
	assert_false(p->v1);
}

static void fifo_does_not_block(void **state)
{
	char path[PATH_MAX];

	(void)state;
	make_roce("dev0", "eth0");
	drop("infiniband/dev0/fw_ver");
	snprintf(path, sizeof(path), "%s/class/infiniband/dev0/fw_ver", sys);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_string_equal(scan_one()->firmware, "");
}

static void tables_are_limited(void **state)
{
	(void)state;
	make_roce("dev0", "eth0");
	for (int i = 0; i < HCA_GIDS + 9; i++)
		make_gid("dev0", 1, i, GID_V4, "RoCE v2", "eth0");
	assert_int_equal(scan_one()->n_gids, HCA_GIDS);
	for (int i = 2; i < HCA_PORTS + 9; i++)
		make_port("dev0", i, "Ethernet", "1: DOWN");
	hca_scan(sys, NULL, &list);
	assert_int_equal(list.n, HCA_PORTS);
}

static void make_ports(int from, int to)
{
	char device[8];

	for (int i = from; i < to; i++) {
		snprintf(device, sizeof(device), "dev%d", i);
		make_device(device, "1: CA");
		make_port(device, 1, "Ethernet", "4: ACTIVE");
	}
}

/* Whatever the order is in which the directory lists them. */
static void names_that_sort_first_have_the_places(void **state)
{
	(void)state;
	make_ports(HCA_PORTS, 2 * HCA_PORTS);
	make_ports(0, HCA_PORTS);
	make_ports(2 * HCA_PORTS, 3 * HCA_PORTS);
	hca_scan(sys, NULL, &list);
	assert_int_equal(list.n, HCA_PORTS);
	for (int i = 0; i < HCA_PORTS; i++)
		assert_string_equal(list.ports[i].device, name("dev%d", i));
	hca_scan(sys, "dev77", &list);
	assert_int_equal(list.n, HCA_PORTS);
	assert_string_equal(list.ports[0].device, "dev77");
	for (int i = 1; i < HCA_PORTS; i++)
		assert_string_equal(list.ports[i].device, name("dev%d", i - 1));
	hca_scan(sys, "dev7", &list);
	assert_string_equal(list.ports[0].device, "dev7");
	assert_non_null(hca_find_port(&list, "dev31", 1));
	hca_scan(sys, "absent", &list);
	assert_string_equal(list.ports[0].device, "dev0");
}

static void software_devices_have_drivers(void **state)
{
	(void)state;
	make_roce("rxe0", "eth0");
	put("infiniband/rxe0/parent", "eth0");
	assert_string_equal(scan_one()->driver, "rdma_rxe");
	drop("infiniband/rxe0");
	make_roce("hca0", "eth0");
	put("infiniband/hca0/node_desc", "urxe");
	assert_string_equal(scan_one()->driver, "urxe");
}

/* Another urxe's device is on the interface lo, which has neither a MAC nor a RoCE MTU. */
static void mac_and_mtu_come_from_gid_or_guid(void **state)
{
	const struct hca_port *p;

	(void)state;
	make_roce("hca0", "lo");
	put("net/lo/type", "772");
	put("infiniband/hca0/node_guid", "0000:0000:0000:0001");
	put("infiniband/hca0/ports/1/active_mtu", "2048");
	p = scan_one();
	assert_int_equal(p->mtu, 2048);
	assert_memory_equal(p->mac, "\x52\x54\x00\x12\x34\x56", 6);
	put("infiniband/hca0/ports/1/active_mtu", "2049");
	assert_int_equal(scan_one()->mtu, 1024);
	/* Without a link-local GID, by the GUID. */
	drop("infiniband/hca0/ports/1/gids/0");
	drop("infiniband/hca0/ports/1/gids/1");
	put("infiniband/hca0/ports/1/gids/0", GID_V4);
	put("infiniband/hca0/node_guid", "5054:00ff:fe12:3457");
	assert_memory_equal(scan_one()->mac, "\x52\x54\x00\x12\x34\x57", 6);
}

static void gid_has_the_vlan_of_its_interface(void **state)
{
	char path[PATH_MAX];
	FILE *f;

	(void)state;
	make_roce("dev0", "eth0");
	make_gid("dev0", 1, 4, GID_V4, "RoCE v2", "eth0.7");
	snprintf(path, sizeof(path), "%s/proc/net/vlan/eth0.7", top);
	make_parents(path);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("eth0.7  VID: 7\t REORDER_HDR: 1  dev->priv_flags: 1021\n", f);
	fclose(f);
	assert_int_equal(scan_one()->n_gids, 4);
	assert_int_equal(list.ports[0].gids[2].vlan, 0);
	assert_int_equal(list.ports[0].gids[3].vlan, 7);
}

static void interfaces_are_stacked(void **state)
{
	(void)state;
	make_netdev("eth0", "52:54:00:12:34:56", 1500);
	put("net/br0/lower_bond0/x", "a directory in place of a link");
	put("net/bond0/lower_eth0/x", "the same");
	put("net/bond0/lower_br0/x", "a circle");
	assert_true(hca_netdev_is_above(sys, "br0", "eth0"));
	assert_true(hca_netdev_is_above(sys, "eth0", "eth0"));
	assert_false(hca_netdev_is_above(sys, "eth0", "br0"));
	assert_false(hca_netdev_is_above(sys, "br0", "eth1"));
	assert_false(hca_netdev_is_above(sys, "", ""));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_sysfs, remove_sysfs)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(host_without_devices_has_none),
		TEST(roce_port_is_read),
		TEST(port_kind_follows_node_type_and_link_layer),
		TEST(port_states_are_parsed),
		TEST(ports_are_in_the_order_of_their_numbers),
		TEST(missing_files_leave_values_unknown),
		TEST(odd_contents_are_left_out),
		TEST(fifo_does_not_block),
		TEST(tables_are_limited),
		TEST(names_that_sort_first_have_the_places),
		TEST(software_devices_have_drivers),
		TEST(mac_and_mtu_come_from_gid_or_guid),
		TEST(gid_has_the_vlan_of_its_interface),
		TEST(interfaces_are_stacked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
