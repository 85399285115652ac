/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How often urxed tries to open an uplink, and to read the kernel's interfaces, after a failure. */
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/sockios.h>

#include "common/clock.h"
#include "common/log.h"
#include "descriptor_limit.h"
#include "urxed/kernel/kernel_sync.h"
#include "urxed/kernel/link_speed.h"

#define IFINDEX 7
#define VLAN    100

/* The largest MTU for which a port is opened. */
#define OPENED_MTU 9000

static struct {
	struct kernel_sync sync;
	struct host host;
	struct uplink uplink;
	uint64_t now;         /* ns */
	bool reported;        /* the kernel has a report about the interface */
	bool notifies;        /* the report says that the interface announces itself */
	bool overrun;         /* the kernel has dropped reports */
	bool lost;            /* the port's interface has gone */
	int returns;          /* calls of netdev_link_returned */
	bool absent;          /* the interface does not exist */
	int refused;          /* 0, or the errno value with which the port cannot be opened */
	int unreadable;       /* 0, or the errno value with which the kernel answers */
	bool partly;          /* it gives the interface nevertheless */
	const char *name;     /* of the interface; NULL = eth0 */
	uint32_t mtu;         /* of the interface; 0 = 1500 */
	uint32_t speed;       /* of the interface, Mb/s */
	bool has_vlan;        /* the interface has one for VLAN, with an address */
	bool has_address;     /* the interface has an IPv6 address */
	uint32_t flags;       /* of that address: IFA_F_* */
	int vlan_refused;     /* 0, or the errno value with which that gets no UDP port 4791 */
	bool no_carrier;      /* the interface has no link */
	uint32_t interrupted; /* number of dumps to come that are inconsistent, because of a change
			       */
	uint32_t attempts, reads, lines;
} w;

/* --- In place of the kernel and of urxed's uplinks */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_ioctl(int fd, unsigned long request, struct ifreq *iface);
int __wrap_netlink_open(struct netlink *n, uint32_t groups);
void __wrap_netlink_close(struct netlink *n);
bool __wrap_netlink_events(struct netlink *n, netlink_fn each, void *ctx);
int __wrap_netlink_request(struct netlink *n, struct nlmsghdr *request, netlink_fn each, void *ctx);
int __wrap_netlink_fd(const struct netlink *n);
uint32_t __wrap_link_speed_mbps(int socket, const char *ifname);
void __wrap_log_line(const char *fmt, ...);
void __wrap_route_neigh_changed(struct route *r, const struct nlmsghdr *message);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	ts->tv_sec = (time_t)(w.now / NS_PER_SEC);
	ts->tv_nsec = (long)(w.now % NS_PER_SEC);
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, struct ifreq *iface)
{
	assert_int_equal(fd, 99);
	assert_int_equal(request, SIOCGIFINDEX);
	assert_string_equal(iface->ifr_name, "eth0");
	if (w.absent)
		return -1;
	iface->ifr_ifindex = IFINDEX;
	return 0;
}

int __wrap_netlink_open(struct netlink *n, uint32_t groups)
{
	(void)groups;
	n->events = (struct mnl_socket *)&w;
	return 0;
}

void __wrap_netlink_close(struct netlink *n)
{
	n->events = NULL;
}

bool __wrap_netlink_events(struct netlink *n, netlink_fn each, void *ctx)
{
	char buf[NETLINK_REQUEST_ROOM];
	struct nlmsghdr *report = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(report, sizeof(*link));

	(void)n;
	report->nlmsg_type = RTM_NEWLINK;
	link->ifi_index = IFINDEX;
	if (w.notifies)
		mnl_attr_put_u32(report, IFLA_EVENT, IFLA_EVENT_NOTIFY_PEERS);
	if (w.reported)
		each(ctx, report);
	w.reported = false;
	return !w.overrun;
}

static void give_vlan_interface(netlink_fn each, void *ctx)
{
	char buf[NETLINK_REQUEST_ROOM];
	struct nlmsghdr *answer = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(answer, sizeof(*link));
	struct nlattr *info, *data;

	answer->nlmsg_type = RTM_NEWLINK;
	link->ifi_index = IFINDEX + 1;
	mnl_attr_put_strz(answer, IFLA_IFNAME, "v100");
	mnl_attr_put_u32(answer, IFLA_LINK, IFINDEX);
	info = mnl_attr_nest_start(answer, IFLA_LINKINFO);
	mnl_attr_put_strz(answer, IFLA_INFO_KIND, "vlan");
	data = mnl_attr_nest_start(answer, IFLA_INFO_DATA);
	mnl_attr_put_u16(answer, IFLA_VLAN_ID, VLAN);
	mnl_attr_nest_end(answer, data);
	mnl_attr_nest_end(answer, info);
	each(ctx, answer);
}

