/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How the HCA follows changes of sysfs. */
#include "fake_sysfs.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include "descriptor_limit.h"
#include "urxed/hca/hca_monitor.h"

#define T0 1000000000ull

static struct hca_monitor hca;
static int epoll_fd;

static void open_hca(const char *choice)
{
	char error[HCA_CHOICE_ERROR];
	struct hca_choice c;

	assert_int_equal(hca_choice_parse(choice, &c, error), 0);
	hca_monitor_open(&hca, &c, sys, "urxe0");
}

static int setup(void **state)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return make_sysfs(state);
}

static int teardown(void **state)
{
	hca_monitor_close(&hca);
	close(epoll_fd);
	return remove_sysfs(state);
}

static struct vnic_attach_hca now_used(void)
{
	struct vnic_attach_hca used;

	hca_monitor_fill(&hca, &used);
	return used;
}

static void host_without_devices_is_not_watched(void **state)
{
	(void)state;
	open_hca("auto");
	hca_monitor_set_uplink(&hca, 0, "eth0", false);
	hca_monitor_start(&hca);
	hca_monitor_watch(&hca, epoll_fd, T0);
	assert_int_equal(hca_monitor_deadline(&hca), UINT64_MAX);
	assert_null(hca.netlink.events);
	assert_string_equal(now_used().name, "");
	assert_int_equal(now_used().generation + now_used().port, 0);
	assert_false(hca_monitor_update(&hca, T0));
}

static void table_is_that_of_the_chosen_port(void **state)
{
	struct hca_table table;

	(void)state;
	open_hca("hca0");
	hca_monitor_start(&hca);
	hca_monitor_fill_table(&hca, &table);
	assert_int_equal(table.n_gids + table.guid[0], 0);
	make_roce("hca0", "eth0");
	put("infiniband/hca0/ports/1/pkeys/0", "0xffff");
	hca_monitor_report(&hca, T0);
	assert_true(hca_monitor_update(&hca, T0 + HCA_SCAN_NS));
	hca_monitor_fill_table(&hca, &table);
	assert_memory_equal(table.guid, "\x50\x54\x00\xff\xfe\x12\x34\x56", 8);
	assert_int_equal(table.mtu, 1024);
	assert_int_equal(table.pkeys[0], 0xffff);
	assert_int_equal(table.n_gids, 3);
	assert_int_equal(table.gids[2].index, 3);
	assert_true(table.gids[2].v2);
	assert_false(table.may_lack_gids);
	for (int i = 4; i < HCA_GIDS + 4; i++)
		make_gid("hca0", 1, i, GID_V4, "RoCE v2", "eth0");
	hca_monitor_report(&hca, T0 + 1);
	assert_true(hca_monitor_update(&hca, T0 + 1 + HCA_SCAN_NS));
	hca_monitor_fill_table(&hca, &table);
	assert_true(table.may_lack_gids);
}

/* Not the kernel's sysfs: nothing tells of changes. */
static void changes_of_another_tree_are_polled(void **state)
{
	uint64_t now = T0;

	(void)state;
	make_roce("hca0", "eth0");
	open_hca("hca0");
	assert_true(hca_monitor_has_interface(&hca, "eth0", false));
	assert_false(hca_monitor_has_interface(&hca, "eth1", false));
	hca_monitor_start(&hca);
	assert_string_equal(now_used().name, "hca0");
	assert_int_equal(now_used().port, 1);
	assert_int_equal(now_used().generation, 1);
	hca_monitor_watch(&hca, epoll_fd, now);
	now = hca_monitor_deadline(&hca);
	assert_int_equal(now, T0 + HCA_POLL_NS);
	assert_false(hca_monitor_update(&hca, now - 1));
	assert_false(hca_monitor_update(&hca, now));
	put("infiniband/hca0/ports/1/state", "1: DOWN");
	now = hca_monitor_deadline(&hca);
	assert_true(hca_monitor_update(&hca, now));
	assert_string_equal(now_used().name, "hca0");
	assert_int_equal(now_used().generation, 1);
	assert_true(now_used().down);
	put("infiniband/hca0/ports/1/state", "4: ACTIVE");
	assert_true(hca_monitor_update(&hca, hca_monitor_deadline(&hca)));
	assert_int_equal(now_used().generation, 1);
	assert_false(now_used().down);
	/* A change of addresses is no new HCA. */
	make_gid("hca0", 1, 4, GID_V4, "IB/RoCE v1", "eth0");
	assert_true(hca_monitor_update(&hca, hca_monitor_deadline(&hca)));
	assert_int_equal(now_used().generation, 1);
	drop("infiniband");
	assert_true(hca_monitor_update(&hca, hca_monitor_deadline(&hca)));
	assert_string_equal(now_used().name, "");
	assert_int_equal(now_used().generation, 2);
	assert_null(hca_monitor_chosen(&hca));
	/* A device that is named may come back. */
	assert_int_not_equal(hca_monitor_deadline(&hca), UINT64_MAX);
}

