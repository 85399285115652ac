/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The switch as a learning bridge between uplinks, virtual machines and the host. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "craft.h"
#include "lan.h"
#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/nd_frame.h"
#include "urxed/switch/deliver.h"

#define DEPTH     64
#define PROCESSES 4 /* only the first one hears multicast */

#define ETHERTYPE_LLD 0x88cc

/* Stations: two uplinks and two virtual machines. */
enum { WIRE, OTHER_WIRE, VM, OTHER_VM, STATIONS = LAN_STATIONS };

static const char *const specs[STATIONS] = {"mem:wire", "mem:other", "qemu:/vm,mtu=9", "qemu:/vm2"};

/* MACs of stations begin with 4, the host's with 2. */
static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t group_mac[6] = {0x01, 0x00, 0x5e, 1, 2, 3};
static const uint8_t zero_mac[6];
static const uint8_t a_mac[6] = {4, 0, 0, 0, 0, 0xa}, b_mac[6] = {4, 0, 0, 0, 0, 0xb};

static struct lan *w;

static int setup(void **state)
{
	static const char *const address = "10.0.0.1/24";
	const struct lan_attr attr = {.n_processes = PROCESSES,
				      .n_stations = STATIONS,
				      .first_vm = VM,
				      .specs = specs,
				      .depth = DEPTH,
				      .addresses = &address,
				      .n_addresses = 1};

	(void)state;
	w = lan_open(&attr);
	w->host.addresses[0].kernel = true;
	vnic_driver_set_multicast(w->loops[0]->driver, true);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lan_check_sums(w);
	lan_close(w);
	return 0;
}

static uint32_t plain(uint8_t *f, const uint8_t *dmac, const uint8_t *smac, uint16_t vlan)
{
	memset(f, 0x5a, LAN_LEN);
	memcpy(f, dmac, 6);
	memcpy(f + 6, smac, 6);
	ether_put16(f + 12, vlan ? ETHERTYPE_ID_VLAN : ETHERTYPE_LLD);
	if (vlan) {
		ether_put16(f + 14, vlan);
		ether_put16(f + 16, ETHERTYPE_LLD);
	}
	return LAN_LEN;
}

static uint32_t roce(uint8_t *f, const uint8_t *dmac, const uint8_t *smac, uint8_t from,
		     uint32_t qpn)
{
	struct urxe_packet p = lan_datagram(dmac, qpn, w->qpn[0]);

	p.sgid = craft_gid(URXE_NET_IPV4, from);
	p.dgid = craft_gid(URXE_NET_IPV4, 9);
	memcpy(p.smac, smac, 6);
	lan_frame(f, &p, 0);
	return LAN_LEN;
}

static void send_from(uint32_t station, const uint8_t *f, uint32_t len)
{
	lan_send(w, station, f, len);
	switch_run(&w->sw, w->now);
}

/* Bit mask of stations that got the frame; `any`: its source MAC may differ. */
static uint32_t who_got(const uint8_t *f, uint32_t len, bool any)
{
	struct netdev_frame got;
	uint32_t i, mask = 0;

	for (i = 0; i < STATIONS; i++) {
		if (!netdev_rx(w->far[i], w->now, &got, 1))
			continue;
		mask |= 1u << i;
		assert_int_equal(got.len, len);
		assert_memory_equal(got.data, f, 6);
		if (!any)
			assert_memory_equal(got.data + 6, f + 6, 6);
		assert_memory_equal(got.data + 12, f + 12, len - 12);
		assert_int_equal(netdev_rx(w->far[i], w->now, &got, 1), 0);
	}
	return mask;
}

static uint32_t send_plain(uint32_t from, const uint8_t *dmac, const uint8_t *smac, uint16_t vlan)
{
	uint8_t f[LAN_LEN];
	uint32_t len = plain(f, dmac, smac, vlan);

	send_from(from, f, len);
	return who_got(f, len, false);
}

static uint64_t dropped(uint32_t station, enum switch_drop reason)
{
	return w->sw.uplink_ports[station].stats.drops[reason];
}

static bool process_got(void)
{
	return lan_receive(w, 0) >= 0;
}

#define BIT(i) (1u << (i))

/* A VM's frame goes to all other ports; an uplink's frame to VMs, not to the other uplink. */
static void unknown_mac_is_flooded(void **state)
{
	(void)state;
	assert_int_equal(send_plain(VM, broadcast, a_mac, 0),
			 BIT(WIRE) | BIT(OTHER_WIRE) | BIT(OTHER_VM));
	assert_int_equal(send_plain(VM, b_mac, a_mac, 0),
			 BIT(WIRE) | BIT(OTHER_WIRE) | BIT(OTHER_VM));
	assert_int_equal(send_plain(WIRE, broadcast, b_mac, 0), BIT(VM) | BIT(OTHER_VM));
	assert_int_equal(send_plain(OTHER_WIRE, (const uint8_t[]){4, 9, 9, 9, 9, 9}, b_mac, 0),
			 BIT(VM) | BIT(OTHER_VM));
}

