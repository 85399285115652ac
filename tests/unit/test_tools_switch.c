/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The switch between vNICs of the in-process transport and an uplink in memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rxe/packet.h>
#include <vnic/loop.h>

#include "craft.h"
#include "guest.h"
#include "steer.h"
#include "switch_out.h"
#include "switch_run.h"

/* Last bytes of addresses: the host's, another host's, and the host's in VLAN 100. */
#define OURS         1
#define THEIRS       2
#define OURS_IN_VLAN 3
#define VLAN         100

#define UD_SEND_ONLY  0x64
#define RC_SEND_ONLY  0x04
#define UC_SEND_ONLY  0x24
#define RD_SEND_ONLY  0x44
#define XRC_SEND_ONLY 0xa4
#define CNP           0x81

#define NOBODYS_QPN 0xfff123

#define MTU   1500
#define T0    1000000000ull
#define LEN   100
#define PORTS 2
#define DEPTH 512 /* of the uplink */

static const uint8_t uplink_mac[6] = {2, 0, 0, 0, 0, 1}, peer_mac[6] = {2, 0, 0, 0, 0, 9};

struct world {
	struct host host;
	struct neigh neigh;
	struct vswitch sw;
	struct uplink uplink;
	struct netdev *wire; /* the uplink's other end */
	struct vnic_loop *loops[PORTS];
	struct switch_port ports[PORTS];
	uint32_t qpn[PORTS];
	struct switch_stats seen;
};

static struct world *w;

static const struct neigh_ops no_ops;

static int setup_with(uint32_t n_uplinks)
{
	struct netdev *ends[2];
	uint32_t i;

	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	assert_int_equal(netdev_mem_pair(DEPTH, ends), 0);
	w->uplink = (struct uplink){.spec = "mem", .port = ends[0], .mtu = MTU, .stride = MTU + 18};
	w->uplink.room = calloc(UPLINK_QUEUE, w->uplink.stride);
	assert_non_null(w->uplink.room);
	memcpy(w->uplink.mac, uplink_mac, 6);
	w->wire = ends[1];
	host_init(&w->host);
	assert_int_equal(host_add_text(&w->host, "10.0.0.1/24", 0), 0);
	assert_int_equal(host_add_text(&w->host, "2001:db8::1/64", 0), 0);
	assert_int_equal(host_add_text(&w->host, "10.0.0.3/24@100", 0), 0);
	memcpy(w->host.mac, uplink_mac, 6);
	neigh_init(&w->neigh, &w->host, &no_ops, NULL);
	assert_int_equal(switch_init(&w->sw, &w->host, &w->neigh, &w->uplink, n_uplinks), 0);
	for (i = 0; i < PORTS; i++) {
		assert_int_equal(vnic_loop_open(MTU, &w->loops[i]), 0);
		assert_int_equal(switch_join(&w->sw, &w->ports[i], &w->qpn[i]), 0);
		w->ports[i].dev = w->loops[i]->device;
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return setup_with(1);
}

static int setup_alone(void **state)
{
	(void)state;
	return setup_with(0);
}

static int teardown(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < PORTS; i++)
		vnic_loop_close(w->loops[i]);
	switch_fini(&w->sw);
	netdev_close(w->uplink.port);
	netdev_close(w->wire);
	free(w->uplink.room);
	free(w);
	return 0;
}

/* What a process with a lease from src_qpn may send: a datagram, with room for a mark. */
static struct urxe_packet datagram(const uint8_t *dmac, uint32_t dest_qpn, uint32_t src_qpn)
{
	struct urxe_packet p = {
		.net = URXE_NET_IPV4,
		.opcode = UD_SEND_ONLY,
		.pkey = 0xffff,
		.hop_limit = 64,
		.dest_qpn = dest_qpn,
		.deth.src_qpn = src_qpn,
		.sgid = craft_gid(URXE_NET_IPV4, OURS),
		.dgid = craft_gid(URXE_NET_IPV4, THEIRS),
	};

	memcpy(p.dmac, dmac, 6);
	memcpy(p.smac, uplink_mac, 6);
	return p;
}

/* A frame of LEN bytes whatever the headers; the mark, which tells frames apart, ends it. */
static void build(uint8_t f[LEN], const struct urxe_packet *p, uint32_t mark)
{
	static const uint8_t payload[LEN];
	struct urxe_packet padded = *p;
	uint8_t room[CRAFT_MAX];

	padded.payload = payload;
	padded.payload_len = LEN - craft_frame(room, p);
	assert_int_equal(craft_frame(room, &padded), LEN);
	memcpy(f, room, LEN);
	memcpy(f + LEN - 4, &mark, 4);
}

static void make(uint8_t f[LEN], const uint8_t *dmac, const uint8_t *smac, uint32_t qpn,
		 uint32_t mark)
{
	struct urxe_packet p = datagram(dmac, qpn, w->qpn[0]);

	memcpy(p.smac, smac, 6);
	if (!ether_same(smac, uplink_mac))
		p.sgid = craft_gid(URXE_NET_IPV4, THEIRS);
	build(f, &p, mark);
}

