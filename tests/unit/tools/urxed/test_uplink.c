/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An uplink that is opened again makes its settings again, or is closed and keeps its MAC. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem_port.h"
#include "urxed/hca/hca_monitor.h"
#include "urxed/kernel/iface_claim.h"
#include "urxed/uplink/direct_uplink.h"
#include "urxed/uplink/uplink.h"
#include "urxed/uplink/uplink_set.h"

static const uint8_t another_mac[ETHER_MAC_LEN] = {2, 0, 0, 0, 0, 9};

static struct {
	struct uplink uplink;
	struct netdev *far_end;
	int refuses_open, refuses_all, refuses_mac; /* 0, or the errno value of the refusal */
	bool watched;                               /* the interface is watched */
	int guarding; /* 0, or the errno value with which UDP port 4791 is refused */
	bool claimed; /* another uplink has the interface */
	bool hears_all;
	uint32_t macs;
	uint32_t opened;     /* attempts to open the port */
	uint32_t lines;      /* of the log */
	const char *renamed; /* the interface's name; NULL = eth0 */
} w;

/* --- In place of urxed's ports and log */

void __wrap_log_line(const char *fmt, ...);

void __wrap_log_line(const char *fmt, ...)
{
	(void)fmt;
	w.lines++;
}

int port_open(const char *spec, struct netdev **port, char error[PORT_OPEN_ERROR])
{
	struct netdev *ends[2];

	if (w.renamed)
		assert_string_equal(strchr(spec, ':') + 1, w.renamed);
	assert_int_equal(w.watched, w.uplink.kernel);
	w.opened++;
	if (w.refuses_open) {
		snprintf(error, PORT_OPEN_ERROR, "the port is refused");
		return -w.refuses_open;
	}
	assert_int_equal(netdev_mem_pair(1, ends), 0);
	*port = ends[0];
	if (w.far_end)
		netdev_close(w.far_end);
	w.far_end = ends[1];
	return 0;
}

bool port_is_xdp(const char *spec)
{
	return !strncmp(spec, "af_xdp:", 7);
}

/* In place of a scan of sysfs: rdma_rxe is on each interface, or an HCA in hardware is. */
static bool has_hardware;

bool __wrap_hca_monitor_has_interface(const struct hca_monitor *h, const char *ifname, bool xdp);

bool __wrap_hca_monitor_has_interface(const struct hca_monitor *h, const char *ifname, bool xdp)
{
	(void)h;
	(void)ifname;
	return !xdp || has_hardware;
}

int vhost_process_start(struct vhost_process *p, const char *spec, uint32_t mtu,
			char error[VHOST_PROCESS_ERROR])
{
	(void)p;
	(void)spec;
	(void)mtu;
	(void)error;
	return -EINVAL;
}

void vhost_process_stop(struct vhost_process *p)
{
	(void)p;
}

int vhost_process_watch(struct vhost_process *p, int epoll_fd, void *what,
			char error[VHOST_PROCESS_ERROR])
{
	(void)p;
	(void)epoll_fd;
	(void)what;
	(void)error;
	return 0;
}

void vhost_process_event(struct vhost_process *p, uint64_t now)
{
	(void)p;
	(void)now;
}

uint64_t vhost_process_tick(struct vhost_process *p, uint64_t now)
{
	(void)p;
	(void)now;
	return UINT64_MAX;
}

int __wrap_netdev_set_promiscuous(struct netdev *port, bool on);
int __wrap_netdev_add_mac(struct netdev *port, const uint8_t mac[6]);

int __wrap_roce_port_guard_open(struct roce_port_guard *h, const char *ifname,
				char error[ROCE_PORT_GUARD_ERROR]);

int __wrap_roce_port_guard_open(struct roce_port_guard *h, const char *ifname,
				char error[ROCE_PORT_GUARD_ERROR])
{
	assert_string_equal(ifname, w.renamed ? w.renamed : "eth0");
	roce_port_guard_init(h);
	snprintf(error, ROCE_PORT_GUARD_ERROR, "the UDP port is refused");
	return -w.guarding;
}

int __wrap_iface_claim_open(const char *ifname, char error[IFACE_CLAIM_ERROR]);

int __wrap_iface_claim_open(const char *ifname, char error[IFACE_CLAIM_ERROR])
{
	assert_string_equal(ifname, w.renamed ? w.renamed : "eth0");
	snprintf(error, IFACE_CLAIM_ERROR, "the interface is claimed");
	return w.claimed ? -EADDRINUSE : dup(STDERR_FILENO);
}