static void source_mac_is_learned(void **state)
{
	(void)state;
	send_plain(VM, broadcast, a_mac, 0);
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 0), BIT(VM));
	assert_int_equal(send_plain(VM, b_mac, a_mac, 0), BIT(OTHER_VM));
	assert_int_equal(send_plain(WIRE, a_mac, (const uint8_t[]){4, 1, 1, 1, 1, 1}, 0), BIT(VM));
	/* The station moves: the newest port counts. */
	send_plain(WIRE, broadcast, b_mac, 0);
	assert_int_equal(send_plain(VM, b_mac, a_mac, 0), BIT(WIRE));
	/* A frame to a station on its own port is not forwarded. */
	assert_int_equal(send_plain(WIRE, b_mac, (const uint8_t[]){4, 1, 1, 1, 1, 1}, 0), 0);
	assert_int_equal(dropped(WIRE, SWITCH_DROP_NOT_OURS), 1);
}

static void uplinks_are_not_bridged(void **state)
{
	(void)state;
	send_plain(WIRE, broadcast, a_mac, 0);
	assert_int_equal(send_plain(OTHER_WIRE, a_mac, b_mac, 0), 0);
	assert_int_equal(dropped(OTHER_WIRE, SWITCH_DROP_NOT_OURS), 1);
}

static void macs_are_learned_per_vlan(void **state)
{
	(void)state;
	send_plain(VM, broadcast, a_mac, 100);
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 100), BIT(VM));
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 101),
			 BIT(VM) | BIT(WIRE) | BIT(OTHER_WIRE));
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 0),
			 BIT(VM) | BIT(WIRE) | BIT(OTHER_WIRE));
}

static void learned_mac_ages_out(void **state)
{
	(void)state;
	send_plain(VM, broadcast, a_mac, 0);
	w->now += FDB_AGE_NS - 1;
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 0), BIT(VM));
	w->now += 1;
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 0),
			 BIT(VM) | BIT(WIRE) | BIT(OTHER_WIRE));
}

static void numbered_mac(uint8_t mac[6], uint32_t i)
{
	memcpy(mac, (const uint8_t[]){6, 0, 0, 0, (uint8_t)(i >> 8), (uint8_t)i}, 6);
}

/* A VM that uses ever new MACs fills its own share of the table only. */
static void port_learns_at_most_its_share(void **state)
{
	uint8_t mac[6];
	uint32_t i;

	(void)state;
	for (i = 0; i < FDB_PER_PORT + 3; i++) {
		numbered_mac(mac, i);
		send_plain(VM, broadcast, mac, 0);
	}
	assert_int_equal(w->sw.uplink_ports[VM].stats.counters[SWITCH_UNLEARNED], 3);
	send_plain(OTHER_VM, broadcast, b_mac, 0);
	assert_int_equal(send_plain(WIRE, b_mac, (const uint8_t[]){4, 1, 1, 1, 1, 1}, 0),
			 BIT(OTHER_VM));
	/* There is room again when its entries have aged out. */
	w->now += FDB_AGE_NS;
	send_plain(VM, broadcast, a_mac, 0);
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 0), BIT(VM));
}

/* Each port uses MACs of its own. */
static void fill_share(uint32_t port)
{
	uint8_t mac[6];

	for (uint32_t i = 0; i < FDB_PER_PORT; i++) {
		numbered_mac(mac, i);
		mac[1] = (uint8_t)port;
		send_plain(port, broadcast, mac, 0);
	}
}

/* The machine's search for aged entries of its own is not the only one in this second. */
static void full_port_keeps_no_aged_entry_of_another_port(void **state)
{
	(void)state;
	fill_share(WIRE);
	w->now += FDB_AGE_NS;
	fill_share(VM);
	send_plain(VM, broadcast, a_mac, 0);
	send_plain(WIRE, broadcast, b_mac, 0);
	assert_int_equal(w->sw.uplink_ports[WIRE].stats.counters[SWITCH_UNLEARNED], 0);
	assert_int_equal(send_plain(OTHER_VM, b_mac, a_mac, 0), BIT(WIRE));
}

/* It has left its old port, where frames to it would be lost. */
static void station_that_moves_to_a_full_port_gets_frames(void **state)
{
	(void)state;
	send_plain(OTHER_VM, broadcast, b_mac, 0);
	fill_share(VM);
	send_plain(VM, broadcast, b_mac, 0);
	assert_true(send_plain(WIRE, b_mac, a_mac, 0) & BIT(VM));
	/* The old entries of its new port give it room. */
	w->now += FDB_AGE_NS;
	send_plain(OTHER_VM, broadcast, b_mac, 0);
	send_plain(VM, broadcast, b_mac, 0);
	assert_int_equal(send_plain(WIRE, b_mac, a_mac, 0), BIT(VM));
}

static void pinned_mac_belongs_to_its_port(void **state)
{
	char reason[SWITCH_ERROR];

	(void)state;
	assert_int_equal(switch_pin(&w->sw, "04:00:00:00:00:0a=qemu:/vm", reason), 0);
	/* No other port may send from it, in any VLAN. */
	assert_int_equal(send_plain(OTHER_VM, broadcast, a_mac, 0), 0);
	assert_int_equal(send_plain(WIRE, broadcast, a_mac, 7), 0);
	assert_int_equal(dropped(OTHER_VM, SWITCH_DROP_SPOOFED_MAC), 1);
	assert_int_equal(dropped(WIRE, SWITCH_DROP_SPOOFED_MAC), 1);
	/* The port may send from no other MAC. */
	assert_int_equal(send_plain(VM, broadcast, b_mac, 0), 0);
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_MAC), 1);
	assert_int_equal(send_plain(VM, broadcast, a_mac, 0),
			 BIT(WIRE) | BIT(OTHER_WIRE) | BIT(OTHER_VM));
	/* The entry is valid before the first frame, never ages, and the port gets no other
	 * unicast. */
	w->now += 2 * FDB_AGE_NS;
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 7), BIT(VM));
	assert_int_equal(send_plain(WIRE, (const uint8_t[]){4, 9, 9, 9, 9, 9},
				    (const uint8_t[]){4, 1, 1, 1, 1, 1}, 0),
			 BIT(OTHER_VM));
}

