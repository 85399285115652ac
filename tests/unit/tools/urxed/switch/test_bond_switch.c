/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The switch with a bond: two uplinks that are one port, and a virtual machine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "craft.h"
#include "lan.h"
#include "urxed/bond/bond_host.h"
#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/nd_frame.h"
#include "urxed/kernel/frame_count.h"

#define DEPTH  64
#define MS     1000000ull
#define BIT(i) (1u << (i))

enum { A, B, VM, STATIONS };

static const char *const specs[STATIONS] = {"mem:a", "mem:b", "qemu:/vm"};
static const char *const addresses[] = {"10.0.0.1/24", "2001:db8::1/64", "10.1.0.1/24@7"};

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t peer_mac[6] = {4, 0, 0, 0, 0, 0xa}, other_mac[6] = {4, 0, 0, 0, 0, 0xb};
static const uint8_t group_mac[6] = {0x01, 0x00, 0x5e, 1, 2, 3};
static const uint8_t peer_ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t host_ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};

static struct lan *w;

static void open_with(enum bond_mode mode)
{
	const struct lan_attr attr = {.n_processes = 1,
				      .n_stations = STATIONS,
				      .first_vm = VM,
				      .specs = specs,
				      .depth = DEPTH,
				      .addresses = addresses,
				      .n_addresses = 3};

	w = lan_open(&attr);
	vnic_driver_set_multicast(w->loops[0]->driver, true);
	bond_host_start(&w->sw, w->now, mode);
}

static int setup(void **state)
{
	(void)state;
	open_with(BOND_ACTIVE_BACKUP);
	return 0;
}

static int setup_balance(void **state)
{
	(void)state;
	open_with(BOND_BALANCE);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lan_check_sums(w);
	lan_close(w);
	return 0;
}

static void run_switch(void)
{
	switch_run(&w->sw, w->now);
}

/* Takes the next frame that a station has received; false: none. */
static bool take(uint32_t station, struct netdev_frame *f)
{
	return netdev_rx(w->far[station], w->now, f, 1);
}

static void discard_all(void)
{
	struct netdev_frame f;

	for (uint32_t i = 0; i < STATIONS; i++)
		while (take(i, &f))
			;
	while (lan_receive(w, 0) >= 0)
		;
}

static void cut(uint32_t member)
{
	w->uplinks[member].up = false;
	bond_host_tick(&w->sw, w->now);
	run_switch();
}

/* Posts a packet of the process; bit mask of the stations that got it. */
static uint32_t post_packet(const struct urxe_packet *p)
{
	uint8_t f[LAN_LEN];
	struct netdev_frame got;
	uint32_t mask = 0;

	lan_frame(f, p, 0);
	assert_true(lan_post(w, 0, f, LAN_LEN));
	run_switch();
	for (uint32_t i = 0; i < STATIONS; i++) {
		if (!take(i, &got))
			continue;
		mask |= BIT(i);
		/* The host has one MAC, whatever the way. */
		assert_memory_equal(got.data + 6, w->host.mac, 6);
		assert_false(take(i, &got));
	}
	return mask;
}

static uint32_t post_to(const uint8_t *dmac, uint32_t qpn)
{
	struct urxe_packet p = lan_datagram(dmac, qpn, w->qpn[0]);

	return post_packet(&p);
}

/* A RoCE frame of the peer; returns whether the process got it. */
static bool receive(uint32_t station, const uint8_t *dmac, const uint8_t *smac)
{
	const bool group = ether_is_group(dmac);
	struct urxe_packet p = lan_datagram(dmac, group ? 0xffffff : w->qpn[0], 0x77);
	uint8_t f[LAN_LEN];

	p.sgid = craft_gid(URXE_NET_IPV4, 2);
	p.dgid = craft_gid(URXE_NET_IPV4, 1);
	memcpy(p.smac, smac, 6);
	lan_frame(f, &p, 5);
	lan_send(w, station, f, LAN_LEN);
	run_switch();
	return lan_receive(w, 0) == 5;
}

static uint64_t copies_dropped(uint32_t station)
{
	return w->sw.uplink_ports[station].stats.drops[SWITCH_DROP_BOND_COPY];
}

