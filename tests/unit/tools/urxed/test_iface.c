/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parsing of netlink messages, well-formed and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "urxed/kernel/iface.h"

#define ETH0 5 /* ifindex of uplink 0 */
#define ETH1 9
#define MTU  1400

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 7};

static struct iface_table t;

static struct nlmsghdr *message;

static int setup(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	t.n_uplinks = 2;
	t.uplinks[0] = ETH0;
	t.uplinks[1] = ETH1;
	message = calloc(1, 1024);
	return !message;
}

static int teardown(void **state)
{
	(void)state;
	free(message);
	return 0;
}

static void begin_link(uint16_t type, int ifindex, const char *name)
{
	struct ifinfomsg *link;

	mnl_nlmsg_put_header(message)->nlmsg_type = type;
	link = mnl_nlmsg_put_extra_header(message, sizeof(*link));
	link->ifi_index = ifindex;
	link->ifi_flags = IFF_UP | IFF_RUNNING;
	mnl_attr_put_strz(message, IFLA_IFNAME, name);
	mnl_attr_put_u32(message, IFLA_MTU, MTU);
	mnl_attr_put(message, IFLA_ADDRESS, sizeof(mac), mac);
}

static void put_egress_map(void)
{
	static const struct ifla_vlan_qos_mapping map[] = {{0, 3}, {6, 5}, {8, 7}};
	struct nlattr *nest = mnl_attr_nest_start(message, IFLA_VLAN_EGRESS_QOS);

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		mnl_attr_put(message, IFLA_VLAN_QOS_MAPPING, sizeof(map[i]), &map[i]);
	mnl_attr_nest_end(message, nest);
}

static void begin_vlan(uint16_t type, int ifindex, int lower, uint16_t id)
{
	struct nlattr *info, *data;

	begin_link(type, ifindex, "vlan");
	mnl_attr_put_u32(message, IFLA_LINK, (uint32_t)lower);
	info = mnl_attr_nest_start(message, IFLA_LINKINFO);
	mnl_attr_put_strz(message, IFLA_INFO_KIND, "vlan");
	data = mnl_attr_nest_start(message, IFLA_INFO_DATA);
	mnl_attr_put_u16(message, IFLA_VLAN_PROTOCOL, htobe16(ETH_P_8021Q));
	mnl_attr_put_u16(message, IFLA_VLAN_ID, id);
	put_egress_map();
	mnl_attr_nest_end(message, data);
	mnl_attr_nest_end(message, info);
}

static void begin_address(uint16_t type, int ifindex, const char *text, uint32_t flags)
{
	struct ifaddrmsg *address;
	uint8_t ip[16];

	mnl_nlmsg_put_header(message)->nlmsg_type = type;
	address = mnl_nlmsg_put_extra_header(message, sizeof(*address));
	address->ifa_index = (uint32_t)ifindex;
	address->ifa_prefixlen = 24;
	address->ifa_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(address->ifa_family, text, ip), 1);
	mnl_attr_put(message, IFA_ADDRESS, address->ifa_family == AF_INET ? 4 : 16, ip);
	mnl_attr_put_u32(message, IFA_FLAGS, flags);
}

static void take(void)
{
	iface_parse_message(&t, message);
}

static void add_link(int ifindex, const char *name)
{
	begin_link(RTM_NEWLINK, ifindex, name);
	take();
}

static void add_vlan(int ifindex, int lower, uint16_t id)
{
	begin_vlan(RTM_NEWLINK, ifindex, lower, id);
	take();
}

static void add_address(int ifindex, const char *text, uint32_t flags)
{
	begin_address(RTM_NEWADDR, ifindex, text, flags);
	take();
}

static void vlan_interfaces_are_found_by_lower_link_and_vlan(void **state)
{
	static const uint8_t priorities[HOST_PRIORITIES] = {3, [6] = 5};
	const struct iface *i;

	(void)state;
	add_link(1, "lo");
	add_vlan(3, ETH0, 100); /* before the interface that it is on */
	add_link(ETH0, "eth0");
	add_vlan(11, 1, 101); /* on top of no uplink */
	i = iface_find(&t, 0, 0);
	assert_non_null(i);
	assert_string_equal(i->name, "eth0");
	assert_int_equal(i->mtu, MTU);
	assert_true(i->up);
	assert_memory_equal(i->mac, mac, 6);
	i = iface_find(&t, 0, 100);
	assert_non_null(i);
	assert_int_equal(i->ifindex, 3);
	assert_memory_equal(i->vlan_priority, priorities, sizeof(priorities));
	assert_null(iface_find(&t, 1, 0));
	assert_int_equal(t.n, 2);
	iface_clear(&t);
	assert_null(iface_find(&t, 0, 0));
}

