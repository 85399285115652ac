/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/direct_uplink.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "urxed/hca/hca.h"

/* The kernel can give the interface's packets to other sockets than the port's. */
static bool shares_interface(const struct uplink *u)
{
	return !strncmp(u->spec, "af_packet:", 10) ||
	       (!strncmp(u->spec, "af_xdp:", 7) && netdev_can_exclude_qpns(u->port));
}

static struct uplink *find_uplink(const struct direct_uplink *direct)
{
	struct uplink *u = direct ? &direct->uplinks->at[0] : NULL;

	if (!u || direct->uplinks->n != 1 || direct->pins->n || u->impaired || !u->port ||
	    u->hears_all || (direct->hca && hca_chosen(direct->hca)) || !shares_interface(u))
		return NULL;
	return u;
}

uint8_t direct_uplink_generation(const struct direct_uplink *direct)
{
	const struct uplink *u = find_uplink(direct);

	return u ? 1 + u->generation % UINT8_MAX : 0;
}

int direct_uplink_create(const struct direct_uplink *direct, struct packet_port_ring *ring)
{
	const struct uplink *u = find_uplink(direct);
	unsigned int ifindex = u ? if_nametoindex(u->ifname) : 0;

	return ifindex ? packet_port_create(ifindex, HOST_MTU, ring) : -ENODEV;
}

int direct_uplink_exclude(const struct direct_uplink *direct, const uint16_t *blocks, uint32_t n)
{
	const struct uplink *u = find_uplink(direct);

	return u ? netdev_exclude_qpns(u->port, blocks, n) : -ENODEV;
}

struct uplink *direct_uplink_of_hca(const struct direct_uplink *direct)
{
	const struct hca *hca = direct ? direct->hca : NULL;
	int i = hca && hca_chosen(hca) ? hca->verdicts[hca->chosen].uplink : -1;
	struct uplink *u = i < 0 || i >= (int)direct->uplinks->n ? NULL : &direct->uplinks->at[i];

	return u && u->port && netdev_can_exclude_qpns(u->port) ? u : NULL;
}

bool direct_uplink_redirects(const struct direct_uplink *direct)
{
	const struct uplink *u = find_uplink(direct);

	return u && !strncmp(u->spec, "af_xdp:", 7);
}