static void process_frames_leave_by_the_active_member(void **state)
{
	(void)state;
	/* Also to the VM, because the switch does not know the MAC yet. */
	assert_int_equal(post_to(peer_mac, 9), BIT(A) | BIT(VM));
	assert_int_equal(post_to(group_mac, 0xffffff), BIT(A) | BIT(VM));
	cut(A);
	discard_all();
	assert_int_equal(post_to(peer_mac, 9), BIT(B) | BIT(VM));
	assert_int_equal(post_to(group_mac, 0xffffff), BIT(B) | BIT(VM));
	assert_int_equal(w->sw.bond.members[0].failovers, 1);
}

static void frames_to_the_host_count_at_the_active_member_only(void **state)
{
	(void)state;
	assert_true(receive(A, w->host.mac, peer_mac));
	assert_false(receive(B, w->host.mac, peer_mac));
	assert_true(receive(A, group_mac, peer_mac));
	assert_false(receive(B, group_mac, peer_mac));
	assert_int_equal(copies_dropped(A), 0);
	assert_int_equal(copies_dropped(B), 2);
	cut(A);
	assert_true(receive(B, w->host.mac, peer_mac));
	assert_true(receive(B, group_mac, peer_mac));
	assert_false(receive(A, group_mac, peer_mac));
	assert_false(receive(A, w->host.mac, peer_mac));
}

/* The kernel of this host may have told a neighbour the MAC of the second interface. */
static void member_receives_its_own_mac(void **state)
{
	(void)state;
	assert_true(receive(B, w->uplinks[B].mac, peer_mac));
	assert_false(receive(A, w->uplinks[B].mac, peer_mac));
}

/* The process has a socket at the active member only, and receives there what comes there. */
static void member_receives_its_own_mac_beside_a_socket(void **state)
{
	(void)state;
	w->processes[0].sockets = BIT(A);
	assert_false(receive(A, w->host.mac, peer_mac));
	assert_true(receive(B, w->uplinks[B].mac, peer_mac));
}

/* One Ethernet behind both members returns the host's broadcasts by the other one. */
static void own_frames_that_come_back_are_dropped(void **state)
{
	(void)state;
	assert_false(receive(B, group_mac, w->host.mac));
	assert_false(receive(A, group_mac, w->uplinks[B].probe_mac));
	assert_int_equal(copies_dropped(A) + copies_dropped(B), 2);
}

/* The port of a MAC is the bond: after a failover, frames to the station take the other member. */
static void macs_are_learned_at_the_bond(void **state)
{
	(void)state;
	assert_true(receive(A, w->host.mac, peer_mac));
	assert_int_equal(post_to(peer_mac, 9), BIT(A));
	cut(A);
	discard_all();
	assert_int_equal(post_to(peer_mac, 9), BIT(B));
	assert_true(receive(B, w->host.mac, other_mac));
	assert_int_equal(post_to(other_mac, 9), BIT(B));
}

static void pin_to_a_member_is_a_pin_to_the_bond(void **state)
{
	char error[SWITCH_ERROR];

	(void)state;
	assert_int_equal(switch_pin(&w->sw, "04:00:00:00:00:0a=2", error), 0);
	assert_int_equal(post_to(peer_mac, 9), BIT(A));
	assert_true(receive(A, w->host.mac, peer_mac));
}

/* --- ARP and ND */

static void send_arp(uint32_t station, bool request, const uint8_t *dmac, const uint8_t *sip,
		     const uint8_t *tip)
{
	struct arp a = {.request = request};
	uint8_t f[ARP_FRAME_LEN];

	memcpy(a.smac, peer_mac, 6);
	memcpy(a.sip, sip, 16);
	memcpy(a.tip, tip, 16);
	arp_build(f, &a, dmac);
	lan_send(w, station, f, sizeof(f));
	run_switch();
}

/* Takes an ARP frame that a station has received. */
static struct arp take_arp(uint32_t station, const uint8_t *dmac, const uint8_t *smac)
{
	struct netdev_frame f;
	struct arp a;

	assert_true(take(station, &f));
	assert_true(arp_parse(&a, f.data, f.len));
	assert_memory_equal(f.data, dmac, 6);
	assert_memory_equal(f.data + 6, smac, 6);
	return a;
}