static void report_causes_two_scans(void **state)
{
	uint64_t now = T0;

	(void)state;
	make_device("dev0", "4: RNIC");
	make_port("dev0", 1, "Ethernet", "4: ACTIVE");
	open_hca("auto");
	hca_monitor_start(&hca);
	hca_monitor_watch(&hca, epoll_fd, now);
	hca.polls = false;
	drop("infiniband"); /* from now on the tree counts as the kernel's */
	hca_monitor_report(&hca, now);
	assert_int_equal(hca_monitor_deadline(&hca), now + HCA_SCAN_NS);
	/* A burst of reports does not postpone the scan. */
	hca_monitor_report(&hca, now + 5);
	assert_true(hca_monitor_deadline(&hca) <= now + 5 + HCA_SCAN_NS);
	now = hca_monitor_deadline(&hca);
	hca_monitor_update(&hca, now);
	assert_int_equal(hca_monitor_deadline(&hca), now + HCA_SETTLE_NS);
	now = hca_monitor_deadline(&hca);
	hca_monitor_update(&hca, now);
	assert_int_equal(hca_monitor_deadline(&hca), UINT64_MAX);
}

/* A rename of the interface, of which urxed learns before the scan. */
static void hca_stays_when_its_interface_is_renamed(void **state)
{
	(void)state;
	make_roce("rxe0", "eth0");
	open_hca("auto");
	hca_monitor_set_uplink(&hca, 0, "eth0", false);
	hca_monitor_start(&hca);
	hca_monitor_watch(&hca, epoll_fd, T0);
	assert_string_equal(now_used().name, "rxe0");
	make_roce("rxe0", "lan0");
	/* Also before the next scan. */
	assert_true(hca_monitor_has_interface(&hca, "lan0", false));
	assert_false(hca_monitor_has_interface(&hca, "eth0", false));
	hca_monitor_set_uplink(&hca, 0, "lan0", false);
	assert_true(hca_monitor_update(&hca, hca_monitor_deadline(&hca)));
	assert_string_equal(hca_monitor_chosen(&hca)->ndev, "lan0");
	assert_string_equal(now_used().name, "rxe0");
	assert_int_equal(now_used().generation, 1);
	assert_int_equal(hca.verdicts[hca.chosen].uplink, 0);
}

/* The interface gets another name between the reports that urxed has read and the scan. */
static void hca_is_given_up_after_two_scans_without_its_uplink(void **state)
{
	uint64_t first;

	(void)state;
	make_roce("rxe0", "eth0");
	open_hca("auto");
	hca_monitor_set_uplink(&hca, 0, "eth0", false);
	hca_monitor_start(&hca);
	hca_monitor_watch(&hca, epoll_fd, T0);
	for (int renamed = 1; renamed >= 0; renamed--) {
		make_roce("rxe0", renamed ? "lan0" : "eth7");
		first = hca_monitor_deadline(&hca);
		assert_false(hca_monitor_update(&hca, first));
		assert_string_equal(now_used().name, "rxe0");
		assert_int_equal(hca_monitor_deadline(&hca), first + HCA_SETTLE_NS);
		if (renamed)
			hca_monitor_set_uplink(&hca, 0, "lan0", false);
		assert_true(hca_monitor_update(&hca, hca_monitor_deadline(&hca)));
		assert_string_equal(now_used().name, renamed ? "rxe0" : "");
		assert_int_equal(now_used().generation, renamed ? 1 : 2);
	}
}

/* With one free descriptor, a scan finds the names of the devices, but not that one can be opened.
 */
static void hca_stays_while_descriptors_lack(void **state)
{
	(void)state;
	make_roce("hca0", "eth0");
	open_hca("auto");
	hca_monitor_set_uplink(&hca, 0, "eth0", false);
	hca_monitor_start(&hca);
	hca_monitor_watch(&hca, epoll_fd, T0);
	for (int is_one_free = 0; is_one_free < 2; is_one_free++) {
		const int fd = is_one_free ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
		struct rlimit limit = descriptor_limit_reach();

		close(fd);
		for (int scans = 0; scans < 3; scans++)
			assert_false(hca_monitor_update(&hca, hca_monitor_deadline(&hca)));
		descriptor_limit_restore(&limit);
		assert_string_equal(now_used().name, "hca0");
		assert_int_equal(now_used().generation, 1);
		assert_false(now_used().down);
	}
	/* Without another report. */
	drop("infiniband");
	assert_true(hca_monitor_update(&hca, hca_monitor_deadline(&hca)));
	assert_string_equal(now_used().name, "");
}

/*
 * rdma_rxe has UDP port 4791 on all interfaces. An XDP program takes its packets only on those that
 * they pass, not the packets of an HCA in hardware.
 */
