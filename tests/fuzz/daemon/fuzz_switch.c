/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hostile frames from processes, uplinks and virtual machines.
 *
 * The input is a script: frames that are valid except for some bytes, or any bytes; connections
 * that processes register; time. The engine's parser, which shares no code with the switch, reads
 * the output. No frame of a process may have another one's addresses. The switch bridges stations
 * without changes, and never two uplinks. The counters add up.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/opcode.h>

#include "craft.h"
#include "lan.h"
#include "require.h"
#include "script.h"
#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/nd_frame.h"

#define ROOM      256
#define DEPTH     64
#define PROCESSES 2
#define VLAN      100
#define THEIRS    2

enum { WIRE, OTHER_WIRE, VM, PINNED_VM, STATIONS = LAN_STATIONS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct lan *w;

/* What processes have registered, as the script did it: the switch's table is not asked. */
#define CONNECTIONS 256
static struct connection {
	uint32_t process;
	uint32_t local;
	struct urxe_gid gid;
	uint32_t qpn;
} connections[CONNECTIONS];
static uint32_t n_connections;

/* A MAC for each purpose; the first ones are the host's on its uplinks. */
static const uint8_t macs[][6] = {
	{2, 0, 0, 0, 0, 0},    {2, 0, 0, 0, 0, 1},
	{2, 0, 0, 0, 0, 2},    {2, 0, 0, 0, 0, 3},
	{4, 0, 0, 0, 0, 0xa},  {4, 0, 0, 0, 0, 0xb},
	{1, 0, 0x5e, 1, 2, 3}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
};
#define MACS   (sizeof(macs) / sizeof(macs[0]))
#define PINNED 5 /* index of the last VM's pinned MAC */

/* --- The world */

static void open_world(void)
{
	static const char *const specs[STATIONS] = {"mem:", "mem:", "mem:", "mem:"};
	static const char *const addresses[] = {"10.0.0.1/24", "2001:db8::1/64", "10.0.0.3/24@100"};
	const struct lan_attr attr = {.n_processes = PROCESSES,
				      .n_stations = STATIONS,
				      .first_vm = VM,
				      .specs = specs,
				      .depth = DEPTH,
				      .addresses = addresses,
				      .n_addresses = 3};
	const struct fdb_key pinned = {{4, 0, 0, 0, 0, 0xb}, FDB_ANY_VLAN};
	uint32_t i;

	require(!lan_start(NULL));
	w = lan_open(&attr);
	require(!fdb_pin(&w->sw.fdb, &pinned, PINNED_VM));
	for (i = 0; i < PROCESSES; i++)
		vnic_driver_set_multicast(w->loops[i]->driver, true);
}

/* All scripts share one world, whose tables take long to create; begin() resets it. */
static void begin(void)
{
	struct address_pin pin;
	uint32_t i;

	n_connections = 0;
	w->now += FDB_AGE_NS;
	neigh_fini(&w->neigh);
	neigh_init(&w->neigh, &w->host, w->neigh.ops, w);
	require(!address_pin_parse("2001:db8::2=04:00:00:00:00:0a", &pin));
	require(!address_pins_add(&w->neigh.pins, &pin));
	for (i = 0; i < PROCESSES; i++)
		switch_leave(&w->sw, &w->processes[i]);
	memset(&w->sw.leases, 0, sizeof(w->sw.leases));
	for (i = 0; i < PROCESSES; i++)
		lan_join(w, i);
}

/* --- Checks */

/* The source address must be the process's own in the VLAN, according to the engine's parser. */
static void honest_address(const struct urxe_packet *p)
{
	uint16_t vlan = p->has_vlan ? p->vlan_tci & ETHER_VLAN_ID : 0;

	require(host_find_in_vlan(&w->host, p->sgid.raw, vlan));
}

/* The connection of a process to a remote QP; local 0 = of any QP. NULL: it has none. */
static const struct connection *find_connection(uint32_t process, uint32_t local,
						const struct urxe_gid *gid, uint32_t qpn)
{
	const struct connection *c;

	for (c = connections; c < connections + n_connections; c++)
		if (c->process == process && (!local || c->local == local) && c->qpn == qpn &&
		    !memcmp(&c->gid, gid, sizeof(*gid)))
			return c;
	return NULL;
}

/* Do two QPs of this host name each other? */
static bool is_pair(uint32_t from, uint32_t to, const struct urxe_packet *p)
{
	const struct connection *c;

	for (c = connections; c < connections + n_connections; c++)
		if (c->process == from && c->qpn == p->dest_qpn &&
		    !memcmp(&c->gid, &p->dgid, sizeof(p->dgid)) &&
		    find_connection(to, p->dest_qpn, &p->sgid, c->local))
			return true;
	return false;
}

/* Checks the connection of a packet that the process `to` or a station (-1) received. */
static void honest_connection(uint32_t from, int to, const struct urxe_packet *p)
{
	bool cnp = URXE_OPCODE_SERVICE(p->opcode) == URXE_SERVICE_CNP;

	if (to >= 0)
		require(is_pair(from, (uint32_t)to, p) || cnp);
	else
		require(find_connection(from, 0, &p->dgid, p->dest_qpn) || cnp);
}

/* Checks a frame of a process that the process `to` or a station (-1) received. */
static void honest(uint32_t from, int to, const uint8_t *frame, uint32_t len, const uint8_t *smac)
{
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
	honest_connection(from, to, &p);
}

/* Does the frame claim an address of the host, or a pinned address for another MAC? */
static bool claims_foreign_address(const uint8_t *f, uint32_t len)
{
	struct arp a;
	struct nd m;

	if (arp_parse(&a, f, len))
		return host_find_address(&w->host, a.sip);
	if (!nd_parse(&m, f, len) || m.solicitation)
		return false;
	return host_find_address(&w->host, m.target) ||
	       !address_pins_allow(&w->neigh.pins, m.target, 0, m.has_mac ? m.smac : f + 6);
}

/* Checks a frame at a station: of a process, of another station and unchanged, or of the daemon. */
static void check_station(int process, int station, uint32_t to, const struct netdev_frame *out,
			  const uint8_t *in, uint32_t len)
{
	bool bridged = out->len == len && !memcmp(out->data, in, len);

	require((uint32_t)station != to || !bridged);
	if (process >= 0) {
		honest((uint32_t)process, -1, out->data, out->len, to < VM ? macs[to] : macs[0]);
		return;
	}
	if (bridged)
		require(station >= VM || to >= VM);
	else
		require(!memcmp(out->data + 6, macs[0], 6));
	if (bridged && (station == PINNED_VM) != !memcmp(in + 6, macs[PINNED], 6))
		abort();
	require(!bridged || station < VM || !claims_foreign_address(in, len));
}

/* Does the frame announce the station that sent `in`? Nobody is announced by the host's MACs. */
static bool announces(int station, const struct vnic_frame *frame, const uint8_t *in)
{
	if (station < 0 || frame->len != 60 || memcmp(frame->data, macs[MACS - 1], 6) ||
	    ether_get16(frame->data + 12) != ETHERTYPE_ID_RARP)
		return false;
	require(!memcmp(frame->data + 6, in + 6, 6) && ether_is_group(in));
	for (uint32_t i = 0; i < STATIONS; i++)
		require(memcmp(frame->data + 6, macs[i], 6));
	return true;
}

/* process or station: the sender; the other one is -1. */
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
			require(announces(station, &frame, in) ||
				(frame.len == len && !memcmp(frame.data, in, len)));
			if (process >= 0)
				honest((uint32_t)process, (int)i, frame.data, frame.len, macs[0]);
			vnic_driver_rx_release(w->loops[i]->driver, 1);
		}
	}
	lan_check_sums(w);
}