static bool post_frame(uint32_t port, const uint8_t f[LEN])
{
	struct vnic_frame frame;

	if (!vnic_driver_tx_reserve(w->loops[port]->driver, &frame, 1))
		return false;
	memcpy(frame.data, f, LEN);
	frame.len = LEN;
	vnic_driver_tx_commit(w->loops[port]->driver, &frame, 1);
	return true;
}

static bool post_packet(uint32_t from, const struct urxe_packet *p, uint32_t mark)
{
	uint8_t f[LEN];

	build(f, p, mark);
	return post_frame(from, f);
}

static bool post(uint32_t from, const uint8_t *dmac, uint32_t qpn, uint32_t mark)
{
	struct urxe_packet p = datagram(dmac, qpn, w->qpn[from]);

	return post_packet(from, &p, mark);
}

/* Takes a frame that a process has received; its mark, or -1 for none. */
static int64_t receive(uint32_t port)
{
	struct vnic_frame frame;
	uint32_t mark;

	if (!vnic_driver_rx(w->loops[port]->driver, &frame, 1))
		return -1;
	assert_int_equal(frame.len, LEN);
	memcpy(&mark, frame.data + LEN - 4, 4);
	vnic_driver_rx_release(w->loops[port]->driver, 1);
	return mark;
}

static void from_wire(const uint8_t f[LEN])
{
	struct netdev_frame frame = {f, LEN, LEN, 0};

	assert_int_equal(netdev_tx(w->wire, T0, &frame, 1), 1);
}

static uint64_t dropped(enum switch_drop which)
{
	struct switch_stats all;

	switch_totals(&w->sw, &all);
	return all.drops[which];
}

/* That nothing else was dropped since drops_seen; and what came in is out, dropped or queued. */
static void drops(enum switch_drop which, uint64_t n)
{
	struct switch_stats all;
	uint64_t lost = 0;
	uint32_t i;

	switch_totals(&w->sw, &all);
	for (i = 0; i < SWITCH_DROP_COUNT; i++) {
		lost += all.drops[i];
		if (all.drops[i] - w->seen.drops[i] != (i == which ? n : 0))
			fail_msg("%s: %llu", switch_drop_name(i), (unsigned long long)all.drops[i]);
	}
	for (i = 0; i < PORTS; i++)
		lost += w->ports[i].held;
	assert_int_equal(all.counters[SWITCH_IN_FRAMES] + all.counters[SWITCH_COPIES],
			 all.counters[SWITCH_OUT_FRAMES] + lost + w->uplink.queued);
}

static void drops_seen(void)
{
	switch_totals(&w->sw, &w->seen);
}

static void between_processes_by_qpn(void **state)
{
	(void)state;
	assert_true(post(0, uplink_mac, w->qpn[1] + 17, 1));
	assert_true(post(0, uplink_mac, w->qpn[0] + 4095, 2));
	assert_true(switch_run(&w->sw, T0));
	assert_int_equal(receive(1), 1);
	assert_int_equal(receive(0), 2);
	assert_int_equal(receive(1), -1);
	assert_false(switch_run(&w->sw, T0));
	drops(SWITCH_NO_DROP, 0);
}

static uint32_t meetings;

static void count_meeting(struct switch_port *from, struct switch_port *to, uint32_t qpn)
{
	assert_ptr_equal(from, &w->ports[0]);
	assert_ptr_equal(to, &w->ports[1]);
	assert_int_equal(qpn, w->qpn[1] + 17);
	meetings++;
}

/* Once a pair, until one of them is another. */
static void who_sends_is_introduced(void **state)
{
	(void)state;
	meetings = 0;
	w->sw.meet = count_meeting;
	for (uint32_t i = 0; i < 3; i++) {
		post(0, uplink_mac, w->qpn[1] + 17, 1);
		switch_run(&w->sw, T0);
	}
	assert_int_equal(meetings, 1);
	switch_leave(&w->sw, &w->ports[1]);
	assert_int_equal(switch_join(&w->sw, &w->ports[1], &w->qpn[1]), 0);
	post(0, uplink_mac, w->qpn[1] + 17, 1);
	switch_run(&w->sw, T0);
	assert_int_equal(meetings, 2);
}

static void what_goes_nowhere_is_counted(void **state)
{
	uint8_t f[LEN];

	(void)state;
	post(0, uplink_mac, NOBODYS_QPN, 0);
	switch_run(&w->sw, T0);
	drops(SWITCH_DROP_NO_QP, 1);
	drops_seen();

	make(f, peer_mac, uplink_mac, 5, 0);
	f[23] = 6; /* a process may not send TCP by the daemon's port */
	post_frame(0, f);
	switch_run(&w->sw, T0);
	drops(SWITCH_DROP_NOT_ROCE, 1);
	assert_int_equal(receive(0), -1);
	assert_int_equal(receive(1), -1);
}

/* What becomes of a packet that process 0 sends: why it is dropped, or SWITCH_NO_DROP. */
static enum switch_drop verdict_of_frame(const uint8_t f[LEN])
{
	struct switch_stats before = w->ports[0].stats;
	uint32_t i;

