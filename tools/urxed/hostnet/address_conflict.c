/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/address_conflict.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/arp_nd.h"
#include "urxed/hostnet/nd_frame.h"

#define TRIES    3
#define TRY_MS   160 /* time between two probes */
#define CHECK_MS 10  /* time between two reads of received frames */
#define FRAMES   32
#define PROBES   (HOST_ADDRESSES * SWITCH_UPLINKS)

struct probe {
	const struct host_address *address;
	struct uplink *uplink;
	const uint8_t *host_mac; /* source MAC of the host's frames on that uplink */
	uint32_t len;
	uint8_t frame[NEIGH_FRAME_ROOM];
};

static uint32_t add_probes(const struct host *h, const struct host_address *a,
			   struct uplink_set *uplinks, struct probe *probes, uint32_t n)
{
	for (uint32_t i = 0; i < uplinks->n; i++) {
		struct uplink *u = &uplinks->at[i];

		if (!u->kernel || !u->up || !uplink_set_is_path(uplinks, (uint32_t)a->uplink, i))
			continue;
		probes[n] = (struct probe){
			.address = a, .uplink = u, .host_mac = u->bonded ? h->mac : u->mac};
		/* A bond's member sends the probe from its own probe MAC, because bridges must
		 * learn the host's MAC at the active member only. */
		probes[n].len = arp_nd_build(probes[n].frame, u->bonded ? u->probe_mac : u->mac,
					     NULL, a->ip, NULL, a->vlan);
		n++;
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

/* Whether the frame is in the address's VLAN and comes from another host that has the address. Sets
 * owner to that host's MAC. */
static bool shows_conflict(const struct probe *p, const uint8_t *frame, uint32_t len,
			   uint8_t owner[ETHER_MAC_LEN])
{
	struct arp_nd_untagged u;
	struct arp a;
	struct nd m;

	if (!arp_nd_remove_tag(&u, frame, len) || u.vlan != p->address->vlan)
		return false;
	if (arp_parse(&a, u.frame, u.len) && !memcmp(a.sip, p->address->ip, 16))
		memcpy(owner, a.smac, ETHER_MAC_LEN);
	else if (nd_parse(&m, u.frame, u.len) && !m.solicitation && m.has_mac &&
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

/* Looks for conflicts of the uplink's probed addresses in the frames that the uplink has received.
 * Returns -EADDRINUSE, and a sentence in `error`, if another host has one of the addresses. */
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
