/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The virtual switch between the vNICs of processes, uplinks and virtual machines: its ports and
 * tables. forward.h moves the frames.
 *
 * All processes share the host's MAC, so frames to this MAC go by destination QPN. A multicast
 * datagram goes to every process that joined any group, and the process's engine filters by group.
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
/*
 * Slots for ports of --uplink, and for those of virtual machines that join later
 * (uplink/vm_port_set.h).
 */
#define SWITCH_SLOTS FDB_PORTS
/* Longest frame of a process, which the tap is shown in full; bytes. */
#define SWITCH_TAP_ROOM VNIC_FRAME_MAX(VMXNET3_MAX_MTU)

struct vswitch {
	const struct host *host;
	struct neigh *neigh;
	struct uplink *uplinks;  /* SWITCH_SLOTS of them if machines join */
	uint32_t n_uplinks;      /* slots up to the last one in use; free ones have no port */
	struct switch_port self; /* the daemon's own port */
	struct switch_port uplink_ports[SWITCH_SLOTS];
	struct switch_port *ports; /* ports of processes */
	/* These ports; first the one that has sent nothing for longest. */
	struct switch_port_list turns;
	uint32_t room;            /* frames that processes may still send in the current run */
	struct switch_stats left; /* sums of the counters of removed ports */
	struct lease_table leases;
	struct qpn_table added; /* QPNs that processes have added; leases.added points to it */
	struct remote_qp_acl remotes;
	struct fdb fdb;
	bool learns_alone;           /* learns MACs also while it has a single port */
	uint32_t wire_mask, vm_mask; /* bit masks of ports; a bond counts as its first member */
	/* Bit mask of ports of machines whose MAC has turned out to be another station's. The
	 * caller of switch_run removes these ports. */
	uint32_t displaced;
	struct bond bond;         /* with mode BOND_NONE if the uplinks are independent */
	uint64_t bond_counted_at; /* time of the last bond_host_count_frames */
	uint64_t bond_received[SWITCH_UPLINKS]; /* frames that each member had received then */
	uint64_t bond_frames; /* frames that the kernel has counted on the members, minus those of
				 the switch, at bond_frames_at */
	uint64_t bond_frames_at;             /* time of that sample (bond_host_count_frames) */
	struct bond_target bond_target;      /* receiver of a frame sent through the bond lately */
	uint64_t bond_target_at;             /* time of that frame; 0 = none yet */
	struct announcement_limit announced; /* limits announcements to processes */
	uint64_t returned_at; /* last announcement of this host to processes; 0 = none yet */
	uint64_t now;         /* time of the current run */
	uint64_t retry_at;    /* when to retry a frame that had to wait; UINT64_MAX = none waits */
	switch_introduce_fn *introduce; /* NULL = processes are not introduced */
	switch_gsi_fn *gsi;             /* takes frames for the host's QP1; NULL = none */
	void *gsi_ctx;
	switch_tap_fn *tap; /* sees all frames; NULL = no capture runs */
	void *tap_ctx;
	uint8_t tap_frame[SWITCH_TAP_ROOM];
};

/*
 * Makes the switch and its tables. DPDK's EAL must run, for the hash tables. Returns 0, or a
 * negative errno value; then nothing needs to be closed.
 */
int switch_init(struct vswitch *sw, const struct host *host, struct neigh *neigh,
		struct uplink *uplinks, uint32_t n_uplinks);
/* Frees the tables. Called when all processes have left; allowed for a zeroed switch. */
void switch_fini(struct vswitch *sw);

/*
 * Adds or removes the port of sw->uplinks[index], which the caller has filled in: a virtual machine
 * that joins or leaves while the daemon runs. Call it between two runs.
 */
void switch_add_vm_port(struct vswitch *sw, uint32_t index);
void switch_remove_vm_port(struct vswitch *sw, uint32_t index);

/*
 * Pins a MAC to a port, for --fdb at the daemon's start. `text` is as for fdb_parse; the port is
 * named by its number or by its specification up to the first comma. Returns 0; or a negative errno
 * value, and then `error` holds a sentence.
 */
#define SWITCH_ERROR 256
int switch_pin(struct vswitch *sw, const char *text, char error[SWITCH_ERROR]);

/*
 * Adds the port of a process of user port->remotes.user, and leases it the block of QPNs that
 * begins with *qpn; 0 = any block, whose first QPN is stored in *qpn. Returns 0; or an error of
 * lease_take or lease_take_block, and adds nothing. `now` in ns.
 */
int switch_join(struct vswitch *sw, struct switch_port *port, uint64_t now, uint32_t *qpn);
/* Leases another block to a process that has joined; *qpn and result as for switch_join. */
int switch_lease(struct vswitch *sw, struct switch_port *port, uint64_t now, uint32_t *qpn);
void switch_leave(struct vswitch *sw, struct switch_port *port);
/*
 * Adds a QPN to the process (VNIC_ATTACH_QPN_ADD), changes its flags (VNIC_QPN_*), or removes it.
 * Results as of the functions of qpn_table.h. -EEXIST also if another process has leased the QPN's
 * block, or may claim it.
 */
int switch_add_qpn(struct vswitch *sw, struct switch_port *port, uint32_t qpn, uint32_t flags);
int switch_set_qpn(struct vswitch *sw, struct switch_port *port, uint32_t qpn, uint32_t flags);
int switch_remove_qpn(struct vswitch *sw, struct switch_port *port, uint32_t qpn);
/*
 * Adds or removes the remote QP of the process's QP `local` (remote_qp_acl.h). Returns 0, or an
 * error of remote_qp_acl_add or remote_qp_acl_remove. -ENOSPC: too many; -EINVAL: `qpn` cannot be
 * connected; -EACCES: `local` is not the process's; -ENOENT: not added before.
 */
int switch_add_remote(struct vswitch *sw, struct switch_port *port, uint32_t local,
		      const uint8_t gid[16], uint32_t qpn);
int switch_remove_remote(struct vswitch *sw, struct switch_port *port, uint32_t local,
			 const uint8_t gid[16], uint32_t qpn);
/*
 * Calls sw->introduce at the first frame from process `from` to QPN qpn of process `to`; once for
 * each block of QPNs, if it succeeds. Datagram QPs need this, because they have no connect request
 * that names the peer.
 */
void switch_introduce(struct vswitch *sw, struct switch_port *from, struct switch_port *to,
		      uint32_t qpn);

/*
 * Returns the port after `port`: the daemon's own after NULL, then uplinks and VMs, then processes;
 * NULL = end.
 */
const struct switch_port *switch_next_port(const struct vswitch *sw,
					   const struct switch_port *port);
/* Sums over all ports, including removed ones. */
void switch_totals(const struct vswitch *sw, struct switch_stats *sums);

/* Is it the host's MAC, the MAC of one of its uplinks, or that of a VLAN interface in `vlan`? */
bool switch_is_host_mac(const struct vswitch *sw, const uint8_t mac[ETHER_MAC_LEN], uint16_t vlan);

#endif
