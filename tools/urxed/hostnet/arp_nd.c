/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/arp_nd.h"

#include <stddef.h>

#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/nd_frame.h"

/* --- Solicitations */

static uint32_t build_request(uint8_t *frame, const uint8_t *smac, const uint8_t *sip,
			      const uint8_t ip[16], const uint8_t *mac)
{
	struct arp a = {.request = true, .sip = {[10] = 0xff, 0xff}};

	memcpy(a.smac, smac, ETHER_MAC_LEN);
	if (sip && ip_is_v4(sip))
		memcpy(a.sip, sip, 16);
	memcpy(a.tip, ip, 16);
	arp_build(frame, &a, mac);
	return ARP_FRAME_LEN;
}

static uint32_t build_solicitation(uint8_t *frame, const uint8_t *smac, const uint8_t *sip,
				   const uint8_t ip[16], const uint8_t *mac)
{
	struct nd m = {.solicitation = true};

	memcpy(m.smac, smac, ETHER_MAC_LEN);
	if (!sip || ip_is_v4(sip))
		nd_link_local(smac, m.sip);
	else
		memcpy(m.sip, sip, 16);
	memcpy(m.target, ip, 16);
	if (mac)
		nd_build_probe(frame, &m, mac);
	else
		nd_build_solicitation(frame, &m);
	return ND_FRAME_LEN;
}

uint32_t arp_nd_build(uint8_t *frame, const uint8_t smac[ETHER_MAC_LEN], const uint8_t *sip,
		      const uint8_t ip[16], const uint8_t *mac, uint16_t vlan)
{
	uint32_t len = ip_is_v4(ip) ? build_request(frame, smac, sip, ip, mac)
				    : build_solicitation(frame, smac, sip, ip, mac);

	return ether_add_tag(frame, len, vlan);
}

void neigh_send_solicitation(struct neigh *n, const struct neigh_entry *e, const uint8_t *mac)
{
	const struct host_address *from = &e->from;
	uint8_t frame[NEIGH_FRAME_ROOM];
	uint32_t len = arp_nd_build(frame, n->ops->mac(n->ctx, from->uplink), from->ip, e->key.ip,
				    mac, from->vlan);

	n->ops->send(n->ctx, from->uplink, frame, len);
}

/* --- Received frames */

/* Sends the answer for the host's address `local` to the station whose request came by this
 * ingress. */
static void send_answer(struct neigh *n, const struct neigh_ingress *ingress,
			const struct host_address *local, uint8_t *frame, uint32_t len)
{
	len = ether_add_tag(frame, len, local->vlan);
	if (ingress->member < 0)
		n->ops->send(n->ctx, local->uplink, frame, len);
	else
		n->ops->send_by(n->ctx, ingress->member, frame, len);
}

/*
 * Returns this host's address `ip` if the daemon has to answer for it on that ingress, else NULL.
 * The kernel answers for its own addresses, but not to VMs, whose frames it does not receive, nor
 * through a bond's member whose interface lacks the address. If both the daemon and the kernel
 * answer with the same MAC, that does no harm.
 */
static const struct host_address *
find_answerable(const struct neigh *n, const struct neigh_ingress *ingress, const uint8_t ip[16])
{
	const struct host_address *a = host_find_in_vlan(n->host, ip, ingress->vlan);

	if (!a)
		return NULL;
	if (neigh_is_vm(n, ingress->uplink))
		return a;
	return a->uplink == ingress->uplink && (!a->kernel || ingress->member >= 0) ? a : NULL;
}

static void handle_arp(struct neigh *n, const struct neigh_ingress *ingress, const struct arp *a)
{
	const struct host_address *local = find_answerable(n, ingress, a->tip);
	uint8_t frame[NEIGH_FRAME_ROOM];
	struct arp reply = {.request = false};

	neigh_learn_claim(n, ingress, a->sip, a->smac, NEIGH_CLAIM_REPLACES);
	if (!a->request || !local || !ether_is_station(a->smac))
		return;
	memcpy(reply.smac, n->ops->mac(n->ctx, local->uplink), ETHER_MAC_LEN);
	memcpy(reply.sip, a->tip, 16);
	memcpy(reply.tip, a->sip, 16);
	arp_build(frame, &reply, a->smac);
	send_answer(n, ingress, local, frame, ARP_FRAME_LEN);
}

/* Linux's answer to a unicast solicitation has no MAC option. Then the frame's source MAC stands
 * for the option, but this claim may only confirm the known MAC. */
static void handle_advertisement(struct neigh *n, const struct neigh_ingress *ingress,
				 const struct nd *m, const uint8_t *smac)
{
	if (m->has_mac)
		neigh_learn_claim(n, ingress, m->target, m->smac,
				  m->override ? NEIGH_CLAIM_REPLACES : NEIGH_CLAIM_RESOLVES);
	else if (m->solicited)
		neigh_learn_claim(n, ingress, m->target, smac, NEIGH_CLAIM_CONFIRMS);
}

static void handle_nd(struct neigh *n, const struct neigh_ingress *ingress, struct nd *m,
		      const uint8_t *smac)
{
	const struct host_address *local = find_answerable(n, ingress, m->target);
	uint8_t frame[NEIGH_FRAME_ROOM];

	if (!m->solicitation) {
		handle_advertisement(n, ingress, m, smac);
		return;
	}
	/* A unicast solicitation may omit the MAC option (RFC 4861, 4.3). */
	if (!m->has_mac)
		memcpy(m->smac, smac, ETHER_MAC_LEN);
	else
		neigh_learn_claim(n, ingress, m->sip, m->smac, NEIGH_CLAIM_REPLACES);
	if (!local || !ether_is_station(m->smac))
		return;
	nd_build_advertisement(frame, m, n->ops->mac(n->ctx, local->uplink));
	send_answer(n, ingress, local, frame, ND_FRAME_LEN);
}

bool arp_nd_remove_tag(struct arp_nd_untagged *u, const uint8_t *frame, uint32_t len)
{
	const uint32_t macs = 2 * ETHER_MAC_LEN;

	u->frame = frame;
	u->len = len;
	u->vlan = 0;
	if (len < ETHER_HDR_LEN + ETHER_VLAN_LEN || ether_get16(frame + macs) != ETHERTYPE_ID_VLAN)
		return true;
	if (len > sizeof(u->room))
		return false;
	u->frame = u->room;
	u->len = len - ETHER_VLAN_LEN;
	u->vlan = ether_get16(frame + macs + 2) & ETHER_VLAN_ID;
	memcpy(u->room, frame, macs);
	memcpy(u->room + macs, frame + macs + ETHER_VLAN_LEN, u->len - macs);
	return true;
}

void neigh_input(struct neigh *n, uint64_t now, int uplink, const uint8_t *frame, uint32_t len)
{
	struct neigh_ingress ingress = {.uplink = uplink, .member = -1};
	struct arp_nd_untagged u;
	struct arp a;
	struct nd m;

	n->now = now;
	if (!arp_nd_remove_tag(&u, frame, len))
		return;
	ingress.vlan = u.vlan;
	if (n->bond_mask >> uplink & 1) {
		ingress.uplink = __builtin_ctz(n->bond_mask);
		ingress.member = uplink;
	}
	if (arp_parse(&a, u.frame, u.len))
		handle_arp(n, &ingress, &a);
	else if (nd_parse(&m, u.frame, u.len))
		handle_nd(n, &ingress, &m, u.frame + ETHER_MAC_LEN);
}
