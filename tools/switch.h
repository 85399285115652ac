/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The virtual switch: frames go between the vNICs of processes, the uplinks and
 * virtual machines.
 *
 * All processes share the host's MAC; what is sent to that goes by destination
 * QPN. A multicast datagram goes to all that are in a group, and their engines pick. Between
 * processes nothing is lost: a frame whose receiver has no buffer stays in the sender's ring, and
 * what is behind it too, until the receiver gives buffers back. One that does not for 100 ms is
 * stalled, and loses its frames.
 *
 * A virtual machine is a station of its own: its frames, of whatever kind, are
 * bridged to other machines and to uplinks, by VLAN and MAC. Uplinks are never
 * bridged to each other: two that lead to one network would make a loop.
 */
#ifndef URXE_TOOLS_SWITCH_H
#define URXE_TOOLS_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/regs.h>

#include "fdb.h"
#include "host.h"
#include "lease.h"
#include "neigh.h"
#include "switch_port.h"

#define SWITCH_UPLINKS FDB_PORTS
/* A process that has lost its core for some time slices is not stalled yet: 100 ms. */
#define SWITCH_STALL_NS 100000000ull
/* An uplink is hardware or a thread of its own: 10 ms. */
#define SWITCH_UPLINK_STALL_NS 10000000ull
/* How long to leave a full uplink alone: about what it takes to send a few long frames. */
#define SWITCH_RETRY_NS 50000ull

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
	struct remote_table remotes;
	struct fdb fdb;
	uint32_t wires, vms;  /* bits of the ports that are such */
	uint64_t now;         /* of the run that is under way */
	uint64_t retry_at;    /* when a frame that had to wait wants another try */
	switch_meet_fn *meet; /* NULL = nobody is introduced */
	switch_tap_fn *tap;   /* sees all frames; NULL = nobody looks */
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
 * anything runs. On error `why` gets one sentence.
 */
#define SWITCH_WHY 256
int switch_pin(struct vswitch *sw, const char *text, char why[SWITCH_WHY]);

/*
 * Adds the port of a process, which has a name, and leases it the block of QPNs that
 * begins with *qpn; 0 = any, which is told.
 */
int switch_join(struct vswitch *sw, struct switch_port *port, uint32_t *qpn);
void switch_leave(struct vswitch *sw, struct switch_port *port);
/*
 * A process is connected to a remote queue pair, or no longer; as often as it likes.
 * -EADDRINUSE: another one is; -ENOSPC: too many; -EINVAL: not a QPN of a connection;
 * -ENOENT: it was not.
 */
int switch_register(struct vswitch *sw, struct switch_port *port, const uint8_t gid[16],
		    uint32_t qpn);
int switch_unregister(struct vswitch *sw, struct switch_port *port, const uint8_t gid[16],
		      uint32_t qpn);
/*
 * Moves what a port has posted so far, as far as its receivers have room: for one
 * that is about to stop or to leave. The others hear of it from switch_run.
 */
void switch_drain(struct vswitch *sw, uint64_t now, struct switch_port *port);

/* Moves a burst from every port. False: nothing moved. */
bool switch_run(struct vswitch *sw, uint64_t now);
/* When to run again though nobody rings; UINT64_MAX = never. */
uint64_t switch_deadline(const struct vswitch *sw, uint64_t now);
/* Tells all drivers that the daemon sleeps, or does no longer. */
void switch_sleeping(struct vswitch *sw, bool asleep);

/* The port after `port`: the daemon's own after NULL, then uplinks, then processes. NULL: no more.
 */
const struct switch_port *switch_next_port(const struct vswitch *sw,
					   const struct switch_port *port);
/* Sums over all ports, also those that left. */
void switch_totals(const struct vswitch *sw, struct switch_stats *sums);

/*
 * Sends a frame of the daemon's own, which is meant for what an uplink leads to; VMs
 * are on the same Ethernet.
 */
void switch_send(struct vswitch *sw, int uplink, const uint8_t *frame, uint32_t len);

#endif