static void mac_can_be_pinned_in_one_vlan(void **state)
{
	char reason[SWITCH_ERROR];

	(void)state;
	assert_int_equal(switch_pin(&w->sw, "04:00:00:00:00:0a@100=3", reason), 0);
	assert_int_equal(send_plain(OTHER_VM, broadcast, a_mac, 100), 0);
	assert_int_not_equal(send_plain(OTHER_VM, broadcast, a_mac, 0), 0);
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 100), BIT(VM));
	assert_int_equal(send_plain(VM, broadcast, a_mac, 0), 0);
}

static void invalid_pins_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"04:00:00:00:00:0a",
		"04:00:00:00:00:0a=",
		"04:00:00:00:00=1",
		"04:00:00:00:00:0a:0b=1",
		"4:0:0:0:0:a=1",
		"04-00-00-00-00-0a=1",
		"05:00:00:00:00:0a=1", /* a multicast MAC */
		"00:00:00:00:00:00=1", /* no MAC of a station */
		"04:00:00:00:00:0a@=1",
		"04:00:00:00:00:0a@4095=1",
		"04:00:00:00:00:0a@-1=1",
		"04:00:00:00:00:0a=5",
		"04:00:00:00:00:0a=0",
		"04:00:00:00:00:0a=qemu",
		"02:00:00:00:00:01=3", /* the host's MAC */
	};
	char reason[SWITCH_ERROR];
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		reason[0] = '\0';
		assert_true(switch_pin(&w->sw, wrong[i], reason) < 0);
		assert_true(strlen(reason) > 10);
	}
	assert_int_equal(switch_pin(&w->sw, "04:00:00:00:00:0A=qemu:/vm,mtu=9", reason), 0);
	assert_int_equal(switch_pin(&w->sw, "04:00:00:00:00:0a=3", reason), -EEXIST);
}

/* A machine that migrates is at one of the ports to which its MAC is pinned, and at no other. */
static void mac_of_two_ports_is_where_it_sent_last(void **state)
{
	static const uint8_t stranger[6] = {4, 1, 1, 1, 1, 1};
	char reason[SWITCH_ERROR];

	(void)state;
	assert_int_equal(switch_pin(&w->sw, "04:00:00:00:00:0a=qemu:/vm", reason), 0);
	assert_int_equal(switch_pin(&w->sw, "04:00:00:00:00:0a=mem:wire", reason), 0);
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 0), BIT(VM));
	/* Its announcement on the wire, after a migration to another host. */
	assert_int_equal(send_plain(WIRE, broadcast, a_mac, 0), BIT(VM) | BIT(OTHER_VM));
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 0), BIT(WIRE));
	/* The entry never ages. */
	w->now += 2 * FDB_AGE_NS;
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 7), BIT(WIRE));
	/* And back. */
	assert_int_not_equal(send_plain(VM, broadcast, a_mac, 0), 0);
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 0), BIT(VM));
	/* No other port may send from it; the wire has further stations, the machine's port none.
	 */
	assert_int_equal(send_plain(OTHER_VM, broadcast, a_mac, 0), 0);
	assert_int_equal(send_plain(OTHER_WIRE, broadcast, a_mac, 0), 0);
	assert_int_equal(send_plain(VM, broadcast, stranger, 0), 0);
	assert_int_equal(send_plain(WIRE, b_mac, stranger, 0), BIT(OTHER_VM));
	assert_int_equal(send_plain(OTHER_VM, stranger, b_mac, 0), BIT(WIRE));
}

/* The port's share of learned MACs is full, and the pinned machine comes nevertheless. */
static void pinned_mac_moves_to_a_full_port(void **state)
{
	uint8_t mac[6] = {4, 8, 0, 0, 0, 0};
	char reason[SWITCH_ERROR];

	(void)state;
	assert_int_equal(switch_pin(&w->sw, "04:00:00:00:00:0a=qemu:/vm", reason), 0);
	assert_int_equal(switch_pin(&w->sw, "04:00:00:00:00:0a=mem:wire", reason), 0);
	for (uint32_t i = 0; i < FDB_PER_PORT; i++) {
		mac[4] = (uint8_t)(i >> 8);
		mac[5] = (uint8_t)i;
		send_plain(WIRE, broadcast, mac, 0);
	}
	send_plain(WIRE, broadcast, a_mac, 0);
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 0), BIT(WIRE));
}

static void vm_cannot_use_mac_or_ip_of_the_host(void **state)
{
	uint8_t f[LAN_LEN];
	uint32_t i, len;

	(void)state;
	for (i = 0; i < STATIONS; i++)
		assert_int_equal(send_plain(VM, broadcast, lan_macs[i], 0), 0);
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_MAC), STATIONS);
	assert_int_equal(send_plain(VM, broadcast, group_mac, 0), 0);
	assert_int_equal(send_plain(VM, broadcast, zero_mac, 0), 0);
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_MAC), STATIONS + 2);
	len = roce(f, lan_macs[WIRE], a_mac, 1, w->qpn[0]);
	send_from(VM, f, len);
	assert_false(process_got());
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_IP), 1);
	len = roce(f, lan_macs[WIRE], a_mac, 2, w->qpn[0]);
	send_from(VM, f, len);
	assert_true(process_got());
}