/* The service level of its connections is that of the map, also if its frames have no tag here. */
static void uplink_may_be_a_vlan_interface(void **state)
{
	const struct iface *i;

	(void)state;
	add_vlan(ETH0, 77, 100);
	i = iface_find(&t, 0, 0);
	assert_non_null(i);
	assert_int_equal(i->vlan, 0);
	assert_int_equal(i->vlan_priority[0], 3);
}

static void interfaces_of_other_kinds_are_ignored(void **state)
{
	(void)state;
	/* The index of its lower interface belongs to another network namespace. */
	begin_vlan(RTM_NEWLINK, 20, ETH0, 100);
	mnl_attr_put_u32(message, IFLA_LINK_NETNSID, 0);
	take();
	begin_link(RTM_NEWLINK, 21, "macvlan0");
	mnl_attr_put_u32(message, IFLA_LINK, ETH0);
	take();
	add_vlan(22, ETH0, 0);
	add_vlan(23, ETH0, 4095);
	assert_int_equal(t.n, 0);
}

static void link_without_carrier_is_down(void **state)
{
	(void)state;
	begin_link(RTM_NEWLINK, ETH0, "eth0");
	((struct ifinfomsg *)mnl_nlmsg_get_payload(message))->ifi_flags = IFF_UP;
	take();
	assert_false(iface_find(&t, 0, 0)->up);
}

static void addresses_of_uplinks_are_listed(void **state)
{
	struct host_address list[IFACE_ADDRESS_MAX];

	(void)state;
	add_link(ETH1, "eth1");
	add_vlan(12, ETH0, 100);
	add_link(ETH0, "eth0");
	add_address(12, "203.0.113.1", 0);
	add_address(ETH0, "192.0.2.1", IFA_F_PERMANENT);
	add_address(ETH1, "198.51.100.1", 0);
	add_address(ETH0, "2001:db8::1", IFA_F_DEPRECATED);
	add_address(ETH0, "fe80::1", IFA_F_PERMANENT);
	add_address(77, "192.0.2.9", 0);
	/* Duplicate addresses do not count. */
	add_address(ETH0, "2001:db8::3", IFA_F_TENTATIVE | IFA_F_DADFAILED);
	add_address(ETH0, "2001:db8::4", IFA_F_TENTATIVE | IFA_F_OPTIMISTIC);
	assert_int_equal(iface_list_addresses(&t, list), 6);
	assert_int_equal(list[0].ip[0], 0xfe);
	assert_int_equal(list[0].uplink, 0);
	assert_string_equal(list[0].ndev, "eth0");
	assert_int_equal(list[1].ip[12], 192);
	assert_int_equal(list[1].prefix_len, IP_V4_BITS + 24);
	assert_int_equal(list[2].ip[15], 1);
	assert_int_equal(list[2].prefix_len, 24);
	assert_int_equal(list[3].ip[15], 4);
	assert_int_equal(list[4].ip[12], 203);
	assert_int_equal(list[4].vlan, 100);
	assert_int_equal(list[4].vlan_priority[0], 3);
	assert_int_equal(list[0].vlan_priority[0], 0);
	assert_string_equal(list[4].ndev, "vlan");
	assert_int_equal(list[4].ifindex, 12);
	assert_int_equal(list[4].vlan_mtu, MTU);
	assert_int_equal(list[0].vlan_mtu, 0);
	assert_memory_equal(list[4].mac, mac, sizeof(mac));
	assert_int_equal(list[5].uplink, 1);
	for (int i = 0; i < 6; i++) {
		assert_false(list[i].tentative);
		/* An IPv4 address with a lifetime is that of a DHCP lease. */
		assert_int_equal(list[i].dynamic, i == 2 || i == 3);
	}
	add_address(ETH1, "2001:db8::2", IFA_F_TENTATIVE | IFA_F_PERMANENT);
	assert_int_equal(iface_list_addresses(&t, list), 7);
	assert_true(list[6].tentative);
}

