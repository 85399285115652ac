/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/direct_uplink.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "urxed/hca/hca_monitor.h"

/* The kernel can give the interface's packets to other sockets than the port's. */
static bool shares_interface(const struct uplink *u)
{
	return !strncmp(u->spec, "af_packet:", 10) ||
	       (!strncmp(u->spec, "af_xdp:", 7) && netdev_can_exclude_qpns(u->port));
}

static bool has_active_backup(const struct direct_uplink *direct)
{
	return direct->bond && direct->bond->mode == BOND_ACTIVE_BACKUP;
}

/* The uplink by which all frames to other hosts leave; NULL: there are several. */
static struct uplink *find_single(const struct direct_uplink *direct)
{
	struct uplink_set *set = direct->uplinks;

	if (set->n == 1)
		return &set->at[0];
	return has_active_backup(direct) && direct->bond->n == set->n
		       ? &set->at[bond_lead(direct->bond)]
		       : NULL;
}

struct uplink *direct_uplink_find(const struct direct_uplink *direct)
{
	struct uplink *u = direct ? find_single(direct) : NULL;

	if (!u || direct->pins->n || u->impaired || !u->port || u->hears_all ||
	    (direct->hca && hca_monitor_chosen(direct->hca)) || !shares_interface(u))
		return NULL;
	return u;
}

/* How often the uplink was opened again or replaced by another member of the bond. */
static uint32_t count_changes(const struct direct_uplink *direct)
{
	const struct uplink_set *set = direct->uplinks;
	uint32_t count = has_active_backup(direct) ? direct->bond->moves : 0;

	for (uint32_t i = 0; i < set->n; i++)
		count += set->at[i].generation;
	return count;
}

uint8_t direct_uplink_generation(const struct direct_uplink *direct)
{
	return direct_uplink_find(direct) ? 1 + count_changes(direct) % UINT8_MAX : 0;
}

/* The MAC of the bond, if it is not that of its member's interface. */
static const uint8_t *bond_mac(const struct direct_uplink *direct, const struct uplink *u)
{
	const uint8_t *mac =
		has_active_backup(direct) ? direct->uplinks->at[direct->bond->port].mac : u->mac;

	return memcmp(mac, u->mac, ETHER_MAC_LEN) ? mac : NULL;
}

int direct_uplink_create(const struct direct_uplink *direct, struct packet_port_ring *ring)
{
	const struct uplink *u = direct_uplink_find(direct);
	unsigned int ifindex = u ? if_nametoindex(u->ifname) : 0;

	return ifindex ? packet_port_create(ifindex, HOST_MTU, bond_mac(direct, u), ring) : -ENODEV;
}

int direct_uplink_exclude(const struct direct_uplink *direct, const uint16_t *blocks, uint32_t n)
{
	const struct uplink *u = direct_uplink_find(direct);

	return u ? netdev_exclude_qpns(u->port, blocks, n) : -ENODEV;
}

struct uplink *direct_uplink_of_hca(const struct direct_uplink *direct)
{
	const struct hca_monitor *hca = direct ? direct->hca : NULL;
	int i = hca && hca_monitor_chosen(hca) ? hca->verdicts[hca->chosen].uplink : -1;
	struct uplink *u = i < 0 || i >= (int)direct->uplinks->n ? NULL : &direct->uplinks->at[i];

	return u && u->port && netdev_can_exclude_qpns(u->port) ? u : NULL;
}

bool direct_uplink_redirects(const struct direct_uplink *direct)
{
	const struct uplink *u = direct_uplink_find(direct);

	return u && !strncmp(u->spec, "af_xdp:", 7);
}
