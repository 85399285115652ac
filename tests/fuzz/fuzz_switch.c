/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hostile frames from processes, uplinks and virtual machines.
 *
 * The input is a script: frames that are right but for some bytes, or any bytes at
 * all; connections that processes register; time. What comes out is read by the
 * engine's parser, which shares no code with the switch's: nothing leaves a process in
 * another's name, stations are bridged unchanged, uplinks not to each other, and the
 * counters add up.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/opcode.h>
#include <vnic/loop.h>

#include "arp.h"
#include "craft.h"
#include "require.h"
#include "switch_run.h"

#define MTU       1500
#define ROOM      256
#define DEPTH     64
#define PROCESSES 2
#define VLAN      100
#define THEIRS    2

enum { WIRE, OTHER_WIRE, VM, PINNED_VM, STATIONS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	struct host host;
	struct neigh neigh;
	struct vswitch sw;
	struct uplink uplinks[STATIONS];
	struct netdev *far[STATIONS];
	struct vnic_loop *loops[PROCESSES];
	struct switch_port processes[PROCESSES];
	uint32_t qpn[PROCESSES];
	uint64_t now;
};

static struct world *w;

/* A MAC for each purpose; the first ones are the host's on its uplinks. */
static const uint8_t macs[][6] = {
	{2, 0, 0, 0, 0, 0},    {2, 0, 0, 0, 0, 1},
	{2, 0, 0, 0, 0, 2},    {2, 0, 0, 0, 0, 3},
	{4, 0, 0, 0, 0, 0xa},  {4, 0, 0, 0, 0, 0xb},
	{1, 0, 0x5e, 1, 2, 3}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
};
#define MACS   (sizeof(macs) / sizeof(macs[0]))
#define PINNED 5 /* the last VM's own */

/* --- The script */

struct script {
	const uint8_t *at;
	size_t left;
};

static uint8_t next(struct script *s)
{
	if (!s->left)
		return 0;
	s->left--;
	return *s->at++;
}

/* --- The world */

static void neigh_send(void *ctx, int uplink, const uint8_t *frame, uint32_t len)
{
	(void)ctx;
	switch_send(&w->sw, uplink, frame, len);
}

static const uint8_t *neigh_mac(void *ctx, int uplink)
{
	(void)ctx;
	return w->uplinks[uplink].mac;
}

static const struct neigh_ops neigh_ops = {.send = neigh_send, .mac = neigh_mac};

static void open_station(uint32_t i)
{
	struct uplink *u = &w->uplinks[i];
	struct netdev *ends[2];

	require(!netdev_mem_pair(DEPTH, ends));
	*u = (struct uplink){.spec = "mem:",
			     .kind = i < VM ? UPLINK_WIRE : UPLINK_VM,
			     .port = ends[0],
			     .mtu = MTU,
			     .stride = MTU + 18};
	u->room = calloc(UPLINK_QUEUE, u->stride);
	require(u->room);
	memcpy(u->mac, macs[i], 6);
	w->far[i] = ends[1];
}

static void open_world(void)
{
	const struct fdb_key pinned = {{4, 0, 0, 0, 0, 0xb}, FDB_ANY_VLAN};
	uint32_t i;

	w = calloc(1, sizeof(*w));
	require(w);
	w->now = 1000000000;
	for (i = 0; i < STATIONS; i++)
		open_station(i);
	host_init(&w->host);
	memcpy(w->host.mac, macs[0], 6);
	require(!host_add_text(&w->host, "10.0.0.1/24", 0));
	require(!host_add_text(&w->host, "2001:db8::1/64", 0));
	require(!host_add_text(&w->host, "10.0.0.3/24@100", 0));
	neigh_init(&w->neigh, &w->host, &neigh_ops, NULL);
	require(!switch_init(&w->sw, &w->host, &w->neigh, w->uplinks, STATIONS));
	require(!fdb_pin(&w->sw.fdb, &pinned, PINNED_VM));
	for (i = 0; i < PROCESSES; i++) {
		require(!vnic_loop_open(MTU, &w->loops[i]));
		require(!switch_join(&w->sw, &w->processes[i], &w->qpn[i]));
		w->processes[i].dev = w->loops[i]->device;
		vnic_driver_hear_multicast(w->loops[i]->driver, true);
	}
}

