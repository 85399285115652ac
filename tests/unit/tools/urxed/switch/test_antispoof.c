/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Anti-spoofing: no process sends for another process, the daemon or another host. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "craft.h"
#include "lan.h"
#include "urxed/switch/classify.h"

/* Last bytes of addresses: the host's, another host's, and the host's in VLAN 100. */
#define OURS         1
#define THEIRS       2
#define OURS_IN_VLAN 3
#define VLAN         100

#define RC_SEND_ONLY  0x04
#define RC_ACK        0x11
#define UC_SEND_ONLY  0x24
#define RD_SEND_ONLY  0x44
#define XRC_SEND_ONLY 0xa4
#define CNP           0x81

#define NOBODYS_QPN 0xfff123

static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 9};

static struct lan *w;

static int setup(void **state)
{
	static const char *const spec = "mem";
	static const char *const addresses[] = {"10.0.0.1/24", "2001:db8::1/64", "10.0.0.3/24@100"};
	const struct lan_attr attr = {.n_processes = 2,
				      .n_stations = 1,
				      .first_vm = 1,
				      .specs = &spec,
				      .depth = 8,
				      .addresses = addresses,
				      .n_addresses = 3};

	(void)state;
	w = lan_open(&attr);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lan_check_sums(w);
	lan_close(w);
	return 0;
}

/* Process 0 sends a packet; returns the reason of its drop, or SWITCH_NO_DROP. */
static enum switch_drop verdict_of_frame(const uint8_t f[LAN_LEN])
{
	struct switch_stats before = w->processes[0].stats;
	uint32_t i;

	assert_true(lan_post(w, 0, f, LAN_LEN));
	assert_true(switch_run(&w->sw, LAN_T0));
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		if (w->processes[0].stats.drops[i] != before.drops[i])
			return i;
	return SWITCH_NO_DROP;
}

static enum switch_drop verdict(const struct urxe_packet *p)
{
	uint8_t f[LAN_LEN];

	lan_frame(f, p, 0);
	return verdict_of_frame(f);
}

/* No dropped packet has reached the other process or the uplink. */
static void nobody_got_anything(void)
{
	struct netdev_frame out;

	assert_int_equal(lan_receive(w, 1), -1);
	assert_int_equal(netdev_rx(w->far[0], LAN_T0, &out, 1), 0);
}

static void process_sends_only_from_the_hosts_mac(void **state)
{
	struct urxe_packet p = lan_datagram(peer_mac, 5, w->qpn[0]);

	(void)state;
	memcpy(p.smac, peer_mac, 6);
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_MAC);
	memset(p.smac, 0xff, 6);
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_MAC);
	nobody_got_anything();
	memcpy(p.smac, lan_macs[0], 6);
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
}

static void process_sends_only_from_the_hosts_addresses(void **state)
{
	static const enum urxe_net nets[] = {URXE_NET_IPV4, URXE_NET_IPV6};
	struct urxe_packet p = lan_datagram(lan_macs[0], w->qpn[1], w->qpn[0]);
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		/* RoCEv2, then RoCEv1 with the same address. */
		p.net = i < 2 ? nets[i] : URXE_NET_ROCEV1;
		p.sgid = craft_gid(nets[i % 2], THEIRS);
		assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_IP);
		nobody_got_anything();
		p.sgid = craft_gid(nets[i % 2], OURS);
		assert_int_equal(verdict(&p), SWITCH_NO_DROP);
		assert_int_equal(lan_receive(w, 1), 0);
	}
	memset(&p.sgid, 0, sizeof(p.sgid));
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_IP);
}

static void address_is_valid_only_in_its_vlan(void **state)
{
	struct urxe_packet p = lan_datagram(lan_macs[0], w->qpn[1], w->qpn[0]);

	(void)state;
	p.sgid = craft_gid(URXE_NET_IPV4, OURS_IN_VLAN);
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_IP);
	p.has_vlan = true;
	p.vlan_tci = VLAN + 1;
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_IP);
	nobody_got_anything();
	p.vlan_tci = 5 << 13 | VLAN; /* any priority */
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
	p.sgid = craft_gid(URXE_NET_IPV4, OURS);
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_IP);
	p.vlan_tci = 5 << 13; /* a priority alone is no VLAN */
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
}