	assert_true(post_frame(0, f));
	assert_true(switch_run(&w->sw, T0));
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		if (w->ports[0].stats.drops[i] != before.drops[i])
			return i;
	return SWITCH_NO_DROP;
}

static enum switch_drop verdict(const struct urxe_packet *p)
{
	uint8_t f[LEN];

	build(f, p, 0);
	return verdict_of_frame(f);
}

/* Nothing that a process may not send has got to the other, nor out. */
static void nobody_got_anything(void)
{
	struct netdev_frame out;

	assert_int_equal(receive(1), -1);
	assert_int_equal(netdev_rx(w->wire, T0, &out, 1), 0);
}

static void only_the_hosts_mac(void **state)
{
	struct urxe_packet p = datagram(peer_mac, 5, w->qpn[0]);

	(void)state;
	memcpy(p.smac, peer_mac, 6);
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_MAC);
	memset(p.smac, 0xff, 6);
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_MAC);
	nobody_got_anything();
	memcpy(p.smac, uplink_mac, 6);
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
}

static void only_the_hosts_addresses(void **state)
{
	static const enum urxe_net nets[] = {URXE_NET_IPV4, URXE_NET_IPV6};
	struct urxe_packet p = datagram(uplink_mac, w->qpn[1], w->qpn[0]);
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
		assert_int_equal(receive(1), 0);
	}
	memset(&p.sgid, 0, sizeof(p.sgid));
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_IP);
}

static void an_address_in_its_vlan(void **state)
{
	struct urxe_packet p = datagram(uplink_mac, w->qpn[1], w->qpn[0]);

	(void)state;
	p.sgid = craft_gid(URXE_NET_IPV4, OURS_IN_VLAN);
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_IP);
	p.has_vlan = true;
	p.vlan_tci = VLAN + 1;
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_IP);
	nobody_got_anything();
	p.vlan_tci = 5 << 13 | VLAN; /* whatever the priority */
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
	p.sgid = craft_gid(URXE_NET_IPV4, OURS);
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_IP);
	p.vlan_tci = 5 << 13; /* a priority alone is no VLAN */
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
}

static void only_qpns_of_its_lease(void **state)
{
	struct urxe_packet p = datagram(uplink_mac, w->qpn[1], w->qpn[1]);

	(void)state;
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_QPN);
	p.deth.src_qpn = NOBODYS_QPN;
	assert_int_equal(verdict(&p), SWITCH_DROP_SPOOFED_QPN);
	nobody_got_anything();
	p.deth.src_qpn = w->qpn[0] + LEASE_QPNS - 1;
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
}

static void nothing_from_or_to_management_qps(void **state)
{
	struct urxe_packet p = datagram(peer_mac, 5, w->qpn[0]);
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

static void only_services_that_are_known(void **state)
{
	static const uint8_t others[] = {RD_SEND_ONLY, XRC_SEND_ONLY, 0x80, 0xc0, 0xff};
	struct urxe_packet p = datagram(peer_mac, 5, w->qpn[0]);
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(others); i++) {
		p.opcode = others[i];
		assert_int_equal(verdict(&p), SWITCH_DROP_NO_SERVICE);
	}
	nobody_got_anything();
}

/* RC and UC do not say who sends: only who is connected may. */
static void only_to_whom_it_is_connected(void **state)
{
	static const uint8_t opcodes[] = {RC_SEND_ONLY, UC_SEND_ONLY, CNP};
	struct urxe_packet p = datagram(peer_mac, 5, 0);
	const uint8_t *gid = p.dgid.raw;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(opcodes); i++) {
		p.opcode = opcodes[i];
		p.dest_qpn = 0x10 + i;
		/* A CNP may go where nobody is connected, as answer to a datagram. */
		assert_int_equal(verdict(&p),
				 opcodes[i] == CNP ? SWITCH_NO_DROP : SWITCH_DROP_UNREGISTERED);
		assert_int_equal(switch_register(&w->sw, &w->ports[1], gid, p.dest_qpn), 0);
		assert_int_equal(switch_register(&w->sw, &w->ports[0], gid, p.dest_qpn),
				 -EADDRINUSE);
		assert_int_equal(verdict(&p), SWITCH_DROP_UNREGISTERED);
		assert_int_equal(switch_unregister(&w->sw, &w->ports[1], gid, p.dest_qpn), 0);
		assert_int_equal(switch_register(&w->sw, &w->ports[0], gid, p.dest_qpn), 0);
		assert_int_equal(verdict(&p), SWITCH_NO_DROP);
		/* The same QPN of another host is another queue pair. */
		p.dgid = craft_gid(URXE_NET_IPV4, THEIRS + 1);
		if (opcodes[i] != CNP)
			assert_int_equal(verdict(&p), SWITCH_DROP_UNREGISTERED);
		p.dgid = craft_gid(URXE_NET_IPV4, THEIRS);
	}
}