/* One world for all scripts, since its tables take long to make; each begins as the first. */
static void begin(void)
{
	uint32_t i;

	w->now += FDB_AGE_NS;
	neigh_init(&w->neigh, &w->host, &neigh_ops, NULL);
	for (i = 0; i < PROCESSES; i++)
		switch_leave(&w->sw, &w->processes[i]);
	memset(&w->sw.leases, 0, sizeof(w->sw.leases));
	for (i = 0; i < PROCESSES; i++) {
		memset(&w->processes[i].stats, 0, sizeof(w->processes[i].stats));
		w->qpn[i] = 0;
		require(!switch_join(&w->sw, &w->processes[i], &w->qpn[i]));
	}
}

/* --- What must hold */

static void sums_add_up(void)
{
	struct switch_stats all;
	uint64_t gone = 0;
	uint32_t i;

	switch_totals(&w->sw, &all);
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		gone += all.drops[i];
	for (i = 0; i < STATIONS; i++)
		gone += w->uplinks[i].queued;
	for (i = 0; i < PROCESSES; i++)
		gone += !!w->processes[i].waiting;
	require(all.counters[SWITCH_IN_FRAMES] + all.counters[SWITCH_COPIES] ==
		all.counters[SWITCH_OUT_FRAMES] + gone);
}

/* The process's own address in the VLAN, by the engine's idea of the packet. */
static void honest_address(const struct urxe_packet *p)
{
	uint16_t vlan = p->has_vlan ? p->vlan_tci & ETHER_VLAN_ID : 0;

	require(host_has(&w->host, p->sgid.raw, vlan));
}

/* What a process has sent and somebody got, whoever that is. */
static void honest(uint32_t from, const uint8_t *frame, uint32_t len, const uint8_t *smac)
{
	const struct remote_owner *owner;
	struct remote_key key;
	struct urxe_packet p;

	require(len >= ETHER_HDR_LEN && !memcmp(frame + 6, smac, 6));
	if (urxe_packet_parse(&p, frame, len) != URXE_DROP_NONE)
		return;
	honest_address(&p);
	require(p.dest_qpn > URXE_QPN_GSI);
	if (URXE_OPCODE_SERVICE(p.opcode) == URXE_SERVICE_UD) {
		require(p.deth.src_qpn - w->qpn[from] < LEASE_QPNS);
		return;
	}
	key.qpn = p.dest_qpn;
	memcpy(key.gid, p.dgid.raw, sizeof(key.gid));
	owner = remote_find(&w->sw.remotes, &key);
	require(owner == &w->processes[from].remotes ||
		(!owner && URXE_OPCODE_SERVICE(p.opcode) == URXE_SERVICE_CNP));
}

/* What came out at a station: a process's, another station's unchanged, or the daemon's own. */
static void check_station(int process, int station, uint32_t to, const struct netdev_frame *out,
			  const uint8_t *in, uint32_t len)
{
	bool bridged = out->len == len && !memcmp(out->data, in, len);

	require((uint32_t)station != to || !bridged);
	if (process >= 0) {
		honest((uint32_t)process, out->data, out->len, to < VM ? macs[to] : macs[0]);
		return;
	}
	if (bridged)
		require(station >= VM || to >= VM);
	else
		require(!memcmp(out->data + 6, macs[0], 6));
	if (bridged && (station == PINNED_VM) != !memcmp(in + 6, macs[PINNED], 6))
		abort();
}

/* process or station: where the frame came from, the other is -1. */
static void check_all(int process, int station, const uint8_t *in, uint32_t len)
{
	struct netdev_frame out;
	struct vnic_frame frame;
	uint32_t i;

	for (i = 0; i < STATIONS; i++)
		while (netdev_rx(w->far[i], w->now, &out, 1))
			check_station(process, station, i, &out, in, len);
	for (i = 0; i < PROCESSES; i++) {
		while (vnic_driver_rx(w->loops[i]->driver, &frame, 1)) {
			require(frame.len == len && !memcmp(frame.data, in, len));
			if (process >= 0)
				honest((uint32_t)process, frame.data, frame.len, macs[0]);
			vnic_driver_rx_release(w->loops[i]->driver, 1);
		}
	}
	sums_add_up();
}

/* --- Frames */

/* The process or station that the script chooses. */
static void choose_sender(struct script *s, int *process, int *station)
{
	uint32_t port = next(s) % (PROCESSES + STATIONS);

	*process = port < PROCESSES ? (int)port : -1;
	*station = port < PROCESSES ? -1 : (int)port - PROCESSES;
}

static uint32_t choose_qpn(struct script *s)
{
	uint8_t choice = next(s);

	switch (choice % 8) {
	case 0: return choice / 8; /* also QP0 and QP1 */
	case 1: return URXE_QPN_MULTICAST;
	case 2: return 0x777;
	default: return w->qpn[choice % PROCESSES] + choice / 8;
	}
}