static void process_sends_datagrams_only_from_leased_qpns(void **state)
{
	struct urxe_packet p = lan_datagram(lan_macs[0], w->qpn[1], w->qpn[1]);

	(void)state;
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_QPN);
	p.deth.src_qpn = NOBODYS_QPN;
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_QPN);
	nobody_got_anything();
	p.deth.src_qpn = w->qpn[0] + LEASE_QPNS - 1;
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
}

static void process_cannot_use_qp0_and_qp1(void **state)
{
	struct urxe_packet p = lan_datagram(peer_mac, 5, w->qpn[0]);
	uint32_t qpn;

	(void)state;
	for (qpn = 0; qpn < 2; qpn++) {
		p.deth.src_qpn = qpn;
		assert_int_equal(verdict(&p), SWITCH_DROP_MANAGEMENT);
		p.deth.src_qpn = w->qpn[0];
		p.dest_qpn = qpn;
		assert_int_equal(verdict(&p), SWITCH_DROP_MANAGEMENT);
		p.dest_qpn = 5;
	}
	nobody_got_anything();
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
}

static void process_sends_only_rc_uc_ud_and_cnp(void **state)
{
	static const uint8_t others[] = {RD_SEND_ONLY, XRC_SEND_ONLY, 0x80, 0xc0, 0xff};
	struct urxe_packet p = lan_datagram(peer_mac, 5, w->qpn[0]);
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(others); i++) {
		p.opcode = others[i];
		assert_int_equal(verdict(&p), SWITCH_DROP_NO_SERVICE);
	}
	nobody_got_anything();
}

static int connect_qp(uint32_t process, uint32_t local, const struct urxe_gid *gid, uint32_t qpn)
{
	return switch_add_remote(&w->sw, &w->processes[process], w->qpn[process] + local, gid->raw,
				 qpn);
}

static int disconnect_qp(uint32_t process, uint32_t local, const struct urxe_gid *gid, uint32_t qpn)
{
	return switch_remove_remote(&w->sw, &w->processes[process], w->qpn[process] + local,
				    gid->raw, qpn);
}

/* RC and UC packets have no source QPN, so a process must be connected to the remote QP. */
static void process_sends_only_to_connected_remote_qps(void **state)
{
	static const uint8_t opcodes[] = {RC_SEND_ONLY, UC_SEND_ONLY, CNP};
	struct urxe_packet p = lan_datagram(peer_mac, 5, 0);
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(opcodes); i++) {
		p.opcode = opcodes[i];
		p.dest_qpn = 0x10 + i;
		/* A CNP may answer a datagram, which needs no connection. */
		assert_int_equal(verdict(&p),
				 opcodes[i] == CNP ? SWITCH_NO_DROP : SWITCH_DROP_UNREGISTERED);
		assert_int_equal(connect_qp(1, 0, &p.dgid, p.dest_qpn), 0);
		if (opcodes[i] != CNP)
			assert_int_equal(verdict(&p), SWITCH_DROP_UNREGISTERED);
		assert_int_equal(connect_qp(0, 0, &p.dgid, p.dest_qpn), 0);
		assert_int_equal(verdict(&p), opcodes[i] == UC_SEND_ONLY ? SWITCH_DROP_CONTESTED
									 : SWITCH_NO_DROP);
		assert_int_equal(disconnect_qp(1, 0, &p.dgid, p.dest_qpn), 0);
		assert_int_equal(verdict(&p), SWITCH_NO_DROP);
		assert_int_equal(disconnect_qp(0, 0, &p.dgid, p.dest_qpn), 0);
		if (opcodes[i] != CNP)
			assert_int_equal(verdict(&p), SWITCH_DROP_UNREGISTERED);
	}
}

/* Process 1 receives a packet of THEIRS at its QP `local`. */
static void send_to_process_1(uint8_t opcode, uint32_t local)
{
	struct urxe_packet p = lan_datagram(lan_macs[0], w->qpn[1] + local, 0);
	uint8_t f[LAN_LEN];

	memcpy(p.smac, peer_mac, 6);
	p.opcode = opcode;
	p.sgid = craft_gid(URXE_NET_IPV4, THEIRS);
	p.dgid = craft_gid(URXE_NET_IPV4, OURS);
	lan_frame(f, &p, 1);
	lan_send(w, 0, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 1), 1);
}

