/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who this host is to its peers: MAC, MTU and addresses, and from those the GID
 * table that every client gets.
 */
#ifndef URXE_URXED_HOSTNET_HOST_H
#define URXE_URXED_HOSTNET_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>
#include <vnic/attach.h>

#include "common/ether.h"

/*
 * Each address is two entries of the GID table: at its own index as RoCEv2, and this
 * many further on as RoCEv1.
 */
#define HOST_ADDRESSES (VNIC_ATTACH_GIDS / 2)
#define HOST_NDEV_LEN  16

/*
 * A frame of the longest IB MTU (4096), its headers and some to spare, as Linux
 * rxe wants it of an interface: nothing is won by more.
 */
#define HOST_MTU 4200

/* A frame of the shortest IB MTU (256), with all headers that may be in it. */
#define HOST_MTU_LEAST (256 + URXE_MAX_OVERHEAD - ETHER_HDR_LEN - ETHER_VLAN_LEN)

/* Where an address is on no uplink. */
#define HOST_NO_UPLINK -1

struct host_address {
	uint8_t ip[16];     /* IPv4 as ::ffff:a.b.c.d */
	uint8_t prefix_len; /* of the 128 bits */
	bool valid;
	int uplink;               /* by which its subnet is reached */
	uint16_t vlan;            /* ID of the VLAN that it is in; 0 = none */
	char ndev[HOST_NDEV_LEN]; /* the kernel's interface that has it; "" = there is none */
	bool kernel;              /* the kernel has it too, and answers ARP and ND for it */
	bool given;               /* by --address: it stays when the kernel loses it */
	uint32_t freed; /* when it went, in the order of goings; 0 = nobody had this index */
};

struct host {
	uint8_t mac[ETHER_MAC_LEN];
	uint16_t mtu;             /* what the way out carries, at most mtu_limit */
	uint16_t mtu_limit;       /* HOST_MTU, where nobody wants less */
	bool up;                  /* there is a link, or no need of one */
	char ndev[HOST_NDEV_LEN]; /* the interface named beside each GID */
	/* By index of the GID table, which an address keeps as long as it is there. */
	struct host_address addresses[HOST_ADDRESSES];
	uint32_t n_freed;
	uint32_t n_pkeys;
	uint16_t pkeys[VNIC_ATTACH_PKEYS]; /* the P_Key table */
};

/* MAC of this boot, network namespace and user, MTU, no addresses and no P_Keys. */
void host_init(struct host *h);

/* Locally administered MAC number `index` of this boot, network namespace and user. */
void host_make_mac(uint8_t mac[ETHER_MAC_LEN], uint32_t index);

/* Gives a host without an uplink addresses: link-local IPv6, link-local IPv4, ULA. */
int host_add_generated(struct host *h);

/* Keeps a free index for an address that had it before, as long as others are free. */
void host_reserve_index(struct host *h, uint32_t index, const uint8_t ip[16], uint16_t vlan);

/* Adds fe80:: with the MAC's EUI-64, which a RoCE device always has; 0 where it is there. */
int host_add_link_local(struct host *h, int uplink);

/*
 * Takes the kernel's addresses: these, the nearest first, and no others. Of two that are the same
 * in one VLAN the first counts. What was there before keeps its index; what comes back has it
 * again, unless another had to take it meanwhile. Returns how many there was no room for.
 */
uint32_t host_set_kernel_addresses(struct host *h, const struct host_address *list, uint32_t n);

/* "ADDR/LEN" or "ADDR/LEN@VLAN"; 0 where it is there already. -EINVAL: it is not one; -ENOSPC: too
 * many. */
int host_add_text(struct host *h, const char *text, int uplink);

/* "0x8001"; -EINVAL: not a P_Key, or one of no partition; -ENOSPC: too many. */
int host_add_pkey(struct host *h, const char *text);

/* NULL: not an address of ours. */
const struct host_address *host_find_address(const struct host *h, const uint8_t ip[16]);

/* Whether ip is an address of ours in a VLAN (ID; 0 = none). */
bool host_has_address(const struct host *h, const uint8_t ip[16], uint16_t vlan);

/* Whether the first prefix_len bits of two addresses are the same. */
bool host_same_subnet(const uint8_t a[16], const uint8_t b[16], uint8_t prefix_len);

/* The address behind an entry of the GID table; NULL: the entry is empty. */
const struct host_address *host_address_by_gid(const struct host *h, uint32_t gid_index);

/*
 * What clients are told: link and GID table, every address at its index as RoCEv2, and at
 * HOST_ADDRESSES + it as RoCEv1.
 */
void host_fill_port(const struct host *h, struct vnic_attach_port *port);

#endif
