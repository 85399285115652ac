/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * This host's MAC, MTU, addresses and P_Keys, and the GID table that attached processes get.
 * kernel_sync and the daemon fill it; sessions, the switch and neigh read it. The daemon has only
 * one thread.
 */
#ifndef URXE_URXED_HOSTNET_HOST_H
#define URXE_URXED_HOSTNET_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>
#include <vnic/attach_protocol.h>

#include "common/ether.h"
#include "urxed/hostnet/port_rate.h"

/*
 * Each address has two entries in the GID table: its own index for RoCEv2, and its index plus
 * HOST_ADDRESSES for RoCEv1.
 */
#define HOST_ADDRESSES (VNIC_ATTACH_GIDS / 2)
/* Addresses of the table that may be dynamic. */
#define HOST_DYNAMIC_ADDRESSES 12
#define HOST_NDEV_LEN          16
#define HOST_PRIORITIES        8       /* TC_PRIO_* that a traffic class has, and those between */
#define HOST_DEVICE            "urxe0" /* the RDMA device, unless --device names another */

/*
 * Ethernet payload of a packet with path MTU 4096, its headers and a reserve, as Linux rxe wants
 * from an interface.
 */
#define HOST_MTU 4200

/* Ethernet payload of a packet with path MTU 256 and all headers that it may have. */
#define HOST_MTU_LEAST (256 + URXE_MAX_OVERHEAD - ETHER_HDR_LEN - ETHER_VLAN_LEN)

/* `uplink` of an address that is on no uplink. */
#define HOST_NO_UPLINK -1

struct host_address {
	uint8_t ip[16];     /* IPv4 as ::ffff:a.b.c.d */
	uint8_t prefix_len; /* of the 128 bits */
	bool valid;
	int uplink;        /* index of the uplink to the address's subnet, or HOST_NO_UPLINK */
	uint16_t vlan;     /* VLAN ID; 0 = untagged */
	uint32_t vlan_mtu; /* MTU of the kernel's interface of that VLAN; 0 = none, or untagged */
	/* The kernel's VLAN priority for each packet priority: the interface's egress-qos-map. */
	uint8_t vlan_priority[HOST_PRIORITIES];
	char ndev[HOST_NDEV_LEN]; /* the kernel's interface with this address; "" = none */
	uint32_t ifindex;         /* its index; 0 = none, or unknown */
	/*
	 * The kernel has the address too, and answers ARP and ND for it. Then `member` is the
	 * uplink of its interface (in a bond, `uplink` is the first member), and `mac` is the
	 * interface's; that of a VLAN interface may differ from that of the uplink.
	 */
	bool kernel;
	/*
	 * The kernel repeats its check of the address for duplicates, or may begin it at any time.
	 * Of an IPv4 address this says nothing, because the kernel does not check it.
	 */
	bool tentative;
	/* IPv6, and any station may have made it by a router advertisement. */
	bool dynamic;
	int member;
	uint8_t mac[ETHER_MAC_LEN];
	/*
	 * Named by --address: if the kernel removes the address, the host keeps it, with
	 * given_prefix_len and given_uplink.
	 */
	bool given;
	uint8_t given_prefix_len;
	int given_uplink;
	/* Of an entry that is not valid: n_freed when it was freed; 0 = never used. */
	uint32_t freed;
};

/* GUID, P_Keys and GIDs of the port that backs the device, for VNIC_HCA_FILE (hca_table.h). */
struct hca_table_gid {
	uint8_t ip[16];   /* IPv4 as ::ffff:a.b.c.d */
	uint32_t ifindex; /* index of the interface, 0 = unknown */
	uint16_t index;   /* in the HCA's GID table */
	bool v2;          /* RoCE v2; else RoCE v1 */
};

struct hca_table {
	uint8_t guid[8];                   /* the node GUID; all zero = no HCA, or unknown */
	uint16_t mtu;                      /* the port's path MTU in bytes; 0 = unknown */
	bool cut_off;                      /* the port has VNIC_HCA_GIDS GIDs or more */
	uint16_t pkeys[VNIC_ATTACH_PKEYS]; /* the first entries of the P_Key table; 0 = empty */
	uint32_t n_gids;
	struct hca_table_gid gids[VNIC_HCA_GIDS];
};

struct host {
	char device[VNIC_HCA_NAME]; /* --device: the name of the RDMA device */
	bool other_node; /* the device's node is not VNIC_UVERBS_NAME but VNIC_UVERBS_OTHER */
	uint8_t mac[ETHER_MAC_LEN];
	uint16_t mtu;          /* least MTU of the uplinks, at most mtu_limit */
	uint16_t mtu_limit;    /* --mtu, else HOST_MTU */
	bool up;               /* an uplink has a link; without uplinks: the HCA, if any, has one */
	struct port_rate rate; /* without an HCA: of the slowest uplink that has a link */
	struct port_rate hca_rate;  /* of the HCA; width 0 = unknown, or no HCA */
	uint32_t uplink_generation; /* result of direct_uplink_generation() */
	/* One bit for each socket that direct_uplink_create opens, in its order. 1: processes may
	 * send by this socket now. */
	uint8_t uplink_carriers;
	bool machines;              /* a virtual machine has a port now (vm_port_set.h) */
	struct vnic_attach_hca hca; /* the HCA that backs urxe0; name "" = none */
	struct hca_table hca_table;
	/*
	 * Interface of the GIDs whose address has none: that of the first uplink, if it is
	 * af_packet: or af_xdp: and the interface exists; else "lo", also for a tap:, whose
	 * interface may be in another network namespace.
	 */
	char ndev[HOST_NDEV_LEN];
	/* Indexed like the GID table. An address keeps its index while the host has it. */
	struct host_address addresses[HOST_ADDRESSES];
	uint32_t n_freed; /* entries freed since the start */
	uint32_t n_pkeys;
	uint16_t pkeys[VNIC_ATTACH_PKEYS]; /* the P_Key table */
};