/* Process 0 has taken what process 1 will be connected to, and more. */
static void squatter_harms_nobody(void **state)
{
	struct urxe_packet p = lan_datagram(peer_mac, 0x1000, 0);
	uint32_t qpn;

	(void)state;
	for (qpn = 0x1000; qpn < 0x1000 + LEASE_QPNS; qpn++)
		assert_int_equal(connect_qp(0, qpn - 0x1000, &p.dgid, qpn), 0);
	assert_int_equal(connect_qp(1, 0, &p.dgid, 0x1000), 0);
	p.opcode = RC_SEND_ONLY;
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
	/* The remote QP sends to its peer, and no other process may send to the remote QP from now
	 * on.
	 */
	send_to_process_1(RC_ACK, 0);
	assert_int_equal(verdict(&p), SWITCH_DROP_CONTESTED);
	send_to_process_1(UC_SEND_ONLY, 0);
	p.opcode = UC_SEND_ONLY;
	assert_int_equal(verdict(&p), SWITCH_DROP_CONTESTED);
	p.opcode = CNP;
	assert_int_equal(verdict(&p), SWITCH_DROP_UNREGISTERED);
}

/* Process 0 names a QP of process 1, which is connected to another QP, or to none. */
static void process_sends_on_its_host_only_to_qps_that_name_it(void **state)
{
	static const uint8_t opcodes[] = {RC_SEND_ONLY, UC_SEND_ONLY};
	const struct urxe_gid own = craft_gid(URXE_NET_IPV4, OURS);
	struct urxe_packet p = lan_datagram(lan_macs[0], w->qpn[1], 0);
	uint32_t i;

	(void)state;
	p.dgid = own;
	for (i = 0; i < sizeof(opcodes); i++) {
		p.opcode = opcodes[i];
		assert_int_equal(verdict(&p), SWITCH_DROP_UNREGISTERED);
		assert_int_equal(connect_qp(0, 0, &own, w->qpn[1]), 0);
		assert_int_equal(verdict(&p), SWITCH_DROP_NOT_MUTUAL);
		assert_int_equal(connect_qp(1, 0, &own, w->qpn[0] + 1), 0);
		assert_int_equal(verdict(&p), SWITCH_DROP_NOT_MUTUAL);
		nobody_got_anything();
		assert_int_equal(connect_qp(1, 0, &own, w->qpn[0]), 0);
		assert_int_equal(verdict(&p), SWITCH_NO_DROP);
		assert_int_equal(lan_receive(w, 1), 0);
		assert_int_equal(disconnect_qp(1, 0, &own, w->qpn[0]), 0);
		assert_int_equal(disconnect_qp(1, 0, &own, w->qpn[0] + 1), 0);
		assert_int_equal(disconnect_qp(0, 0, &own, w->qpn[1]), 0);
	}
}

/* The peer of a connection has ended: that is the reason, and no process gets the packet. */
static void packet_to_a_gone_peer_has_no_qp(void **state)
{
	const struct urxe_gid own = craft_gid(URXE_NET_IPV4, OURS);
	struct urxe_packet p = lan_datagram(lan_macs[0], NOBODYS_QPN, 0);

	(void)state;
	p.opcode = RC_SEND_ONLY;
	p.dgid = own;
	assert_int_equal(verdict(&p), SWITCH_DROP_UNREGISTERED);
	assert_int_equal(connect_qp(0, 0, &own, NOBODYS_QPN), 0);
	assert_int_equal(verdict(&p), SWITCH_DROP_NO_QP);
	nobody_got_anything();
}

/* The host's MAC leads to its processes, whatever the IP says. */
static void address_of_another_host_leads_to_no_qp_of_this_host(void **state)
{
	struct urxe_packet p = lan_datagram(lan_macs[0], w->qpn[1], 0);

	(void)state;
	p.opcode = UC_SEND_ONLY;
	assert_int_equal(connect_qp(0, 0, &p.dgid, w->qpn[1]), 0);
	assert_int_equal(verdict(&p), SWITCH_DROP_NOT_MUTUAL);
	nobody_got_anything();
}

static void only_leased_qps_are_connected(void **state)
{
	const struct urxe_gid gid = craft_gid(URXE_NET_IPV4, THEIRS);
	const uint32_t others[] = {w->qpn[1], NOBODYS_QPN, 0, 0x1000000 + w->qpn[0], UINT32_MAX};
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(switch_add_remote(&w->sw, &w->processes[0], others[i], gid.raw, 5),
				 -EACCES);
		assert_int_equal(
			switch_remove_remote(&w->sw, &w->processes[0], others[i], gid.raw, 5),
			-ENOENT);
	}
}