static bool post(const uint8_t *f, uint32_t len)
{
	if (!lan_post(w, 0, f, len))
		return false;
	switch_run(&w->sw, w->now);
	return true;
}

/* Once the VM's MAC is learned, only the VM gets the frame, with the host's source MAC. */
static void process_frame_reaches_a_vm(void **state)
{
	uint8_t f[LAN_LEN];
	uint32_t len = roce(f, a_mac, lan_macs[WIRE], 1, 5);

	(void)state;
	assert_true(post(f, len));
	assert_int_equal(who_got(f, len, true), BIT(STATIONS) - 1);
	send_plain(VM, broadcast, a_mac, 0);
	assert_true(post(f, len));
	assert_int_equal(who_got(f, len, false), BIT(VM));
	send_plain(OTHER_WIRE, broadcast, a_mac, 0);
	assert_true(post(f, len));
	assert_int_equal(who_got(f, len, true), BIT(OTHER_WIRE));
}

/* A multicast RoCE frame goes to processes, VMs and uplinks, once to each. */
static void multicast_goes_to_all_ports_once(void **state)
{
	uint8_t f[LAN_LEN];
	uint32_t len = roce(f, group_mac, a_mac, 2, URXE_QPN_MULTICAST);

	(void)state;
	send_from(VM, f, len);
	assert_int_equal(who_got(f, len, false), BIT(WIRE) | BIT(OTHER_WIRE) | BIT(OTHER_VM));
	assert_true(process_got());
	send_from(WIRE, f, len);
	assert_int_equal(who_got(f, len, false), BIT(VM) | BIT(OTHER_VM));
	assert_true(process_got());
	len = roce(f, group_mac, lan_macs[WIRE], 1, URXE_QPN_MULTICAST);
	assert_true(post(f, len));
	assert_int_equal(who_got(f, len, true), BIT(STATIONS) - 1);
	assert_false(process_got());
}

static uint32_t arp(uint8_t *f, const uint8_t *smac, uint8_t from, uint8_t to)
{
	struct arp a = {.request = true};

	memcpy(a.smac, smac, 6);
	ip_from_v4(a.sip, (const uint8_t[]){10, 0, 0, from});
	ip_from_v4(a.tip, (const uint8_t[]){10, 0, 0, to});
	arp_build(f, &a, broadcast);
	return ARP_FRAME_LEN;
}

/* Whether the process got the announcement of a MAC. */
static bool process_heard_of(const uint8_t *mac)
{
	struct vnic_frame got;
	bool heard;

	if (!vnic_driver_rx(w->loops[0]->driver, &got, 1))
		return false;
	heard = got.len == 60 && !memcmp(got.data, broadcast, 6) && !memcmp(got.data + 6, mac, 6) &&
		ether_get16(got.data + 12) == ETHERTYPE_ID_RARP;
	vnic_driver_rx_release(w->loops[0]->driver, 1);
	return heard;
}

static uint32_t rarp(uint8_t *f, const uint8_t *smac, uint16_t vlan)
{
	uint32_t len = plain(f, broadcast, smac, vlan);

	ether_put16(f + (vlan ? 16 : 12), ETHERTYPE_ID_RARP);
	return len;
}

static uint32_t advertisement(uint8_t *f, const uint8_t *dmac, const uint8_t *smac)
{
	const struct nd of_any = {.target = {0xfe, 0x80, [15] = 7}};

	memset(f, 0, LAN_LEN);
	nd_build_advertisement(f, &of_any, smac);
	memcpy(f, dmac, 6);
	return LAN_LEN;
}

/* After a migration a machine announces itself by RARP, gratuitous ARP or an advertisement. */
static void processes_hear_announcements(void **state)
{
	uint8_t f[LAN_LEN];

	(void)state;
	send_from(WIRE, f, rarp(f, a_mac, 0));
	assert_true(process_heard_of(a_mac));
	assert_int_equal(who_got(f, LAN_LEN, false), BIT(VM) | BIT(OTHER_VM));
	/* A second one within 10 ms reaches stations only. */
	send_from(VM, f, rarp(f, a_mac, 5));
	assert_false(process_heard_of(a_mac));
	assert_int_equal(who_got(f, LAN_LEN, false), BIT(WIRE) | BIT(OTHER_WIRE) | BIT(OTHER_VM));
	w->now += 10000000;
	send_from(VM, f, rarp(f, a_mac, 5));
	assert_true(process_heard_of(a_mac));
	w->now += 10000000;
	send_from(WIRE, f, arp(f, b_mac, 3, 3));
	assert_true(process_heard_of(b_mac));
	w->now += 10000000;
	send_from(VM, f, advertisement(f, group_mac, a_mac));
	assert_true(process_heard_of(a_mac));
	/* Requests, answers and frames that the switch drops announce nobody. */
	w->now += 10000000;
	send_from(WIRE, f, arp(f, b_mac, 3, 4));
	send_from(WIRE, f, advertisement(f, lan_macs[WIRE], b_mac));
	send_from(VM, f, rarp(f, lan_macs[WIRE], 0));
	assert_false(process_heard_of(b_mac));
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_MAC), 1);
}

