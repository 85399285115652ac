/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/bond/bond_probe.h"

#include <stddef.h>
#include <string.h>

#include <rxe/announcement.h>

#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/arp_nd.h"
#include "urxed/hostnet/nd_frame.h"

/* --- Targets */

bool bond_target_is_on_link(const struct host *h, const struct bond_target *t)
{
	for (const struct host_address *a = h->addresses; a < h->addresses + HOST_ADDRESSES; a++)
		if (a->valid && a->vlan == t->vlan && ip_is_v4(a->ip) == ip_is_v4(t->ip) &&
		    host_same_subnet(a->ip, t->ip, a->prefix_len))
			return true;
	return false;
}

/* Whether the station answers probes. An entry without an address of the host in `from` is of a
 * station behind a router, which does not answer them. */
static bool can_answer(const struct neigh_entry *e)
{
	return (e->state == NEIGH_REACHABLE || e->state == NEIGH_PROBING) && e->from.valid;
}

/* Returns the entry that was used last before `limit`; if `limit` is NULL, the one that was used
 * last of all. NULL: there is none. */
static const struct neigh_entry *find_used_before(const struct neigh *n,
						  const struct neigh_entry *limit)
{
	const struct neigh_entry *e, *best = NULL;

	for (e = n->table.entries; e < n->table.entries + NEIGH_ENTRIES; e++) {
		/* Entries that were used at the same time are in the order of their position. */
		if (!can_answer(e) ||
		    (limit && (e->used > limit->used || (e->used == limit->used && e <= limit))))
			continue;
		if (!best || e->used > best->used)
			best = e;
	}
	return best;
}

uint32_t bond_targets_list(const struct neigh *n, struct bond_target *list, uint32_t max)
{
	const struct neigh_entry *e = NULL;
	uint32_t count = 0;

	while (count < max && (e = find_used_before(n, e))) {
		struct bond_target *t = &list[count++];

		*t = (struct bond_target){.vlan = e->key.vlan};
		memcpy(t->ip, e->key.ip, sizeof(t->ip));
		memcpy(t->mac, e->mac, sizeof(t->mac));
	}
	return count;
}

/* --- Frames */

uint32_t bond_probe_build(uint8_t *frame, const struct bond_target *t,
			  const uint8_t mac[ETHER_MAC_LEN])
{
	return arp_nd_build(frame, mac, NULL, t->ip, t->mac, t->vlan);
}

static uint32_t build_gratuitous_arp(uint8_t *frame, const uint8_t ip[16],
				     const uint8_t mac[ETHER_MAC_LEN])
{
	struct arp a = {.request = true};

	memcpy(a.smac, mac, ETHER_MAC_LEN);
	memcpy(a.sip, ip, sizeof(a.sip));
	memcpy(a.tip, ip, sizeof(a.tip));
	arp_build(frame, &a, NULL);
	return ARP_FRAME_LEN;
}

/* Builds a neighbour advertisement that answers no solicitation. It has the form of an answer to a
 * host without an address. Returns its length. */
static uint32_t build_unsolicited_na(uint8_t *frame, const uint8_t ip[16],
				     const uint8_t mac[ETHER_MAC_LEN])
{
	struct nd m = {0};

	memcpy(m.target, ip, sizeof(m.target));
	nd_build_advertisement(frame, &m, mac);
	return ND_FRAME_LEN;
}

/*
 * Builds the frame of bond_announcement_build, but untagged; returns its length. Announces a
 * tentative IPv6 address by RARP only: this host's kernel would take an advertisement of the
 * address for one of another station, and never use the address again.
 */
static uint32_t build_announcement(uint8_t *frame, const struct host_address *a,
				   const uint8_t mac[ETHER_MAC_LEN])
{
	if (ip_is_v4(a->ip))
		return build_gratuitous_arp(frame, a->ip, mac);
	if (!a->tentative)
		return build_unsolicited_na(frame, a->ip, mac);
	urxe_announcement_build(frame, mac);
	return URXE_ANNOUNCEMENT_LEN;
}

uint32_t bond_announcement_build(uint8_t *frame, const struct host_address *a,
				 const uint8_t mac[ETHER_MAC_LEN])
{
	return ether_add_tag(frame, build_announcement(frame, a, mac), a->vlan);
}
