/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lists the ports of all RDMA devices in sysfs (Documentation/ABI/stable/sysfs-class-infiniband):
 * what hca_select needs to choose the HCA that backs urxe0, and what `urxe show device` prints.
 */
#ifndef URXE_URXED_HCA_HCA_SCAN_H
#define URXE_URXED_HCA_HCA_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/attach_protocol.h>

#include "common/ether.h"
#include "urxed/hostnet/host.h"

/* Limits of the list; ports and GIDs beyond them are ignored. */
#define HCA_PORTS 32
#define HCA_GIDS  VNIC_HCA_GIDS

#define HCA_TEXT 64

enum hca_kind {
	HCA_ROCE,
	HCA_INFINIBAND,
	HCA_IWARP,
	HCA_OTHER /* no verbs device of a known kind, such as usNIC */
};

enum hca_state {
	HCA_UNKNOWN, /* the file has no value that this daemon knows */
	HCA_DOWN,    /* also INIT and ARMED: the port carries no data packets */
	HCA_ACTIVE,
};

struct hca_gid {
	uint8_t ip[16]; /* IPv4 as ::ffff:a.b.c.d */
	bool v2;        /* RoCE v2; else RoCE v1 */
	uint16_t index; /* index in the port's GID table */
	char ndev[HOST_NDEV_LEN];
	uint16_t vlan;    /* VLAN ID of the interface, 0 = none */
	uint32_t ifindex; /* index of the interface, 0 = unknown */
};

struct hca_port {
	char device[VNIC_HCA_NAME];
	uint8_t number; /* from 1 */
	/* Inode number of the device's directory, which distinguishes a new device of the same
	 * name. */
	uint64_t inode;
	uint8_t guid[8]; /* the device's node GUID; all zero = unknown */
	enum hca_kind kind;
	enum hca_state state;
	bool verbs;              /* the device has a verbs device that programs can open */
	char driver[HCA_TEXT];   /* "" = unknown */
	char firmware[HCA_TEXT]; /* "" = unknown */
	uint32_t speed_mbps;     /* 0 = unknown */
	struct port_rate rate;   /* width 0 = unknown */
	/* The largest path MTU in bytes that the interface permits; 0 = unknown. */
	uint16_t mtu;
	char ndev[HOST_NDEV_LEN];          /* the interface of the first GID; "" = none */
	uint8_t mac[ETHER_MAC_LEN];        /* all zero = unknown */
	uint16_t pkeys[VNIC_ATTACH_PKEYS]; /* the first entries of the P_Key table; 0 = empty */
	bool v1, v2;                       /* the port has GIDs of RoCE v1, of RoCE v2 */
	uint32_t n_gids;
	struct hca_gid gids[HCA_GIDS];
};

struct hca_list {
	uint32_t n;
	struct hca_port ports[HCA_PORTS]; /* in the order of hca_scan */
};

/*
 * Reads the ports below `sys`, where sysfs is mounted. Lists those of the device `first` (NULL =
 * none) if it exists, then the others by length of the device name, name, and port number; leaves
 * out ports beyond HCA_PORTS. A missing or unexpected file leaves its member unknown. The list is
 * incomplete if descriptors or memory were lacking (sysfs_take_shortage). If `first` is NULL and
 * the host has no RDMA device, the scan costs two open(2) at most.
 */
void hca_scan(const char *sys, const char *first, struct hca_list *list);

/* Whether the kernel's rdma_rxe executes the port's queue pairs, instead of hardware. */
bool hca_port_is_rdma_rxe(const struct hca_port *p);

const char *hca_kind_name(enum hca_kind kind);
const char *hca_state_name(enum hca_state state);

/* Returns the port of a device; number 0 = the device's first port. NULL: not in the list. */
const struct hca_port *hca_find_port(const struct hca_list *list, const char *device,
				     uint8_t number);

#endif