/* Two machines that migrate at once announce themselves at once. A flood of MACs is bounded. */
static void processes_hear_each_of_several_stations(void **state)
{
	uint8_t f[LAN_LEN], mac[6] = {2, 0, 0, 0, 9, 0};
	uint32_t heard = 0;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		send_from(WIRE, f, rarp(f, a_mac, 0));
		assert_true(process_heard_of(a_mac));
		send_from(WIRE, f, rarp(f, b_mac, 0));
		assert_true(process_heard_of(b_mac));
		send_from(WIRE, f, rarp(f, a_mac, 0));
		assert_false(process_heard_of(a_mac));
		w->now += 10000000;
	}
	for (; mac[5] < 100; mac[5]++) {
		send_from(WIRE, f, rarp(f, mac, 0));
		heard += process_heard_of(mac);
	}
	assert_int_equal(heard, ANNOUNCED_STATIONS);
}

/* The host's own absence is announced several times; processes hear of it once in two seconds. */
static void processes_hear_that_the_host_returned(void **state)
{
	const uint8_t *mac = w->host.mac;

	(void)state;
	assert_true(switch_host_returned(&w->sw, w->now));
	assert_true(process_heard_of(mac));
	assert_false(switch_host_returned(&w->sw, w->now + 1999999999));
	assert_false(process_heard_of(mac));
	assert_true(switch_host_returned(&w->sw, w->now + 2000000000));
	assert_true(process_heard_of(mac));
}

/* The frame of QEMU's qemu_announce_create(), in 60 bytes. */
static void qemu_rarp(uint8_t f[60], const uint8_t *mac)
{
	static const uint8_t request[] = {0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3};

	memset(f, 0, 60);
	memcpy(f, broadcast, 6);
	memcpy(f + 6, mac, 6);
	memcpy(f + 12, request, sizeof(request));
	memcpy(f + 22, mac, 6);
	memcpy(f + 32, mac, 6);
}

/* Where frames to a machine go, which has moved to that station and announced itself there. */
static void expect_at(uint32_t station)
{
	assert_int_equal(send_plain(OTHER_VM, a_mac, b_mac, 0), BIT(station));
}

/* QEMU announces a machine at its new place, before the machine sends anything itself. */
static void announcement_moves_a_machine(void **state)
{
	uint8_t f[LAN_LEN];

	(void)state;
	send_plain(OTHER_VM, broadcast, b_mac, 0);
	send_plain(WIRE, broadcast, a_mac, 0);
	expect_at(WIRE);
	/* From another host to this one, by the RARP of the hypervisor here. */
	qemu_rarp(f, a_mac);
	send_from(VM, f, 60);
	assert_int_equal(who_got(f, 60, false), BIT(WIRE) | BIT(OTHER_WIRE) | BIT(OTHER_VM));
	expect_at(VM);
	/* A repeated one, which QEMU sends four times more, changes nothing. */
	send_from(VM, f, 60);
	assert_int_not_equal(who_got(f, 60, false), 0);
	expect_at(VM);
	/* To another host, by the gratuitous ARP of the guest there, */
	send_from(OTHER_WIRE, f, arp(f, a_mac, 3, 3));
	assert_int_not_equal(who_got(f, ARP_FRAME_LEN, false), 0);
	expect_at(OTHER_WIRE);
	/* and by the RARP on the other cable. */
	qemu_rarp(f, a_mac);
	send_from(WIRE, f, 60);
	assert_int_not_equal(who_got(f, 60, false), 0);
	expect_at(WIRE);
	/* Back, by an advertisement of IPv6. */
	send_from(VM, f, advertisement(f, group_mac, a_mac));
	assert_int_not_equal(who_got(f, LAN_LEN, false), 0);
	expect_at(VM);
}

/* The kernel answers ARP for its addresses on the uplink, but does not see frames of VMs. */
static void daemon_answers_arp_of_a_vm(void **state)
{
	struct netdev_frame got;
	uint8_t f[LAN_LEN];
	struct arp a;

	(void)state;
	send_from(VM, f, arp(f, a_mac, 2, 1));
	assert_int_equal(netdev_rx(w->far[VM], w->now, &got, 1), 1);
	assert_true(arp_parse(&a, got.data, got.len));
	assert_false(a.request);
	assert_memory_equal(a.smac, lan_macs[WIRE], 6);
	assert_memory_equal(got.data, a_mac, 6);
	/* The broadcast request also goes to all other ports. */
	assert_int_equal(who_got(f, ARP_FRAME_LEN, false),
			 BIT(WIRE) | BIT(OTHER_WIRE) | BIT(OTHER_VM));
	send_from(WIRE, f, arp(f, b_mac, 3, 1));
	assert_int_equal(who_got(f, ARP_FRAME_LEN, false), BIT(VM) | BIT(OTHER_VM));
}

/* Other machines and the network would send it the host's packets. */
static void vm_cannot_claim_the_address_of_the_host(void **state)
{
	uint8_t f[LAN_LEN];

	(void)state;
	send_from(VM, f, arp(f, a_mac, 1, 9));
	assert_int_equal(who_got(f, ARP_FRAME_LEN, false), 0);
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_IP), 1);
	send_from(VM, f, arp(f, a_mac, 4, 9));
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_IP), 1);
}