/* --- Frames */

/* The process or station that the script chooses. */
static void choose_sender(struct script *s, int *process, int *station)
{
	uint32_t port = script_get8(s) % (PROCESSES + STATIONS);

	*process = port < PROCESSES ? (int)port : -1;
	*station = port < PROCESSES ? -1 : (int)port - PROCESSES;
}

static uint32_t choose_qpn(struct script *s)
{
	uint8_t choice = script_get8(s);

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
	uint8_t room[CRAFT_MAX], flags = script_get8(s);
	struct urxe_packet p = {
		.net = flags % 3,
		.opcode = opcodes[script_get8(s) % sizeof(opcodes)],
		.has_vlan = flags & 0x80,
		.vlan_tci = VLAN,
		.dest_qpn = choose_qpn(s),
		.deth.src_qpn = w->qpn[process < 0 ? 0 : process],
		.payload = payload,
		.payload_len = sizeof(payload),
	};
	uint32_t len;

	/* In RoCEv1 an IPv4 address is a valid GID, too. */
	p.sgid =
		craft_gid(flags % 3 == URXE_NET_ROCEV1 ? URXE_NET_IPV4 : p.net, process < 0 ? THEIRS
										: flags & 0x80 ? 3
											       : 1);
	p.dgid = craft_gid(p.net, flags & 0x40 ? 1 : 9);
	memcpy(p.dmac, macs[script_get8(s) % MACS], 6);
	memcpy(p.smac, process < 0 ? macs[4 + script_get8(s) % 2] : macs[0], 6);
	len = craft_frame(room, &p);
	require(len <= ROOM);
	memcpy(f, room, len);
	return len;
}