/* RoCEv1 to the IPv4-mapped GID and RoCEv2 to the IPv4 address reach the same QP. */
static void rocev1_and_rocev2_name_the_same_remote_qp(void **state)
{
	struct urxe_packet p = lan_datagram(peer_mac, 5, 0);

	(void)state;
	p.opcode = RC_SEND_ONLY;
	assert_int_equal(connect_qp(0, 0, &p.dgid, 5), 0);
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
	p.net = URXE_NET_ROCEV1;
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
}

static void leaving_process_releases_its_remote_qps(void **state)
{
	struct urxe_packet p = lan_datagram(peer_mac, 5, 0);

	(void)state;
	p.opcode = UC_SEND_ONLY;
	assert_int_equal(connect_qp(1, 0, &p.dgid, 5), 0);
	assert_int_equal(connect_qp(0, 0, &p.dgid, 5), 0);
	assert_int_equal(verdict(&p), SWITCH_DROP_CONTESTED);
	switch_leave(&w->sw, &w->processes[1]);
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
}

static void remote_qp_cannot_be_management_or_multicast(void **state)
{
	const struct urxe_gid gid = craft_gid(URXE_NET_IPV4, THEIRS);

	(void)state;
	assert_int_equal(connect_qp(0, 0, &gid, 0), -EINVAL);
	assert_int_equal(connect_qp(0, 0, &gid, 1), -EINVAL);
	assert_int_equal(connect_qp(0, 0, &gid, 0xffffff), -EINVAL);
	assert_int_equal(connect_qp(0, 0, &gid, 0x1000002), -EINVAL);
	assert_int_equal(connect_qp(0, 0, &gid, 2), 0);
}

/* Receivers may parse such packets differently than the switch, or reassemble them. */
static void fragments_and_wrong_lengths_are_dropped(void **state)
{
	const struct urxe_packet p = lan_datagram(peer_mac, 5, w->qpn[0]);
	const uint32_t ip = ETHER_HDR_LEN, udp = ip + IPV4_HDR_LEN;
	uint8_t good[LAN_LEN], f[LAN_LEN];

	(void)state;
	lan_frame(good, &p, 0);
	memcpy(f, good, LAN_LEN);
	f[ip + 6] = 0x20; /* more fragments */
	assert_int_equal(verdict_of_frame(f), SWITCH_DROP_MALFORMED);
	f[ip + 6] = 0;
	f[ip + 7] = 1; /* an offset */
	assert_int_equal(verdict_of_frame(f), SWITCH_DROP_MALFORMED);
	memcpy(f, good, LAN_LEN);
	ether_put16(f + ip + 2, LAN_LEN); /* beyond the frame */
	assert_int_equal(verdict_of_frame(f), SWITCH_DROP_MALFORMED);
	memcpy(f, good, LAN_LEN);
	ether_put16(f + udp + 4, LAN_LEN - udp - 1); /* differs from the length in the IP header */
	assert_int_equal(verdict_of_frame(f), SWITCH_DROP_MALFORMED);
	memcpy(f, good, LAN_LEN);
	/* The lengths exclude the DETH, which is in the padding. */
	ether_put16(f + ip + 2, IPV4_HDR_LEN + UDP_HDR_LEN + BTH_LEN + URXE_ICRC_LEN);
	ether_put16(f + udp + 4, UDP_HDR_LEN + BTH_LEN + URXE_ICRC_LEN);
	assert_int_equal(verdict_of_frame(f), SWITCH_DROP_MALFORMED);
	nobody_got_anything();
	assert_int_equal(verdict_of_frame(good), SWITCH_NO_DROP);
}

/* Ethernet pads frames to 60 bytes. */
static void padded_short_frame_passes(void **state)
{
	const struct urxe_packet p = lan_datagram(peer_mac, 5, w->qpn[0]);
	uint8_t room[CRAFT_MAX], f[LAN_LEN] = {0};
	uint32_t len = craft_frame(room, &p);

	(void)state;
	assert_true(len < LAN_LEN);
	memcpy(f, room, len);
	assert_int_equal(verdict_of_frame(f), SWITCH_NO_DROP);
}

/* The tap runs after the check: here the process changes its headers in shared memory. */
static void change_headers(void *ctx, const struct switch_port *port, enum switch_direction dir,
			   const uint8_t *data, uint32_t len, enum switch_drop drop)
{
	uint8_t *posted = *(uint8_t **)ctx;

	(void)port;
	(void)data;
	(void)len;
	assert_int_equal(drop, SWITCH_NO_DROP);
	if (dir == SWITCH_IN)
		memset(posted, 0xee, CLASSIFY_HEAD);
}

