/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps the host's addresses, the uplinks and their link state in step with the kernel's
 * interfaces. The main loop calls kernel_sync_update when the kernel reports a change, and at
 * kernel_sync_deadline.
 *
 * A report only triggers a full read, so lost reports do no harm.
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
 * A VLAN interface of an uplink, with the socket that occupies its UDP port 4791
 * (roce_port_guard.h). The socket stays valid if the interface moves to another namespace and back:
 * it is bound to the ifindex, which stays.
 */
struct kernel_vlan {
	int ifindex; /* 0 = unused */
	struct roce_port_guard port_guard;
	/* Another program has UDP port 4791, so the interface's addresses get no GIDs. */
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
	 * Tells whether a VLAN interface has an RDMA device (rdma_rxe), which may have UDP port
	 * 4791. If it has one, and the port is taken, the addresses of the interface get GIDs
	 * nevertheless.
	 */
	const struct hca_monitor *hca;
	bool missing;      /* an uplink's interface does not exist */
	uint32_t left_out; /* addresses without a GID, because the host's GID table is full */
	bool notifies;     /* the kernel has reported an announcement (iface_notifies_peers) that
			      kernel_sync_take_notice has not returned yet */
	bool must_read;    /* the kernel has reported a change: `table` must be read again */
	bool read_failed;  /* the last attempt to read `table` failed, which the log has */
	/*
	 * When to try again, ns of now_ns(), because the kernel's state could not be read, an
	 * uplink could not be opened, or UDP port 4791 of a VLAN interface could not be taken;
	 * UINT64_MAX = no need.
	 */
	uint64_t retry_at;
	uint64_t pause_ns; /* from the last attempt to open uplinks to retry_at */
	uint32_t refused;  /* bit i: the last attempt to open uplinks[i] failed, and the log has a
			      line */
};

/*
 * Reads the kernel's state into host and uplinks, which the caller keeps. Opens nothing if no
 * uplink is a kernel interface. Returns 0, also if the state keeps changing: kernel_sync_update
 * reads it then. Or a negative errno value, and `error` holds a sentence.
 */
int kernel_sync_start(struct kernel_sync *k, struct host *host, struct uplink *uplinks,
		      uint32_t n_uplinks, const struct hca_monitor *hca,
		      char error[KERNEL_SYNC_ERROR]);
/* Lets neigh use the kernel's routes and neighbours, if some uplink is a kernel interface. */
void kernel_sync_serve_neigh(struct kernel_sync *k, struct neigh *neigh);
/* Accepts a zeroed object. */
void kernel_sync_stop(struct kernel_sync *k);

/* Readable when kernel_sync_update has work; -1 = never. */
int kernel_sync_fd(const struct kernel_sync *k);
/* When kernel_sync_update has work without a report, ns of now_ns(); UINT64_MAX = never. */
uint64_t kernel_sync_deadline(const struct kernel_sync *k);
/*
 * Handles the kernel's pending reports; neigh learns of neighbours. At kernel_sync_deadline opens
 * uplinks that could not be opened, and takes UDP port 4791 of VLAN interfaces where that failed.
 * Returns true if the caller must look at host and uplinks again.
 */
bool kernel_sync_update(struct kernel_sync *k);
/*
 * Whether an interface of an uplink has announced its addresses to its peers since the last call.
 * The host has then migrated, or a bond of the kernel has changed its active member, so frames to
 * this host may be lost.
 */
bool kernel_sync_take_notice(struct kernel_sync *k);

#endif