static void daemon_answers_by_the_active_member(void **state)
{
	struct netdev_frame f;

	(void)state;
	/* The kernel has the address, but on one member only. */
	w->host.addresses[0].kernel = true;
	send_arp(A, true, broadcast, peer_ip, host_ip);
	assert_memory_equal(take_arp(A, peer_mac, w->host.mac).smac, w->host.mac, 6);
	discard_all();
	send_arp(B, true, broadcast, peer_ip, host_ip);
	assert_false(take(A, &f) || take(B, &f));
	assert_int_equal(copies_dropped(B), 1);
	cut(A);
	discard_all();
	send_arp(B, true, broadcast, peer_ip, host_ip);
	assert_memory_equal(take_arp(B, peer_mac, w->host.mac).smac, w->host.mac, 6);
	discard_all();
}

/* A neighbour's own bond probes this host's backup. No bridge may learn the host's MAC there. */
static void backup_answers_questions_to_the_host_alone(void **state)
{
	static const uint8_t none[16] = {[10] = 0xff, 0xff};
	struct arp a;

	(void)state;
	send_arp(B, true, w->host.mac, none, host_ip);
	a = take_arp(B, peer_mac, w->uplinks[B].probe_mac);
	assert_false(a.request);
	assert_memory_equal(a.smac, w->host.mac, 6);
	assert_memory_equal(a.sip, host_ip, 16);
	discard_all();
}

static int resolve_peer(struct neigh_waiter *waiter)
{
	struct vnic_next_hop hop;

	return neigh_resolve(&w->neigh, w->now, 0, 0, peer_ip, waiter, &hop);
}

static void learn_peer(void)
{
	struct neigh_waiter waiter;

	assert_int_equal(resolve_peer(&waiter), -EINPROGRESS);
	neigh_cancel(&w->neigh, &waiter);
	send_arp(A, false, w->host.mac, peer_ip, host_ip);
	assert_int_equal(resolve_peer(&waiter), 0);
	run_switch();
	discard_all();
}

/* A neighbour keeps its port, the bond, whichever member brings its claims. */
static void neighbour_is_known_at_both_members(void **state)
{
	struct neigh_waiter waiter;

	(void)state;
	learn_peer();
	cut(A);
	w->now += NEIGH_LIFE_NS;
	/* The known MAC is confirmed by a probe through the other member. */
	assert_int_equal(resolve_peer(&waiter), -EINPROGRESS);
	run_switch();
	neigh_cancel(&w->neigh, &waiter);
	send_arp(B, false, w->host.mac, peer_ip, host_ip);
	assert_int_equal(resolve_peer(&waiter), 0);
	assert_int_equal(w->neigh.counters[NEIGH_COUNT_MOVED], 0);
	discard_all();
}

/* --- Probes and announcements */

/* Runs the bond's timers for some milliseconds, with a peer that answers probes by `answers`. */
static void run_bond(uint32_t ms, uint32_t answers)
{
	struct netdev_frame f;
	struct arp a;

	while (ms--) {
		w->now += MS;
		bond_host_tick(&w->sw, w->now);
		run_switch();
		for (uint32_t i = A; i <= B; i++)
			while (take(i, &f)) {
				if (!arp_parse(&a, f.data, f.len) || !ether_same(f.data, peer_mac))
					continue;
				/* Nothing that a neighbour could learn. */
				assert_true(a.request);
				assert_memory_equal(a.smac, w->uplinks[i].probe_mac, 6);
				assert_memory_equal(a.tip, peer_ip, 16);
				assert_int_equal(a.sip[12] + a.sip[13] + a.sip[14] + a.sip[15], 0);
				if (answers & BIT(i))
					send_arp(i, false, a.smac, peer_ip, a.sip);
			}
	}
}

static const char *role(uint32_t member)
{
	return bond_role(&w->sw.bond, member);
}

static void probes_find_the_silent_member(void **state)
{
	(void)state;
	learn_peer();
	run_bond(3000, BIT(A) | BIT(B));
	assert_string_equal(role(A), "active");
	assert_string_equal(role(B), "backup");
	run_bond(3000, BIT(B));
	assert_string_equal(role(A), "silent");
	assert_string_equal(role(B), "active");
	run_bond(3000, BIT(A) | BIT(B));
	assert_string_equal(role(A), "active");
	discard_all();
}

