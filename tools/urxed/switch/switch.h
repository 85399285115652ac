/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The virtual switch between the vNICs of processes, uplinks and virtual machines: its ports and
 * tables. forward.h moves the frames.
 *
 * All processes share the host's MAC, so the switch delivers frames to this MAC by destination QPN.
 * A multicast datagram goes to every process that has joined any group, and the process's engine
 * filters by group.
 *
 * A virtual machine is a separate station: its frames of any kind are bridged to other machines and
 * to uplinks by VLAN and MAC. Uplinks are never bridged to each other, because two uplinks to one
 * network would make a loop.
 */
#ifndef URXE_URXED_SWITCH_SWITCH_H
#define URXE_URXED_SWITCH_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/regs.h>

#include "urxed/bond/bond.h"
#include "urxed/bond/bond_probe.h"
#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh.h"
#include "urxed/session/qpn_lease.h"
#include "urxed/switch/announcement_limit.h"
#include "urxed/switch/switch_port.h"
#include "urxed/switch/tables/fdb.h"

/* Limit of the ports that the daemon opens at its start (--uplink). */
#define SWITCH_UPLINKS 8
/* Number of slots for the ports of --uplink, and for those of virtual machines that join later
 * (uplink/vm_port_set.h). */
#define SWITCH_SLOTS FDB_PORTS
/* Longest frame of a process in bytes; the tap sees all of it. */
#define SWITCH_TAP_ROOM VNIC_FRAME_MAX(VMXNET3_MAX_MTU)

struct vswitch {
	const struct host *host;
	struct neigh *neigh;
	struct uplink *uplinks;  /* has SWITCH_SLOTS entries if machines may join */
	uint32_t n_uplinks;      /* slots up to the last one in use; free ones have no port */
	struct switch_port self; /* the daemon's own port */
	struct switch_port uplink_ports[SWITCH_SLOTS];
	struct switch_port *ports; /* ports of processes */
	/* The ports of processes; the first has sent nothing for longest. */
	struct switch_port_list turns;
	uint32_t room;            /* frames that processes may still send in the current run */
	struct switch_stats left; /* sums of the counters of ports that were removed */
	struct lease_table leases;
	struct qpn_table added; /* which process has added which QPN; leases.added points to it */
	struct remote_qp_acl remotes;
	struct fdb fdb;
	bool learns_alone;           /* learns MACs even with a single port */
	uint32_t wire_mask, vm_mask; /* bit masks of uplinks, of VMs; a bond is its first member */
	/* Bit mask of ports of virtual machines whose MAC has turned out to be another station's.
	 * The caller of switch_run removes these ports. */
	uint32_t displaced;
	struct bond bond;         /* its mode is BOND_NONE if the uplinks are independent */
	uint64_t bond_counted_at; /* time of the last bond_host_count_frames */
	uint64_t bond_received[SWITCH_UPLINKS]; /* each member's frames at its last count */
	uint64_t bond_frames; /* frames that the kernel has counted on the members, minus those of
				 the switch, at bond_frames_at */
	uint64_t bond_frames_at;             /* time of that sample (bond_host_count_frames) */
	struct bond_target bond_target;      /* receiver of a frame that left by the bond lately */
	uint64_t bond_target_at;             /* time of that frame; 0 = none yet */
	struct announcement_limit announced; /* limits announcements to processes */
	uint64_t returned_at; /* time of the last announcement of this host; 0 = none yet */
	uint64_t now;         /* time of the current run */
	uint64_t retry_at;    /* when to retry a frame that had to wait; UINT64_MAX = none waits */
	switch_introduce_fn *introduce; /* NULL = processes are not introduced */
	switch_gsi_fn *gsi;             /* takes frames to the host's QP1; NULL = none */
	void *gsi_ctx;
	switch_tap_fn *tap; /* sees all frames; NULL = no capture runs */
	void *tap_ctx;
	uint8_t tap_frame[SWITCH_TAP_ROOM];
};

/* Makes the switch and its tables. DPDK's EAL must run, because the hash tables need it. Returns 0,
 * or a negative errno value, after which the caller has nothing to close. */
int switch_init(struct vswitch *sw, const struct host *host, struct neigh *neigh,
		struct uplink *uplinks, uint32_t n_uplinks);
/* Frees the tables. Call it when all processes have left; accepts a zeroed switch. */
void switch_fini(struct vswitch *sw);

/* Adds or removes the port of sw->uplinks[index], which the caller has filled in, when a virtual
 * machine joins or leaves. Call it between two runs of the switch. */
void switch_add_vm_port(struct vswitch *sw, uint32_t index);
void switch_remove_vm_port(struct vswitch *sw, uint32_t index);

/*
 * Pins a MAC to a port, for --fdb at the daemon's start. `text` is as for fdb_parse, where PORT is
 * the port's number, or its specification up to a comma or the end. Returns 0, or a negative errno
 * value and a sentence in `error`.
 */
#define SWITCH_ERROR 256
int switch_pin(struct vswitch *sw, const char *text, char error[SWITCH_ERROR]);

/*
 * Adds the port of a process of user port->remotes.user, and leases the block of QPNs that begins
 * with *qpn to the process. *qpn 0: leases any block, and sets *qpn to its first QPN. `now` in ns.
 * Returns 0, or an error of lease_take or lease_take_block, after which nothing is added.
 */
int switch_join(struct vswitch *sw, struct switch_port *port, uint64_t now, uint32_t *qpn);
/* Leases another block to a process that has joined. Takes *qpn, and returns, as switch_join. */
int switch_lease(struct vswitch *sw, struct switch_port *port, uint64_t now, uint32_t *qpn);
void switch_leave(struct vswitch *sw, struct switch_port *port);
/* Adds a QPN to the process (VNIC_ATTACH_QPN_ADD). Returns as qpn_table_add; also -EEXIST if
 * another process has leased the QPN's block, or may claim it. */
int switch_add_qpn(struct vswitch *sw, struct switch_port *port, uint32_t qpn, uint32_t flags);
/*
 * These add or remove the remote QP of the process's QP `local` (remote_qp_acl.h). They return 0,
 * or an error of remote_qp_acl_add or remote_qp_acl_remove, such as -ENOSPC: too many. -EINVAL:
 * `qpn` cannot be connected; -EACCES: `local` is not the process's; -ENOENT: the remote QP was not
 * added.
 */
int switch_add_remote(struct vswitch *sw, struct switch_port *port, uint32_t local,
		      const uint8_t gid[16], uint32_t qpn);
int switch_remove_remote(struct vswitch *sw, struct switch_port *port, uint32_t local,
			 const uint8_t gid[16], uint32_t qpn);
/*
 * Call it for each frame from process `from` to QPN qpn of process `to`. Calls sw->introduce
 * if a process has leased the QPN's block, and if switch_introduce_fn does not forbid a call now.
 * Datagram QPs need this, because no connect request names their peer.
 */
void switch_introduce(struct vswitch *sw, struct switch_port *from, struct switch_port *to,
		      uint32_t qpn);

/* Returns the port after `port`: the daemon's own after NULL, then uplinks and VMs, then processes;
 * NULL: `port` was the last one. */
const struct switch_port *switch_next_port(const struct vswitch *sw,
					   const struct switch_port *port);
/* Sums the counters of all ports, including removed ones. */
void switch_totals(const struct vswitch *sw, struct switch_stats *sums);

/* Returns whether it is the host's MAC, the MAC of one of its uplinks, or that of a VLAN interface
 * in `vlan`. */
bool switch_is_host_mac(const struct vswitch *sw, const uint8_t mac[ETHER_MAC_LEN], uint16_t vlan);

#endif