int __wrap_iface_watch_open(struct iface_watch *watch, const char *ifname);
bool __wrap_iface_watch_has_gone(const struct iface_watch *watch);

int __wrap_iface_watch_open(struct iface_watch *watch, const char *ifname)
{
	assert_string_equal(ifname, w.renamed ? w.renamed : "eth0");
	iface_watch_init(watch);
	w.watched = true;
	return 0;
}

bool __wrap_iface_watch_has_gone(const struct iface_watch *watch)
{
	assert_ptr_equal(watch, &w.uplink.watch);
	return w.watched;
}

int __wrap_netdev_set_promiscuous(struct netdev *port, bool on)
{
	assert_non_null(port);
	w.hears_all = on && !w.refuses_all;
	return -w.refuses_all;
}

int __wrap_netdev_add_mac(struct netdev *port, const uint8_t mac[6])
{
	assert_non_null(port);
	assert_memory_equal(mac, another_mac, sizeof(another_mac));
	w.macs += !w.refuses_mac;
	return -w.refuses_mac;
}

static int open_uplink(void **state)
{
	static const struct uplink_impair none;
	char error[UPLINK_ERROR];

	(void)state;
	memset(&w, 0, sizeof(w));
	return uplink_open(&w.uplink, "mem:", &none, NULL, error) ||
	       uplink_hear_all(&w.uplink, error) || uplink_hear_mac(&w.uplink, another_mac, error);
}

static int close_uplink(void **state)
{
	(void)state;
	uplink_close(&w.uplink);
	netdev_close(w.far_end);
	return 0;
}

/* --- Tests */

static void reopen_makes_the_settings_again(void **state)
{
	char error[UPLINK_ERROR];

	(void)state;
	w.hears_all = false;
	w.macs = 0;
	assert_int_equal(uplink_reopen(&w.uplink, error), 0);
	assert_non_null(w.uplink.port);
	assert_true(w.hears_all);
	assert_int_equal(w.macs, 1);
}

/* A member of a bond, after the last virtual machine has left. The mode may be the only filter. */
static void only_an_interface_of_the_kernel_filters_further_macs(void **state)
{
	char error[UPLINK_ERROR];

	(void)state;
	for (int kernel = 0; kernel <= 1; kernel++) {
		w.uplink.kernel = kernel;
		assert_int_equal(uplink_hear_own(&w.uplink, error), 0);
		assert_int_equal(w.hears_all, !kernel);
		assert_int_equal(w.uplink.hears_all, !kernel);
	}
}

/* Until the next change succeeds, the daemon must not rely on either filter. */
static void port_that_cannot_stop_hearing_all_may_hear_some(void **state)
{
	char error[UPLINK_ERROR];

	(void)state;
	w.uplink.kernel = true;
	w.refuses_all = ENOMEM;
	assert_int_equal(uplink_hear_own(&w.uplink, error), -ENOMEM);
	assert_true(w.uplink.hears_all);
	assert_true(w.uplink.hears_some);
	assert_int_equal(uplink_hear_all(&w.uplink, error), -ENOMEM);
	assert_true(w.uplink.hears_some);
	w.refuses_all = 0;
	assert_int_equal(uplink_hear_all(&w.uplink, error), 0);
	assert_false(w.uplink.hears_some);
	w.uplink.kernel = false; /* the test's port is none */
}

/*
 * The interface has gone while urxed starts: the next port must hear all. Groups and VLANs need no
 * setting on a kernel's interface.
 */
static void settings_of_a_closed_port_wait_for_the_next_one(void **state)
{
	char error[UPLINK_ERROR];

	uplink_close(&w.uplink);
	for (int all = 0; all <= 1; all++) {
		w.uplink.kernel = true;
		assert_int_equal((all ? uplink_hear_all : uplink_hear_own)(&w.uplink, error), 0);
		assert_int_equal(w.uplink.hears_all, all);
		w.uplink.kernel = false; /* the test's port is none */
	}
	assert_int_equal(uplink_hear_group(&w.uplink, another_mac, error), 0);
	assert_int_equal(uplink_hear_vlan(&w.uplink, 5, error), 0);
	reopen_makes_the_settings_again(state);
}

