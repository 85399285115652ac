/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/neigh.h"

#include <errno.h>
#include <stddef.h>

#include "urxed/hostnet/arp.h"
#include "urxed/hostnet/nd.h"
#include "urxed/hostnet/route.h"

/* Longer than any ARP or ND frame. */
#define TAGGED_ROOM 1518

static const uint8_t broadcast[ETHER_MAC_LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

void neigh_init(struct neigh *n, const struct host *host, const struct neigh_ops *ops, void *ctx)
{
	*n = (struct neigh){.host = host, .ops = ops, .ctx = ctx};
}

static struct neigh_entry *find_neigh_entry(struct neigh *n, const uint8_t ip[16])
{
	uint32_t i;

	for (i = 0; i < NEIGH_ENTRIES; i++)
		if (n->entries[i].state != NEIGH_FREE && !memcmp(n->entries[i].ip, ip, 16))
			return &n->entries[i];
	return NULL;
}

/* Returns a free entry, else the reachable entry that expires first, else NULL. */
static struct neigh_entry *allocate_neigh_entry(struct neigh *n)
{
	struct neigh_entry *oldest = NULL, *e;

	for (e = n->entries; e < n->entries + NEIGH_ENTRIES; e++) {
		if (e->state == NEIGH_FREE)
			return e;
		if (e->state == NEIGH_REACHABLE && (!oldest || e->due < oldest->due))
			oldest = e;
	}
	return oldest;
}

static void set_state(struct neigh *n, struct neigh_entry *e, enum neigh_state state)
{
	n->n_incomplete += state == NEIGH_INCOMPLETE;
	n->n_incomplete -= e->state == NEIGH_INCOMPLETE;
	e->state = state;
}

/* Sends an ARP or ND frame of this host, with the VLAN tag of address `from`. */
static void send_from(struct neigh *n, const struct host_address *from, const uint8_t *frame,
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

static void send_solicitation(struct neigh *n, struct neigh_entry *e, uint64_t now)
{
	const uint8_t *mac = n->ops->mac(n->ctx, e->from.uplink);
	uint8_t frame[NEIGH_FRAME_ROOM];

	e->tries++;
	e->due = now + NEIGH_TRY_NS;
	if (ip_is_v4(e->ip)) {
		struct arp a = {.request = true};

		memcpy(a.smac, mac, ETHER_MAC_LEN);
		memcpy(a.sip, e->from.ip, 16);
		memcpy(a.tip, e->ip, 16);
		arp_build(frame, &a, broadcast);
		send_from(n, &e->from, frame, ARP_FRAME_LEN);
	} else {
		struct nd m = {.solicitation = true};

		memcpy(m.smac, mac, ETHER_MAC_LEN);
		memcpy(m.sip, e->from.ip, 16);
		memcpy(m.target, e->ip, 16);
		nd_build_solicitation(frame, &m);
		send_from(n, &e->from, frame, ND_FRAME_LEN);
	}
}

/* Answers all requests that wait for ip. */
static void answer_waiters(struct neigh *n, const uint8_t ip[16], int status, const uint8_t *mac)
{
	struct neigh_waiter **link = &n->waiters, *w;
	struct vnic_next_hop hop = {0};

	if (mac)
		memcpy(hop.mac, mac, sizeof(hop.mac));
	while ((w = *link)) {
		if (memcmp(w->ip, ip, 16)) {
			link = &w->next;
			continue;
		}
		*link = w->next;
		n->ops->answer(n->ctx, w, status, mac ? &hop : NULL);
	}
}

/* The uplink and the VLAN from which a frame came. */
struct neigh_ingress {
	int uplink;    /* or NEIGH_VM */
	uint16_t vlan; /* 0 = untagged */
};

static void learn_neighbour(struct neigh *n, uint64_t now, const struct neigh_ingress *ingress,
			    const uint8_t ip[16], const uint8_t mac[ETHER_MAC_LEN])
{
	struct neigh_entry *e = find_neigh_entry(n, ip);

	/*
	 * Learn only addresses that this host solicits, so that broadcasts cannot fill the table.
	 */
	if (!e || e->from.vlan != ingress->vlan || ether_is_group(mac))
		return;
	set_state(n, e, NEIGH_REACHABLE);
	memcpy(e->mac, mac, ETHER_MAC_LEN);
	e->due = now + NEIGH_LIFE_NS;
	answer_waiters(n, e->ip, 0, e->mac);
}

/* RFC 1112, 6.4 and RFC 2464, 7 */
static void multicast_mac(const uint8_t ip[16], uint8_t mac[ETHER_MAC_LEN])
{
	if (ip_is_v4(ip)) {
		memcpy(mac, (const uint8_t[]){0x01, 0x00, 0x5e, ip[13] & 0x7f, ip[14], ip[15]}, 6);
		return;
	}
	mac[0] = mac[1] = 0x33;
	memcpy(mac + 2, ip + 12, 4);
}

static bool is_multicast(const uint8_t ip[16])
{
	return ip[0] == 0xff || (ip_is_v4(ip) && ip[12] >> 4 == 0xe);
}

/* This host's address in dgid's subnet: the sender's GID if possible, else any in its VLAN. */
static const struct host_address *
choose_source(const struct host *h, const struct host_address *own, const uint8_t dgid[16])
{
	const struct host_address *a;

	if (own->uplink >= 0 && host_same_subnet(own->ip, dgid, own->prefix_len))
		return own;
	for (a = h->addresses; a < h->addresses + HOST_ADDRESSES; a++)
		if (a->valid && a->uplink >= 0 && a->vlan == own->vlan &&
		    ip_is_v4(a->ip) == ip_is_v4(dgid) &&
		    host_same_subnet(a->ip, dgid, a->prefix_len))
			return a;
	return NULL;
}

/* Resolves w->ip by ARP or ND on the link of this host's address `from`. */
static int resolve_on_link(struct neigh *n, uint64_t now, const struct host_address *from,
			   struct neigh_waiter *w, struct vnic_next_hop *hop)
{
	struct neigh_entry *e = find_neigh_entry(n, w->ip);

	if (e && e->state == NEIGH_REACHABLE && now < e->due) {
		memcpy(hop->mac, e->mac, sizeof(hop->mac));
		return 0;
	}
	if (!e || e->state == NEIGH_REACHABLE) {
		if (!e)
			e = allocate_neigh_entry(n);
		if (!e)
			return -EHOSTUNREACH;
		*e = (struct neigh_entry){.from = *from};
		memcpy(e->ip, w->ip, sizeof(e->ip));
		set_state(n, e, NEIGH_INCOMPLETE);
		send_solicitation(n, e, now);
	}
	w->next = n->waiters;
	n->waiters = w;
	return -EINPROGRESS;
}

int neigh_resolve(struct neigh *n, uint64_t now, uint8_t sgid_index, const uint8_t dgid[16],
		  struct neigh_waiter *w, struct vnic_next_hop *hop)
{
	const struct host_address *own = host_address_by_gid(n->host, sgid_index), *from;

	*hop = (struct vnic_next_hop){0};
	*w = (struct neigh_waiter){0};
	if (!own)
		return -EINVAL;
	if (is_multicast(dgid)) {
		multicast_mac(dgid, hop->mac);
		return 0;
	}
	if (host_find_address(n->host, dgid)) {
		memcpy(hop->mac, n->host->mac, sizeof(hop->mac));
		return 0;
	}
	memcpy(w->ip, dgid, sizeof(w->ip));
	from = choose_source(n->host, own, dgid);
	/* The kernel cannot reach VMs of the switch, so resolve on-link addresses here. */
	if (n->route && own->kernel && !(from && n->vms))
		return route_resolve(n->route, now, own, sgid_index >= HOST_ADDRESSES, w, hop);
	return from ? resolve_on_link(n, now, from, w, hop) : -ENETUNREACH;
}

void neigh_host_changed(struct neigh *n)
{
	struct neigh_entry *e;

	for (e = n->entries; e < n->entries + NEIGH_ENTRIES; e++) {
		const struct host_address *now;

		if (e->state == NEIGH_FREE)
			continue;
		now = host_find_address(n->host, e->from.ip);
		if (now && now->uplink == e->from.uplink && now->vlan == e->from.vlan)
			continue;
		set_state(n, e, NEIGH_FREE);
		answer_waiters(n, e->ip, -ENETUNREACH, NULL);
	}
}

void neigh_cancel(struct neigh *n, const struct neigh_waiter *w)
{
	struct neigh_waiter **link;

	if (w->ifindex) {
		route_cancel(n->route, w);
		return;
	}
	for (link = &n->waiters; *link; link = &(*link)->next) {
		if (*link == w) {
			*link = w->next;
			return;
		}
	}
}

/*
 * Returns this host's address if the daemon must answer for it on that ingress, else NULL. The
 * kernel answers for its own addresses, except to VMs, whose frames it does not receive.
 */
static const struct host_address *
find_answerable(const struct neigh *n, const struct neigh_ingress *ingress, const uint8_t ip[16])
{
	const struct host_address *a = host_find_address(n->host, ip);

	if (!a || a->vlan != ingress->vlan)
		return NULL;
	return ingress->uplink == NEIGH_VM || (!a->kernel && a->uplink == ingress->uplink) ? a
											   : NULL;
}

static void handle_arp(struct neigh *n, uint64_t now, const struct neigh_ingress *ingress,
		       const struct arp *a)
{
	const struct host_address *local = find_answerable(n, ingress, a->tip);
	uint8_t frame[NEIGH_FRAME_ROOM];
	struct arp reply = {.request = false};

	learn_neighbour(n, now, ingress, a->sip, a->smac);
	if (!a->request || !local || ether_is_group(a->smac))
		return;
	memcpy(reply.smac, n->ops->mac(n->ctx, local->uplink), ETHER_MAC_LEN);
	memcpy(reply.sip, a->tip, 16);
	memcpy(reply.tip, a->sip, 16);
	arp_build(frame, &reply, a->smac);
	send_from(n, local, frame, ARP_FRAME_LEN);
}

static void handle_nd(struct neigh *n, uint64_t now, const struct neigh_ingress *ingress,
		      struct nd *m, const uint8_t *smac)
{
	const struct host_address *local = find_answerable(n, ingress, m->target);
	uint8_t frame[NEIGH_FRAME_ROOM];

	if (!m->solicitation) {
		if (m->has_mac)
			learn_neighbour(n, now, ingress, m->target, m->smac);
		return;
	}
	/* A unicast solicitation may omit the option (RFC 4861, 4.3). */
	if (!m->has_mac)
		memcpy(m->smac, smac, ETHER_MAC_LEN);
	else
		learn_neighbour(n, now, ingress, m->sip, m->smac);
	if (!local || ether_is_group(m->smac))
		return;
	nd_build_advertisement(frame, m, n->ops->mac(n->ctx, local->uplink));
	send_from(n, local, frame, ND_FRAME_LEN);
}

static void handle_untagged(struct neigh *n, uint64_t now, const struct neigh_ingress *ingress,
			    const uint8_t *frame, uint32_t len)
{
	struct arp a;
	struct nd m;

	if (arp_parse(&a, frame, len))
		handle_arp(n, now, ingress, &a);
	else if (nd_parse(&m, frame, len))
		handle_nd(n, now, ingress, &m, frame + ETHER_MAC_LEN);
}

void neigh_input(struct neigh *n, uint64_t now, int uplink, const uint8_t *frame, uint32_t len)
{
	const uint32_t macs = 2 * ETHER_MAC_LEN;
	struct neigh_ingress ingress = {.uplink = uplink};
	uint8_t plain[TAGGED_ROOM];

	if (len < ETHER_HDR_LEN + ETHER_VLAN_LEN ||
	    ether_get16(frame + macs) != ETHERTYPE_ID_VLAN) {
		handle_untagged(n, now, &ingress, frame, len);
		return;
	}
	if (len > sizeof(plain))
		return;
	ingress.vlan = ether_get16(frame + macs + 2) & 0x0fff;
	memcpy(plain, frame, macs);
	memcpy(plain + macs, frame + macs + ETHER_VLAN_LEN, len - macs - ETHER_VLAN_LEN);
	handle_untagged(n, now, &ingress, plain, len - ETHER_VLAN_LEN);
}

uint64_t neigh_tick(struct neigh *n, uint64_t now)
{
	uint64_t next = n->route ? route_tick(n->route, now) : UINT64_MAX;
	struct neigh_entry *e;

	/* The main loop calls this once per frame under low load: skip the table if possible. */
	for (e = n->entries; n->n_incomplete && e < n->entries + NEIGH_ENTRIES; e++) {
		if (e->state != NEIGH_INCOMPLETE)
			continue;
		if (e->due <= now && e->tries >= NEIGH_TRIES) {
			set_state(n, e, NEIGH_FREE);
			answer_waiters(n, e->ip, -EHOSTUNREACH, NULL);
			continue;
		}
		if (e->due <= now)
			send_solicitation(n, e, now);
		if (e->due < next)
			next = e->due;
	}
	return next;
}