/* Sets device, MAC and MTU; the host has no addresses and no P_Keys yet. */
void host_init(struct host *h);

/* The name of the device's node in /dev/infiniband. */
const char *host_uverbs_name(const struct host *h);
/* The node GUID of the device (vnic_node_guid). */
void host_node_guid(const struct host *h, uint8_t guid[8]);

/* Makes a locally administered MAC, which depends on boot, network namespace, user and index. */
void host_make_mac(uint8_t mac[ETHER_MAC_LEN], uint32_t index);

/*
 * Adds the addresses of a host without an uplink: link-local IPv6, link-local IPv4, ULA. 0, or
 * -ENOSPC: the table is full.
 */
int host_add_generated(struct host *h);

/*
 * Reserves a free index for an address that had it before: the address gets this index when it
 * returns. Other addresses get the index only if each other free index was freed later.
 */
void host_reserve_index(struct host *h, uint32_t index, const uint8_t ip[16], uint16_t vlan);

/*
 * Adds fe80:: with the MAC's EUI-64, the default GID of a RoCE device, unless the host has it. 0,
 * or -ENOSPC: the table is full.
 */
int host_add_link_local(struct host *h, int uplink);

/*
 * Replaces the addresses that the host has from the kernel by `list`. If an address occurs twice in
 * one VLAN, the first counts. A known address keeps its index. An address that returns gets its
 * former index, unless the table was full meanwhile. A dynamic one gets no index while
 * HOST_DYNAMIC_ADDRESSES of them have one, so that others normally find a free one. Returns the
 * number of addresses that got no index.
 */
uint32_t host_set_kernel_addresses(struct host *h, const struct host_address *list, uint32_t n);

/*
 * Adds "ADDR/LEN" or "ADDR/LEN@VLAN". If the host has the address already, from the kernel, only
 * notes it as given. -EINVAL: not a unicast address with prefix length; -ENOSPC: the table is full.
 */
int host_add_text(struct host *h, const char *text, int uplink);

/*
 * Adds a P_Key such as "0x8001". -EINVAL: not a P_Key, or partition 0; -ENOSPC: the table is full.
 */
int host_add_pkey(struct host *h, const char *text);

/*
 * Returns the index of the P_Key table's entry that equals `pkey`, which may be the host's or a
 * peer's. Else the index of an entry that differs from it in the membership bit only (IBA 10.9.3);
 * -1: none.
 */
int host_find_pkey(const struct host *h, uint16_t pkey);

/*
 * Returns this host's address in any VLAN, or NULL. Several VLANs may have the address, as a VLAN
 * interface has the link-local address of its parent. Then the result is the one with the lowest
 * GID index.
 */
const struct host_address *host_find_address(const struct host *h, const uint8_t ip[16]);

/* Returns this host's address in this VLAN (ID; 0 = untagged), or NULL. */
const struct host_address *host_find_in_vlan(const struct host *h, const uint8_t ip[16],
					     uint16_t vlan);

/* The MAC of the kernel's VLAN interface on an uplink; NULL: none has an address of the host. */
const uint8_t *host_vlan_mac(const struct host *h, uint32_t uplink, uint16_t vlan);
/*
 * Has the kernel's interface of a VLAN this MAC, on any uplink? False for VLAN 0; an interface
 * without an address of the host does not count.
 */
bool host_has_vlan_mac(const struct host *h, const uint8_t mac[ETHER_MAC_LEN], uint16_t vlan);
/* Has some interface of the kernel that has an address of the host this MAC, in any VLAN? */
bool host_has_interface_mac(const struct host *h, const uint8_t mac[ETHER_MAC_LEN]);

/* Are the first prefix_len bits of the addresses equal? */
bool host_same_subnet(const uint8_t a[16], const uint8_t b[16], uint8_t prefix_len);

/* Returns the address of an entry of the GID table; NULL: the entry is empty. */
const struct host_address *host_address_by_gid(const struct host *h, uint32_t gid_index);

/* Does entry gid_index of the GID table have the address `ip`? */
bool host_has_gid(const struct host *h, uint32_t gid_index, const uint8_t ip[16]);

/* The longest path MTU in bytes that the device's port permits, at least 256. */
uint32_t host_path_mtu(const struct host *h);

/* The rate that the port reports: that of the HCA, else `rate`. */
struct port_rate host_rate(const struct host *h);

/* Fills the message that tells attached processes the state of the port and the GID table. */
void host_fill_port(const struct host *h, struct vnic_attach_port *port);

#endif
