/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/kernel/kernel_sync.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include <linux/sockios.h>

#include "common/clock.h"
#include "common/log.h"
#include "urxed/kernel/link_speed.h"
#include "urxed/uplink/vm_port_protocol.h"

/*
 * Time from an attempt to open an uplink, or to read the kernel's state, to the next one. With
 * AF_XDP an attempt may take some 10 ms of the switch's thread, so each pause between attempts to
 * open uplinks is twice as long as the one before.
 */
#define RETRY_NS     (2 * NS_PER_SEC)
#define RETRY_MAX_NS (60 * NS_PER_SEC)
/* Number of attempts at a dump that changes in the kernel make inconsistent. */
#define DUMP_TRIES 32

/*
 * Adds all objects of a type, RTM_GETLINK or RTM_GETADDR, to the table. Returns as netlink_request.
 */
static int dump_objects(struct kernel_sync *k, uint16_t type, struct iface_table *table)
{
	char buf[NETLINK_REQUEST_ROOM];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buf);
	struct rtgenmsg *any = mnl_nlmsg_put_extra_header(request, sizeof(*any));

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_DUMP;
	any->rtgen_family = AF_UNSPEC;
	return netlink_request(&k->netlink, request, iface_parse_message, table);
}

/* --- VLAN interfaces */

static struct kernel_vlan *find_vlan(struct kernel_sync *k, int ifindex)
{
	uint32_t i;

	for (i = 0; i < IFACE_MAX; i++)
		if (k->vlans[i].ifindex == ifindex)
			return &k->vlans[i];
	return NULL;
}

/*
 * Binds UDP port 4791 of a VLAN interface, unless the daemon has done so. If that fails, the
 * addresses of the interface get no GIDs, unless the interface has a RoCE device that may have
 * bound the port (rdma_rxe). Logs only the first of several failures.
 */
static void guard_vlan(struct kernel_sync *k, const struct iface *iface)
{
	struct kernel_vlan *v = find_vlan(k, iface->ifindex);
	const bool logged = v;
	char error[ROCE_PORT_GUARD_ERROR];
	int rc;

	if (v && !v->refused)
		return;
	/* Cannot be NULL, because vlans[] has as many entries as the table has interfaces. */
	if (!v)
		v = find_vlan(k, 0);
	v->ifindex = iface->ifindex;
	rc = roce_port_guard_open(&v->port_guard, iface->name, error);
	/* A port that the interface's RoCE device may have bound does not count as refused. */
	v->refused = rc && !(rc == -EADDRINUSE &&
			     hca_monitor_has_interface(k->hca, iface->name,
						       uplink_is_xdp(&k->uplinks[iface->uplink])));
	if (v->refused && !logged)
		log_line("the addresses of %s get no GIDs: %s", iface->name, error);
}

/* Binds UDP port 4791 of each present VLAN interface, and frees that of vanished ones. */
static void guard_vlans(struct kernel_sync *k)
{
	uint32_t i, j;

	for (i = 0; i < IFACE_MAX; i++) {
		struct kernel_vlan *v = &k->vlans[i];

		for (j = 0; j < k->table.n && k->table.ifaces[j].ifindex != v->ifindex; j++)
			;
		if (!v->ifindex || j < k->table.n)
			continue;
		roce_port_guard_close(&v->port_guard);
		v->ifindex = 0;
	}
	for (i = 0; i < k->table.n; i++)
		if (k->table.ifaces[i].vlan)
			guard_vlan(k, &k->table.ifaces[i]);
}

static uint32_t count_refused_vlans(const struct kernel_sync *k)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < IFACE_MAX; i++)
		n += k->vlans[i].ifindex && k->vlans[i].refused;
	return n;
}

static bool is_vlan_refused(struct kernel_sync *k, const struct host_address *a)
{
	const struct iface *iface = iface_find(&k->table, a->uplink, a->vlan);
	const struct kernel_vlan *v = a->vlan && iface ? find_vlan(k, iface->ifindex) : NULL;

	return v && v->refused;
}

/* --- Host and uplinks */

/*
 * Returns true if the port has to be opened, or opened again: its interface now has another MAC, or
 * a larger MTU than the port was opened for. Leaves an open af_xdp: port as it is, because DPDK's
 * af_xdp cannot open an interface twice in a process.
 */
static bool needs_reopen(const struct uplink *u, const struct iface *iface)
{
	uint32_t mtu = iface->mtu < VM_PORT_MTU ? iface->mtu : VM_PORT_MTU;

	if (u->port && uplink_is_xdp(u))
		return false;
	return !u->port || mtu > u->mtu_max || !ether_same(u->mac, iface->mac);
}