static void expect_closed_until_settings_succeed(void **state, int refused)
{
	const uint16_t mtu = w.uplink.mtu;
	char error[UPLINK_ERROR];

	assert_int_equal(uplink_reopen(&w.uplink, error), -refused);
	assert_null(w.uplink.port);
	assert_int_equal(w.uplink.mtu, mtu);
	w.refuses_all = w.refuses_mac = 0;
	reopen_makes_the_settings_again(state);
}

static void port_that_cannot_hear_all_is_closed(void **state)
{
	w.refuses_all = ENOMEM;
	expect_closed_until_settings_succeed(state, ENOMEM);
}

static void port_that_cannot_hear_a_mac_is_closed(void **state)
{
	w.refuses_mac = ENOSPC;
	expect_closed_until_settings_succeed(state, ENOSPC);
}

/* Two members of a bond on interfaces: the first carries the frames. */
static struct uplink_set members;
static const struct address_pins no_pins;
static const struct host host;
static struct bond bond = {
	.mode = BOND_ACTIVE_BACKUP, .n = 2, .members[1].uplink = 1, .n_carriers = 1, .mask = 3};

static void make_bond(void)
{
	members.n = 2;
	members.at[0] = w.uplink;
	members.at[0].spec = "af_packet:eth0";
	members.at[0].hears_all = false;
	members.at[1] = w.uplink;
}

/* Programs have sockets on the active member: they would get others at each attempt. */
static void failed_attempts_at_a_spare_member_renew_no_socket(void **state)
{
	const struct direct_uplink direct = {
		.host = &host, .uplinks = &members, .pins = &no_pins, .bond = &bond};
	char error[UPLINK_ERROR];
	uint32_t before;

	(void)state;
	make_bond();
	before = direct_uplink_generation(&direct);
	assert_int_not_equal(before, 0);
	w.refuses_open = EBUSY;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(uplink_reopen(&members.at[1], error), -EBUSY);
		assert_int_equal(direct_uplink_generation(&direct), before);
	}
	w.refuses_open = 0;
	w.refuses_all = ENOMEM;
	assert_int_equal(uplink_reopen(&members.at[1], error), -ENOMEM);
	assert_int_equal(direct_uplink_generation(&direct), before);
	w.refuses_all = 0;
	assert_int_equal(uplink_reopen(&members.at[1], error), 0);
	assert_int_not_equal(direct_uplink_generation(&direct), before);
	w.uplink = members.at[1]; /* for close_uplink */
}

/* An MTU beyond the host's limit serves virtual machines only. */
static void mtu_of_a_bond_is_logged_if_a_member_has_less_than_the_host(void **state)
{
	(void)state;
	make_bond();
	for (int i = 0; i < 2; i++)
		members.at[i].bonded = true;
	members.at[0].mtu = 9000;
	members.at[1].mtu = 5000;
	w.lines = 0;
	uplink_set_log_bond_mtu(&members, HOST_MTU);
	assert_int_equal(w.lines, 0);
	members.at[1].mtu = 1500;
	uplink_set_log_bond_mtu(&members, HOST_MTU);
	assert_int_equal(w.lines, 1);
}

/* The MAC of the first member is that of the bond, also while another one carries its frames. */
static void closed_port_keeps_its_mac(void **state)
{
	static const uint8_t mac[ETHER_MAC_LEN] = {2, 0, 0, 0, 0, 5};
	char error[UPLINK_ERROR];

	(void)state;
	memcpy(w.uplink.mac, mac, sizeof(mac));
	w.refuses_open = EBUSY;
	assert_int_equal(uplink_reopen(&w.uplink, error), -EBUSY);
	assert_memory_equal(w.uplink.mac, mac, sizeof(mac));
}

static int open_interface(char error[UPLINK_ERROR])
{
	static const struct uplink_impair none;

	return uplink_open(&w.uplink, "af_packet:eth0", &none, NULL, error);
}

/* The switch's thread would wait for the port in vain. */
static void port_stays_closed_while_another_program_has_that_of_roce(void **state)
{
	char error[UPLINK_ERROR];

	close_uplink(state);
	w.far_end = NULL;
	w.opened = 0;
	w.guarding = EADDRINUSE;
	assert_int_equal(open_interface(error), -EADDRINUSE);
	assert_int_equal(w.opened, 0);
	assert_string_equal(error, "the UDP port is refused");
	w.guarding = 0;
	assert_int_equal(open_interface(error), 0);
	assert_int_equal(w.opened, 1);
}