/* RoCEv1 to the IPv4-mapped GID is to the same queue pair as RoCEv2 to the IPv4 address. */
static void an_address_is_one_in_both_versions(void **state)
{
	struct urxe_packet p = datagram(peer_mac, 5, 0);

	(void)state;
	p.opcode = RC_SEND_ONLY;
	assert_int_equal(switch_register(&w->sw, &w->ports[0], p.dgid.raw, 5), 0);
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
	p.net = URXE_NET_ROCEV1;
	assert_int_equal(verdict(&p), SWITCH_NO_DROP);
}

static void who_left_is_connected_to_nobody(void **state)
{
	struct urxe_packet p = datagram(uplink_mac, w->qpn[0], 0);

	(void)state;
	assert_int_equal(switch_register(&w->sw, &w->ports[1], p.dgid.raw, 5), 0);
	switch_leave(&w->sw, &w->ports[1]);
	assert_int_equal(switch_register(&w->sw, &w->ports[0], p.dgid.raw, 5), 0);
}

static void nobody_is_connected_to_management_or_groups(void **state)
{
	const struct urxe_gid gid = craft_gid(URXE_NET_IPV4, THEIRS);

	(void)state;
	assert_int_equal(switch_register(&w->sw, &w->ports[0], gid.raw, 0), -EINVAL);
	assert_int_equal(switch_register(&w->sw, &w->ports[0], gid.raw, 1), -EINVAL);
	assert_int_equal(switch_register(&w->sw, &w->ports[0], gid.raw, 0xffffff), -EINVAL);
	assert_int_equal(switch_register(&w->sw, &w->ports[0], gid.raw, 0x1000002), -EINVAL);
	assert_int_equal(switch_register(&w->sw, &w->ports[0], gid.raw, 2), 0);
}

/* What hosts might read in two ways, or put together from pieces. */
static void no_fragments_and_no_lies_about_lengths(void **state)
{
	const struct urxe_packet p = datagram(peer_mac, 5, w->qpn[0]);
	const uint32_t ip = ETHER_HDR_LEN, udp = ip + IPV4_HDR_LEN;
	uint8_t good[LEN], f[LEN];

	(void)state;
	build(good, &p, 0);
	memcpy(f, good, LEN);
	f[ip + 6] = 0x20; /* more fragments */
	assert_int_equal(verdict_of_frame(f), SWITCH_DROP_MALFORMED);
	f[ip + 6] = 0;
	f[ip + 7] = 1; /* an offset */
	assert_int_equal(verdict_of_frame(f), SWITCH_DROP_MALFORMED);
	memcpy(f, good, LEN);
	ether_put16(f + ip + 2, LEN); /* beyond the frame */
	assert_int_equal(verdict_of_frame(f), SWITCH_DROP_MALFORMED);
	memcpy(f, good, LEN);
	ether_put16(f + udp + 4, LEN - udp - 1); /* not as the IP header says */
	assert_int_equal(verdict_of_frame(f), SWITCH_DROP_MALFORMED);
	memcpy(f, good, LEN);
	/* Too short for the DETH that is there in the padding. */
	ether_put16(f + ip + 2, IPV4_HDR_LEN + UDP_HDR_LEN + BTH_LEN + URXE_ICRC_LEN);
	ether_put16(f + udp + 4, UDP_HDR_LEN + BTH_LEN + URXE_ICRC_LEN);
	assert_int_equal(verdict_of_frame(f), SWITCH_DROP_MALFORMED);
	nobody_got_anything();
	assert_int_equal(verdict_of_frame(good), SWITCH_NO_DROP);
}

/* Padding behind the packet is Ethernet's, and harmless. */
static void short_frames_may_be_padded(void **state)
{
	const struct urxe_packet p = datagram(peer_mac, 5, w->qpn[0]);
	uint8_t room[CRAFT_MAX], f[LEN] = {0};
	uint32_t len = craft_frame(room, &p);

	(void)state;
	assert_true(len < LEN);
	memcpy(f, room, len);
	assert_int_equal(verdict_of_frame(f), SWITCH_NO_DROP);
}

/* The tap sees a frame of a process whole, though the switch holds it in two parts. */
static void keep(void *ctx, const struct switch_port *port, enum switch_direction dir,
		 const uint8_t *data, uint32_t len, enum switch_drop drop)
{
	(void)port;
	(void)dir;
	(void)drop;
	assert_int_equal(len, LEN);
	memcpy(ctx, data, len);
}

static void frames_stay_whole(void **state)
{
	struct urxe_packet p = datagram(uplink_mac, w->qpn[1], w->qpn[0]);
	uint8_t f[LEN], tapped[LEN];
	struct netdev_frame out;
	struct vnic_frame frame;
	uint32_t i;

	(void)state;
	build(f, &p, 1);
	for (i = STEER_HEAD; i < LEN; i++)
		f[i] = (uint8_t)i;
	w->sw.tap = keep;
	w->sw.tap_ctx = tapped;
	post_frame(0, f);
	switch_run(&w->sw, T0);
	assert_memory_equal(tapped, f, LEN);
	assert_int_equal(vnic_driver_rx(w->loops[1]->driver, &frame, 1), 1);
	assert_int_equal(frame.len, LEN);
	assert_memory_equal(frame.data, f, LEN);
	memcpy(f, peer_mac, 6);
	post_frame(0, f);
	switch_run(&w->sw, T0);
	assert_int_equal(netdev_rx(w->wire, T0, &out, 1), 1);
	assert_int_equal(out.len, LEN);
	assert_memory_equal(out.data, f, LEN);
}

