/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/address_conflict.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/nd_frame.h"

#define TRIES      3
#define TRY_MS     160 /* between probes */
#define CHECK_MS   10  /* between two reads of received frames */
#define FRAMES     32
#define PROBE_ROOM (ND_FRAME_LEN + ETHER_VLAN_LEN)
#define MACS_LEN   (2 * ETHER_MAC_LEN)
#define PROBES     (HOST_ADDRESSES * SWITCH_UPLINKS)

static const uint8_t broadcast[ETHER_MAC_LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

struct probe {
	const struct host_address *address;
	struct uplink *uplink;
	const uint8_t *host_mac; /* source of the host's frames by that uplink */
	uint32_t len;
	uint8_t frame[PROBE_ROOM];
};

/*
 * IPv4: an ARP request from address 0.0.0.0, so that no host learns the address (RFC 5227, 2.1.1).
 * IPv6: a neighbour solicitation from the MAC's link-local address. A bond's member sends the probe
 * from its own probe MAC: switches must learn the host's MAC at the active member only.
 */
static void build_probe(struct probe *p)
{
	const uint8_t *mac = p->uplink->bonded ? p->uplink->probe_mac : p->uplink->mac;
	const struct host_address *a = p->address;
	uint8_t *to = p->frame + (a->vlan ? ETHER_VLAN_LEN : 0);

	if (ip_is_v4(a->ip)) {
		struct arp q = {.request = true, .sip = {[10] = 0xff, 0xff}};

		memcpy(q.smac, mac, ETHER_MAC_LEN);
		memcpy(q.tip, a->ip, 16);
		arp_build(to, &q, broadcast);
		p->len = ARP_FRAME_LEN;
	} else {
		struct nd q = {0};

		nd_link_local(mac, q.sip);
		memcpy(q.smac, mac, ETHER_MAC_LEN);
		memcpy(q.target, a->ip, 16);
		nd_build_solicitation(to, &q);
		p->len = ND_FRAME_LEN;
	}
	if (!a->vlan)
		return;
	memmove(p->frame, to, MACS_LEN);
	ether_put16(p->frame + MACS_LEN, ETHERTYPE_ID_VLAN);
	ether_put16(p->frame + MACS_LEN + 2, a->vlan);
	p->len += ETHER_VLAN_LEN;
}

static uint32_t add_probes(const struct host *h, const struct host_address *a,
			   struct uplink_set *uplinks, struct probe *probes, uint32_t n)
{
	for (uint32_t i = 0; i < uplinks->n; i++) {
		struct uplink *u = &uplinks->at[i];

		if (!u->kernel || !u->up || !uplink_set_is_path(uplinks, (uint32_t)a->uplink, i))
			continue;
		probes[n] = (struct probe){
			.address = a, .uplink = u, .host_mac = u->bonded ? h->mac : u->mac};
		build_probe(&probes[n++]);
	}
	return n;
}

static uint32_t list_probes(const struct host *h, struct uplink_set *uplinks, struct probe *probes)
{
	const struct host_address *a;
	uint32_t n = 0;

	for (a = h->addresses; a < h->addresses + HOST_ADDRESSES; a++)
		if (a->valid && a->given && !a->kernel && a->uplink >= 0)
			n = add_probes(h, a, uplinks, probes, n);
	return n;
}

/*
 * Is the frame, in the address's VLAN, from another host with the address? Sets owner to its MAC.
 */
static bool shows_conflict(const struct probe *p, const uint8_t *frame, uint32_t len,
			   uint8_t owner[ETHER_MAC_LEN])
{
	uint8_t plain[PROBE_ROOM];
	uint16_t vlan = 0;
	struct arp a;
	struct nd m;

	if (len >= ETHER_HDR_LEN + ETHER_VLAN_LEN && len <= sizeof(plain) &&
	    ether_get16(frame + MACS_LEN) == ETHERTYPE_ID_VLAN) {
		vlan = ether_get16(frame + MACS_LEN + 2) & ETHER_VLAN_ID;
		len -= ETHER_VLAN_LEN;
		memcpy(plain, frame, MACS_LEN);
		memcpy(plain + MACS_LEN, frame + MACS_LEN + ETHER_VLAN_LEN, len - MACS_LEN);
		frame = plain;
	}
	if (vlan != p->address->vlan)
		return false;
	if (arp_parse(&a, frame, len) && !memcmp(a.sip, p->address->ip, 16))
		memcpy(owner, a.smac, ETHER_MAC_LEN);
	else if (nd_parse(&m, frame, len) && !m.solicitation && m.has_mac &&
		 !memcmp(m.target, p->address->ip, 16))
		memcpy(owner, m.smac, ETHER_MAC_LEN);
	else
		return false;
	return !ether_same(owner, p->host_mac);
}

static int set_conflict_error(const struct probe *p, const uint8_t owner[ETHER_MAC_LEN],
			      char error[ADDRESS_CONFLICT_ERROR])
{
	const uint8_t *ip = p->address->ip;
	char text[INET6_ADDRSTRLEN] = "";

	if (ip_is_v4(ip))
		inet_ntop(AF_INET, ip + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, ip, text, sizeof(text));
	snprintf(error, ADDRESS_CONFLICT_ERROR,
		 "address %s is already served on %s by another host, "
		 "%02x:%02x:%02x:%02x:%02x:%02x",
		 text, p->uplink->ifname, owner[0], owner[1], owner[2], owner[3], owner[4],
		 owner[5]);
	return -EADDRINUSE;
}

/*
 * Compares the uplink's received frames with all probed addresses of the uplink. -EADDRINUSE:
 * another host has one of them; `error` has a sentence.
 */
static int check_uplink(struct uplink *u, const struct probe *probes, uint32_t n, uint64_t now,
			char error[ADDRESS_CONFLICT_ERROR])
{
	struct netdev_frame frames[FRAMES];
	uint32_t got = netdev_rx(u->port, now, frames, FRAMES);
	uint8_t owner[ETHER_MAC_LEN];

	for (uint32_t i = 0; i < got; i++)
		for (const struct probe *p = probes; p < probes + n; p++)
			if (p->uplink == u &&
			    shows_conflict(p, frames[i].data, frames[i].len, owner))
				return set_conflict_error(p, owner, error);
	return 0;
}

int address_conflict_probe(const struct host *h, struct uplink_set *uplinks,
			   char error[ADDRESS_CONFLICT_ERROR])
{
	const struct timespec pause = {0, CHECK_MS * NS_PER_MS};
	struct probe probes[PROBES];
	uint32_t n = list_probes(h, uplinks, probes);
	int rc = 0;

	for (uint32_t turn = 0; n && !rc && turn < TRIES * TRY_MS / CHECK_MS; turn++) {
		for (uint32_t i = 0; i < n && turn % (TRY_MS / CHECK_MS) == 0; i++) {
			const struct netdev_frame frame = {.data = probes[i].frame,
							   .len = probes[i].len};

			netdev_tx(probes[i].uplink->port, now_ns(), &frame, 1);
		}
		nanosleep(&pause, NULL);
		for (uint32_t i = 0; i < n && !rc; i++)
			rc = check_uplink(probes[i].uplink, probes, n, now_ns(), error);
	}
	return rc;
}
