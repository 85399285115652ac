/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps the host's addresses, the uplinks and their link state in agreement with the kernel's
 * interfaces. The main loop calls kernel_sync_update when the kernel reports a change, and at
 * kernel_sync_deadline.
 *
 * A report only makes urxed read all of the kernel's state again, so lost reports do no harm.
 */
#ifndef URXE_URXED_KERNEL_KERNEL_SYNC_H
#define URXE_URXED_KERNEL_KERNEL_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/hca/hca_monitor.h"
#include "urxed/hostnet/host.h"
#include "urxed/hostnet/route.h"
#include "urxed/kernel/iface.h"
#include "urxed/kernel/netlink.h"
#include "urxed/kernel/roce_port_guard.h"
#include "urxed/uplink/uplink.h"

#define KERNEL_SYNC_ERROR 256

/*
 * A VLAN interface of an uplink, with the socket that is bound to its UDP port 4791
 * (roce_port_guard.h). The socket stays valid if the interface moves to another namespace and back,
 * because it is bound to the ifindex, which does not change.
 */
struct kernel_vlan {
	int ifindex; /* 0 = unused */
	struct roce_port_guard port_guard;
	/* UDP port 4791 could not be bound, and no RoCE device of the interface may have it: so the
	 * interface's addresses get no GIDs. */
	bool refused;
};

struct kernel_sync {
	struct netlink netlink;
	struct iface_table table;
	struct route route;
	struct kernel_vlan vlans[IFACE_MAX];
	struct host *host;
	struct uplink *uplinks;
	uint32_t n_uplinks;
	/*
	 * Tells whether a VLAN interface has a RoCE device, as of rdma_rxe, which may have bound
	 * UDP port 4791. If so, the addresses of the interface get GIDs although another socket has
	 * the port.
	 */
	const struct hca_monitor *hca;
	bool missing;      /* an uplink's interface does not exist */
	uint32_t left_out; /* addresses without a GID, because `table` or the GID table is full */
	bool notifies;     /* iface_notifies_peers has become true since the last
			      kernel_sync_take_notice */
	bool must_read;    /* the kernel has reported a change: `table` must be read again */
	bool read_failed;  /* the last attempt to read `table` failed; the log has a line */
	/*
	 * Time of the next attempt, ns of now_ns(), if the kernel's state could not be read, an
	 * uplink could not be opened, or UDP port 4791 of a VLAN interface could not be bound;
	 * otherwise UINT64_MAX.
	 */
	uint64_t retry_at;
	uint64_t pause_ns; /* from the last attempt to open uplinks to the next one */
	uint32_t refused;  /* bit i: the last attempt to open uplinks[i] failed, and the log says
			      so */
};

/*
 * Reads the kernel's state into host and uplinks, which the caller keeps. Opens nothing if no
 * uplink is a kernel interface. Returns 0, or a negative errno value and a sentence in `error`.
 * Also returns 0 if the state keeps changing; kernel_sync_update then reads it later.
 */
int kernel_sync_start(struct kernel_sync *k, struct host *host, struct uplink *uplinks,
		      uint32_t n_uplinks, const struct hca_monitor *hca,
		      char error[KERNEL_SYNC_ERROR]);
/* Lets neigh use the kernel's routes and neighbours, if some uplink is a kernel interface. */
void kernel_sync_serve_neigh(struct kernel_sync *k, struct neigh *neigh);
/* Accepts a zeroed structure. */
void kernel_sync_stop(struct kernel_sync *k);

/* Returns a descriptor that is readable when kernel_sync_update has work; -1: it never has. */
int kernel_sync_fd(const struct kernel_sync *k);
/* Returns when kernel_sync_update has work without a report, ns of now_ns(); UINT64_MAX: it has
 * none. */
uint64_t kernel_sync_deadline(const struct kernel_sync *k);
/*
 * Handles the kernel's pending reports, and passes those about neighbours to neigh. At
 * kernel_sync_deadline tries again to open uplinks, and to bind UDP port 4791 of VLAN interfaces.
 * Returns true if host or uplinks may have changed.
 */
bool kernel_sync_update(struct kernel_sync *k);
/*
 * Returns whether an interface of an uplink has announced its addresses to its peers since the last
 * call. The host has then migrated, or a bond of the kernel has changed its active member, so
 * frames to this host may have been lost.
 */
bool kernel_sync_take_notice(struct kernel_sync *k);

#endif