/* Where a process changes its headers once they are checked: when the tap is shown them. */
static void change_headers(void *ctx, const struct switch_port *port, enum switch_direction dir,
			   const uint8_t *data, uint32_t len, enum switch_drop drop)
{
	uint8_t *posted = *(uint8_t **)ctx;

	(void)port;
	(void)data;
	(void)len;
	assert_int_equal(drop, SWITCH_NO_DROP);
	if (dir == SWITCH_IN)
		memset(posted, 0xee, STEER_HEAD);
}

static void what_was_checked_is_what_goes_on(void **state)
{
	static const uint8_t *const ways[] = {uplink_mac, peer_mac};
	struct vnic_frame frame;
	struct netdev_frame out;
	uint8_t f[LEN], *posted;
	uint32_t i;

	(void)state;
	w->sw.tap = change_headers;
	w->sw.tap_ctx = &posted;
	for (i = 0; i < 2; i++) {
		const struct urxe_packet p = datagram(ways[i], w->qpn[1], w->qpn[0]);

		build(f, &p, 1);
		assert_int_equal(vnic_driver_tx_reserve(w->loops[0]->driver, &frame, 1), 1);
		posted = frame.data;
		memcpy(posted, f, LEN);
		frame.len = LEN;
		vnic_driver_tx_commit(w->loops[0]->driver, &frame, 1);
		switch_run(&w->sw, T0);
		assert_int_equal(posted[0], 0xee);
	}
	assert_int_equal(netdev_rx(w->wire, T0, &out, 1), 1);
	assert_memory_equal(out.data, f, LEN);
	assert_int_equal(vnic_driver_rx(w->loops[1]->driver, &frame, 1), 1);
	memcpy(f, uplink_mac, 6);
	assert_memory_equal(frame.data, f, LEN);
}

static void a_process_that_left_gets_nothing(void **state)
{
	(void)state;
	switch_leave(&w->sw, &w->ports[1]);
	post(0, uplink_mac, w->qpn[1], 1);
	switch_run(&w->sw, T0);
	drops(SWITCH_DROP_NO_QP, 1);
}

static const uint8_t group_mac[6] = {0x01, 0x00, 0x5e, 1, 2, 3};

static void all_hear_multicast(void)
{
	for (uint32_t i = 0; i < PORTS; i++)
		vnic_driver_hear_multicast(w->loops[i]->driver, true);
}

/* Who has not asked for it is left in peace. */
static void to_a_group_that_nobody_hears(void **state)
{
	(void)state;
	post(0, group_mac, URXE_QPN_MULTICAST, 7);
	switch_run(&w->sw, T0);
	assert_int_equal(receive(1), -1);
	drops(SWITCH_DROP_UNHEARD, 1);
	vnic_driver_hear_multicast(w->loops[1]->driver, true);
	post(0, group_mac, URXE_QPN_MULTICAST, 8);
	switch_run(&w->sw, T0);
	assert_int_equal(receive(1), 8);
	vnic_driver_hear_multicast(w->loops[1]->driver, false);
	post(0, group_mac, URXE_QPN_MULTICAST, 9);
	switch_run(&w->sw, T0);
	assert_int_equal(receive(1), -1);
	drops(SWITCH_DROP_UNHEARD, 2);
}

/* To each process but the sender, and out; from an uplink to all of them, and never back out. */
static void to_a_group(void **state)
{
	struct netdev_frame out[4];
	uint8_t f[LEN];

	(void)state;
	all_hear_multicast();
	post(0, group_mac, URXE_QPN_MULTICAST, 7);
	switch_run(&w->sw, T0);
	assert_int_equal(receive(0), -1);
	assert_int_equal(receive(1), 7);
	assert_int_equal(receive(1), -1);
	assert_int_equal(netdev_rx(w->wire, T0, out, 4), 1);
	assert_memory_equal(out[0].data, group_mac, 6);
	make(f, group_mac, peer_mac, URXE_QPN_MULTICAST, 8);
	from_wire(f);
	switch_run(&w->sw, T0);
	assert_int_equal(receive(0), 8);
	assert_int_equal(receive(1), 8);
	assert_int_equal(netdev_rx(w->wire, T0, out, 4), 0);
	drops(SWITCH_NO_DROP, 0);
	/* A group has no single QP. */
	post(0, group_mac, w->qpn[1], 9);
	make(f, group_mac, peer_mac, w->qpn[1], 9);
	from_wire(f);
	switch_run(&w->sw, T0);
	drops(SWITCH_DROP_MULTICAST, 2);
	assert_int_equal(receive(1), -1);
}

static void to_a_group_without_an_uplink(void **state)
{
	(void)state;
	all_hear_multicast();
	post(1, group_mac, URXE_QPN_MULTICAST, 7);
	switch_run(&w->sw, T0);
	assert_int_equal(receive(0), 7);
	assert_int_equal(receive(1), -1);
	drops(SWITCH_NO_DROP, 0);
}

