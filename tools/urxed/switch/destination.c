/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/destination.h"

#include <string.h>

#include <rxe/packet.h>

/* Returns the ports, as a bit mask, to which a frame from this port may be bridged. Frames are
 * never bridged from one uplink to another. */
static uint32_t bridged_ports(const struct vswitch *sw, const struct switch_port *from)
{
	uint32_t all = sw->wire_mask | sw->vm_mask;

	switch (from->kind) {
	case SWITCH_UPLINK: return sw->vm_mask;
	case SWITCH_VM: return all & ~(1u << (from - sw->uplink_ports));
	default: return all;
	}
}

/* Returns the ports of the mask `out` to which a frame to an unknown MAC goes: not to ports with
 * pinned MACs, because these have no other stations. */
static uint32_t ports_for_unknown_mac(const struct vswitch *sw, uint32_t out)
{
	uint32_t i;

	for (i = 0; i < sw->n_uplinks; i++)
		if (sw->fdb.pinned[i])
			out &= ~(1u << i);
	return out;
}

/*
 * Whether the frame is only for the other end of its link, so that bridges do not forward it:
 * frames to 01:80:c2:00:00:00 to :0f, such as STP, LACP and LLDP (IEEE 802.1Q, table 8-1), and
 * PAUSE, which may also be sent to the MAC of the station (IEEE 802.3, annex 31B).
 */
static bool is_of_one_link(const struct frame_class *s)
{
	static const uint8_t block[ETHER_MAC_LEN - 1] = {0x01, 0x80, 0xc2, 0x00, 0x00};

	if (!memcmp(s->dmac, block, sizeof(block)) && s->dmac[5] < 0x10)
		return true;
	return s->head_len >= ETHER_HDR_LEN &&
	       ether_get16(s->head + 12) == ETHERTYPE_ID_MAC_CONTROL;
}

/* Whether the switch looks for ports by MAC; with a single port it need not. */
static bool chooses_by_mac(const struct vswitch *sw)
{
	return sw->n_uplinks >= 2;
}

/* Returns the ports of the mask `out` by which a frame to another station leaves. */
static uint32_t ports_out(const struct vswitch *sw, const struct frame_class *s, uint32_t out)
{
	struct fdb_key key = {.vlan = s->vlan};
	int port;

	if (ether_is_group(s->dmac) || !chooses_by_mac(sw))
		return out;
	memcpy(key.mac, s->dmac, ETHER_MAC_LEN);
	port = fdb_find(&sw->fdb, sw->now, &key);
	return port < 0 ? ports_for_unknown_mac(sw, out) : out & 1u << port;
}

/* Returns the MTU for a station that the switch has not learned: the smallest of all ports, because
 * the station may be behind any of them. */
static uint16_t least_nic_mtu(const struct vswitch *sw)
{
	uint16_t least = sw->host->mtu;

	for (uint32_t i = 0; i < sw->n_uplinks; i++) {
		const struct uplink *to = sw->uplink_ports[i].uplink;

		if (to && to->nic_mtu && to->nic_mtu < least)
			least = to->nic_mtu;
	}
	return least;
}

uint16_t switch_mtu_to(const struct vswitch *sw, const struct fdb_key *key)
{
	const int port =
		chooses_by_mac(sw) ? fdb_find(&sw->fdb, sw->now, key) : (int)sw->n_uplinks - 1;
	const struct uplink *to;

	if (ether_same(key->mac, sw->host->mac))
		return sw->host->mtu;
	if (port < 0)
		return least_nic_mtu(sw);
	to = sw->uplink_ports[port].uplink;
	if (!to || !to->nic_mtu)
		return sw->host->mtu;
	return to->nic_mtu < sw->host->mtu ? to->nic_mtu : sw->host->mtu;
}

void switch_dest_from_urxed(const struct vswitch *sw, int uplink, const struct frame_class *s,
			    struct switch_dest *dest)
{
	const uint32_t wire = uplink < 0 ? 0 : 1u << uplink;