static uint64_t direct; /* frames of programs by packet sockets of their own */

struct frame_count __wrap_frame_count_read(const char *ifname);

struct frame_count __wrap_frame_count_read(const char *ifname)
{
	const uint64_t *of_switch = w->sw.uplink_ports[A].stats.counters;

	(void)ifname;
	return (struct frame_count){.received = of_switch[SWITCH_IN_FRAMES],
				    .sent = of_switch[SWITCH_OUT_FRAMES] + direct};
}

static bool is_busy(void)
{
	bond_host_count_frames(&w->sw, w->now);
	return w->now - w->sw.bond.busy_at < BOND_BUSY_NS;
}

/* The bond's probes, which are many while it is busy, and few frames of programs. */
static void bond_becomes_idle_without_many_direct_frames(void **state)
{
	(void)state;
	learn_peer();
	direct = 100;
	assert_true(is_busy());
	for (uint32_t ms = 0; ms < 7000; ms++) {
		run_bond(1, BIT(A) | BIT(B));
		direct += ms % 100 == 0;
		(void)is_busy();
	}
	assert_false(is_busy());
	direct += 100;
	run_bond(20, BIT(A) | BIT(B));
	assert_true(is_busy());
	discard_all();
}

/* Without any entry in the table of neighbours, the receiver of the last frame is asked. */
static void receiver_of_the_last_frame_is_asked(void **state)
{
	struct urxe_packet p = lan_datagram(peer_mac, 9, w->qpn[0]);

	(void)state;
	/* Frames to this host, and those of an address that it does not have, leave by no member.
	 */
	assert_int_equal(post_to(w->host.mac, 9), 0);
	p.sgid = craft_gid(URXE_NET_IPV4, 77);
	assert_int_equal(post_packet(&p), 0);
	assert_int_equal(w->sw.bond_target_at, 0);
	assert_int_equal(w->sw.bond.busy_at, 0);
	post_to(peer_mac, 9);
	assert_int_equal(memcmp(w->sw.bond_target.ip, peer_ip, 16), 0);
	run_bond(200, BIT(B));
	assert_string_equal(role(B), "active");
	discard_all();
}

static void lost_link_announces_all_addresses(void **state)
{
	struct netdev_frame f;
	uint32_t seen = 0;
	struct arp a;
	struct nd m;

	(void)state;
	discard_all();
	cut(A);
	while (take(B, &f)) {
		assert_memory_equal(f.data + 6, w->host.mac, 6);
		if (arp_parse(&a, f.data, f.len)) {
			assert_memory_equal(f.data, broadcast, 6);
			assert_memory_equal(a.sip, host_ip, 16);
			assert_memory_equal(a.tip, host_ip, 16);
			assert_memory_equal(a.smac, w->host.mac, 6);
			seen |= 1;
		} else if (nd_parse(&m, f.data, f.len)) {
			assert_false(m.solicitation);
			assert_true(m.override && m.has_mac);
			assert_memory_equal(m.smac, w->host.mac, 6);
			assert_int_equal(m.target[0], 0x20);
			seen |= 2;
		} else {
			assert_int_equal(ether_get16(f.data + 12), ETHERTYPE_ID_VLAN);
			assert_int_equal(ether_get16(f.data + 14), 7);
			assert_int_equal(ether_get16(f.data + 16), ETHERTYPE_ID_ARP);
			seen |= 4;
		}
	}
	assert_int_equal(seen, 7);
	assert_false(take(A, &f));
}

/*
 * The kernel would take an announcement of the address for that of another station. Bridges learn
 * the host's MAC from RARP, which names no address, in each VLAN.
 */