static void xdp_program_may_share_an_interface_with_hardware(void **state)
{
	(void)state;
	make_roce("mlx5_0", "eth0");
	make_roce("rxe0", "eth1");
	put("infiniband/rxe0/parent", "eth1");
	open_hca("auto");
	assert_true(hca_monitor_has_interface(&hca, "eth0", true));
	assert_true(hca_monitor_has_interface(&hca, "eth1", false));
	assert_false(hca_monitor_has_interface(&hca, "eth1", true));
	make_roce("rxe1", "eth0");
	put("infiniband/rxe1/parent", "eth0");
	assert_false(hca_monitor_has_interface(&hca, "eth0", true));
}

/* Packets to a macvlan, bridge or bond arrive by the interface below it. */
static void xdp_program_takes_packets_of_rdma_rxe_above_its_interface(void **state)
{
	(void)state;
	make_roce("mlx5_0", "eth0");
	make_roce("rxe0", "macvlan0");
	put("infiniband/rxe0/parent", "macvlan0");
	put_link("net/macvlan0/lower_eth0", "../eth0");
	open_hca("auto");
	assert_true(hca_monitor_has_interface(&hca, "eth0", false));
	assert_false(hca_monitor_has_interface(&hca, "eth0", true));
	/* Another macvlan gets other packets. */
	make_netdev("macvlan1", "52:54:00:12:34:57", 1500);
	put_link("net/macvlan1/lower_eth0", "../eth0");
	assert_true(hca_monitor_has_interface(&hca, "macvlan1", true));
}

/* With one free descriptor, a scan finds mlx5_0, but not that macvlan0 is above its interface. */
static void xdp_program_waits_for_a_complete_scan(void **state)
{
	bool found, found_for_xdp;
	struct rlimit limit;
	int fd;

	(void)state;
	make_roce("mlx5_0", "eth0");
	make_roce("rxe0", "macvlan0");
	put("infiniband/rxe0/parent", "macvlan0");
	put_link("net/macvlan0/lower_bond0", "../bond0");
	put_link("net/bond0/lower_eth0", "../eth0");
	open_hca("auto");
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	limit = descriptor_limit_reach();
	close(fd);
	found = hca_monitor_has_interface(&hca, "eth0", false);
	found_for_xdp = hca_monitor_has_interface(&hca, "eth0", true);
	descriptor_limit_restore(&limit);
	assert_true(found);
	assert_false(found_for_xdp);
	/* The next scan is complete. */
	drop("infiniband/rxe0");
	assert_true(hca_monitor_has_interface(&hca, "eth0", true));
}

static void make_many(void)
{
	char device[8];

	for (int i = 0; i < 40; i++) {
		snprintf(device, sizeof(device), "mlx5_%d", i);
		make_roce(device, "eth1");
	}
}

/* As when an administrator makes virtual functions, whose names sort first here. */
static void hca_in_use_stays_beside_many_devices(void **state)
{
	static const char *const choices[] = {"auto", "mlx5_77"};

	(void)state;
	for (int named = 0; named < 2; named++) {
		make_roce("mlx5_77", "eth0");
		open_hca(choices[named]);
		hca_monitor_set_uplink(&hca, 0, "eth0", false);
		hca_monitor_start(&hca);
		assert_string_equal(now_used().name, "mlx5_77");
		make_many();
		hca_monitor_report(&hca, T0);
		hca_monitor_update(&hca, T0 + HCA_SCAN_NS);
		assert_string_equal(now_used().name, "mlx5_77");
		assert_int_equal(now_used().generation, 1);
		assert_true(hca_monitor_has_interface(&hca, "eth0", false));
		hca_monitor_close(&hca);
		/* A daemon that starts now. */
		open_hca(choices[named]);
		hca_monitor_set_uplink(&hca, 0, "eth0", false);
		hca_monitor_start(&hca);
		assert_string_equal(now_used().name, named ? "mlx5_77" : "");
		hca_monitor_close(&hca);
		drop("infiniband");
		drop("infiniband_verbs");
	}
}

static void hca_off_watches_no_device(void **state)
{
	(void)state;
	make_roce("hca0", "eth0");
	open_hca("off");
	assert_false(hca_monitor_has_interface(&hca, "eth0", false));
	hca_monitor_set_uplink(&hca, 0, "eth0", false);
	hca_monitor_start(&hca);
	hca_monitor_watch(&hca, epoll_fd, T0);
	assert_null(hca.netlink.events);
	assert_int_equal(hca_monitor_deadline(&hca), UINT64_MAX);
	assert_string_equal(now_used().name, "");
	assert_string_equal(hca.verdicts[0].reason, "--hca off");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(host_without_devices_is_not_watched),
		TEST(table_is_that_of_the_chosen_port),
		TEST(changes_of_another_tree_are_polled),
		TEST(report_causes_two_scans),
		TEST(hca_stays_when_its_interface_is_renamed),
		TEST(hca_is_given_up_after_two_scans_without_its_uplink),
		TEST(hca_stays_while_descriptors_lack),
		TEST(xdp_program_may_share_an_interface_with_hardware),
		TEST(xdp_program_takes_packets_of_rdma_rxe_above_its_interface),
		TEST(xdp_program_waits_for_a_complete_scan),
		TEST(hca_in_use_stays_beside_many_devices),
		TEST(hca_off_watches_no_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
