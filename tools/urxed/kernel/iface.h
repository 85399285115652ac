/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parses rtnetlink messages into a table of the uplinks' kernel interfaces, the VLAN interfaces on
 * top of them, and their addresses. kernel_sync calls this.
 */
#ifndef URXE_URXED_KERNEL_IFACE_H
#define URXE_URXED_KERNEL_IFACE_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/netlink.h>

#include "urxed/hostnet/host.h"

/* Limits of the table, which leaves out VLAN interfaces and addresses beyond them. An address that
 * the host already uses stays. */
#define IFACE_UPLINKS     8
#define IFACE_VLANS       64
#define IFACE_MAX         (IFACE_UPLINKS + IFACE_VLANS)
#define IFACE_FAMILY_MAX  256 /* for IPv4 and for IPv6 each */
#define IFACE_ADDRESS_MAX (2 * IFACE_FAMILY_MAX)

struct iface {
	int ifindex;
	int uplink;
	uint16_t vlan;                          /* VLAN ID; 0 = the uplink's own interface */
	uint8_t vlan_priority[HOST_PRIORITIES]; /* as in host_address */
	uint32_t mtu;
	bool up; /* the interface is up and has a carrier */
	uint8_t mac[ETHER_MAC_LEN];
	char name[HOST_NDEV_LEN];
};

struct iface_address {
	int ifindex;
	uint8_t ip[16];
	uint8_t prefix_len; /* in bits, of 128 */
	/* The kernel is checking the address for duplicates (RFC 4862, 5.4). False for an
	 * optimistic address (RFC 4429), which hosts may use during the check. */
	bool tentative;
	bool dynamic; /* as in host_address */
};

struct iface_table {
	uint32_t n_uplinks;
	int uplinks[IFACE_UPLINKS]; /* ifindex of each uplink's interface; 0 = none */
	uint32_t n;
	struct iface ifaces[IFACE_MAX];
	uint32_t left_out;       /* number of VLAN interfaces that found no place */
	const struct host *host; /* its present addresses get a place before others; NULL = none */
	uint32_t addresses_left_out;
	uint32_t n_addresses;
	struct iface_address addresses[IFACE_ADDRESS_MAX];
};

/* Removes interfaces and addresses, but not the uplinks and `host`. */
void iface_clear(struct iface_table *t);
/* Adds the object of an RTM_NEWLINK or RTM_NEWADDR of a dump to a struct iface_table; ignores other
 * types. Links must come before addresses. A callback of netlink.h. */
void iface_parse_message(void *table, const struct nlmsghdr *message);
/* Does the kernel's notification concern an interface of the table or of an uplink? */
bool iface_is_affected(const struct iface_table *t, const struct nlmsghdr *message);
/*
 * Does the kernel's notification say that an uplink's interface, or a VLAN interface on one,
 * announces its addresses to its peers (IFLA_EVENT_NOTIFY_PEERS)? A virtual machine's NIC does so
 * after a migration, a bond after a change of its active member.
 */
bool iface_notifies_peers(const struct iface_table *t, const struct nlmsghdr *message);

/* Returns the interface of an uplink's VLAN (0 = of the uplink itself), or NULL. */
const struct iface *iface_find(const struct iface_table *t, int uplink, uint16_t vlan);
/*
 * Lists the addresses in the order of their GIDs: by uplink, untagged before VLANs, and on each
 * interface link-local addresses first, as Linux orders its GID tables. Marks tentative ones.
 * Returns their number.
 */
uint32_t iface_list_addresses(const struct iface_table *t,
			      struct host_address list[IFACE_ADDRESS_MAX]);

#endif