/* An XDP program would take rdma_rxe's packets; a packet socket gets copies. */
static void rdma_rxe_may_have_the_port_unless_its_packets_are_taken(void **state)
{
	static const struct uplink_impair none;
	static const struct hca_monitor hca;
	char error[UPLINK_ERROR];

	close_uplink(state);
	w.far_end = NULL;
	w.guarding = EADDRINUSE;
	assert_int_equal(uplink_open(&w.uplink, "af_xdp:eth0", &none, &hca, error), -EADDRINUSE);
	assert_int_equal(uplink_open(&w.uplink, "af_packet:eth0", &none, &hca, error), 0);
	close_uplink(state);
	w.far_end = NULL;
	has_hardware = true;
	assert_int_equal(uplink_open(&w.uplink, "af_xdp:eth0", &none, &hca, error), 0);
	has_hardware = false;
}

/* While rdma_rxe has the UDP port of all interfaces, that port is no sign of another urxed. */
static void rdma_rxe_does_not_hide_another_urxed(void **state)
{
	static const struct uplink_impair none;
	static const struct hca_monitor hca;
	char error[UPLINK_ERROR];

	close_uplink(state);
	w.far_end = NULL;
	w.opened = 0;
	w.guarding = EADDRINUSE;
	w.claimed = true;
	assert_int_equal(uplink_open(&w.uplink, "af_packet:eth0", &none, &hca, error), -EADDRINUSE);
	assert_int_equal(w.opened, 0);
	assert_string_equal(error, "the interface is claimed");
	w.claimed = false;
	assert_int_equal(uplink_open(&w.uplink, "af_packet:eth0", &none, &hca, error), 0);
}

static void port_names_the_error_of_a_missing_interface(void **state)
{
	char error[UPLINK_ERROR];

	close_uplink(state);
	w.far_end = NULL;
	w.guarding = w.refuses_open = ENODEV;
	assert_int_equal(open_interface(error), -ENODEV);
	assert_string_equal(error, "the port is refused");
	w.refuses_open = 0;
	assert_int_equal(open_interface(error), -ENODEV);
	assert_string_equal(error, "the UDP port is refused");
	assert_null(w.uplink.port);
	w.guarding = 0;
	assert_int_equal(open_interface(error), 0);
}

/* It keeps the MAC of its probes, which is made from its specification. */
static void renamed_interface_is_opened_by_its_present_name(void **state)
{
	uint8_t probe_mac[ETHER_MAC_LEN];
	char error[UPLINK_ERROR];

	close_uplink(state);
	w.far_end = NULL;
	assert_int_equal(open_interface(error), 0);
	memcpy(probe_mac, w.uplink.probe_mac, sizeof(probe_mac));
	w.renamed = "lan0";
	snprintf(w.uplink.ifname, sizeof(w.uplink.ifname), "%s", w.renamed);
	assert_int_equal(uplink_reopen(&w.uplink, error), 0);
	assert_string_equal(w.uplink.ifname, w.renamed);
	assert_string_equal(w.uplink.spec, "af_packet:eth0");
	assert_memory_equal(w.uplink.probe_mac, probe_mac, sizeof(probe_mac));
	/* A port that cannot be opened is on the same interface: so is its HCA. */
	w.refuses_open = EBUSY;
	assert_int_equal(uplink_reopen(&w.uplink, error), -EBUSY);
	assert_string_equal(w.uplink.ifname, w.renamed);
	/* Later the specification's name finds the interface, or another one. */
	uplink_close(&w.uplink);
	assert_string_equal(w.uplink.ifname, "eth0");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_uplink, close_uplink)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reopen_makes_the_settings_again),
		TEST(only_an_interface_of_the_kernel_filters_further_macs),
		TEST(settings_of_a_closed_port_wait_for_the_next_one),
		TEST(port_that_cannot_stop_hearing_all_may_hear_some),
		TEST(port_that_cannot_hear_all_is_closed),
		TEST(port_that_cannot_hear_a_mac_is_closed),
		TEST(failed_attempts_at_a_spare_member_renew_no_socket),
		TEST(mtu_of_a_bond_is_logged_if_a_member_has_less_than_the_host),
		TEST(closed_port_keeps_its_mac),
		TEST(port_stays_closed_while_another_program_has_that_of_roce),
		TEST(rdma_rxe_may_have_the_port_unless_its_packets_are_taken),
		TEST(rdma_rxe_does_not_hide_another_urxed),
		TEST(renamed_interface_is_opened_by_its_present_name),
		TEST(port_names_the_error_of_a_missing_interface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
