/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/kernel/iface.h"

#include <stdio.h>

#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <net/if.h>

#include "urxed/kernel/netlink.h"

void iface_clear(struct iface_table *t)
{
	t->n = t->left_out = 0;
	t->n_addresses = t->addresses_left_out = 0;
}

static void parse_egress_map(const struct nlattr *map, uint8_t vlan_priority[HOST_PRIORITIES])
{
	struct ifla_vlan_qos_mapping pair;
	const struct nlattr *at;
	const void *p;

	mnl_attr_for_each_nested(at, map)
	{
		p = netlink_value(at, sizeof(pair));
		if (!p)
			continue;
		memcpy(&pair, p, sizeof(pair));
		if (pair.from < HOST_PRIORITIES)
			vlan_priority[pair.from] = pair.to & 7;
	}
}

/* Returns the VLAN ID; 0: not an 802.1Q interface. */
static uint16_t parse_vlan(const struct nlattr *linkinfo, uint8_t vlan_priority[HOST_PRIORITIES])
{
	const struct nlattr *info[IFLA_INFO_MAX + 1] = {0}, *vlan[IFLA_VLAN_MAX + 1] = {0};
	uint16_t protocol = htobe16(ETH_P_8021Q), id = 0;
	const void *p;

	if (!linkinfo)
		return 0;
	netlink_nested(linkinfo, info, IFLA_INFO_MAX);
	p = netlink_value(info[IFLA_INFO_KIND], 4);
	if (!p || memcmp(p, "vlan", 4) || !info[IFLA_INFO_DATA])
		return 0;
	netlink_nested(info[IFLA_INFO_DATA], vlan, IFLA_VLAN_MAX);
	p = netlink_value(vlan[IFLA_VLAN_PROTOCOL], sizeof(protocol));
	if (p)
		memcpy(&protocol, p, sizeof(protocol));
	p = netlink_value(vlan[IFLA_VLAN_ID], sizeof(id));
	if (p)
		memcpy(&id, p, sizeof(id));
	if (vlan[IFLA_VLAN_EGRESS_QOS])
		parse_egress_map(vlan[IFLA_VLAN_EGRESS_QOS], vlan_priority);
	return protocol == htobe16(ETH_P_8021Q) && id <= ETHER_VLAN_MAX ? id : 0;
}

static int find_uplink(const struct iface_table *t, int ifindex)
{
	uint32_t i;

	for (i = 0; i < t->n_uplinks; i++)
		if (t->uplinks[i] && t->uplinks[i] == ifindex)
			return (int)i;
	return HOST_NO_UPLINK;
}

/* Returns false if the link is neither an uplink's interface nor a VLAN interface on one. */
static bool parse_link(const struct iface_table *t, const struct nlmsghdr *message,
		       const struct nlattr **at, struct iface *iface)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);
	uint16_t vlan;

	*iface = (struct iface){0};
	if (mnl_nlmsg_get_payload_len(message) < sizeof(*link))
		return false;
	netlink_attributes(message, sizeof(*link), at, IFLA_MAX);
	iface->ifindex = link->ifi_index;
	iface->up = link->ifi_flags & IFF_RUNNING;
	/* An uplink's interface may itself be a VLAN interface: the kernel tags its frames, so
	 * urxed uses only its map of priorities, not its VLAN ID. */
	vlan = parse_vlan(at[IFLA_LINKINFO], iface->vlan_priority);
	iface->uplink = find_uplink(t, link->ifi_index);
	if (iface->uplink >= 0)
		return true;
	/* With this attribute, IFLA_LINK is an index of another network namespace. */
	if (at[IFLA_LINK_NETNSID])
		return false;
	iface->uplink = find_uplink(t, (int)netlink_number(at[IFLA_LINK]));
	if (iface->uplink >= 0)
		iface->vlan = vlan;
	return iface->vlan;
}

static const struct iface *find_by_ifindex(const struct iface_table *t, int ifindex)
{
	uint32_t i;

	for (i = 0; i < t->n; i++)
		if (t->ifaces[i].ifindex == ifindex)
			return &t->ifaces[i];
	return NULL;
}

/* Whether the table has a place for the interface. VLAN interfaces get at most IFACE_VLANS places,
 * so that each uplink's interface has one, in whatever order the kernel lists them. */