static uint32_t question(struct script *s, uint8_t *f)
{
	struct arp a = {.request = true};

	memcpy(a.smac, macs[4 + script_get8(s) % 2], 6);
	ip_from_v4(a.sip, (const uint8_t[]){10, 0, 0, THEIRS});
	ip_from_v4(a.tip, (const uint8_t[]){10, 0, 0, script_get8(s) % 4});
	arp_build(f, &a, macs[MACS - 1]);
	return ARP_FRAME_LEN;
}

/* An advertisement, perhaps behind an extension header and VLAN tags. */
static uint32_t advertisement(struct script *s, uint8_t *f)
{
	struct nd m = {.target = {0x20, 1, 0xd, 0xb8}};
	uint8_t *extension = f + ETHER_HDR_LEN + IPV6_HDR_LEN, tags;
	uint32_t len = ND_FRAME_LEN;

	m.target[15] = script_get8(s) % 4;
	nd_build_advertisement(f, &m, macs[4 + script_get8(s) % 2]);
	tags = script_get8(s);
	if (tags & 0x10) {
		memmove(extension + 8, extension, len - ETHER_HDR_LEN - IPV6_HDR_LEN);
		memset(extension, 0, 8);
		extension[0] = PROTO_ICMPV6;
		f[ETHER_HDR_LEN + 6] = script_get8(s);
		f[ETHER_HDR_LEN + 5] += 8;
		len += 8;
	}
	for (tags %= 6; tags; tags--) {
		len = ether_add_tag(f, len, 1);
		ether_put16(f + 12, script_get8(s) % 2 ? 0x88a8 : ETHERTYPE_ID_VLAN);
		f[15] = script_get8(s);
	}
	return len;
}

static uint32_t other(struct script *s, uint8_t *f)
{
	memset(f, 0x5a, 64);
	memcpy(f, macs[script_get8(s) % MACS], 6);
	memcpy(f + 6, macs[script_get8(s) % MACS], 6);
	return 64;
}

static uint32_t any_bytes(struct script *s, uint8_t *f)
{
	uint32_t i, len = script_get8(s);

	for (i = 0; i < len; i++)
		f[i] = script_get8(s);
	return len;
}

static uint32_t make(struct script *s, uint8_t *f, int process)
{
	uint32_t len, i;

	switch (script_get8(s) % 8) {
	case 0: return any_bytes(s, f);
	case 1: len = question(s, f); break;
	case 2: len = other(s, f); break;
	case 3: len = advertisement(s, f); break;
	default: len = packet(s, f, process); break;
	}
	for (i = script_get8(s) % 4; i; i--) {
		uint8_t at = script_get8(s);

		if (at < len)
			f[at] = script_get8(s);
	}
	return len;
}

static void send_frame(struct script *s)
{
	uint8_t f[ROOM];
	int process, station;
	uint32_t len;

	choose_sender(s, &process, &station);
	len = make(s, f, process);
	/* The NIC itself refuses frames shorter than an Ethernet header, for good. */
	if (process < 0)
		lan_send(w, (uint32_t)station, f, len);
	else if (len >= ETHER_HDR_LEN)
		lan_post(w, (uint32_t)process, f, len);
	switch_run(&w->sw, w->now);
	check_all(process, station, f, len);
}

static void change_registration(struct script *s)
{
	const uint8_t choice = script_get8(s);
	const struct urxe_gid gid = craft_gid(choice % 3, choice & 0x40 ? 1 : 9);
	uint32_t process = script_get8(s) % PROCESSES, qpn = choose_qpn(s);
	const struct connection c = {process, w->qpn[process] + choice / 8 % 4, gid, qpn};
	struct switch_port *port = &w->processes[process];

	if (script_get8(s) % 4) {
		if (n_connections < CONNECTIONS &&
		    !switch_add_remote(&w->sw, port, c.local, gid.raw, qpn))
			connections[n_connections++] = c;
	} else if (!switch_remove_remote(&w->sw, port, c.local, gid.raw, qpn)) {
		const struct connection *gone = find_connection(process, c.local, &gid, qpn);

		require(gone);
		connections[gone - connections] = connections[--n_connections];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {data, size};

	/* libFuzzer's first input is NULL; a frame of 0 bytes has an address. */
	if (!size)
		return 0;
	if (!w)
		open_world();
	begin();
	while (s.left) {
		uint8_t step = script_get8(&s);

		if (step % 8 == 0)
			change_registration(&s);
		else if (step % 8 == 1)
			w->now += (uint64_t)1 << script_get8(&s) % 40;
		else
			send_frame(&s);
	}
	return 0;
}