static void without_an_uplink(void **state)
{
	(void)state;
	post(0, peer_mac, 5, 1);
	switch_run(&w->sw, T0);
	drops(SWITCH_DROP_NO_UPLINK, 1);
}

static void to_and_from_the_uplink(void **state)
{
	struct netdev_frame out[4];
	uint8_t f[LEN];

	(void)state;
	post(0, peer_mac, 0x777777, 3);
	switch_run(&w->sw, T0);
	assert_int_equal(netdev_rx(w->wire, T0, out, 4), 1);
	assert_int_equal(out[0].len, LEN);
	assert_memory_equal(out[0].data, peer_mac, 6);
	assert_memory_equal(out[0].data + 6, uplink_mac, 6);

	make(f, uplink_mac, peer_mac, w->qpn[1] + 1, 4);
	from_wire(f);
	switch_run(&w->sw, T0);
	assert_int_equal(receive(1), 4);
	drops(SWITCH_NO_DROP, 0);

	make(f, peer_mac, peer_mac, w->qpn[1] + 1, 4);
	from_wire(f);
	switch_run(&w->sw, T0);
	drops(SWITCH_DROP_NOT_OURS, 1);
}

static void packet_from_wire(const struct urxe_packet *p)
{
	uint8_t f[LEN];

	build(f, p, 1);
	from_wire(f);
	switch_run(&w->sw, T0);
}

/* Else a neighbour is heard in connections between processes of this host. */
static void nobody_else_sends_from_the_hosts_addresses(void **state)
{
	static const enum urxe_net nets[] = {URXE_NET_IPV4, URXE_NET_IPV6, URXE_NET_ROCEV1};
	struct urxe_packet p = datagram(uplink_mac, w->qpn[1], 5);
	uint32_t i;

	(void)state;
	memcpy(p.smac, peer_mac, 6);
	for (i = 0; i < 3; i++) {
		p.net = nets[i];
		p.sgid = craft_gid(p.net == URXE_NET_IPV6 ? URXE_NET_IPV6 : URXE_NET_IPV4, OURS);
		packet_from_wire(&p);
		drops(SWITCH_DROP_SPOOFED_IP, i + 1);
	}
	p.opcode = RC_SEND_ONLY;
	packet_from_wire(&p);
	drops(SWITCH_DROP_SPOOFED_IP, 4);
	assert_int_equal(receive(1), -1);
	/* In another VLAN that address is another host's. */
	p.has_vlan = true;
	p.vlan_tci = VLAN;
	packet_from_wire(&p);
	assert_int_equal(receive(1), 1);
	p.sgid = craft_gid(URXE_NET_IPV4, OURS_IN_VLAN);
	packet_from_wire(&p);
	drops(SWITCH_DROP_SPOOFED_IP, 5);
	assert_int_equal(receive(1), -1);
}

/* Fills port 1's receive ring and what the sender has; returns how many were posted. */
static uint32_t flood(void)
{
	uint32_t n = 0;

	for (;;) {
		while (post(0, uplink_mac, w->qpn[1], n))
			n++;
		if (!switch_run(&w->sw, T0))
			return n;
	}
}

static void nothing_is_lost_between_processes(void **state)
{
	uint32_t n = flood(), got;

	(void)state;
	drops(SWITCH_NO_DROP, 0);
	assert_int_equal(switch_deadline(&w->sw, T0), T0 + SWITCH_STALL_NS);
	for (got = 0; got < n; got++) {
		assert_int_equal(receive(1), got);
		switch_run(&w->sw, T0 + SWITCH_STALL_NS - 1);
	}
	assert_int_equal(receive(1), -1);
	drops(SWITCH_NO_DROP, 0);
}

/* Datagrams have nobody who sends them again: a wait for a core must not cost any. */
static void a_receiver_without_a_core_loses_nothing(void **state)
{
	(void)state;
	flood();
	switch_run(&w->sw, T0 + UINT64_C(60000000));
	drops(SWITCH_NO_DROP, 0);
}

static void a_stalled_receiver_holds_nobody_up(void **state)
{
	uint32_t n = flood(), taken = 0;

	(void)state;
	post(0, uplink_mac, w->qpn[0], 0);
	while (switch_run(&w->sw, T0 + SWITCH_STALL_NS))
		;
	assert_true(dropped(SWITCH_DROP_RX_STALLED) > 0);
	drops(SWITCH_DROP_RX_STALLED, dropped(SWITCH_DROP_RX_STALLED));
	while (receive(1) >= 0)
		taken++;
	assert_int_equal(taken + dropped(SWITCH_DROP_RX_STALLED), n);
	/* It moves again, and is served again. */
	post(0, uplink_mac, w->qpn[1], 77);
	switch_run(&w->sw, T0 + SWITCH_STALL_NS);
	assert_int_equal(receive(1), 77);
	assert_int_equal(w->ports[1].full_since, 0);
}

