/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the kernel has of the uplinks' interfaces and of the VLAN interfaces on top of
 * them: link and addresses, taken out of its netlink messages.
 */
#ifndef URXE_URXED_HOSTNET_IFACE_H
#define URXE_URXED_HOSTNET_IFACE_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/netlink.h>

#include "urxed/hostnet/host.h"

/* Uplinks that there may be; interfaces and addresses that are looked at, further ones are not. */
#define IFACE_UPLINKS     8
#define IFACE_MAX         64
#define IFACE_ADDRESS_MAX 256

struct iface {
	int ifindex;
	int uplink;
	uint16_t vlan; /* ID; 0 = the uplink's own interface */
	uint32_t mtu;
	bool up; /* up, and with a carrier */
	uint8_t mac[ETHER_MAC_LEN];
	char name[HOST_NDEV_LEN];
};

struct iface_address {
	int ifindex;
	uint8_t ip[16];
	uint8_t prefix_len; /* of the 128 bits */
};

struct iface_table {
	uint32_t n_uplinks;
	int uplinks[IFACE_UPLINKS]; /* ifindex of each uplink's interface; 0 = it has none */
	uint32_t n;
	struct iface ifaces[IFACE_MAX];
	uint32_t n_addresses;
	struct iface_address addresses[IFACE_ADDRESS_MAX];
};

/* Forgets all but the uplinks. */
void iface_clear(struct iface_table *t);
/* Takes RTM_NEWLINK or RTM_NEWADDR of a dump; links come first. Others are passed over. */
void iface_parse_message(struct iface_table *t, const struct nlmsghdr *message);
/* Whether a change that the kernel tells of is one of these interfaces'. */
bool iface_is_affected(const struct iface_table *t, const struct nlmsghdr *message);

/* NULL: the interface is not there, or has no such VLAN. */
const struct iface *iface_find(const struct iface_table *t, int uplink, uint16_t vlan);
/*
 * The addresses in the order in which they get GIDs: by uplink, those without a VLAN first, and of
 * an interface the link-local ones first, as in the GID tables that Linux makes. Returns how many.
 */
uint32_t iface_list_addresses(const struct iface_table *t,
			      struct host_address list[IFACE_ADDRESS_MAX]);

#endif
