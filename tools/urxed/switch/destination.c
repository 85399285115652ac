/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/destination.h"

#include <string.h>

#include <rxe/packet.h>

/* Which uplinks and VMs a frame may go to at all: uplinks are not bridged to each other. */
static uint32_t reach(const struct vswitch *sw, const struct switch_port *from)
{
	uint32_t all = sw->wires | sw->vms;

	switch (from->kind) {
	case SWITCH_UPLINK: return sw->vms;
	case SWITCH_VM: return all & ~(1u << (from - sw->uplink_ports));
	default: return all;
	}
}

/* Ports with MACs of their own have no others, so what is for nobody known is not for them. */
static uint32_t reach_unknown(const struct vswitch *sw, uint32_t out)
{
	uint32_t i;

	for (i = 0; i < sw->n_uplinks; i++)
		if (sw->fdb.pinned[i])
			out &= ~(1u << i);
	return out;
}

/* Of the ports in `out`, those by which a frame to another station leaves. */
static uint32_t way_out(const struct vswitch *sw, const struct frame_class *s, uint32_t out)
{
	struct fdb_key key = {.vlan = s->vlan};
	int port;

	/* One port alone may lead anywhere: nothing is learned then. */
	if (ether_is_group(s->dmac) || sw->n_uplinks < 2)
		return out;
	memcpy(key.mac, s->dmac, ETHER_MAC_LEN);
	port = fdb_find(&sw->fdb, sw->now, &key);
	return port < 0 ? reach_unknown(sw, out) : out & 1u << port;
}

void switch_dest_from_urxed(const struct vswitch *sw, int uplink, const struct frame_class *s,
			    struct switch_dest *way)
{
	*way = (struct switch_dest){.out = way_out(sw, s, sw->vms | 1u << uplink)};
}

void switch_dest_from_gsi(const struct vswitch *sw, const struct frame_class *s,
			  struct switch_dest *way)
{
	*way = (struct switch_dest){.gsi = ether_same(s->dmac, sw->host->mac)};
	if (!way->gsi)
		way->out = way_out(sw, s, sw->wires | sw->vms);
}

enum switch_drop switch_dest_from_process(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *way)
{
	*way = (struct switch_dest){0};
	if (ether_same(s->dmac, sw->host->mac)) {
		way->process = lease_owner(&sw->leases, s->dest_qpn);
		return SWITCH_DROP_NO_QP;
	}
	if (ether_is_group(s->dmac) && s->dest_qpn != URXE_QPN_MULTICAST)
		return SWITCH_DROP_MULTICAST;
	way->listeners = ether_is_group(s->dmac);
	way->out = way_out(sw, s, reach(sw, from));
	return way->listeners ? SWITCH_DROP_UNHEARD : SWITCH_DROP_NO_UPLINK;
}

/* What is for this host; returns why it goes nowhere, if it does. */
static enum switch_drop way_in(const struct vswitch *sw, const struct frame_class *s,
			       struct switch_dest *way)
{
	bool group = ether_is_group(s->dmac);

	way->daemon = s->kind == FRAME_ARP || s->kind == FRAME_ND;
	if (s->kind != FRAME_ROCE)
		return SWITCH_DROP_NOT_ROCE;
	way->listeners = group && s->dest_qpn == URXE_QPN_MULTICAST;
	if (group)
		return way->listeners ? SWITCH_DROP_UNHEARD : SWITCH_DROP_MULTICAST;
	way->gsi = sw->gsi && s->dest_qpn == URXE_QPN_GSI && s->service == FRAME_DATAGRAM;
	way->process = lease_owner(&sw->leases, s->dest_qpn);
	return SWITCH_DROP_NO_QP;
}

enum switch_drop switch_dest_from_station(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *way)
{
	bool ours = switch_is_host_mac(sw, s->dmac);

	*way = (struct switch_dest){0};
	/* A frame on an uplink to another uplink's MAC came there by mistake. */
	if (ours && from->kind == SWITCH_UPLINK && !ether_same(s->dmac, from->uplink->mac))
		return SWITCH_DROP_NOT_OURS;
	if (!ours)
		way->out = way_out(sw, s, reach(sw, from));
	return ours || ether_is_group(s->dmac) ? way_in(sw, s, way) : SWITCH_DROP_NOT_OURS;
}
