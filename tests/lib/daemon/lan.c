/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lan.h"

#include <stdlib.h>
#include <string.h>

#include "craft.h"
#include "mem_port.h"
#include "require.h"
#include "urxed/bond/bond_host.h"

#define UD_SEND_ONLY 0x64

const uint8_t lan_macs[LAN_STATIONS][6] = {
	{2, 0, 0, 0, 0, 0}, {2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 3}};

static void neigh_send(void *ctx, int uplink, const uint8_t *frame, uint32_t len)
{
	struct lan *lan = ctx;

	switch_send(&lan->sw, uplink, frame, len);
}

static const uint8_t *neigh_mac(void *ctx, int uplink)
{
	struct lan *lan = ctx;

	if (bond_has(&lan->sw.bond, (uint32_t)uplink))
		return lan->host.mac;
	return lan->uplinks[uplink].mac;
}

static void neigh_send_by(void *ctx, int member, const uint8_t *frame, uint32_t len)
{
	struct lan *lan = ctx;

	bond_host_answer(&lan->sw, (uint32_t)member, frame, len);
}

static const struct neigh_ops neigh_ops = {
	.send = neigh_send, .mac = neigh_mac, .send_by = neigh_send_by};

int lan_start(void **state)
{
	char error[256];

	(void)state;
	return netdev_dpdk_start(error, sizeof(error));
}

static void open_station(struct lan *lan, uint32_t i, const struct lan_attr *attr)
{
	struct uplink *u = &lan->uplinks[i];
	struct netdev *ends[2];

	require(!netdev_mem_pair(attr->depth, ends));
	*u = (struct uplink){.spec = attr->specs[i],
			     .kind = i < attr->first_vm ? UPLINK_WIRE : UPLINK_VM,
			     .port = ends[0],
			     .mtu = LAN_MTU,
			     .stride = ETHER_HDR_LEN + ETHER_VLAN_LEN + LAN_MTU};
	u->buffers = calloc(UPLINK_QUEUE, u->stride);
	require(u->buffers);
	u->up = true;
	memcpy(u->mac, lan_macs[i], 6);
	memcpy(u->probe_mac, lan_macs[i], 6);
	u->probe_mac[1] = 0xbb;
	lan->far[i] = ends[1];
}

void lan_join(struct lan *lan, uint32_t process)
{
	lan->qpn[process] = 0;
	lan->processes[process].stats = (struct switch_stats){0};
	require(!switch_join(&lan->sw, &lan->processes[process], 0, &lan->qpn[process]));
}

struct lan *lan_open(const struct lan_attr *attr)
{
	struct lan *lan = calloc(1, sizeof(*lan));
	uint32_t i;

	require(lan);
	lan->now = LAN_T0;
	lan->n_stations = attr->n_stations;
	lan->n_processes = attr->n_processes;
	for (i = 0; i < lan->n_stations; i++)
		open_station(lan, i, attr);
	host_init(&lan->host);
	memcpy(lan->host.mac, lan_macs[0], 6);
	for (i = 0; i < attr->n_addresses; i++)
		require(!host_add_text(&lan->host, attr->addresses[i], 0));
	neigh_init(&lan->neigh, &lan->host, &neigh_ops, lan);
	require(!switch_init(&lan->sw, &lan->host, &lan->neigh, lan->uplinks, lan->n_stations));
	lan->neigh.vm_mask = lan->sw.vm_mask;
	for (i = 0; i < lan->n_processes; i++) {
		require(!vnic_loop_open(LAN_MTU, &lan->loops[i]));
		lan_join(lan, i);
		lan->processes[i].dev = lan->loops[i]->device;
	}
	return lan;
}

void lan_close(struct lan *lan)
{
	uint32_t i;

	for (i = 0; i < lan->n_processes; i++)
		vnic_loop_close(lan->loops[i]);
	switch_fini(&lan->sw);
	neigh_fini(&lan->neigh);
	for (i = 0; i < lan->n_stations; i++) {
		netdev_close(lan->uplinks[i].port);
		netdev_close(lan->far[i]);
		free(lan->uplinks[i].buffers);
	}
	free(lan);
}

struct urxe_packet lan_datagram(const uint8_t dmac[6], uint32_t dest_qpn, uint32_t src_qpn)
{
	struct urxe_packet p = {
		.net = URXE_NET_IPV4,
		.opcode = UD_SEND_ONLY,
		.pkey = 0xffff,
		.hop_limit = 64,
		.dest_qpn = dest_qpn,
		.deth.src_qpn = src_qpn,
		.sgid = craft_gid(URXE_NET_IPV4, 1),
		.dgid = craft_gid(URXE_NET_IPV4, 2),
	};

	memcpy(p.dmac, dmac, 6);
	memcpy(p.smac, lan_macs[0], 6);
	return p;
}

void lan_frame(uint8_t f[LAN_LEN], const struct urxe_packet *p, uint32_t mark)
{
	static const uint8_t payload[LAN_LEN];
	struct urxe_packet padded = *p;
	uint8_t room[CRAFT_MAX];

	padded.payload = payload;
	padded.payload_len = LAN_LEN - craft_frame(room, p);
	require(craft_frame(room, &padded) == LAN_LEN);
	memcpy(f, room, LAN_LEN);
	memcpy(f + LAN_LEN - sizeof(mark), &mark, sizeof(mark));
}

bool lan_post(struct lan *lan, uint32_t process, const uint8_t *f, uint32_t len)
{
	struct vnic_driver *driver = lan->loops[process]->driver;
	struct vnic_frame frame;

	if (!vnic_driver_tx_reserve(driver, &frame, 1))
		return false;
	memcpy(frame.data, f, len);
	frame.len = len;
	vnic_driver_tx_commit(driver, &frame, 1);
	return true;
}

int64_t lan_receive(struct lan *lan, uint32_t process)
{
	struct vnic_driver *driver = lan->loops[process]->driver;
	struct vnic_frame frame;
	uint32_t mark;

	if (!vnic_driver_rx(driver, &frame, 1))
		return -1;
	require(frame.len == LAN_LEN);
	memcpy(&mark, frame.data + LAN_LEN - sizeof(mark), sizeof(mark));
	vnic_driver_rx_release(driver, 1);
	return mark;
}

void lan_send(struct lan *lan, uint32_t station, const uint8_t *f, uint32_t len)
{
	const struct netdev_frame frame = {f, len, len, 0};

	require(netdev_tx(lan->far[station], lan->now, &frame, 1) == 1);
}

void lan_check_sums(const struct lan *lan)
{
	struct switch_stats all;
	uint64_t gone = 0;
	uint32_t i;

	switch_totals(&lan->sw, &all);
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		gone += all.drops[i];
	for (i = 0; i < lan->n_stations; i++)
		gone += lan->uplinks[i].queued;
	for (i = 0; i < lan->n_processes; i++)
		gone += (uint32_t)__builtin_popcount(lan->processes[i].waiting);
	require(all.counters[SWITCH_IN_FRAMES] + all.counters[SWITCH_COPIES] ==
		all.counters[SWITCH_OUT_FRAMES] + gone);
}