/* Opens the uplink's port, or opens it again. Logs only the first of several failures. */
static void reopen_port(struct kernel_sync *k, struct uplink *u)
{
	const uint32_t bit = 1u << (u - k->uplinks);
	char error[UPLINK_ERROR];
	int rc = uplink_reopen(u, error);

	if (rc && !(k->refused & bit))
		log_line("%s is not available: %s", u->spec, error);
	k->refused = rc ? k->refused | bit : k->refused & ~bit;
}

static void update_uplink(struct kernel_sync *k, struct uplink *u, const struct iface *iface)
{
	bool was_up = u->up;

	/* The interface may have been renamed since. */
	memcpy(u->ifname, iface->name, sizeof(u->ifname));
	if (needs_reopen(u, iface))
		reopen_port(k, u);
	u->up = u->port && iface->up;
	if (u->up != was_up)
		log_line("%s is %s", iface->name, u->up ? "up" : "down");
	if (!u->port)
		return;
	/* Also if the link was lost and has returned since the last look. */
	if (u->up)
		netdev_link_returned(u->port);
	memcpy(u->mac, iface->mac, sizeof(u->mac));
	u->mtu = iface->mtu < u->mtu_max ? (uint16_t)iface->mtu : u->mtu_max;
}

/*
 * Sets the host's rate to that of the slowest uplink that is a kernel interface with a link.
 * Without such an uplink the host keeps its rate.
 */
static void update_rate(struct kernel_sync *k)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < k->n_uplinks; i++) {
		const struct uplink *u = &k->uplinks[i];
		uint32_t mbps;

		if (!u->kernel || !u->up)
			continue;
		mbps = link_speed_mbps(netlink_fd(&k->netlink), u->ifname);
		if (mbps < least)
			least = mbps;
	}
	if (least < UINT32_MAX)
		k->host->rate = port_rate_of_link(least);
}

/*
 * Sets host.ndev, which stands for the interface of GIDs whose address has none: the first uplink's
 * interface, or lo if that is missing. The interface must exist, as lo always does. Does nothing if
 * the first uplink is no kernel interface.
 */
static void update_ndev(struct kernel_sync *k)
{
	const struct iface *iface = iface_find(&k->table, 0, 0);

	if (k->uplinks[0].kernel)
		snprintf(k->host->ndev, sizeof(k->host->ndev), "%s", iface ? iface->name : "lo");
}

/* Updates uplinks and host. The host has a link if some uplink has one. Its MTU is the smallest of
 * its uplinks. */
static void update_uplinks(struct kernel_sync *k)
{
	struct host *h = k->host;
	uint32_t i;

	k->retry_at = count_refused_vlans(k) ? now_ns() + k->pause_ns : UINT64_MAX;
	h->up = false;
	h->mtu = h->mtu_limit;
	for (i = 0; i < k->n_uplinks; i++) {
		const struct iface *iface = iface_find(&k->table, (int)i, 0);
		struct uplink *u = &k->uplinks[i];

		if (iface)
			update_uplink(k, u, iface);
		if (iface && !u->port)
			k->retry_at = now_ns() + k->pause_ns;
		h->up |= u->up;
		if (u->mtu < h->mtu)
			h->mtu = u->mtu;
	}
	update_rate(k);
	update_ndev(k);
}

/* Returns the index by which the host knows an uplink: for a bond's uplink, that of the bond's
 * first member. */
static int port_of(const struct kernel_sync *k, int uplink)
{
	int i = 0;

	if (!k->uplinks[uplink].bonded)
		return uplink;
	while (!k->uplinks[i].bonded)
		i++;
	return i;
}

static bool is_listed(const struct host_address *a, const struct host_address *list, uint32_t n)
{
	while (n && (list[n - 1].vlan != a->vlan || memcmp(list[n - 1].ip, a->ip, sizeof(a->ip))))
		n--;
	return n;
}

/*
 * Puts a bond's address back into the list of n addresses if the list lacks it and its interface is
 * down. If its interface no longer exists, puts it back if the member's own interface is down or
 * does not exist, either. Returns the new number of addresses. The address keeps the MAC, because
 * peers still send to it. It counts as tentative, because the kernel may check it for duplicates
 * before it reports that the interface is up.
 */
static uint32_t keep_address(const struct kernel_sync *k, const struct host_address *a,
			     struct host_address *list, uint32_t n)
{
	const struct iface *own = iface_find(&k->table, a->member, a->vlan);
	const struct iface *iface = own ? own : iface_find(&k->table, a->member, 0);

	if ((iface && iface->up) || is_listed(a, list, n))
		return n;
	list[n] = *a;
	list[n].tentative = true;
	list[n].ifindex = own ? (uint32_t)own->ifindex : 0;
	snprintf(list[n].ndev, sizeof(list[n].ndev), "%s", own ? own->name : "");
	return n + 1;
}