static void give_vlan_address(netlink_fn each, void *ctx)
{
	char buf[NETLINK_REQUEST_ROOM];
	struct nlmsghdr *answer = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *address = mnl_nlmsg_put_extra_header(answer, sizeof(*address));

	answer->nlmsg_type = RTM_NEWADDR;
	*address = (struct ifaddrmsg){
		.ifa_index = IFINDEX + 1, .ifa_family = AF_INET, .ifa_prefixlen = 24};
	mnl_attr_put_u32(answer, IFA_ADDRESS, htobe32(0xc0000201)); /* 192.0.2.1 */
	each(ctx, answer);
}

static void give_address(netlink_fn each, void *ctx)
{
	static const uint8_t ip[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
	char buf[NETLINK_REQUEST_ROOM];
	struct nlmsghdr *answer = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *address = mnl_nlmsg_put_extra_header(answer, sizeof(*address));

	answer->nlmsg_type = RTM_NEWADDR;
	*address = (struct ifaddrmsg){
		.ifa_index = IFINDEX, .ifa_family = AF_INET6, .ifa_prefixlen = 64};
	mnl_attr_put(answer, IFA_ADDRESS, sizeof(ip), ip);
	mnl_attr_put_u32(answer, IFA_FLAGS, w.flags);
	each(ctx, answer);
}

int __wrap_roce_port_guard_open(struct roce_port_guard *h, const char *ifname,
				char error[ROCE_PORT_GUARD_ERROR]);

int __wrap_roce_port_guard_open(struct roce_port_guard *h, const char *ifname,
				char error[ROCE_PORT_GUARD_ERROR])
{
	(void)ifname;
	roce_port_guard_init(h);
	error[0] = 0;
	return -w.vlan_refused;
}

int __wrap_netlink_request(struct netlink *n, struct nlmsghdr *request, netlink_fn each, void *ctx)
{
	const bool links = request->nlmsg_type == RTM_GETLINK;
	char buf[NETLINK_REQUEST_ROOM];
	struct nlmsghdr *answer = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(answer, sizeof(*link));

	(void)n;
	w.reads += links;
	answer->nlmsg_type = RTM_NEWLINK;
	link->ifi_index = IFINDEX;
	link->ifi_flags = w.no_carrier ? 0 : IFF_RUNNING;
	mnl_attr_put_strz(answer, IFLA_IFNAME, w.name ? w.name : "eth0");
	mnl_attr_put_u32(answer, IFLA_MTU, w.mtu ? w.mtu : 1500);
	if (links && !w.absent && (!w.unreadable || w.partly))
		each(ctx, answer);
	if (w.has_vlan)
		(links ? give_vlan_interface : give_vlan_address)(each, ctx);
	if (!links && w.has_address)
		give_address(each, ctx);
	if (!links || !w.interrupted)
		return -w.unreadable;
	w.interrupted--;
	return -EINTR;
}

int __wrap_netlink_fd(const struct netlink *n)
{
	(void)n;
	return 99;
}

uint32_t __wrap_link_speed_mbps(int socket, const char *ifname)
{
	assert_int_equal(socket, 99);
	assert_string_equal(ifname, w.name ? w.name : "eth0");
	return w.speed;
}

void __wrap_log_line(const char *fmt, ...)
{
	(void)fmt;
	w.lines++;
}

void __wrap_route_neigh_changed(struct route *r, const struct nlmsghdr *message)
{
	(void)r;
	assert_null(message);
}

void __wrap_netdev_link_returned(struct netdev *port);

void __wrap_netdev_link_returned(struct netdev *port)
{
	assert_ptr_equal(port, &w);
	w.returns++;
}

int uplink_reopen(struct uplink *u, char error[UPLINK_ERROR])
{
	w.attempts++;
	error[0] = 0;
	u->mtu_max = w.mtu ? (w.mtu < OPENED_MTU ? w.mtu : OPENED_MTU) : 1500;
	u->port = w.refused ? NULL : (struct netdev *)&w;
	w.lost = false;
	return -w.refused;
}

void uplink_close_lost(struct uplink *u)
{
	u->port = NULL;
	u->up = false;
}

bool uplink_has_lost_interface(const struct uplink *u)
{
	return u->port && w.lost;
}

bool uplink_is_xdp(const struct uplink *u)
{
	(void)u;
	return false;
}

/* --- The daemon */

static int start(void **state)
{
	char error[KERNEL_SYNC_ERROR];

	(void)state;
	memset(&w, 0, sizeof(w));
	w.now = NS_PER_SEC;
	w.refused = EBUSY;
	w.uplink = (struct uplink){.spec = "af_packet:eth0", .ifname = "eth0", .kernel = true};
	return kernel_sync_start(&w.sync, &w.host, &w.uplink, 1, NULL, error);
}

static int stop(void **state)
{
	(void)state;
	kernel_sync_stop(&w.sync);
	return 0;
}

/* Sleeps until the deadline, which is after so many seconds; returns whether all must look again.
 */
static bool wait_s(uint64_t seconds)
{
	assert_int_equal(kernel_sync_deadline(&w.sync) - w.now, seconds * NS_PER_SEC);
	w.now += seconds * NS_PER_SEC - 1;
	assert_false(kernel_sync_update(&w.sync));
	w.now++;
	return kernel_sync_update(&w.sync);
}

static bool report(void)
{
	w.reported = true;
	return kernel_sync_update(&w.sync);
}

/* --- Tests */

static void each_pause_is_twice_as_long_up_to_a_minute(void **state)
{
	static const uint64_t pauses[] = {2, 4, 8, 16, 32, 60, 60};
	const uint32_t n = sizeof(pauses) / sizeof(pauses[0]);

	(void)state;
	for (uint32_t i = 0; i < n; i++)
		(void)wait_s(pauses[i]);
	assert_int_equal(w.attempts, 1 + n);
	/* The user has changed the interface, maybe to help. */
	assert_true(report());
	assert_false(wait_s(2));
	assert_int_equal(w.attempts, 3 + n);
}

/* The daemon would write files, and tell programs, for nothing. */
static void failed_attempt_is_no_change(void **state)
{
	(void)state;
	assert_false(wait_s(2));
	assert_false(wait_s(4));
	assert_int_equal(w.reads, 1);
	w.refused = 0;
	assert_true(wait_s(8));
	assert_true(w.host.up);
	assert_int_equal(kernel_sync_deadline(&w.sync), UINT64_MAX);
}

static void announcement_of_the_interface_is_noticed_once(void **state)
{
	(void)state;
	(void)report();
	assert_false(kernel_sync_take_notice(&w.sync));
	w.notifies = true;
	(void)report();
	(void)report();
	assert_true(kernel_sync_take_notice(&w.sync));
	assert_false(kernel_sync_take_notice(&w.sync));
}

/* The interface is back with the same ifindex, but the kernel has ended the port's socket. */
static void interface_that_was_gone_gets_a_new_port(void **state)
{
	(void)state;
	w.refused = 0;
	(void)report();
	assert_int_equal(w.attempts, 2);
	(void)report();
	assert_int_equal(w.attempts, 2);
	w.lost = true;
	w.unreadable = ENOBUFS;
	assert_false(report());
	w.unreadable = 0;
	assert_true(wait_s(2));
	assert_int_equal(w.attempts, 3);
	assert_true(w.host.up);
	(void)report();
	assert_int_equal(w.attempts, 3);
}

static void interface_that_was_gone_without_a_report_gets_a_new_port(void **state)
{
	(void)state;
	w.refused = 0;
	(void)report();
	w.lost = true;
	assert_false(kernel_sync_update(&w.sync));
	w.overrun = true;
	assert_true(kernel_sync_update(&w.sync));
	assert_int_equal(w.attempts, 3);
	assert_true(w.host.up);
}

static void state_that_could_not_be_read_is_read_again(void **state)
{
	(void)state;
	w.unreadable = ENOBUFS;
	w.refused = 0;
	assert_false(report());
	assert_false(wait_s(2));
	w.unreadable = 0;
	assert_true(wait_s(2));
	assert_true(w.host.up);
}

static void interrupted_dump_is_repeated(void **state)
{
	uint32_t reads = w.reads;

	(void)state;
	w.refused = 0;
	w.interrupted = 3;
	assert_true(report());
	assert_int_equal(w.reads, reads + 4);
	assert_int_equal(w.sync.table.n, 1);
	assert_true(w.host.up);
	/* Changes without end. */
	w.interrupted = UINT32_MAX;
	assert_false(report());
	w.interrupted = 0;
	assert_true(wait_s(2));
}

static void start_waits_for_no_end_of_changes(void **state)
{
	char error[KERNEL_SYNC_ERROR];

	(void)state;
	kernel_sync_stop(&w.sync);
	w.refused = 0;
	w.interrupted = UINT32_MAX;
	assert_int_equal(kernel_sync_start(&w.sync, &w.host, &w.uplink, 1, NULL, error), 0);
	assert_false(w.host.up);
	w.interrupted = 0;
	assert_true(wait_s(2));
	assert_true(w.host.up);
}

/* Routes are resolved by the table meanwhile. */
static void failed_read_leaves_the_table(void **state)
{
	const struct iface before = w.sync.table.ifaces[0];

	(void)state;
	w.unreadable = EBUSY;
	w.partly = true;
	w.mtu = 900;
	assert_false(report());
	assert_int_equal(w.sync.table.n, 1);
	assert_memory_equal(&w.sync.table.ifaces[0], &before, sizeof(before));
}

/* Frames of virtual machines may be as long as the port takes. */
static void long_mtu_is_the_uplinks_not_the_hosts(void **state)
{
	(void)state;
	w.refused = 0;
	w.mtu = HOST_MTU + 800;
	w.host.mtu_limit = HOST_MTU;
	assert_true(report());
	assert_int_equal(w.uplink.mtu, HOST_MTU + 800);
	w.attempts = 0;
	w.mtu = OPENED_MTU;
	report();
	assert_int_equal(w.attempts, 1);
	assert_int_equal(w.uplink.mtu, OPENED_MTU);
	assert_int_equal(w.host.mtu, HOST_MTU);
	w.mtu = OPENED_MTU + 1000;
	report();
	assert_int_equal(w.attempts, 1);
	assert_int_equal(w.uplink.mtu, OPENED_MTU);
}

static void expect_rate(const char *text)
{
	char found[PORT_RATE_TEXT];

	port_rate_print(host_rate(&w.host), found);
	assert_string_equal(found, text);
}

/* An interface without a link has no speed. */
static void rate_is_that_of_the_interface_while_it_has_a_link(void **state)
{
	(void)state;
	w.host.rate = port_rate_default;
	w.refused = 0;
	w.no_carrier = true;
	w.speed = 25000;
	assert_true(report());
	expect_rate("10 Gb/sec (4X SDR)");
	w.no_carrier = false;
	assert_true(report());
	expect_rate("25 Gb/sec (1X EDR)");
	w.no_carrier = true;
	w.speed = 100000;
	assert_true(report());
	expect_rate("25 Gb/sec (1X EDR)");
	w.no_carrier = false;
	assert_true(report());
	expect_rate("100 Gb/sec (4X EDR)");
}

/* The port keeps frames until then. A report of a link that was up already may hide that the link
 * was lost in between. */
static void port_hears_of_a_link_at_each_report(void **state)
{
	(void)state;
	w.refused = 0;
	w.no_carrier = true;
	report();
	assert_int_equal(w.returns, 0);
	w.no_carrier = false;
	for (int reports = 1; reports <= 2; reports++) {
		report();
		assert_int_equal(w.returns, reports);
	}
}

/* Another interface may have the old name. */
static void renamed_interface_is_used_by_its_present_name(void **state)
{
	(void)state;
	w.refused = 0;
	w.speed = 25000;
	assert_true(report());
	w.name = "lan0";
	w.speed = 100000;
	assert_true(report());
	assert_string_equal(w.uplink.ifname, "lan0");
	assert_string_equal(w.host.ndev, "lan0");
	expect_rate("100 Gb/sec (4X EDR)");
	assert_int_equal(w.attempts, 2);
}

/* ibv_query_gid_table() fails if a GID has an interface that does not exist. */
static void interface_that_was_gone_is_that_of_no_gid(void **state)
{
	(void)state;
	w.refused = 0;
	assert_true(report());
	assert_string_equal(w.host.ndev, "eth0");
	w.absent = true;
	assert_true(report());
	assert_string_equal(w.host.ndev, "lo");
	w.absent = false;
	assert_true(report());
	assert_string_equal(w.host.ndev, "eth0");
}

/* urxed would not look again before the next report. */
static void interface_that_was_gone_is_found_without_a_free_descriptor(void **state)
{
	struct rlimit limit;

	(void)state;
	w.refused = 0;
	assert_true(report());
	w.absent = true;
	assert_true(report());
	w.absent = false;
	w.refused = EMFILE;
	limit = descriptor_limit_reach();
	assert_true(report());
	descriptor_limit_restore(&limit);
	w.refused = 0;
	assert_true(wait_s(2));
	assert_true(w.host.up);
}

/* The program that had UDP port 4791 of the interface ends. */
static void refused_vlan_interface_is_tried_again(void **state)
{
	uint32_t lines;

	(void)state;
	w.refused = 0;
	w.has_vlan = true;
	w.vlan_refused = EACCES;
	assert_true(report());
	lines = w.lines;
	assert_false(w.host.addresses[0].valid);
	assert_false(wait_s(2));
	assert_int_equal(w.lines, lines);
	w.vlan_refused = 0;
	assert_true(wait_s(4));
	assert_true(w.host.addresses[0].valid);
	assert_int_equal(w.host.addresses[0].vlan, VLAN);
	assert_int_equal(kernel_sync_deadline(&w.sync), UINT64_MAX);
}

/* The other members carry the connections of an interface that is gone, but not of a VLAN's. */
static void bond_keeps_addresses_only_while_the_member_is_away(void **state)
{
	const struct host_address *a = &w.host.addresses[0];

	(void)state;
	w.refused = 0;
	w.uplink.bonded = true;
	w.has_vlan = true;
	assert_true(report());
	assert_true(a->valid);
	assert_string_equal(a->ndev, "v100");
	/* The member goes with its VLAN interface, and comes back without it. */
	w.has_vlan = false;
	w.absent = true;
	assert_true(report());
	assert_true(a->valid);
	assert_string_equal(a->ndev, "");
	assert_int_equal(a->ifindex, 0);
	w.absent = false;
	assert_true(report());
	assert_false(a->valid);
	/* The VLAN interface alone is deleted. */
	w.has_vlan = true;
	assert_true(report());
	assert_true(a->valid);
	w.has_vlan = false;
	assert_true(report());
	assert_false(a->valid);
}

/* The kernel repeats the detection of duplicates when the interface is up again. */
static void host_keeps_an_address_that_is_tentative_again(void **state)
{
	const struct host_address *a = &w.host.addresses[0];

	(void)state;
	w.refused = 0;
	for (int bonded = 0; bonded <= 1; bonded++) {
		w.uplink.bonded = bonded;
		w.has_address = true;
		w.flags = IFA_F_TENTATIVE;
		assert_true(report());
		assert_false(a->valid);
		w.flags = 0;
		assert_true(report());
		assert_true(a->valid);
		w.no_carrier = true;
		w.has_address = !bonded; /* keep_addr_on_down */
		w.flags = IFA_F_TENTATIVE;
		assert_true(report());
		assert_true(a->valid);
		assert_true(a->tentative);
		w.no_carrier = false;
		w.has_address = true;
		assert_true(report());
		assert_true(a->valid);
		assert_true(a->tentative);
		w.flags = 0;
		assert_true(report());
		assert_true(a->valid);
		assert_false(a->tentative);
		w.flags = IFA_F_TENTATIVE;
		assert_true(report());
		w.flags |= IFA_F_DADFAILED;
		assert_true(report());
		assert_false(a->valid);
	}
}

/* The log would grow as long as it lasts. */
static void log_has_the_first_of_several_failures(void **state)
{
	uint32_t lines;

	(void)state;
	w.refused = 0;
	w.unreadable = ENOBUFS;
	lines = w.lines;
	assert_false(report());
	assert_int_equal(w.lines, lines + 1);
	assert_false(wait_s(2));
	assert_false(report());
	assert_int_equal(w.lines, lines + 1);
	w.unreadable = 0;
	assert_true(wait_s(2));
	w.unreadable = ENOBUFS;
	lines = w.lines;
	assert_false(report());
	assert_int_equal(w.lines, lines + 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_pause_is_twice_as_long_up_to_a_minute),
		TEST(failed_attempt_is_no_change),
		TEST(announcement_of_the_interface_is_noticed_once),
		TEST(port_hears_of_a_link_at_each_report),
		TEST(interface_that_was_gone_gets_a_new_port),
		TEST(interface_that_was_gone_without_a_report_gets_a_new_port),
		TEST(state_that_could_not_be_read_is_read_again),
		TEST(interrupted_dump_is_repeated),
		TEST(start_waits_for_no_end_of_changes),
		TEST(failed_read_leaves_the_table),
		TEST(long_mtu_is_the_uplinks_not_the_hosts),
		TEST(rate_is_that_of_the_interface_while_it_has_a_link),
		TEST(renamed_interface_is_used_by_its_present_name),
		TEST(interface_that_was_gone_is_that_of_no_gid),
		TEST(interface_that_was_gone_is_found_without_a_free_descriptor),
		TEST(refused_vlan_interface_is_tried_again),
		TEST(bond_keeps_addresses_only_while_the_member_is_away),
		TEST(host_keeps_an_address_that_is_tentative_again),
		TEST(log_has_the_first_of_several_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
