/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/bond/bond_filter.h"

#include <string.h>

#include <netdev/packet_port.h>

/* Shortest time between two notes of a sent frame's receiver, because each note costs a copy. */
#define NOTE_SENT_NS 10000000ull

static bool is_resolution(const struct frame_class *s)
{
	return s->kind == FRAME_ARP || s->kind == FRAME_ND;
}

/* Whether this host has sent the frame through another member. */
static bool is_own(const struct vswitch *sw, const struct frame_class *s)
{
	if (switch_is_host_mac(sw, s->smac, s->vlan))
		return true;
	for (uint32_t i = 0; i < sw->n_uplinks; i++)
		if (bond_has(&sw->bond, i) && ether_same(s->smac, sw->uplinks[i].probe_mac))
			return true;
	return false;
}

/* Whether the bond accepts frames to the host's MAC from this member. In mode balance each member
 * does, because the members are on separate networks, each of which may deliver such frames. */
static bool takes_host_mac(const struct vswitch *sw, uint32_t uplink)
{
	return sw->bond.mode == BOND_BALANCE || bond_carries(&sw->bond, uplink);
}

static enum bond_verdict check_group(const struct vswitch *sw, uint32_t uplink,
				     const struct frame_class *s)
{
	if (uplink == bond_lead(&sw->bond))
		return BOND_ACCEPT;
	return is_resolution(s) && takes_host_mac(sw, uplink) ? BOND_DAEMON_ONLY : BOND_DROP;
}

/* Decides on a unicast frame: to the host's MAC, or to that of a virtual machine or another
 * station. */
static enum bond_verdict check_unicast(struct vswitch *sw, uint32_t uplink,
				       const struct frame_class *s)
{
	if (takes_host_mac(sw, uplink)) {
		if (s->kind == FRAME_ROCE)
			bond_note_roce(&sw->bond, sw->now, uplink, s->response);
		return BOND_ACCEPT;
	}
	/* A promiscuous member also receives frames to other stations. */
	if (!ether_same(s->dmac, sw->host->mac))
		return BOND_DROP;
	/* Neighbours also ask here: their own bond has failed over, or probes its members. */
	if (is_resolution(s))
		return BOND_DAEMON_ONLY;
	bond_note_astray(&sw->bond, sw->now);
	return BOND_DROP;
}

enum bond_verdict bond_filter_check(struct vswitch *sw, uint32_t uplink,
				    const struct frame_class *s)
{
	const struct uplink *u = &sw->uplinks[uplink];

	if (s->kind == FRAME_RUNT)
		return BOND_ACCEPT;
	if (is_own(sw, s))
		return BOND_DROP;
	if (ether_same(s->dmac, u->probe_mac))
		return is_resolution(s) ? BOND_PROBE_REPLY : BOND_DROP;
	if (ether_is_group(s->dmac))
		return check_group(sw, uplink, s);
	/* Accepts a frame to the MAC of this member's interface: a neighbour may have learned that
	 * MAC from the kernel's ARP or ND. */
	if (ether_same(s->dmac, u->mac) && !ether_same(u->mac, sw->host->mac))
		return BOND_ACCEPT;
	return check_unicast(sw, uplink, s);
}

/* Returns the last 4 bytes of the address that ends at `end`. */
static uint32_t read_tail(const uint8_t *end)
{
	return (uint32_t)end[-4] << 24 | (uint32_t)end[-3] << 16 | (uint32_t)end[-2] << 8 | end[-1];
}

uint32_t bond_filter_flow(const struct frame_class *s)
{
	if (s->kind == FRAME_ROCE)
		return packet_group_flow(s->dest_qpn, read_tail(s->sip + 16),
					 read_tail(s->dip + 16));
	if (s->kind == FRAME_RUNT)
		return 0;
	return read_tail(s->smac + ETHER_MAC_LEN) + read_tail(s->dmac + ETHER_MAC_LEN);
}

void bond_filter_note_sent(struct vswitch *sw, const struct frame_class *s)
{
	struct bond_target *t = &sw->bond_target;

	bond_note_sent(&sw->bond, sw->now);
	if (ether_is_group(s->dmac) || sw->now - sw->bond_target_at < NOTE_SENT_NS)
		return;
	sw->bond_target_at = sw->now;
	t->vlan = s->vlan;
	memcpy(t->ip, s->dip, sizeof(t->ip));
	memcpy(t->mac, s->dmac, sizeof(t->mac));
}