static void tentative_addresses_are_not_announced(void **state)
{
	struct host_address *a = w->host.addresses;
	uint32_t untagged = 0, tagged = 0;
	struct netdev_frame f;

	(void)state;
	a[0].valid = false;
	a[1].tentative = a[2].tentative = true;
	assert_int_equal(a[2].vlan, 7);
	memcpy(a[2].ip, a[1].ip, sizeof(a[2].ip));
	discard_all();
	assert_false(receive(B, w->host.mac, peer_mac));
	run_switch();
	while (take(A, &f)) {
		const bool tag = ether_get16(f.data + 12) == ETHERTYPE_ID_VLAN;

		assert_memory_equal(f.data, broadcast, 6);
		assert_memory_equal(f.data + 6, w->host.mac, 6);
		assert_int_equal(ether_get16(f.data + (tag ? 16 : 12)), ETHERTYPE_ID_RARP);
		tagged += tag;
		untagged += !tag;
	}
	assert_int_equal(untagged, 1);
	assert_int_equal(tagged, 1);
	assert_false(take(B, &f));
	discard_all();
}

/* Bridges have the host at the wrong port: the host announces itself at the right one. */
static void astray_frames_cause_an_announcement(void **state)
{
	struct netdev_frame f;

	(void)state;
	/* With a virtual machine, members receive frames between other stations. */
	assert_false(receive(B, other_mac, peer_mac));
	run_switch();
	assert_false(take(A, &f));
	assert_false(receive(B, w->host.mac, peer_mac));
	run_switch();
	assert_true(take(A, &f));
	assert_memory_equal(f.data, broadcast, 6);
	assert_false(take(B, &f));
	discard_all();
}

/* --- balance */

static void connections_use_both_members(void **state)
{
	uint32_t n[STATIONS] = {0};

	(void)state;
	assert_true(receive(A, w->host.mac, peer_mac));
	for (uint32_t qpn = 16; qpn < 80; qpn++) {
		const uint32_t mask = post_to(peer_mac, qpn);

		assert_true(mask == BIT(A) || mask == BIT(B));
		assert_int_equal(post_to(peer_mac, qpn), mask);
		n[mask == BIT(A) ? A : B]++;
	}
	assert_in_range(n[A], 26, 38);
	cut(B);
	discard_all();
	for (uint32_t qpn = 16; qpn < 80; qpn++)
		assert_int_equal(post_to(peer_mac, qpn), BIT(A));
}

/* Frames to groups count once, frames to the host at each member. */
static void balanced_members_receive_frames_to_the_host(void **state)
{
	(void)state;
	assert_true(receive(A, w->host.mac, peer_mac));
	assert_true(receive(B, w->host.mac, peer_mac));
	assert_true(receive(A, group_mac, peer_mac));
	assert_false(receive(B, group_mac, peer_mac));
	discard_all();
	for (uint8_t i = 0; i < 8; i++) {
		struct urxe_packet p = lan_datagram(group_mac, 0xffffff, w->qpn[0]);

		p.dgid = craft_gid(URXE_NET_IPV4, i);
		assert_int_equal(post_packet(&p), BIT(A) | BIT(VM));
	}
	send_arp(B, true, broadcast, peer_ip, host_ip);
	take_arp(B, peer_mac, w->host.mac);
	discard_all();
	/* Also by a member that this host does not use, because its peers may. */
	cut(B);
	assert_true(receive(B, w->host.mac, peer_mac));
	discard_all();
}

#define TEST(f)    cmocka_unit_test_setup_teardown(f, setup, teardown)
#define BALANCE(f) cmocka_unit_test_setup_teardown(f, setup_balance, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(process_frames_leave_by_the_active_member),
		TEST(frames_to_the_host_count_at_the_active_member_only),
		TEST(member_receives_its_own_mac),
		TEST(member_receives_its_own_mac_beside_a_socket),
		TEST(own_frames_that_come_back_are_dropped),
		TEST(macs_are_learned_at_the_bond),
		TEST(pin_to_a_member_is_a_pin_to_the_bond),
		TEST(daemon_answers_by_the_active_member),
		TEST(backup_answers_questions_to_the_host_alone),
		TEST(neighbour_is_known_at_both_members),
		TEST(probes_find_the_silent_member),
		TEST(bond_becomes_idle_without_many_direct_frames),
		TEST(receiver_of_the_last_frame_is_asked),
		TEST(lost_link_announces_all_addresses),
		TEST(tentative_addresses_are_not_announced),
		TEST(astray_frames_cause_an_announcement),
		BALANCE(connections_use_both_members),
		BALANCE(balanced_members_receive_frames_to_the_host),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
