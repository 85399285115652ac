/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * This host's MAC, MTU, addresses and P_Keys, and the GID table that attached processes get.
 * kernel_sync and the daemon fill it; sessions, the switch and neigh read it. All run in the
 * daemon's only thread.
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
/* Limit of the addresses that may be dynamic. */
#define HOST_DYNAMIC_ADDRESSES 12
#define HOST_NDEV_LEN          16
#define HOST_PRIORITIES        8       /* packet priorities (TC_PRIO_*): 0 to 7 */
#define HOST_DEVICE            "urxe0" /* the RDMA device, unless --device names another */

/* Bytes of Ethernet payload: room for a packet of path MTU 4096, its headers and the reserve that
 * Linux' rdma_rxe demands from an interface. */
#define HOST_MTU 4200

/* Bytes of Ethernet payload that a packet of path MTU 256 needs with the longest headers. */
#define HOST_MTU_LEAST (256 + URXE_MAX_OVERHEAD - ETHER_HDR_LEN - ETHER_VLAN_LEN)

/* The value of `uplink` for an address that is on no uplink. */
#define HOST_NO_UPLINK -1

struct host_address {
	uint8_t ip[16];     /* IPv4 as ::ffff:a.b.c.d */
	uint8_t prefix_len; /* in bits, of 128 */
	bool valid;
	int uplink;        /* index of the uplink to the address's subnet, or HOST_NO_UPLINK */
	uint16_t vlan;     /* VLAN ID; 0 = untagged */
	uint32_t vlan_mtu; /* MTU of the kernel's VLAN interface; 0 = none, or untagged */
	/* Which VLAN priority the kernel gives to each packet priority: the interface's
	 * egress-qos-map. */
	uint8_t vlan_priority[HOST_PRIORITIES];
	char ndev[HOST_NDEV_LEN]; /* the kernel's interface with this address; "" = none */
	uint32_t ifindex;         /* index of that interface; 0 = none, or unknown */
	/*
	 * The kernel has the address, too, and answers ARP and ND for it. `member` is then the
	 * uplink of the address's interface, where `uplink` is the first member if that is in a
	 * bond. `mac` is the interface's; that of a VLAN interface may differ from the uplink's.
	 */
	bool kernel;
	/* The kernel checks the address for duplicates again, or may begin to. Meaningless for an
	 * IPv4 address, which the kernel does not check. */
	bool tentative;
	/* An IPv6 address that any station may have caused by a router advertisement. */
	bool dynamic;
	int member;
	uint8_t mac[ETHER_MAC_LEN];
	/* --address names the address: if the kernel removes it, the host keeps it with
	 * given_prefix_len and given_uplink. */
	bool given;
	uint8_t given_prefix_len;
	int given_uplink;
	/* For a free entry: n_freed at the time when it became free; 0 = never used. */
	uint32_t freed;
};

/* A GID of the HCA's port, for struct hca_table. */
struct hca_table_gid {
	uint8_t ip[16];   /* IPv4 as ::ffff:a.b.c.d */
	uint32_t ifindex; /* index of the interface, 0 = unknown */
	uint16_t index;   /* in the HCA's GID table */
	bool v2;          /* RoCE v2; else RoCE v1 */
};

/* GUID, P_Keys and GIDs of the HCA's port that backs urxe0, for VNIC_HCA_FILE (hca_table.h). */
struct hca_table {
	uint8_t guid[8];                   /* the node GUID; all zero = no HCA, or unknown */
	uint16_t mtu;                      /* the port's path MTU in bytes; 0 = unknown */
	bool may_lack_gids;                /* `gids` is full, so the port may have more */
	uint16_t pkeys[VNIC_ATTACH_PKEYS]; /* the first entries of the P_Key table; 0 = empty */
	uint32_t n_gids;
	struct hca_table_gid gids[VNIC_HCA_GIDS];
};

struct host {
	char device[VNIC_HCA_NAME]; /* --device: the name of the RDMA device */
	bool other_node; /* the device's node is not VNIC_UVERBS_NAME but VNIC_UVERBS_OTHER */
	uint8_t mac[ETHER_MAC_LEN];
	uint16_t mtu;          /* Ethernet payload, bytes: least of uplinks, at most mtu_limit */
	uint16_t mtu_limit;    /* --mtu, else HOST_MTU */
	bool up;               /* an uplink has a link; without uplinks: the HCA, if any, has one */
	struct port_rate rate; /* without an HCA: that of the slowest uplink with a link */
	struct port_rate hca_rate;  /* rate of the HCA; width 0 = unknown, or no HCA */
	uint32_t uplink_generation; /* result of direct_uplink_generation() */
	/* One bit for each socket that direct_uplink_create opens, in the same order. 1: processes
	 * may now send by this socket. */
	uint8_t uplink_carriers;
	bool machines;              /* a virtual machine has a port (vm_port_set.h) */
	struct vnic_attach_hca hca; /* the HCA that backs urxe0; name "" = none */
	struct hca_table hca_table;
	/*
	 * Interface of the GIDs whose address has none. It is the first uplink's, if that is
	 * af_packet: or af_xdp: and the interface exists; else "lo", also for a tap:, whose
	 * interface may be in another network namespace.
	 */
	char ndev[HOST_NDEV_LEN];
	/* By index in the GID table. An address keeps its index as long as the host has it. */
	struct host_address addresses[HOST_ADDRESSES];
	uint32_t n_freed; /* number of times that an entry became free since the start */
	uint32_t n_pkeys;
	uint16_t pkeys[VNIC_ATTACH_PKEYS]; /* the P_Key table */
};