/* Linux accepts ARP of hardware type 6, and removes a tag of type 0x88a8 with VLAN ID 0. */
static void vm_cannot_hide_a_claim_of_the_address_of_the_host(void **state)
{
	uint8_t f[LAN_LEN];
	uint32_t len;

	(void)state;
	arp(f, a_mac, 1, 9);
	f[ETHER_HDR_LEN + 1] = 6;
	send_from(VM, f, ARP_FRAME_LEN);
	assert_int_equal(who_got(f, ARP_FRAME_LEN, false), 0);
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_IP), 1);
	len = ether_add_tag(f, arp(f, a_mac, 1, 9), 1);
	ether_put16(f + 12, 0x88a8);
	ether_put16(f + 14, 0);
	send_from(VM, f, len);
	assert_int_equal(who_got(f, len, false), 0);
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_IP), 2);
}

/* Only the station with the pinned MAC uses a pinned address, in ARP as in RoCE. */
static void pinned_address_is_used_by_its_station_only(void **state)
{
	struct address_pin pin;
	uint8_t f[LAN_LEN];
	uint32_t len;

	(void)state;
	assert_int_equal(address_pin_parse("10.0.0.3=04:00:00:00:00:0b", &pin), 0);
	assert_int_equal(address_pins_add(&w->neigh.pins, &pin), 0);
	send_from(VM, f, arp(f, a_mac, 3, 9));
	assert_int_equal(who_got(f, ARP_FRAME_LEN, false), 0);
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_IP), 1);
	/* The sender's MAC in the ARP message counts, not that of the frame. */
	len = arp(f, a_mac, 3, 9);
	memcpy(f + ETHER_MAC_LEN, b_mac, sizeof(b_mac));
	send_from(VM, f, len);
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_IP), 2);
	len = roce(f, b_mac, a_mac, 3, 5);
	send_from(WIRE, f, len);
	assert_int_equal(who_got(f, len, false), 0);
	assert_int_equal(dropped(WIRE, SWITCH_DROP_SPOOFED_IP), 1);
	/* Its own station, and others with other addresses. */
	send_from(VM, f, arp(f, b_mac, 3, 9));
	assert_int_equal(who_got(f, ARP_FRAME_LEN, false),
			 BIT(WIRE) | BIT(OTHER_WIRE) | BIT(OTHER_VM));
	send_from(VM, f, arp(f, a_mac, 4, 9));
	assert_int_equal(who_got(f, ARP_FRAME_LEN, false),
			 BIT(WIRE) | BIT(OTHER_WIRE) | BIT(OTHER_VM));
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_IP), 2);
}

/* The host's ARP request goes to the address's uplink and to all VMs. */
static void arp_request_of_the_host_reaches_vms(void **state)
{
	uint8_t f[ARP_FRAME_LEN], request[LAN_LEN];

	(void)state;
	arp(f, lan_macs[WIRE], 1, 2);
	switch_send(&w->sw, WIRE, f, sizeof(f));
	switch_run(&w->sw, w->now);
	assert_int_equal(who_got(f, sizeof(f), false), BIT(WIRE) | BIT(VM) | BIT(OTHER_VM));
	send_from(VM, request, arp(request, a_mac, 2, 9));
	who_got(request, ARP_FRAME_LEN, false);
	memcpy(f, a_mac, 6);
	switch_send(&w->sw, WIRE, f, sizeof(f));
	switch_run(&w->sw, w->now);
	assert_int_equal(who_got(f, sizeof(f), false), BIT(VM));
}

/* Processes take RoCE only, and the host's kernel is not behind this MAC. */
static void other_frames_than_roce_to_the_host_are_dropped(void **state)
{
	(void)state;
	assert_int_equal(send_plain(VM, lan_macs[WIRE], a_mac, 0), 0);
	assert_int_equal(send_plain(WIRE, lan_macs[WIRE], a_mac, 0), 0);
	assert_int_equal(dropped(VM, SWITCH_DROP_NOT_ROCE), 1);
	assert_int_equal(dropped(WIRE, SWITCH_DROP_NOT_ROCE), 1);
	/* From one uplink to the MAC of the host on the other uplink. */
	assert_int_equal(send_plain(WIRE, lan_macs[OTHER_WIRE], a_mac, 0), 0);
	assert_int_equal(dropped(WIRE, SWITCH_DROP_NOT_OURS), 1);
}

/* A PAUSE frame of a machine would stop what the cable's switch sends to this host. */
static void frames_of_one_link_are_not_bridged(void **state)
{
	uint8_t mac[6] = {0x01, 0x80, 0xc2, 0, 0, 0};

	(void)state;
	for (; mac[5] < 0x10; mac[5]++)
		for (uint32_t from = 0; from < STATIONS; from++)
			assert_int_equal(send_plain(from, mac, a_mac, 7 * (mac[5] & 1)), 0);
	assert_int_equal(dropped(VM, SWITCH_DROP_NOT_ROCE), 0x10);
	assert_int_equal(send_plain(WIRE, mac, a_mac, 0), BIT(VM) | BIT(OTHER_VM));
}

/* The port of the cable's switch may also take PAUSE frames to its own MAC. */
static void pause_frames_to_one_station_are_not_bridged(void **state)
{
	uint8_t f[LAN_LEN];
	uint32_t len = plain(f, b_mac, a_mac, 0);

	(void)state;
	ether_put16(f + 12, ETHERTYPE_ID_MAC_CONTROL);
	for (uint32_t from = 0; from < STATIONS; from++) {
		send_from(from, f, len);
		assert_int_equal(who_got(f, len, false), 0);
	}
	assert_int_equal(dropped(VM, SWITCH_DROP_NOT_OURS), 1);
}