/* A program that handles router advertisements may add an address for ever. */
static void permanent_addresses_may_be_autoconfigured(void **state)
{
	struct host_address list[IFACE_ADDRESS_MAX];

	(void)state;
	add_link(ETH0, "eth0");
	add_address(ETH0, "2001:db8::1", IFA_F_PERMANENT | IFA_F_MANAGETEMPADDR);
	add_address(ETH0, "2001:db8::2", IFA_F_PERMANENT | IFA_F_TEMPORARY);
	begin_address(RTM_NEWADDR, ETH0, "2001:db8::3", IFA_F_PERMANENT);
	mnl_attr_put_u8(message, IFA_PROTO, IFAPROT_KERNEL_RA);
	take();
	begin_address(RTM_NEWADDR, ETH0, "2001:db8::4", IFA_F_PERMANENT);
	mnl_attr_put_u8(message, IFA_PROTO, IFAPROT_UNSPEC);
	take();
	assert_int_equal(iface_list_addresses(&t, list), 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(list[i].dynamic, i < 3);
}

/* On a point-to-point link, IFA_ADDRESS is the peer's and IFA_LOCAL the host's. */
static void point_to_point_address_is_the_local_one(void **state)
{
	struct host_address list[IFACE_ADDRESS_MAX];
	const uint8_t local[4] = {192, 0, 2, 1};

	(void)state;
	add_link(ETH0, "eth0");
	begin_address(RTM_NEWADDR, ETH0, "192.0.2.2", 0);
	mnl_attr_put(message, IFA_LOCAL, 4, local);
	take();
	assert_int_equal(iface_list_addresses(&t, list), 1);
	assert_int_equal(list[0].ip[15], 1);
}

static bool concerned(void)
{
	return iface_is_affected(&t, message);
}

static void only_messages_about_uplinks_count(void **state)
{
	(void)state;
	begin_link(RTM_NEWLINK, ETH0, "eth0");
	assert_true(concerned());
	begin_link(RTM_DELLINK, ETH0, "eth0");
	assert_true(concerned());
	begin_vlan(RTM_NEWLINK, 30, ETH1, 7);
	assert_true(concerned());
	begin_link(RTM_NEWLINK, 31, "veth9");
	assert_false(concerned());
	add_link(ETH0, "eth0");
	begin_address(RTM_DELADDR, ETH0, "192.0.2.1", 0);
	assert_true(concerned());
	begin_address(RTM_NEWADDR, 31, "192.0.2.1", 0);
	assert_false(concerned());
	begin_address(RTM_NEWROUTE, ETH0, "192.0.2.1", 0);
	assert_false(concerned());
}

static bool notifies(uint32_t event)
{
	mnl_attr_put_u32(message, IFLA_EVENT, event);
	return iface_notifies_peers(&t, message);
}

static void interfaces_that_announce_themselves_are_known(void **state)
{
	(void)state;
	begin_link(RTM_NEWLINK, ETH0, "eth0");
	assert_false(iface_notifies_peers(&t, message));
	assert_true(notifies(IFLA_EVENT_NOTIFY_PEERS));
	begin_vlan(RTM_NEWLINK, 30, ETH1, 7);
	assert_true(notifies(IFLA_EVENT_NOTIFY_PEERS));
	begin_link(RTM_NEWLINK, ETH0, "eth0");
	assert_false(notifies(IFLA_EVENT_FEATURES));
	begin_link(RTM_DELLINK, ETH0, "eth0");
	assert_false(notifies(IFLA_EVENT_NOTIFY_PEERS));
	begin_link(RTM_NEWLINK, 31, "veth9");
	assert_false(notifies(IFLA_EVENT_NOTIFY_PEERS));
	begin_address(RTM_NEWADDR, ETH0, "192.0.2.1", 0);
	assert_false(iface_notifies_peers(&t, message));
}

static void full_tables_drop_further_entries(void **state)
{
	static struct host_address list[IFACE_ADDRESS_MAX];
	uint32_t i;

	(void)state;
	for (i = 0; i < IFACE_MAX + 5; i++)
		add_vlan(100 + (int)i, ETH0, (uint16_t)(i + 1));
	/* The kernel lists an interface that was made anew behind the others. */
	add_link(ETH0, "eth0");
	add_link(ETH1, "eth1");
	assert_non_null(iface_find(&t, 0, 0));
	assert_non_null(iface_find(&t, 1, 0));
	assert_int_equal(t.left_out, IFACE_MAX + 5 - (t.n - 2));
	for (i = 0; i < IFACE_ADDRESS_MAX + 5; i++)
		add_address(100, "192.0.2.1", 0);
	assert_int_equal(iface_list_addresses(&t, list), IFACE_FAMILY_MAX);
	assert_int_equal(t.addresses_left_out, IFACE_FAMILY_MAX + 5);
	/* The kernel lists all IPv4 addresses before the first IPv6 address. */
	add_address(100, "2001:db8::1", 0);
	add_address(100, "fe80::1", 0);
	assert_int_equal(iface_list_addresses(&t, list), IFACE_FAMILY_MAX + 2);
	assert_int_equal(list[0].ip[0], 0xfe);
}

static void full_table_keeps_the_addresses_of_the_host(void **state)
{
	static struct host_address list[IFACE_ADDRESS_MAX];
	static struct host host;
	uint32_t n;

	(void)state;
	host_init(&host);
	assert_int_equal(host_add_text(&host, "198.51.100.1/24", 0), 0);
	assert_int_equal(host_add_text(&host, "198.51.100.2/24", 0), 0);
	t.host = &host;
	add_link(ETH0, "eth0");
	for (uint32_t i = 0; i < IFACE_FAMILY_MAX; i++)
		add_address(ETH0, "192.0.2.1", 0);
	add_address(ETH0, "198.51.100.1", 0);
	add_address(ETH0, "198.51.100.2", 0);
	add_address(ETH0, "198.51.100.3", 0);
	n = iface_list_addresses(&t, list);
	assert_int_equal(n, IFACE_FAMILY_MAX);
	assert_memory_equal(list[n - 1].ip + 12, "\xc6\x33\x64\x01", 4);
	assert_memory_equal(list[n - 2].ip + 12, "\xc6\x33\x64\x02", 4);
	assert_int_equal(t.addresses_left_out, 3);
}

static void interface_is_listed_once(void **state)
{
	/* Twice as long, for the addresses of a second one. */
	static struct host_address list[2 * IFACE_ADDRESS_MAX];

	(void)state;
	for (int i = 0; i < 2; i++)
		add_link(ETH0, "eth0");
	for (uint32_t i = 0; i < IFACE_FAMILY_MAX; i++)
		add_address(ETH0, "192.0.2.1", 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(iface_list_addresses(&t, list), IFACE_FAMILY_MAX);
}

/* A copy of exactly that length, so that a sanitizer reports a read beyond it. */
static struct nlmsghdr *copy_of(const uint8_t *bytes, uint32_t len)
{
	struct nlmsghdr *copy = malloc(len);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	copy->nlmsg_len = len;
	return copy;
}

static void take_damaged(struct nlmsghdr *copy)
{
	iface_clear(&t);
	add_link(ETH0, "eth0");
	iface_parse_message(&t, copy);
	iface_is_affected(&t, copy);
	iface_notifies_peers(&t, copy);
	assert_true(t.n_addresses <= 1 && t.n <= 2);
	free(copy);
}

/* Each message is cut at every length and has every bit flipped: no read beyond its end. */
static void damaged_messages_are_ignored(void **state)
{
	uint8_t whole[1024] __attribute__((aligned(4)));

	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		uint32_t len, bit;

		if (kind == 0)
			begin_link(RTM_NEWLINK, ETH1, "eth1");
		else if (kind == 1)
			begin_vlan(RTM_NEWLINK, 20, ETH0, 100);
		else
			begin_address(RTM_NEWADDR, ETH0, "2001:db8::1", 0);
		if (kind == 0)
			mnl_attr_put_u32(message, IFLA_EVENT, IFLA_EVENT_NOTIFY_PEERS);
		memcpy(whole, message, sizeof(whole));
		for (len = NLMSG_HDRLEN; len <= ((struct nlmsghdr *)whole)->nlmsg_len; len++)
			take_damaged(copy_of(whole, len));
		len = ((struct nlmsghdr *)whole)->nlmsg_len;
		for (bit = NLMSG_HDRLEN * 8; bit < len * 8; bit++) {
			whole[bit / 8] ^= (uint8_t)(1 << bit % 8);
			take_damaged(copy_of(whole, len));
			whole[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(vlan_interfaces_are_found_by_lower_link_and_vlan),
		TEST(uplink_may_be_a_vlan_interface),
		TEST(interfaces_of_other_kinds_are_ignored),
		TEST(link_without_carrier_is_down),
		TEST(addresses_of_uplinks_are_listed),
		TEST(permanent_addresses_may_be_autoconfigured),
		TEST(point_to_point_address_is_the_local_one),
		TEST(only_messages_about_uplinks_count),
		TEST(interfaces_that_announce_themselves_are_known),
		TEST(full_tables_drop_further_entries),
		TEST(full_table_keeps_the_addresses_of_the_host),
		TEST(interface_is_listed_once),
		TEST(damaged_messages_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
