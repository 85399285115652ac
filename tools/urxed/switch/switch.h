/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The virtual switch, which joins the vNICs of processes, the uplinks and virtual
 * machines: who is there, and what was promised to whom. switch_run.h moves the frames.
 *
 * All processes share the host's MAC; what is sent to that goes by destination
 * QPN. A multicast datagram goes to all that are in a group, and their engines pick.
 *
 * A virtual machine is a station of its own: its frames, of whatever kind, are
 * bridged to other machines and to uplinks, by VLAN and MAC. Uplinks are never
 * bridged to each other: two that lead to one network would make a loop.
 */
#ifndef URXE_URXED_SWITCH_SWITCH_H
#define URXE_URXED_SWITCH_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/regs.h>

#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh.h"
#include "urxed/session/qpn_lease.h"
#include "urxed/switch/fdb.h"
#include "urxed/switch/port.h"

#define SWITCH_UPLINKS FDB_PORTS
/* What a tap is shown of a process's frame at most, bytes: all of the longest. */
#define SWITCH_TAP_ROOM VNIC_FRAME_MAX(VMXNET3_MAX_MTU)

struct vswitch {
	const struct host *host;
	struct neigh *neigh;
	struct uplink *uplinks;
	uint32_t n_uplinks;
	struct switch_port self; /* the daemon's own */
	struct switch_port uplink_ports[SWITCH_UPLINKS];
	struct switch_port *ports; /* of processes */
	struct switch_stats left;  /* what was counted at ports that are no more */
	struct lease_table leases;
	struct remote_qp_acl remotes;
	struct fdb fdb;
	uint32_t wires, vms;       /* bits of the ports that are such */
	uint64_t now;              /* of the run that is under way */
	uint64_t retry_at;         /* when a frame that had to wait wants another try */
	switch_introduce_fn *meet; /* NULL = nobody is introduced */
	switch_gsi_fn *gsi;        /* takes what is for the host's QP1; NULL = nobody does */
	void *gsi_ctx;
	switch_tap_fn *tap; /* sees all frames; NULL = nobody looks */
	void *tap_ctx;
	uint8_t tap_frame[SWITCH_TAP_ROOM];
};

/*
 * DPDK's environment has to be up, for the tables. 0, or a negative errno value;
 * then nothing is left.
 */
int switch_init(struct vswitch *sw, const struct host *host, struct neigh *neigh,
		struct uplink *uplinks, uint32_t n_uplinks);
/* When all processes have left; also for one that is all 0. */
void switch_fini(struct vswitch *sw);

/*
 * A MAC that a port leads to for good, and that no other port sends from; text as fdb_parse
 * has it, the port by its number or its specification up to the first comma. Before
 * anything runs. On error `error` gets one sentence.
 */
#define SWITCH_ERROR 256
int switch_pin(struct vswitch *sw, const char *text, char error[SWITCH_ERROR]);

/*
 * Adds the port of a process, which has a name, and leases it the block of QPNs that
 * begins with *qpn; 0 = any, which is told.
 */
int switch_join(struct vswitch *sw, struct switch_port *port, uint32_t *qpn);
/* Leases it another one, likewise. */
int switch_lease(struct vswitch *sw, struct switch_port *port, uint32_t *qpn);
void switch_leave(struct vswitch *sw, struct switch_port *port);
/*
 * A process is connected to a remote queue pair, or no longer; as often as it likes.
 * -EADDRINUSE: another one is; -ENOSPC: too many; -EINVAL: not a QPN of a connection;
 * -ENOENT: it was not.
 */
int switch_add_remote(struct vswitch *sw, struct switch_port *port, const uint8_t gid[16],
		      uint32_t qpn);
int switch_remove_remote(struct vswitch *sw, struct switch_port *port, const uint8_t gid[16],
			 uint32_t qpn);
/*
 * `from` has a frame for a process that did not ask for it, as datagrams do not: a
 * process's first one, to that QPN, makes the two meet.
 */
void switch_introduce(struct vswitch *sw, struct switch_port *from, struct switch_port *to,
		      uint32_t qpn);

/* The port after `port`: urxed's own after NULL, then uplinks, then processes. NULL: no more. */
const struct switch_port *switch_next_port(const struct vswitch *sw,
					   const struct switch_port *port);
/* Sums over all ports, also those that left. */
void switch_totals(const struct vswitch *sw, struct switch_stats *sums);

/* One of the host's own MACs, of which each uplink may have its own. */
bool switch_is_host_mac(const struct vswitch *sw, const uint8_t mac[ETHER_MAC_LEN]);

#endif