/* Only the frames to the VM that receives nothing are dropped. */
static void stalled_vm_delays_no_other_port(void **state)
{
	uint8_t f[LAN_LEN];
	uint32_t i, n = 0, len;
	struct netdev_frame got;

	(void)state;
	send_plain(VM, broadcast, a_mac, 0);
	len = plain(f, a_mac, b_mac, 0);
	for (i = 0; i < DEPTH + UPLINK_QUEUE + 10; i++)
		send_from(OTHER_VM, f, len);
	assert_int_equal(dropped(VM, SWITCH_DROP_UPLINK_FULL), 10);
	send_from(OTHER_VM, f, plain(f, broadcast, b_mac, 0));
	assert_int_equal(netdev_rx(w->far[WIRE], w->now, &got, 1), 1);
	assert_int_equal(dropped(VM, SWITCH_DROP_UPLINK_FULL), 11);
	do {
		for (i = n; netdev_rx(w->far[VM], w->now, &got, 1);)
			n++;
		switch_run(&w->sw, w->now);
	} while (n > i);
	assert_int_equal(n, DEPTH + UPLINK_QUEUE);
}

/* Posts a datagram of a process; returns whether its ring had room. */
static bool post_datagram(uint32_t from, const uint8_t *dmac, uint32_t qpn)
{
	const struct urxe_packet p = lan_datagram(dmac, qpn, w->qpn[from]);
	uint8_t f[LAN_LEN];

	lan_frame(f, &p, 0);
	return lan_post(w, from, f, LAN_LEN);
}

/* Frames of 1.9 s at 2,560 frames/s, less those that the VM takes: after the first 100 ms. */
#define MANY 4600

/*
 * A process sends all the time to a VM that takes `each` frames in 10 ms. Counts the process's
 * frames to itself that arrive within 2 s.
 */
static uint32_t count_beside_vm(uint32_t each)
{
	const uint64_t end = w->now + 20 * SWITCH_STALL_NS;
	struct netdev_frame got;
	uint32_t n = 0;

	send_plain(VM, broadcast, a_mac, 0);
	for (; w->now < end; w->now += SWITCH_UPLINK_STALL_NS - 1) {
		for (uint32_t i = 0; i < each; i++)
			netdev_rx(w->far[VM], w->now, &got, 1);
		do {
			for (uint32_t i = 0; i < 10 && post_datagram(0, a_mac, 5); i++)
				;
			post_datagram(0, lan_macs[WIRE], w->qpn[0]);
			switch_run(&w->sw, w->now);
			n += process_got();
		} while (n < MANY && !w->processes[0].waiting);
	}
	return n;
}

/* Once the VM has held up the process for 100 ms, it sets no pace below 2,560 frames/s. */
static void slow_vm_stops_no_process(void **state)
{
	(void)state;
	assert_true(count_beside_vm(1) >= MANY);
}

static void stalled_vm_stops_no_process(void **state)
{
	(void)state;
	assert_true(count_beside_vm(0) >= MANY);
}

static void drain(uint32_t station)
{
	struct netdev_frame got;

	do
		while (netdev_rx(w->far[station], w->now, &got, 1))
			;
	while (switch_run(&w->sw, w->now));
}

/* After a stall the senders have no budget, and the VM's queue is shorter than their burst. */
static void vm_that_returns_loses_no_burst(void **state)
{
	uint64_t lost;

	(void)state;
	send_plain(VM, broadcast, a_mac, 0);
	for (uint32_t i = 0; i < 20; i++, w->now += SWITCH_UPLINK_STALL_NS) {
		for (uint32_t from = 0; from < PROCESSES; from++)
			while (post_datagram(from, a_mac, 5))
				;
		while (switch_run(&w->sw, w->now))
			;
	}
	drain(VM);
	lost = dropped(VM, SWITCH_DROP_UPLINK_FULL);
	assert_true(lost > 0);
	for (uint32_t from = 0; from < PROCESSES; from++)
		while (post_datagram(from, a_mac, 5))
			;
	drain(VM);
	assert_int_equal(dropped(VM, SWITCH_DROP_UPLINK_FULL), lost);
}

/* As in Linux, only a frame with a VLAN tag may be 4 bytes longer. */
static void frames_above_the_mtu_are_dropped(void **state)
{
	struct uplink *wire = w->sw.uplink_ports[WIRE].uplink;

	(void)state;
	send_plain(WIRE, broadcast, b_mac, 0);
	send_plain(WIRE, broadcast, b_mac, 7);
	wire->mtu = LAN_LEN - ETHER_HDR_LEN;
	assert_int_equal(send_plain(VM, b_mac, a_mac, 0), BIT(WIRE));
	wire->mtu = LAN_LEN - ETHER_HDR_LEN - 1;
	assert_int_equal(send_plain(VM, b_mac, a_mac, 0), 0);
	assert_int_equal(dropped(WIRE, SWITCH_DROP_TOO_LONG), 1);
	wire->mtu = LAN_LEN - ETHER_HDR_LEN - ETHER_VLAN_LEN;
	assert_int_equal(send_plain(VM, b_mac, a_mac, 7), BIT(WIRE));
	wire->mtu--;
	assert_int_equal(send_plain(VM, b_mac, a_mac, 7), 0);
	assert_int_equal(dropped(WIRE, SWITCH_DROP_TOO_LONG), 2);
}