static bool has_room(const struct iface_table *t, const struct iface *iface)
{
	uint32_t i, vlans = 0;

	for (i = 0; i < t->n; i++)
		vlans += t->ifaces[i].vlan != 0;
	return !iface->vlan || vlans < IFACE_VLANS;
}

/* Adds an interface only once, because iface_list_addresses would otherwise list its addresses
 * twice. */
static void add_iface(struct iface_table *t, const struct nlmsghdr *message)
{
	const struct nlattr *at[IFLA_MAX + 1] = {0};
	struct iface iface;
	const void *mac;

	if (!parse_link(t, message, at, &iface) || find_by_ifindex(t, iface.ifindex))
		return;
	if (!has_room(t, &iface)) {
		t->left_out++;
		return;
	}
	iface.mtu = netlink_number(at[IFLA_MTU]);
	mac = netlink_value(at[IFLA_ADDRESS], ETHER_MAC_LEN);
	if (mac)
		memcpy(iface.mac, mac, ETHER_MAC_LEN);
	if (netlink_value(at[IFLA_IFNAME], 1))
		snprintf(iface.name, sizeof(iface.name), "%.*s",
			 mnl_attr_get_payload_len(at[IFLA_IFNAME]),
			 mnl_attr_get_str(at[IFLA_IFNAME]));
	t->ifaces[t->n++] = iface;
}

/* Returns false if duplicate address detection has failed, or the address is valid only on this
 * host (scope host). A deprecated address is usable, because connections may still use it. */
static bool is_usable_address(const struct ifaddrmsg *address, uint32_t flags)
{
	return !(flags & IFA_F_DADFAILED) && address->ifa_scope != RT_SCOPE_HOST;
}

/*
 * Whether the address may come from a router advertisement. Addresses that the kernel makes from
 * one have a lifetime, which may be infinite. Those that a program makes (NetworkManager) are
 * permanent if their lifetime is infinite.
 */
static bool is_autoconfigured(uint32_t flags, const struct nlattr *at[IFA_MAX + 1])
{
	const uint8_t *origin = netlink_value(at[IFA_PROTO], 1);

	return !(flags & IFA_F_PERMANENT) || flags & (IFA_F_MANAGETEMPADDR | IFA_F_TEMPORARY) ||
	       (origin && *origin == IFAPROT_KERNEL_RA);
}

static bool host_has_address(const struct iface_table *t, const struct iface_address *a)
{
	const struct iface *iface = find_by_ifindex(t, a->ifindex);

	return t->host && iface && host_find_in_vlan(t->host, a->ip, iface->vlan);
}

/*
 * Adds an address. If its family has no place left and the host already uses this address, it
 * replaces one that the host does not use: so a GID in use and its connections stay, in whatever
 * order the kernel lists the addresses.
 */
static void place_address(struct iface_table *t, const struct iface_address *a)
{
	struct iface_address *other = NULL;
	uint32_t i, n = 0;

	for (i = 0; i < t->n_addresses; i++)
		n += ip_is_v4(t->addresses[i].ip) == ip_is_v4(a->ip);
	if (n < IFACE_FAMILY_MAX) {
		t->addresses[t->n_addresses++] = *a;
		return;
	}
	t->addresses_left_out++;
	for (i = 0; host_has_address(t, a) && i < t->n_addresses; i++)
		if (ip_is_v4(t->addresses[i].ip) == ip_is_v4(a->ip) &&
		    !host_has_address(t, &t->addresses[i]))
			other = &t->addresses[i];
	if (other)
		*other = *a;
}

static void add_iface_address(struct iface_table *t, const struct nlmsghdr *message)
{
	const struct ifaddrmsg *address = mnl_nlmsg_get_payload(message);
	const struct nlattr *at[IFA_MAX + 1] = {0};
	struct iface_address to;
	uint32_t flags;
	const void *ip;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*address) ||
	    !find_by_ifindex(t, (int)address->ifa_index))
		return;
	netlink_attributes(message, sizeof(*address), at, IFA_MAX);
	flags = at[IFA_FLAGS] ? netlink_number(at[IFA_FLAGS]) : address->ifa_flags;
	if (!is_usable_address(address, flags))
		return;
	/* On a point-to-point link IFA_ADDRESS is the peer's address, IFA_LOCAL this host's. */
	ip = netlink_value(at[at[IFA_LOCAL] ? IFA_LOCAL : IFA_ADDRESS],
			   address->ifa_family == AF_INET ? 4 : 16);
	if (!ip)
		return;
	to.ifindex = (int)address->ifa_index;
	to.tentative = flags & IFA_F_TENTATIVE && !(flags & IFA_F_OPTIMISTIC);
	to.dynamic = address->ifa_family == AF_INET6 && is_autoconfigured(flags, at);
	if (address->ifa_family == AF_INET && address->ifa_prefixlen <= 32) {
		ip_from_v4(to.ip, ip);
		to.prefix_len = IP_V4_BITS + address->ifa_prefixlen;
	} else if (address->ifa_family == AF_INET6 && address->ifa_prefixlen <= 128) {
		memcpy(to.ip, ip, sizeof(to.ip));
		to.prefix_len = address->ifa_prefixlen;
	} else {
		return;
	}
	place_address(t, &to);
}