static void an_uplink_does_not_wait_for_a_process(void **state)
{
	uint8_t f[LEN];

	(void)state;
	flood();
	make(f, uplink_mac, peer_mac, w->qpn[1], 5);
	from_wire(f);
	assert_true(switch_run(&w->sw, T0));
	drops(SWITCH_DROP_RX_FULL, 1);
}

static void a_full_uplink_keeps_frames_and_their_order(void **state)
{
	struct netdev_frame out[8];
	uint32_t n = 0, got = 0, i, k, mark;

	(void)state;
	do
		while (post(0, peer_mac, 5, n))
			n++;
	while (switch_run(&w->sw, T0));
	assert_true(n > DEPTH + UPLINK_QUEUE);
	assert_int_equal(switch_deadline(&w->sw, T0), T0 + SWITCH_RETRY_NS);
	while ((k = netdev_rx(w->wire, T0, out, 8))) {
		for (i = 0; i < k; i++) {
			memcpy(&mark, out[i].data + LEN - 4, 4);
			assert_int_equal(mark, got++);
		}
		switch_run(&w->sw, T0 + SWITCH_UPLINK_STALL_NS - 1);
		switch_run(&w->sw, T0 + SWITCH_UPLINK_STALL_NS - 1);
	}
	assert_int_equal(got, n);
	drops(SWITCH_NO_DROP, 0);
}

static void a_dead_uplink_loses_its_frames(void **state)
{
	uint32_t n = 0;

	(void)state;
	do
		while (post(0, peer_mac, 5, n))
			n++;
	while (switch_run(&w->sw, T0));
	switch_run(&w->sw, T0 + SWITCH_UPLINK_STALL_NS);
	drops(SWITCH_DROP_UPLINK_FULL, UPLINK_QUEUE);
}

/* A process that is full loses its copy; nobody gets a second one, and the sender goes on. */
static void a_group_waits_for_nobody(void **state)
{
	uint32_t n, got = 0;

	(void)state;
	all_hear_multicast();
	for (n = 0; n < 5000; n++) {
		assert_true(post(0, group_mac, URXE_QPN_MULTICAST, n));
		assert_true(switch_run(&w->sw, T0));
	}
	for (int64_t mark; (mark = receive(1)) >= 0; got++)
		assert_int_equal(mark, got);
	assert_true(got < n);
	drops(SWITCH_DROP_RX_FULL, n - got);
}

struct seen {
	uint32_t n;
	struct {
		const struct switch_port *port;
		enum switch_direction dir;
		enum switch_drop drop;
		uint32_t mark;
	} at[8];
};

static void look(void *ctx, const struct switch_port *port, enum switch_direction dir,
		 const uint8_t *data, uint32_t len, enum switch_drop drop)
{
	struct seen *seen = ctx;

	assert_int_equal(len, LEN);
	assert_true(seen->n < 8);
	seen->at[seen->n].port = port;
	seen->at[seen->n].dir = dir;
	seen->at[seen->n].drop = drop;
	memcpy(&seen->at[seen->n++].mark, data + LEN - 4, 4);
}

static void expect_seen(const struct seen *seen, uint32_t i, const struct switch_port *port,
			enum switch_direction dir, enum switch_drop drop, uint32_t mark)
{
	assert_true(i < seen->n);
	assert_ptr_equal(seen->at[i].port, port);
	assert_int_equal(seen->at[i].dir, dir);
	assert_int_equal(seen->at[i].drop, drop);
	assert_int_equal(seen->at[i].mark, mark);
}

/* In, then out; what goes nowhere, with the reason; and nothing once nobody looks. */
static void a_tap_sees_what_comes_and_goes(void **state)
{
	struct seen seen = {0};

	(void)state;
	w->sw.tap = look;
	w->sw.tap_ctx = &seen;
	post(0, uplink_mac, w->qpn[1], 1);
	post(0, uplink_mac, NOBODYS_QPN, 2);
	post(0, peer_mac, 5, 3);
	switch_run(&w->sw, T0);
	assert_int_equal(seen.n, 5);
	expect_seen(&seen, 0, &w->ports[0], SWITCH_IN, SWITCH_NO_DROP, 1);
	expect_seen(&seen, 1, &w->ports[1], SWITCH_OUT, SWITCH_NO_DROP, 1);
	expect_seen(&seen, 2, &w->ports[0], SWITCH_IN, SWITCH_DROP_NO_QP, 2);
	expect_seen(&seen, 3, &w->ports[0], SWITCH_IN, SWITCH_NO_DROP, 3);
	expect_seen(&seen, 4, &w->sw.uplink_ports[0], SWITCH_OUT, SWITCH_NO_DROP, 3);
	w->sw.tap = NULL;
	post(0, uplink_mac, w->qpn[1], 4);
	switch_run(&w->sw, T0);
	assert_int_equal(seen.n, 5);
}

