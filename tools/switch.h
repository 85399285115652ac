/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The virtual switch: frames go from the vNICs of processes to each other and to
 * the uplinks.
 *
 * All processes share the host's MAC; what is sent to that goes by destination
 * QPN. A multicast datagram goes to all that are in a group, and their engines pick. Between
 * processes nothing is lost: a frame whose receiver has no buffer stays in the sender's ring, and
 * what is behind it too, until the receiver gives buffers back. One that does not for 100 ms is
 * stalled, and loses its frames.
 */
#ifndef URXE_TOOLS_SWITCH_H
#define URXE_TOOLS_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/device.h>

#include "host.h"
#include "lease.h"
#include "neigh.h"
#include "uplink.h"

#define SWITCH_UPLINKS 8
/* A process that has lost its core for some time slices is not stalled yet: 100 ms. */
#define SWITCH_STALL_NS 100000000ull
/* An uplink is hardware or a thread of its own: 10 ms. */
#define SWITCH_UPLINK_STALL_NS 10000000ull
/* How long to leave a full uplink alone: about what it takes to send a few long frames. */
#define SWITCH_RETRY_NS 50000ull

/* X(identifier, printed name, meaning) */
#define SWITCH_DROP_LIST(X)                                                                \
	X(RUNT, "runt", "no whole Ethernet header")                                        \
	X(SPOOFED, "spoofed_source", "a process sent from another MAC than the host's")    \
	X(NOT_ROCE, "not_roce", "neither RoCE nor the daemon's own ARP and ND")            \
	X(NOT_OURS, "not_ours", "from an uplink, to another MAC")                          \
	X(MULTICAST, "multicast", "RoCE to a multicast MAC, but to a single QP")           \
	X(NO_QP, "no_qp", "no process holds the destination QPN")                          \
	X(NO_UPLINK, "no_uplink", "to another host, but there is no uplink")               \
	X(TOO_LONG, "too_long", "longer than the receiver or the uplink takes")            \
	X(RX_DOWN, "rx_down", "the receiver's NIC is not active")                          \
	X(RX_STALLED, "rx_stalled", "the receiver has not given back a buffer for 100 ms") \
	X(RX_FULL, "rx_full", "from an uplink, and the receiver has no buffer")            \
	X(UPLINK_FULL, "uplink_full", "the uplink has not sent a frame for 10 ms")

#define SWITCH_DROP_ENUM(id, name, text) SWITCH_DROP_##id,
enum switch_drop { SWITCH_DROP_LIST(SWITCH_DROP_ENUM) SWITCH_DROP_COUNT };
const char *switch_drop_name(enum switch_drop drop);

/* A process. */
struct switch_port {
	struct switch_port *next;
	struct vnic_device *dev; /* NULL until there is one */
	uint64_t full_since;     /* when it last ran out of buffers; 0 = it has some */
	bool dirty;              /* its driver is to be told */
};

struct switch_fdb_entry {
	uint8_t mac[ETHER_MAC_LEN];
	uint8_t uplink;
	bool known;
};

#define SWITCH_FDB 256

struct vswitch {
	const struct host *host;
	struct neigh *neigh;
	struct uplink *uplinks;
	uint32_t n_uplinks;
	struct switch_port *ports;
	struct lease_table leases;
	uint64_t retry_at; /* when a frame that had to wait wants another try */
	uint64_t drops[SWITCH_DROP_COUNT];
	struct switch_fdb_entry fdb[SWITCH_FDB]; /* which uplink leads to a MAC */
};

void switch_init(struct vswitch *sw, const struct host *host, struct neigh *neigh,
		 struct uplink *uplinks, uint32_t n_uplinks);

/* Adds a port and leases it a block of QPNs. */
int switch_join(struct vswitch *sw, struct switch_port *port, uint32_t *qpn);
void switch_leave(struct vswitch *sw, struct switch_port *port);
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

/* Sends a frame of the daemon's own. */
void switch_send(struct vswitch *sw, int uplink, const uint8_t *frame, uint32_t len);

#endif
