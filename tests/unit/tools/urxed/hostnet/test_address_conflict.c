/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address conflict detection: the test plays the other host, at the far end of a netdev_mem pair.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <netdev/netdev.h>

#include "mem_port.h"
#include "urxed/hostnet/address_conflict.h"
#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/nd_frame.h"

static const uint8_t ours[ETHER_MAC_LEN] = {2, 0, 0, 0, 0, 1};
static const uint8_t theirs[ETHER_MAC_LEN] = {2, 0, 0, 0, 0, 9};

static struct host host;
static struct uplink_set uplinks;
static struct uplink *const uplink = &uplinks.at[0];
static struct netdev *ends[2];
static char error[ADDRESS_CONFLICT_ERROR];

static int setup(void **state)
{
	(void)state;
	memset(&host, 0, sizeof(host));
	memcpy(host.mac, ours, ETHER_MAC_LEN);
	uplinks.n = 1;
	*uplink = (struct uplink){.kernel = true, .up = true, .ifname = "eth0"};
	memcpy(uplink->mac, ours, ETHER_MAC_LEN);
	if (netdev_mem_pair(16, ends))
		return -1;
	uplink->port = ends[0];
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	netdev_close(ends[0]);
	netdev_close(ends[1]);
	return 0;
}

static void say(const uint8_t *data, uint32_t len)
{
	const struct netdev_frame frame = {.data = data, .len = len};

	assert_int_equal(netdev_tx(ends[1], 0, &frame, 1), 1);
}

/* Sends an ARP reply: `mac` has the address 192.0.2.`last`. */
static void say_arp(const uint8_t *mac, uint8_t last, uint16_t vlan)
{
	struct arp a = {.sip = {[10] = 0xff, 0xff, 192, 0, 2, last}};
	uint8_t frame[ARP_FRAME_LEN + ETHER_VLAN_LEN];

	memcpy(a.smac, mac, ETHER_MAC_LEN);
	arp_build(frame + (vlan ? ETHER_VLAN_LEN : 0), &a, ours);
	if (!vlan) {
		say(frame, ARP_FRAME_LEN);
		return;
	}
	memmove(frame, frame + ETHER_VLAN_LEN, 12);
	ether_put16(frame + 12, ETHERTYPE_ID_VLAN);
	ether_put16(frame + 14, vlan);
	say(frame, sizeof(frame));
}

/* Receives the host's frame and returns its length. */
static uint32_t heard(uint8_t *frame, uint32_t room)
{
	struct netdev_frame got;

	if (!netdev_rx(ends[1], 0, &got, 1))
		return 0;
	assert_true(got.len <= room);
	memcpy(frame, got.data, got.len);
	return got.len;
}

static void probe_succeeds_without_conflicting_arp(void **state)
{
	uint8_t frame[128];
	struct arp a;

	(void)state;
	assert_int_equal(host_add_text(&host, "192.0.2.5/24", 0), 0);
	say_arp(theirs, 6, 0);
	say_arp(theirs, 5, 7);
	say_arp(ours, 5, 0); /* the host's own frame, returned by a switch */
	say(theirs, sizeof(theirs));
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), 0);
	assert_int_equal(heard(frame, sizeof(frame)), ARP_FRAME_LEN);
	assert_true(arp_parse(&a, frame, ARP_FRAME_LEN));
	assert_true(a.request);
	assert_memory_equal(a.tip, host.addresses[0].ip, 16);
	/* The probe has no sender address, so that receivers learn nothing (RFC 5227). */
	assert_memory_equal(a.sip + 12, "\0\0\0\0", 4);
}

static void probe_reports_conflicting_ipv4_address(void **state)
{
	(void)state;
	assert_int_equal(host_add_text(&host, "192.0.2.4/24", 0), 0);
	assert_int_equal(host_add_text(&host, "192.0.2.5/24", 0), 0);
	say_arp(theirs, 5, 0);
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), -EADDRINUSE);
	assert_string_equal(error, "address 192.0.2.5 is already served on eth0 by another host, "
				   "02:00:00:00:00:09");
}

