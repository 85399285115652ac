/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/direct_uplink.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "urxed/hca/hca_monitor.h"

/* Whether packet sockets beside the port's can receive the interface's packets. */
static bool shares_interface(const struct uplink *u)
{
	return !strncmp(u->spec, "af_packet:", 10) ||
	       (!strncmp(u->spec, "af_xdp:", 7) && netdev_can_exclude_qpns(u->port));
}

static bool has_active_backup(const struct direct_uplink *direct)
{
	return direct->bond && direct->bond->mode == BOND_ACTIVE_BACKUP;
}

static bool is_bonded(const struct direct_uplink *direct)
{
	return direct->bond && direct->bond->mode != BOND_NONE;
}

static bool has_balance(const struct direct_uplink *direct)
{
	return direct->bond && direct->bond->mode == BOND_BALANCE;
}

/*
 * Returns the uplinks by which frames to other hosts may leave, as a bit mask. 0: there is no
 * uplink; the only one has another MAC than the host; or there are several, and at least one of
 * them is not in the bond.
 */
static uint32_t find_candidates(const struct direct_uplink *direct)
{
	const struct uplink_set *set = direct->uplinks;

	if (set->n == 1)
		return ether_same(set->at[0].mac, direct->host->mac);
	if (!is_bonded(direct) || direct->bond->n != set->n)
		return 0;
	return has_balance(direct) ? direct->bond->mask : 1u << bond_lead(direct->bond);
}

static bool redirects(const struct uplink *u)
{
	return !strncmp(u->spec, "af_xdp:", 7);
}

static bool may_have_sockets(const struct uplink *u)
{
	return u->port && !u->impaired && !u->hears_all && shares_interface(u);
}

uint32_t direct_uplink_find(const struct direct_uplink *direct)
{
	uint32_t mask = direct ? find_candidates(direct) : 0;
	const struct uplink *first = mask ? &direct->uplinks->at[__builtin_ctz(mask)] : NULL;

	if (!mask || direct->pins->n || (direct->hca && hca_monitor_chosen(direct->hca)))
		return 0;
	for (uint32_t i = 0; i < direct->uplinks->n; i++) {
		const struct uplink *u = &direct->uplinks->at[i];

		if (mask >> i & 1 && (!may_have_sockets(u) || redirects(u) != redirects(first)))
			return 0;
	}
	return mask;
}

/* Returns host.uplink_carriers: a bit for each socket by which processes may send now. */
static uint8_t find_carriers(const struct direct_uplink *direct)
{
	if (!direct_uplink_find(direct))
		return 0;
	return has_balance(direct) ? (uint8_t)bond_carrier_mask(direct->bond) : 1;
}

/* Returns how many times processes had to ask for new sockets. */
static uint32_t count_changes(const struct direct_uplink *direct)
{
	const struct uplink_set *set = direct->uplinks;
	uint32_t count =
		direct->revocations + (has_active_backup(direct) ? direct->bond->moves : 0);

	for (uint32_t i = 0; i < set->n; i++)
		count += set->at[i].generation;
	return count;
}

uint32_t direct_uplink_generation(const struct direct_uplink *direct)
{
	return direct_uplink_find(direct) ? 1 + count_changes(direct) % UINT32_MAX : 0;
}

bool direct_uplink_fill(const struct direct_uplink *direct, struct host *host)
{
	const uint32_t generation = direct_uplink_generation(direct);
	const uint8_t carriers = find_carriers(direct);
	const bool changed =
		generation != host->uplink_generation || carriers != host->uplink_carriers;

	host->uplink_generation = generation;
	host->uplink_carriers = carriers;
	return changed;
}

/* Returns the bond's MAC if the member's interface has another one; else NULL. */
static const uint8_t *bond_mac(const struct direct_uplink *direct, const struct uplink *u)
{
	return is_bonded(direct) && !ether_same(direct->host->mac, u->mac) ? direct->host->mac
									   : NULL;
}

static int create_socket(const struct direct_uplink *direct, const struct uplink *u,
			 struct packet_port_ring *ring)
{
	return packet_port_create((unsigned int)u->watch.ifindex, HOST_MTU, bond_mac(direct, u),
				  ring);
}

int direct_uplink_create(const struct direct_uplink *direct, struct packet_port_ring *ring,
			 int fds[PACKET_GROUP_MAX])
{
	const uint32_t mask = direct_uplink_find(direct);
	int n = 0, fd = mask ? 0 : -ENODEV;

	for (uint32_t i = 0; mask >> i && fd >= 0; i++) {
		if (!(mask >> i & 1))
			continue;
		fd = create_socket(direct, &direct->uplinks->at[i], ring);
		if (fd >= 0)
			fds[n++] = fd;
	}
	if (fd >= 0)
		return n;
	while (n)
		close(fds[--n]);
	return fd;
}

static int exclude_on_all(const struct direct_uplink *direct, uint32_t mask, const uint16_t *blocks,
			  uint32_t n)
{
	int rc = 0;

	for (uint32_t i = 0; mask >> i && !rc; i++)
		if (mask >> i & 1)
			rc = netdev_exclude_qpns(direct->uplinks->at[i].port, blocks, n);
	return rc;
}

int direct_uplink_exclude(const struct direct_uplink *direct, const uint16_t *blocks, uint32_t n)
{
	const uint32_t mask = direct_uplink_find(direct);
	int rc = mask ? exclude_on_all(direct, mask, blocks, n) : -ENODEV;

	/* After an error removes the filter of all members, so that the switch receives all frames,
	 * even where an older filter was. */
	for (uint32_t i = 0; rc && mask >> i; i++)
		if (mask >> i & 1)
			(void)netdev_exclude_qpns(direct->uplinks->at[i].port, NULL, 0);
	return rc;
}

int direct_uplink_hca_index(const struct direct_uplink *direct)
{
	const struct hca_monitor *hca = direct ? direct->hca : NULL;

	return hca && hca_monitor_chosen(hca) ? hca->verdicts[hca->chosen].uplink : -1;
}

struct uplink *direct_uplink_of_hca(const struct direct_uplink *direct)
{
	int i = direct_uplink_hca_index(direct);
	struct uplink *u = i < 0 || i >= (int)direct->uplinks->n ? NULL : &direct->uplinks->at[i];

	return u && u->port && netdev_can_exclude_qpns(u->port) ? u : NULL;
}

bool direct_uplink_redirects(const struct direct_uplink *direct)
{
	const uint32_t mask = direct_uplink_find(direct);

	return mask && redirects(&direct->uplinks->at[__builtin_ctz(mask)]);
}

uint32_t direct_uplink_find_copied(const struct direct_uplink *direct, uint32_t mask)
{
	const struct uplink_set *set = direct->uplinks;
	uint32_t copied = 0;

	for (uint32_t i = 0; i < set->n; i++)
		if (set->at[i].port && !redirects(&set->at[i]))
			copied |= 1u << i;
	return copied & mask;
}