/*
 * Keeps the addresses of a bond's member whose interface is set down, although the kernel removes
 * them, because the other members carry the addresses' connections. If only a VLAN interface is
 * deleted, its addresses go. Returns the new number of addresses.
 */
static uint32_t keep_bond_addresses(const struct kernel_sync *k, struct host_address *list,
				    uint32_t n)
{
	const struct host_address *a = k->host->addresses;

	for (; a < k->host->addresses + HOST_ADDRESSES && n < IFACE_ADDRESS_MAX; a++)
		if (a->valid && a->kernel && k->uplinks[a->uplink].bonded)
			n = keep_address(k, a, list, n);
	return n;
}

/* Whether the host has the address, from the same interface. */
static bool has_address(const struct host *h, const struct host_address *a)
{
	const struct host_address *own = host_find_in_vlan(h, a->ip, a->vlan);

	return own && own->kernel && own->member == a->member;
}

/*
 * Returns false if UDP port 4791 of the address's VLAN interface is refused (guard_vlan), or if the
 * address is new and the kernel still checks it for duplicates (RFC 4862, 5.4). The kernel repeats
 * this check when an interface is up again; meanwhile the host keeps its address, as Linux keeps
 * its GIDs.
 */
static bool is_usable_address(struct kernel_sync *k, const struct host_address *a)
{
	return !is_vlan_refused(k, a) && (!a->tentative || has_address(k->host, a));
}

static void update_addresses(struct kernel_sync *k)
{
	struct host_address list[IFACE_ADDRESS_MAX];
	uint32_t i, n = iface_list_addresses(&k->table, list), kept = 0, left_out;

	for (i = 0; i < n; i++)
		if (is_usable_address(k, &list[i]))
			list[kept++] = list[i];
	for (i = 0; i < kept; i++)
		list[i].uplink = port_of(k, list[i].uplink);
	kept = keep_bond_addresses(k, list, kept);
	left_out = host_set_kernel_addresses(k->host, list, kept) + k->table.addresses_left_out;
	if (left_out > k->left_out)
		log_line("%u addresses have no GID: the table has room for %d, %d of them "
			 "autoconfigured",
			 left_out, HOST_ADDRESSES, HOST_DYNAMIC_ADDRESSES);
	k->left_out = left_out;
}

static bool is_lost(const struct kernel_sync *k, uint32_t i)
{
	return !iface_find(&k->table, (int)i, 0) || uplink_has_lost_interface(&k->uplinks[i]);
}

/* As if_nametoindex, which would fail if the daemon has no free descriptor. */
static int find_ifindex(const struct kernel_sync *k, const char *name)
{
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return ioctl(netlink_fd(&k->netlink), SIOCGIFINDEX, &request) ? 0 : request.ifr_ifindex;
}

/* Looks for the interfaces of lost uplinks by name, because a new interface of the same name has
 * another index. Returns true if one was found; the caller then reads the table again. */
static bool find_uplinks(struct kernel_sync *k)
{
	bool found = false;
	uint32_t i;

	k->missing = false;
	for (i = 0; i < k->n_uplinks; i++) {
		struct uplink *u = &k->uplinks[i];

		if (!u->kernel || !is_lost(k, i))
			continue;
		/* A new interface of the same name needs a new port, so the old port is closed. */
		uplink_close_lost(u);
		k->table.uplinks[i] = find_ifindex(k, u->ifname);
		found |= k->table.uplinks[i] != 0;
		k->missing |= k->table.uplinks[i] == 0;
	}
	return found;
}

static int read_table(struct kernel_sync *k, struct iface_table *table)
{
	int rc;

	iface_clear(table);
	rc = dump_objects(k, RTM_GETLINK, table);
	return rc ? rc : dump_objects(k, RTM_GETADDR, table);
}

/* Reads the kernel's interfaces into k->table, which stays as it was on error. Logs that VLAN
 * interfaces are left out if they are more than before. */
static int read_interfaces(struct kernel_sync *k)
{
	struct iface_table table = k->table;
	int rc, tries = 0;

	do
		rc = read_table(k, &table);
	while (rc == -EINTR && ++tries < DUMP_TRIES);
	if (rc)
		return rc;
	if (table.left_out > k->table.left_out)
		log_line("the addresses of %u VLAN interfaces get no GIDs: urxed uses %d at most",
			 table.left_out, IFACE_VLANS);
	k->table = table;
	return 0;
}