/* Sets device, MAC and MTU. The host has no addresses and no P_Keys after this. */
void host_init(struct host *h);

/* Returns the name of the device's node in /dev/infiniband. */
const char *host_uverbs_name(const struct host *h);
/* Computes the node GUID of the device (vnic_node_guid). */
void host_node_guid(const struct host *h, uint8_t guid[8]);

/* Makes a locally administered MAC, which depends on boot, network namespace, user and `index`. */
void host_make_mac(uint8_t mac[ETHER_MAC_LEN], uint32_t index);

/* Adds the addresses of a host without an uplink: link-local IPv6, link-local IPv4, ULA. Returns 0,
 * or -ENOSPC if the table is full. */
int host_add_generated(struct host *h);

/*
 * Reserves a free index for an address that had it at an earlier daemon: the address gets this
 * index when it returns. Other addresses get the index only if all other free indices became free
 * later.
 */
void host_reserve_index(struct host *h, uint32_t index, const uint8_t ip[16], uint16_t vlan);

/* Adds fe80:: with the MAC's EUI-64, the default GID of a RoCE device, unless the host has it.
 * Returns 0, or -ENOSPC if the table is full. */
int host_add_link_local(struct host *h, int uplink);

/*
 * Replaces the addresses that the host has from the kernel by `list`. If an address is twice in the
 * list for one VLAN, the first one counts. An address that the host has keeps its index; one that
 * returns gets its former index, unless another address has taken it. A dynamic address gets no
 * index while HOST_DYNAMIC_ADDRESSES other dynamic ones have one, so that addresses of other kinds
 * normally find a free one. Returns the number of addresses that got no index.
 */
uint32_t host_set_kernel_addresses(struct host *h, const struct host_address *list, uint32_t n);

/*
 * Adds "ADDR/LEN" or "ADDR/LEN@VLAN". If the host has the address already, only marks it as
 * given. Returns 0; -EINVAL: the text is malformed, or no station can have the address; -ENOSPC:
 * the table is full.
 */
int host_add_text(struct host *h, const char *text, int uplink);

/* Adds a P_Key such as "0x8001". Returns 0; -EINVAL: not a P_Key, or of partition 0; -ENOSPC: the
 * table is full. */
int host_add_pkey(struct host *h, const char *text);

/*
 * Returns the index in the P_Key table of the entry that equals `pkey`, a P_Key of the host or of a
 * peer; else of an entry that differs from it in the membership bit only (IBA 10.9.3); -1: there is
 * none.
 */
int host_find_pkey(const struct host *h, uint16_t pkey);

/*
 * Returns this host's address `ip` in any VLAN, or NULL. Several VLANs may have the same address,
 * because a VLAN interface has the link-local address of its parent; the result is then the one
 * with the lowest GID index.
 */
const struct host_address *host_find_address(const struct host *h, const uint8_t ip[16]);

/* Returns this host's address `ip` in this VLAN (ID; 0 = untagged), or NULL. */
const struct host_address *host_find_in_vlan(const struct host *h, const uint8_t ip[16],
					     uint16_t vlan);

/* Returns the MAC of the kernel's VLAN interface on an uplink; NULL: no such interface has an
 * address of the host, or `vlan` is 0. */
const uint8_t *host_vlan_mac(const struct host *h, uint32_t uplink, uint16_t vlan);
/* Returns whether the kernel's interface of a VLAN has this MAC, on any uplink. Ignores interfaces
 * without an address of the host. False for VLAN 0. */
bool host_has_vlan_mac(const struct host *h, const uint8_t mac[ETHER_MAC_LEN], uint16_t vlan);
/*
 * Returns whether an interface of the kernel with an address of the host has this MAC, in any VLAN.
 */
bool host_has_interface_mac(const struct host *h, const uint8_t mac[ETHER_MAC_LEN]);

/* Returns whether the first prefix_len bits of the addresses are equal. */
bool host_same_subnet(const uint8_t a[16], const uint8_t b[16], uint8_t prefix_len);

/* Returns the address of an entry of the GID table; NULL: it is empty, or does not exist. */
const struct host_address *host_address_by_gid(const struct host *h, uint32_t gid_index);

/* Returns whether entry gid_index of the GID table has the address `ip`. */
bool host_has_gid(const struct host *h, uint32_t gid_index, const uint8_t ip[16]);

/* Returns the longest path MTU in bytes that the device's port permits, at least 256. */
uint32_t host_path_mtu(const struct host *h);

/* Returns the rate that the device's port reports: that of the HCA if it is known, else `rate`. */
struct port_rate host_rate(const struct host *h);

/* Fills the message that tells attached processes the state of the port and the GID table. */
void host_fill_port(const struct host *h, struct vnic_attach_port *port);

#endif