void iface_parse_message(void *table, const struct nlmsghdr *message)
{
	struct iface_table *t = table;

	if (message->nlmsg_type == RTM_NEWLINK)
		add_iface(t, message);
	else if (message->nlmsg_type == RTM_NEWADDR)
		add_iface_address(t, message);
}

bool iface_is_affected(const struct iface_table *t, const struct nlmsghdr *message)
{
	const struct nlattr *at[IFLA_MAX + 1] = {0};
	struct iface iface;

	switch (message->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		return parse_link(t, message, at, &iface) || find_by_ifindex(t, iface.ifindex);
	case RTM_NEWADDR:
	case RTM_DELADDR:
		return mnl_nlmsg_get_payload_len(message) >= sizeof(struct ifaddrmsg) &&
		       find_by_ifindex(
			       t, (int)((const struct ifaddrmsg *)mnl_nlmsg_get_payload(message))
					  ->ifa_index);
	default: return false;
	}
}

bool iface_notifies_peers(const struct iface_table *t, const struct nlmsghdr *message)
{
	const struct nlattr *at[IFLA_MAX + 1] = {0};
	struct iface iface;

	return message->nlmsg_type == RTM_NEWLINK && parse_link(t, message, at, &iface) &&
	       netlink_number(at[IFLA_EVENT]) == IFLA_EVENT_NOTIFY_PEERS;
}

const struct iface *iface_find(const struct iface_table *t, int uplink, uint16_t vlan)
{
	uint32_t i;

	for (i = 0; i < t->n; i++)
		if (t->ifaces[i].uplink == uplink && t->ifaces[i].vlan == vlan)
			return &t->ifaces[i];
	return NULL;
}

/*
 * Appends either the link-local addresses of an interface or its other addresses. Returns their
 * number.
 */
static uint32_t list_iface_addresses(const struct iface_table *t, const struct iface *iface,
				     bool link_local, struct host_address *list)
{
	uint32_t i, n = 0;

	for (i = 0; i < t->n_addresses; i++) {
		const struct iface_address *a = &t->addresses[i];

		if (a->ifindex != iface->ifindex || ip_is_link_local(a->ip) != link_local)
			continue;
		list[n] = (struct host_address){.prefix_len = a->prefix_len,
						.uplink = iface->uplink,
						.member = iface->uplink,
						.tentative = a->tentative,
						.dynamic = a->dynamic,
						.vlan = iface->vlan,
						.vlan_mtu = iface->vlan ? iface->mtu : 0,
						.ifindex = (uint32_t)iface->ifindex};
		memcpy(list[n].ip, a->ip, sizeof(list[n].ip));
		memcpy(list[n].vlan_priority, iface->vlan_priority, sizeof(list[n].vlan_priority));
		memcpy(list[n].mac, iface->mac, sizeof(list[n].mac));
		memcpy(list[n].ndev, iface->name, sizeof(list[n].ndev));
		n++;
	}
	return n;
}

uint32_t iface_list_addresses(const struct iface_table *t,
			      struct host_address list[IFACE_ADDRESS_MAX])
{
	uint32_t u, i, n = 0;

	for (u = 0; u < t->n_uplinks; u++)
		for (int tagged = 0; tagged < 2; tagged++)
			for (i = 0; i < t->n; i++) {
				const struct iface *iface = &t->ifaces[i];

				if (iface->uplink != (int)u || (iface->vlan != 0) != tagged)
					continue;
				n += list_iface_addresses(t, iface, true, list + n);
				n += list_iface_addresses(t, iface, false, list + n);
			}
	return n;
}
