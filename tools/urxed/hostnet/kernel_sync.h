/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Following the kernel: host and uplinks are what the kernel says of the uplinks'
 * interfaces, at the start and from then on.
 *
 * A change that the kernel tells of only says when to look: then everything is read
 * anew, so that what was lost on the way does no harm.
 */
#ifndef URXE_URXED_HOSTNET_KERNEL_SYNC_H
#define URXE_URXED_HOSTNET_KERNEL_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/hostnet/host.h"
#include "urxed/hostnet/iface.h"
#include "urxed/hostnet/netlink.h"
#include "urxed/hostnet/roce_port_guard.h"
#include "urxed/hostnet/route.h"
#include "urxed/uplink/uplink.h"

#define KERNEL_SYNC_ERROR 256

/* A VLAN interface: the kernel would answer RoCE there as on the uplink's own. */
struct kernel_vlan {
	int ifindex; /* 0 = none */
	struct roce_port_guard hold;
	bool refused; /* another holds it, and gives its addresses GIDs */
};

struct kernel_sync {
	struct netlink netlink;
	struct iface_table table;
	struct route route;
	struct kernel_vlan vlans[IFACE_MAX];
	struct host *host;
	struct uplink *uplinks;
	uint32_t n_uplinks;
	bool missing;      /* an uplink's interface is not there */
	uint32_t left_out; /* addresses that have no GID for want of room */
	bool stale;        /* to be read again */
};

/*
 * Reads what the kernel has of the uplinks into host and uplinks, which stay where they are. On
 * error `error` gets one sentence. Opens nothing where no uplink is an interface of the kernel.
 */
int kernel_sync_start(struct kernel_sync *k, struct host *host, struct uplink *uplinks,
		      uint32_t n_uplinks, char error[KERNEL_SYNC_ERROR]);
/* From now on the kernel's routes and neighbours serve neigh, if there is a kernel to ask. */
void kernel_sync_serve_neigh(struct kernel_sync *k, struct neigh *neigh);
/* Also one that is zeroed. */
void kernel_sync_stop(struct kernel_sync *k);

/* Readable when kernel_sync_update has something to do; -1 = it never has. */
int kernel_sync_fd(const struct kernel_sync *k);
/* Takes what has changed; true: host and uplinks were looked at again. */
bool kernel_sync_update(struct kernel_sync *k);

#endif