static int read_kernel_state(struct kernel_sync *k)
{
	int rc;

	k->must_read = false;
	k->read_failed = true;
	k->pause_ns = RETRY_NS;
	k->retry_at = now_ns() + k->pause_ns;
	rc = read_interfaces(k);
	if (!rc && find_uplinks(k))
		rc = read_interfaces(k);
	if (rc)
		return rc;
	guard_vlans(k);
	update_uplinks(k);
	update_addresses(k);
	k->read_failed = false;
	return 0;
}

int kernel_sync_start(struct kernel_sync *k, struct host *host, struct uplink *uplinks,
		      uint32_t n_uplinks, const struct hca_monitor *hca,
		      char error[KERNEL_SYNC_ERROR])
{
	bool any = false;
	uint32_t i;
	int rc;

	*k = (struct kernel_sync){
		.host = host, .uplinks = uplinks, .n_uplinks = n_uplinks, .hca = hca};
	k->table.n_uplinks = n_uplinks;
	k->table.host = host;
	for (i = 0; i < n_uplinks; i++)
		any |= uplinks[i].kernel;
	if (!any) {
		update_uplinks(k);
		return 0;
	}
	rc = netlink_open(&k->netlink,
			  RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_NEIGH);
	for (i = 0; !rc && i < n_uplinks; i++)
		if (uplinks[i].kernel)
			k->table.uplinks[i] = find_ifindex(k, uplinks[i].ifname);
	if (!rc)
		rc = read_kernel_state(k);
	/* -EINTR: changes kept coming. kernel_sync_update reads again at the next report, or at
	 * k->retry_at. */
	if (rc == -EINTR)
		log_line("cannot read the kernel's interfaces yet: %s", strerror(-rc));
	if (!rc || rc == -EINTR)
		return 0;
	kernel_sync_stop(k);
	snprintf(error, KERNEL_SYNC_ERROR, "cannot read the kernel's interfaces: %s",
		 strerror(-rc));
	return rc;
}

void kernel_sync_serve_neigh(struct kernel_sync *k, struct neigh *neigh)
{
	if (!k->netlink.events)
		return;
	k->route = (struct route){.netlink = &k->netlink, .ifaces = &k->table, .neigh = neigh};
	neigh->route = &k->route;
}

void kernel_sync_stop(struct kernel_sync *k)
{
	uint32_t i;

	for (i = 0; i < IFACE_MAX; i++)
		if (k->vlans[i].ifindex)
			roce_port_guard_close(&k->vlans[i].port_guard);
	netlink_close(&k->netlink);
}

int kernel_sync_fd(const struct kernel_sync *k)
{
	return k->netlink.events ? netlink_fd(&k->netlink) : -1;
}

uint64_t kernel_sync_deadline(const struct kernel_sync *k)
{
	return k->netlink.events ? k->retry_at : UINT64_MAX;
}

static void handle_notification(void *ctx, const struct nlmsghdr *message)
{
	struct kernel_sync *k = ctx;

	if (message->nlmsg_type == RTM_NEWNEIGH) {
		route_neigh_changed(&k->route, message);
		return;
	}
	k->must_read |= k->missing || iface_is_affected(&k->table, message);
	k->notifies |= iface_notifies_peers(&k->table, message);
}

bool kernel_sync_take_notice(struct kernel_sync *k)
{
	bool notifies = k->notifies;

	k->notifies = false;
	return notifies;
}

/*
 * Tries again to open uplinks, and to bind UDP port 4791 of VLAN interfaces. Returns whether an
 * uplink was opened, or failed for the first time, whether a VLAN interface has GIDs now, or
 * whether the host's rate has changed.
 */
static bool retry_refused(struct kernel_sync *k)
{
	const struct port_rate rate = k->host->rate;
	const uint32_t refused = k->refused, vlans = count_refused_vlans(k);

	k->pause_ns = k->pause_ns < RETRY_MAX_NS / 2 ? 2 * k->pause_ns : RETRY_MAX_NS;
	guard_vlans(k);
	update_uplinks(k);
	update_addresses(k);
	return k->refused != refused || count_refused_vlans(k) != vlans ||
	       !port_rate_same(k->host->rate, rate);
}

bool kernel_sync_update(struct kernel_sync *k)
{
	const bool logged = k->read_failed;
	int rc;

	if (!netlink_events(&k->netlink, handle_notification, k)) {
		k->must_read = true;
		route_neigh_changed(&k->route, NULL);
	}
	if (!k->must_read && now_ns() < k->retry_at)
		return false;
	if (!k->must_read && !k->read_failed)
		return retry_refused(k);
	rc = read_kernel_state(k);
	if (rc && !logged)
		log_line("cannot read the kernel's interfaces: %s", strerror(-rc));
	return !rc;
}