static uint32_t packet(struct script *s, uint8_t *f, int process)
{
	static const uint8_t opcodes[] = {0x64, 0x65, 0x04, 0x11, 0x24, 0x81};
	static const uint8_t payload[16];
	uint8_t room[CRAFT_MAX], flags = next(s);
	struct urxe_packet p = {
		.net = flags % 3,
		.opcode = opcodes[next(s) % sizeof(opcodes)],
		.has_vlan = flags & 0x80,
		.vlan_tci = VLAN,
		.dest_qpn = choose_qpn(s),
		.deth.src_qpn = w->qpn[process < 0 ? 0 : process],
		.payload = payload,
		.payload_len = sizeof(payload),
	};
	uint32_t len;

	/* As RoCEv1 an IPv4 address is a GID, too. */
	p.sgid =
		craft_gid(flags % 3 == URXE_NET_ROCEV1 ? URXE_NET_IPV4 : p.net, process < 0 ? THEIRS
										: flags & 0x80 ? 3
											       : 1);
	p.dgid = craft_gid(p.net, 9);
	memcpy(p.dmac, macs[next(s) % MACS], 6);
	memcpy(p.smac, process < 0 ? macs[4 + next(s) % 2] : macs[0], 6);
	len = craft_frame(room, &p);
	require(len <= ROOM);
	memcpy(f, room, len);
	return len;
}

static uint32_t question(struct script *s, uint8_t *f)
{
	struct arp a = {.request = true};

	memcpy(a.smac, macs[4 + next(s) % 2], 6);
	ip_from_v4(a.sip, (const uint8_t[]){10, 0, 0, THEIRS});
	ip_from_v4(a.tip, (const uint8_t[]){10, 0, 0, next(s) % 4});
	arp_build(f, &a, macs[MACS - 1]);
	return ARP_FRAME_LEN;
}

static uint32_t other(struct script *s, uint8_t *f)
{
	memset(f, 0x5a, 64);
	memcpy(f, macs[next(s) % MACS], 6);
	memcpy(f + 6, macs[next(s) % MACS], 6);
	return 64;
}

static uint32_t any_bytes(struct script *s, uint8_t *f)
{
	uint32_t i, len = next(s);

	for (i = 0; i < len; i++)
		f[i] = next(s);
	return len;
}

static uint32_t make(struct script *s, uint8_t *f, int process)
{
	uint32_t len, i;

	switch (next(s) % 8) {
	case 0: return any_bytes(s, f);
	case 1: len = question(s, f); break;
	case 2: len = other(s, f); break;
	default: len = packet(s, f, process); break;
	}
	for (i = next(s) % 4; i; i--) {
		uint8_t at = next(s);

		if (at < len)
			f[at] = next(s);
	}
	return len;
}

static void post(int process, const uint8_t *f, uint32_t len)
{
	struct vnic_frame frame;

	/* What is no whole Ethernet header the NIC itself refuses, for good. */
	if (len < ETHER_HDR_LEN || !vnic_driver_tx_reserve(w->loops[process]->driver, &frame, 1))
		return;
	memcpy(frame.data, f, len);
	frame.len = len;
	vnic_driver_tx_commit(w->loops[process]->driver, &frame, 1);
}

static void send_frame(struct script *s)
{
	struct netdev_frame frame;
	uint8_t f[ROOM];
	int process, station;
	uint32_t len;

	choose_sender(s, &process, &station);
	len = make(s, f, process);
	if (process >= 0) {
		post(process, f, len);
	} else {
		frame = (struct netdev_frame){f, len, len, 0};
		netdev_tx(w->far[station], w->now, &frame, 1);
	}
	switch_run(&w->sw, w->now);
	check_all(process, station, f, len);
}

static void change_registration(struct script *s)
{
	const struct urxe_gid gid = craft_gid(next(s) % 3, 9);
	uint32_t process = next(s) % PROCESSES, qpn = choose_qpn(s);

	if (next(s) % 4)
		switch_register(&w->sw, &w->processes[process], gid.raw, qpn);
	else
		switch_unregister(&w->sw, &w->processes[process], gid.raw, qpn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {data, size};
	char why[256];

	/* libFuzzer's first input is no bytes at no address: a frame of 0 bytes has one. */
	if (!size)
		return 0;
	if (!w) {
		require(!netdev_dpdk_start(why, sizeof(why)));
		open_world();
	}
	begin();
	while (s.left) {
		uint8_t step = next(&s);

		if (step % 8 == 0)
			change_registration(&s);
		else if (step % 8 == 1)
			w->now += (uint64_t)1 << next(&s) % 40;
		else
			send_frame(&s);
	}
	return 0;
}