static void header_changes_after_the_check_are_not_forwarded(void **state)
{
	static const uint8_t *const ways[] = {lan_macs[0], peer_mac};
	struct vnic_frame frame;
	struct netdev_frame out;
	uint8_t f[LAN_LEN], *posted;
	uint32_t i;

	(void)state;
	w->sw.tap = change_headers;
	w->sw.tap_ctx = &posted;
	for (i = 0; i < 2; i++) {
		const struct urxe_packet p = lan_datagram(ways[i], w->qpn[1], w->qpn[0]);

		lan_frame(f, &p, 1);
		assert_int_equal(vnic_driver_tx_reserve(w->loops[0]->driver, &frame, 1), 1);
		posted = frame.data;
		memcpy(posted, f, LAN_LEN);
		frame.len = LAN_LEN;
		vnic_driver_tx_commit(w->loops[0]->driver, &frame, 1);
		switch_run(&w->sw, LAN_T0);
		assert_int_equal(posted[0], 0xee);
	}
	assert_int_equal(netdev_rx(w->far[0], LAN_T0, &out, 1), 1);
	assert_memory_equal(out.data, f, LAN_LEN);
	assert_int_equal(vnic_driver_rx(w->loops[1]->driver, &frame, 1), 1);
	memcpy(f, lan_macs[0], 6);
	assert_memory_equal(frame.data, f, LAN_LEN);
}

/* True: process 1 gets a packet from the wire. False: it was dropped as spoofed. */
static bool passes_from_wire(const struct urxe_packet *p)
{
	const uint64_t *spoofed = &w->sw.uplink_ports[0].stats.drops[SWITCH_DROP_SPOOFED_IP];
	uint64_t before = *spoofed;
	uint8_t f[LAN_LEN];
	bool got;

	lan_frame(f, p, 1);
	lan_send(w, 0, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	got = lan_receive(w, 1) == 1;
	assert_int_equal(*spoofed - before, !got);
	return got;
}

/* Else a neighbour could inject packets into connections between processes of this host. */
static void wire_cannot_send_from_the_hosts_addresses(void **state)
{
	static const enum urxe_net nets[] = {URXE_NET_IPV4, URXE_NET_IPV6, URXE_NET_ROCEV1};
	struct urxe_packet p = lan_datagram(lan_macs[0], w->qpn[1], 5);
	uint32_t i;

	(void)state;
	memcpy(p.smac, peer_mac, 6);
	for (i = 0; i < 3; i++) {
		p.net = nets[i];
		p.sgid = craft_gid(p.net == URXE_NET_IPV6 ? URXE_NET_IPV6 : URXE_NET_IPV4, OURS);
		assert_false(passes_from_wire(&p));
	}
	p.opcode = RC_SEND_ONLY;
	assert_false(passes_from_wire(&p));
	/* In another VLAN, another host may have the address. */
	p.has_vlan = true;
	p.vlan_tci = VLAN;
	assert_true(passes_from_wire(&p));
	p.sgid = craft_gid(URXE_NET_IPV4, OURS_IN_VLAN);
	assert_false(passes_from_wire(&p));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(process_sends_only_from_the_hosts_mac),
		TEST(process_sends_only_from_the_hosts_addresses),
		TEST(address_is_valid_only_in_its_vlan),
		TEST(process_sends_datagrams_only_from_leased_qpns),
		TEST(process_cannot_use_qp0_and_qp1),
		TEST(process_sends_only_rc_uc_ud_and_cnp),
		TEST(process_sends_only_to_connected_remote_qps),
		TEST(squatter_harms_nobody),
		TEST(process_sends_on_its_host_only_to_qps_that_name_it),
		TEST(packet_to_a_gone_peer_has_no_qp),
		TEST(address_of_another_host_leads_to_no_qp_of_this_host),
		TEST(only_leased_qps_are_connected),
		TEST(rocev1_and_rocev2_name_the_same_remote_qp),
		TEST(leaving_process_releases_its_remote_qps),
		TEST(remote_qp_cannot_be_management_or_multicast),
		TEST(fragments_and_wrong_lengths_are_dropped),
		TEST(padded_short_frame_passes),
		TEST(header_changes_after_the_check_are_not_forwarded),
		TEST(wire_cannot_send_from_the_hosts_addresses),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