/* Each port counts its own; who left is remembered in the sums. */
static void ports_count_for_themselves(void **state)
{
	const struct switch_port *port = NULL;
	struct switch_stats all;
	uint32_t n = 0;

	(void)state;
	post(0, uplink_mac, w->qpn[1], 1);
	post(0, uplink_mac, NOBODYS_QPN, 2);
	post(1, peer_mac, 5, 3);
	switch_run(&w->sw, T0);
	assert_int_equal(w->ports[0].stats.counters[SWITCH_IN_FRAMES], 2);
	assert_int_equal(w->ports[0].stats.counters[SWITCH_IN_BYTES], 2 * LEN);
	assert_int_equal(w->ports[0].stats.drops[SWITCH_DROP_NO_QP], 1);
	assert_int_equal(w->ports[0].stats.counters[SWITCH_OUT_FRAMES], 0);
	assert_int_equal(w->ports[1].stats.counters[SWITCH_OUT_FRAMES], 1);
	assert_int_equal(w->ports[1].stats.counters[SWITCH_OUT_BYTES], LEN);
	assert_int_equal(w->sw.uplink_ports[0].stats.counters[SWITCH_OUT_FRAMES], 1);
	while ((port = switch_next_port(&w->sw, port)))
		n++;
	assert_int_equal(n, 2 + PORTS);
	switch_leave(&w->sw, &w->ports[0]);
	switch_totals(&w->sw, &all);
	assert_int_equal(all.counters[SWITCH_IN_FRAMES], 3);
	assert_int_equal(all.drops[SWITCH_DROP_NO_QP], 1);
}

static int start_dpdk(void **state)
{
	char why[256];

	(void)state;
	return netdev_dpdk_start(why, sizeof(why));
}

/* Without an uplink, which in memory has no descriptor and so a deadline of its own. */
#define ALONE(f) cmocka_unit_test_setup_teardown(f, setup_alone, teardown)
static void post_in_queue(struct guest *g, uint32_t queue, const uint8_t *dmac, uint32_t qpn)
{
	struct urxe_packet p = datagram(dmac, qpn, w->qpn[0]);
	uint64_t addr = guest_alloc(g, GUEST_IN_LOW, LEN);

	build(guest_at(g, addr), &p, queue);
	guest_post_tx(&g->tx[queue], addr, LEN, VMXNET3_TXD_EOP);
}

/* Each transmit queue is served by itself: a frame that waits holds up those behind it only. */
static void each_transmit_queue_by_itself(void **state)
{
	struct guest *g = guest_create(2, 1);
	const uint64_t *in = w->ports[0].stats.counters;
	struct netdev_frame out;
	uint8_t f[LEN];

	(void)state;
	assert_int_equal(guest_activate(g), 0);
	w->ports[0].dev = g->dev;
	make(f, uplink_mac, uplink_mac, w->qpn[1], 7);
	while (vnic_device_rx(w->loops[1]->device, 0, f, LEN) == 0)
		;
	post_in_queue(g, 0, uplink_mac, w->qpn[1]);
	post_in_queue(g, 1, peer_mac, 5);
	for (uint32_t i = 0; i < 3; i++)
		switch_run(&w->sw, T0);
	assert_int_equal(netdev_rx(w->wire, T0, &out, 1), 1);
	assert_int_equal(out.data[LEN - 4], 1);
	/* However often it was tried: counted once. */
	assert_int_equal(in[SWITCH_IN_FRAMES], 2);
	while (receive(1) == 7)
		;
	switch_run(&w->sw, T0);
	assert_int_equal(receive(1), 0);
	assert_int_equal(in[SWITCH_IN_FRAMES], 2);
	w->ports[0].dev = NULL;
	guest_destroy(g);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(between_processes_by_qpn),
		TEST(each_transmit_queue_by_itself),
		TEST(who_sends_is_introduced),
		TEST(what_goes_nowhere_is_counted),
		TEST(only_the_hosts_mac),
		TEST(only_the_hosts_addresses),
		TEST(an_address_in_its_vlan),
		TEST(only_qpns_of_its_lease),
		TEST(nothing_from_or_to_management_qps),
		TEST(only_services_that_are_known),
		TEST(only_to_whom_it_is_connected),
		TEST(an_address_is_one_in_both_versions),
		TEST(who_left_is_connected_to_nobody),
		TEST(nobody_is_connected_to_management_or_groups),
		TEST(no_fragments_and_no_lies_about_lengths),
		TEST(short_frames_may_be_padded),
		TEST(frames_stay_whole),
		TEST(what_was_checked_is_what_goes_on),
		TEST(a_process_that_left_gets_nothing),
		TEST(to_a_group),
		ALONE(to_a_group_without_an_uplink),
		ALONE(to_a_group_that_nobody_hears),
		ALONE(a_group_waits_for_nobody),
		ALONE(without_an_uplink),
		TEST(to_and_from_the_uplink),
		TEST(nobody_else_sends_from_the_hosts_addresses),
		ALONE(nothing_is_lost_between_processes),
		ALONE(a_receiver_without_a_core_loses_nothing),
		TEST(a_stalled_receiver_holds_nobody_up),
		TEST(an_uplink_does_not_wait_for_a_process),
		TEST(a_full_uplink_keeps_frames_and_their_order),
		TEST(a_dead_uplink_loses_its_frames),
		TEST(a_tap_sees_what_comes_and_goes),
		TEST(ports_count_for_themselves),
	};

	return cmocka_run_group_tests(tests, start_dpdk, NULL);
}