static void probe_reports_conflict_in_the_vlan_only(void **state)
{
	uint8_t frame[128];

	(void)state;
	assert_int_equal(host_add_text(&host, "192.0.2.5/24@7", 0), 0);
	say_arp(theirs, 5, 0);
	say_arp(theirs, 5, 7);
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), -EADDRINUSE);
	assert_int_equal(heard(frame, sizeof(frame)), ARP_FRAME_LEN + ETHER_VLAN_LEN);
	assert_int_equal(ether_get16(frame + 12), ETHERTYPE_ID_VLAN);
	assert_int_equal(ether_get16(frame + 14), 7);
	assert_int_equal(ether_get16(frame + 16), ETHERTYPE_ID_ARP);
}

static void probe_reports_conflicting_ipv6_address(void **state)
{
	uint8_t frame[128];
	struct nd m = {.solicitation = true};

	(void)state;
	assert_int_equal(host_add_text(&host, "fd00::5/64", 0), 0);
	memcpy(m.smac, ours, ETHER_MAC_LEN);
	memcpy(m.sip, host.addresses[0].ip, 16);
	memcpy(m.target, host.addresses[0].ip, 16);
	nd_build_advertisement(frame, &m, theirs);
	say(frame, ND_FRAME_LEN);
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), -EADDRINUSE);
	assert_non_null(strstr(error, "address fd00::5 is already served"));
	assert_int_equal(heard(frame, sizeof(frame)), ND_FRAME_LEN);
	assert_true(nd_parse(&m, frame, ND_FRAME_LEN));
	assert_true(m.solicitation);
	assert_memory_equal(m.target, host.addresses[0].ip, 16);
}

/* The far end sends nothing: a probe would wait for its timeout. */
static void kernel_addresses_and_down_uplinks_are_not_probed(void **state)
{
	uint8_t frame[128];

	(void)state;
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), 0);
	assert_int_equal(host_add_text(&host, "192.0.2.5/24", 0), 0);
	host.addresses[0].kernel = true;
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), 0);
	host.addresses[0].kernel = false;
	uplink->up = false;
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), 0);
	uplink->up = true;
	uplink->kernel = false;
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), 0);
	assert_int_equal(heard(frame, sizeof(frame)), 0);
}

/* The first member, on which the address is, has no link. No station learns the bond's MAC there.
 */
static void each_member_of_a_bond_with_a_link_is_probed(void **state)
{
	static const uint8_t second_mac[ETHER_MAC_LEN] = {2, 0, 0, 0, 0, 2};
	static const uint8_t probe_mac[ETHER_MAC_LEN] = {2, 0, 0, 0, 0, 3};
	uint8_t frame[128];
	struct arp a;

	(void)state;
	assert_int_equal(host_add_text(&host, "192.0.2.5/24", 0), 0);
	uplink->bonded = true;
	uplinks.n = 3;
	uplinks.at[1] = uplinks.at[2] = *uplink;
	uplinks.at[1].bonded = false;
	uplink->up = uplinks.at[1].up = false;
	strcpy(uplinks.at[2].ifname, "eth2");
	memcpy(uplinks.at[2].mac, second_mac, ETHER_MAC_LEN);
	memcpy(uplinks.at[2].probe_mac, probe_mac, ETHER_MAC_LEN);
	say_arp(ours, 5, 0); /* a frame of the bond by another member */
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), 0);
	assert_int_equal(heard(frame, sizeof(frame)), ARP_FRAME_LEN);
	assert_true(arp_parse(&a, frame, ARP_FRAME_LEN));
	assert_memory_equal(a.smac, probe_mac, ETHER_MAC_LEN);
	assert_memory_equal(frame + ETHER_MAC_LEN, probe_mac, ETHER_MAC_LEN);
	say_arp(theirs, 5, 0);
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), -EADDRINUSE);
	assert_string_equal(error, "address 192.0.2.5 is already served on eth2 by another host, "
				   "02:00:00:00:00:09");
	/* An uplink that is no member has another network. */
	uplinks.at[2].up = false;
	uplinks.at[1].up = true;
	say_arp(theirs, 5, 0);
	assert_int_equal(address_conflict_probe(&host, &uplinks, error), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(probe_succeeds_without_conflicting_arp),
		TEST(probe_reports_conflicting_ipv4_address),
		TEST(probe_reports_conflict_in_the_vlan_only),
		TEST(probe_reports_conflicting_ipv6_address),
		TEST(kernel_addresses_and_down_uplinks_are_not_probed),
		TEST(each_member_of_a_bond_with_a_link_is_probed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