static const uint8_t vlan_mac[6] = {2, 0, 0, 0, 0, 0x64};

static void put_in_vlan(uint8_t *f, struct urxe_packet *p)
{
	p->has_vlan = true;
	p->vlan_tci = 5 << 13 | 7; /* with a priority */
	lan_frame(f, p, 0);
}

static bool hears_vlan_mac(uint32_t station)
{
	struct urxe_packet p = lan_datagram(vlan_mac, w->qpn[0], 9);
	uint8_t f[LAN_LEN];

	p.sgid = craft_gid(URXE_NET_IPV4, 2);
	p.dgid = craft_gid(URXE_NET_IPV4, 1);
	memcpy(p.smac, b_mac, 6);
	lan_frame(f, &p, 0);
	send_from(station, f, LAN_LEN);
	assert_false(process_got());
	put_in_vlan(f, &p);
	send_from(station, f, LAN_LEN);
	return process_got();
}

static void drop_received(void)
{
	struct netdev_frame got;

	for (uint32_t i = 0; i < STATIONS; i++)
		while (netdev_rx(w->far[i], w->now, &got, 1))
			;
}

/* The kernel's VLAN interface on the first uplink has another MAC than the interface below. */
static void vlan_interface_has_a_mac_of_its_own(void **state)
{
	struct host_address *a = &w->host.addresses[1];
	struct urxe_packet p = lan_datagram(a_mac, 9, w->qpn[0]);
	struct netdev_frame got;
	uint8_t f[LAN_LEN];

	(void)state;
	assert_int_equal(host_add_text(&w->host, "10.0.0.1/24@7", WIRE), 0);
	a->kernel = true;
	memcpy(a->mac, vlan_mac, 6);
	assert_true(hears_vlan_mac(WIRE));
	assert_false(hears_vlan_mac(OTHER_WIRE));
	drop_received();
	put_in_vlan(f, &p);
	assert_true(lan_post(w, 0, f, LAN_LEN));
	switch_run(&w->sw, w->now);
	assert_int_equal(netdev_rx(w->far[WIRE], w->now, &got, 1), 1);
	assert_memory_equal(got.data + 6, vlan_mac, 6);
	assert_int_equal(netdev_rx(w->far[OTHER_WIRE], w->now, &got, 1), 1);
	assert_memory_equal(got.data + 6, lan_macs[OTHER_WIRE], 6);
}

static void mac_of_a_vlan_interface_is_the_hosts(void **state)
{
	struct host_address *a = &w->host.addresses[1];

	(void)state;
	assert_int_equal(host_add_text(&w->host, "10.0.0.1/24@7", WIRE), 0);
	a->kernel = true;
	memcpy(a->mac, vlan_mac, 6);
	assert_true(hears_vlan_mac(VM));
	drop_received();
	assert_int_equal(send_plain(VM, broadcast, vlan_mac, 7), 0);
	assert_int_equal(dropped(VM, SWITCH_DROP_SPOOFED_MAC), 1);
	/* In another VLAN it is no MAC of the host. */
	assert_int_equal(send_plain(VM, broadcast, vlan_mac, 8),
			 BIT(WIRE) | BIT(OTHER_WIRE) | BIT(OTHER_VM));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(unknown_mac_is_flooded),
		TEST(source_mac_is_learned),
		TEST(uplinks_are_not_bridged),
		TEST(macs_are_learned_per_vlan),
		TEST(learned_mac_ages_out),
		TEST(port_learns_at_most_its_share),
		TEST(full_port_keeps_no_aged_entry_of_another_port),
		TEST(station_that_moves_to_a_full_port_gets_frames),
		TEST(pinned_mac_belongs_to_its_port),
		TEST(mac_can_be_pinned_in_one_vlan),
		TEST(invalid_pins_are_refused),
		TEST(mac_of_two_ports_is_where_it_sent_last),
		TEST(processes_hear_announcements),
		TEST(processes_hear_each_of_several_stations),
		TEST(processes_hear_that_the_host_returned),
		TEST(announcement_moves_a_machine),
		TEST(pinned_mac_moves_to_a_full_port),
		TEST(vm_cannot_use_mac_or_ip_of_the_host),
		TEST(process_frame_reaches_a_vm),
		TEST(multicast_goes_to_all_ports_once),
		TEST(daemon_answers_arp_of_a_vm),
		TEST(vm_cannot_claim_the_address_of_the_host),
		TEST(vm_cannot_hide_a_claim_of_the_address_of_the_host),
		TEST(pinned_address_is_used_by_its_station_only),
		TEST(arp_request_of_the_host_reaches_vms),
		TEST(other_frames_than_roce_to_the_host_are_dropped),
		TEST(frames_of_one_link_are_not_bridged),
		TEST(pause_frames_to_one_station_are_not_bridged),
		TEST(stalled_vm_delays_no_other_port),
		TEST(slow_vm_stops_no_process),
		TEST(stalled_vm_stops_no_process),
		TEST(vm_that_returns_loses_no_burst),
		TEST(frames_above_the_mtu_are_dropped),
		TEST(vlan_interface_has_a_mac_of_its_own),
		TEST(mac_of_a_vlan_interface_is_the_hosts),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