	*dest = (struct switch_dest){.out = ports_out(sw, s, sw->vm_mask | wire)};
}

void switch_dest_from_gsi(const struct vswitch *sw, const struct frame_class *s,
			  struct switch_dest *dest)
{
	*dest = (struct switch_dest){.gsi = ether_same(s->dmac, sw->host->mac)};
	if (!dest->gsi)
		dest->out = ports_out(sw, s, sw->wire_mask | sw->vm_mask);
}

enum switch_drop switch_dest_from_process(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *dest)
{
	*dest = (struct switch_dest){0};
	if (ether_same(s->dmac, sw->host->mac)) {
		dest->process = lease_owner(&sw->leases, s->dest_qpn);
		return SWITCH_DROP_NO_QP;
	}
	if (ether_is_group(s->dmac) && s->dest_qpn != URXE_QPN_MULTICAST)
		return SWITCH_DROP_MULTICAST;
	dest->listeners = ether_is_group(s->dmac);
	dest->out = ports_out(sw, s, bridged_ports(sw, from));
	return dest->listeners ? SWITCH_DROP_UNHEARD : SWITCH_DROP_NO_UPLINK;
}

/*
 * Sets the destinations within this host. Returns the reason to drop the frame if there are none.
 */
static enum switch_drop set_host_dest(const struct vswitch *sw, const struct frame_class *s,
				      struct switch_dest *dest)
{
	bool group = ether_is_group(s->dmac);

	dest->daemon = s->kind == FRAME_ARP || s->kind == FRAME_ND;
	if (s->kind != FRAME_ROCE)
		return SWITCH_DROP_NOT_ROCE;
	dest->listeners = group && s->dest_qpn == URXE_QPN_MULTICAST;
	if (group)
		return dest->listeners ? SWITCH_DROP_UNHEARD : SWITCH_DROP_MULTICAST;
	dest->gsi = sw->gsi && s->dest_qpn == URXE_QPN_GSI && s->service == FRAME_DATAGRAM;
	dest->process = lease_owner(&sw->leases, s->dest_qpn);
	return SWITCH_DROP_NO_QP;
}

/* Whether the frame is to a MAC that the host has on this uplink. A member of a bond has the host's
 * MAC beside its own; VLAN interfaces on the uplink may have further ones. */
static bool is_for_uplink(const struct vswitch *sw, const struct switch_port *port,
			  const struct frame_class *s)
{
	const uint32_t index = (uint32_t)(port - sw->uplink_ports);
	const uint8_t *of_vlan = host_vlan_mac(sw->host, bond_port_of(&sw->bond, index), s->vlan);

	return ether_same(s->dmac, port->uplink->mac) ||
	       (bond_has(&sw->bond, index) && ether_same(s->dmac, sw->host->mac)) ||
	       (of_vlan && ether_same(s->dmac, of_vlan));
}

enum switch_drop switch_dest_from_station(const struct vswitch *sw, const struct switch_port *from,
					  const struct frame_class *s, struct switch_dest *dest)
{
	const bool for_uplink = from->kind == SWITCH_UPLINK && is_for_uplink(sw, from, s);
	const bool for_host = for_uplink || switch_is_host_mac(sw, s->dmac, s->vlan);

	*dest = (struct switch_dest){0};
	/* The frame is for another uplink of the host, which receives it, too: a switch of the
	 * network has flooded the frame to all its ports. */
	if (for_host && from->kind == SWITCH_UPLINK && !for_uplink)
		return SWITCH_DROP_NOT_OURS;
	if (!for_host && !is_of_one_link(s))
		dest->out = ports_out(sw, s, bridged_ports(sw, from));
	return for_host || ether_is_group(s->dmac) ? set_host_dest(sw, s, dest)
						   : SWITCH_DROP_NOT_OURS;
}
