/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/neigh_probe.h"

#include <stddef.h>

#include "urxed/hostnet/arp.h"
#include "urxed/hostnet/nd.h"

static const uint8_t broadcast[ETHER_MAC_LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

void neigh_frame_send(struct neigh *n, const struct host_address *from, const uint8_t *frame,
		      uint32_t len)
{
	uint8_t tagged[NEIGH_FRAME_ROOM];
	const uint32_t macs = 2 * ETHER_MAC_LEN;

	if (!from->vlan) {
		n->ops->send(n->ctx, from->uplink, frame, len);
		return;
	}
	memcpy(tagged, frame, macs);
	ether_put16(tagged + macs, ETHERTYPE_ID_VLAN);
	ether_put16(tagged + macs + 2, from->vlan);
	memcpy(tagged + macs + ETHER_VLAN_LEN, frame + macs, len - macs);
	n->ops->send(n->ctx, from->uplink, tagged, len + ETHER_VLAN_LEN);
}

static void send_arp(struct neigh *n, const struct neigh_entry *e, const uint8_t *mac)
{
	struct arp a = {.request = true};
	uint8_t frame[NEIGH_FRAME_ROOM];

	memcpy(a.smac, n->ops->mac(n->ctx, e->from.uplink), ETHER_MAC_LEN);
	memcpy(a.sip, e->from.ip, 16);
	memcpy(a.tip, e->key.ip, 16);
	arp_build(frame, &a, mac ? mac : broadcast);
	neigh_frame_send(n, &e->from, frame, ARP_FRAME_LEN);
}

static void send_solicitation(struct neigh *n, const struct neigh_entry *e, const uint8_t *mac)
{
	struct nd m = {.solicitation = true};
	uint8_t frame[NEIGH_FRAME_ROOM];

	memcpy(m.smac, n->ops->mac(n->ctx, e->from.uplink), ETHER_MAC_LEN);
	memcpy(m.sip, e->from.ip, 16);
	memcpy(m.target, e->key.ip, 16);
	if (mac)
		nd_build_probe(frame, &m, mac);
	else
		nd_build_solicitation(frame, &m);
	neigh_frame_send(n, &e->from, frame, ND_FRAME_LEN);
}

void neigh_probe_send(struct neigh *n, const struct neigh_entry *e, const uint8_t *mac)
{
	if (ip_is_v4(e->key.ip))
		send_arp(n, e, mac);
	else
		send_solicitation(n, e, mac);
}
