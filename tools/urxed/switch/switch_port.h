/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ports of the switch and their counters.
 *
 * A frame is counted in at the port that it came from. Each copy is then counted once: out at the
 * port that got the copy, or as a drop at the port where it was dropped. So for the sums over all
 * ports, apart from frames in transmit queues of uplinks and VMs:
 *
 * in_frames + copies = out_frames + drops
 */
#ifndef URXE_URXED_SWITCH_SWITCH_PORT_H
#define URXE_URXED_SWITCH_SWITCH_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <vnic/device.h>

#include "urxed/session/qpn_lease.h"
#include "urxed/switch/tables/remote_qp_acl.h"
#include "urxed/uplink/uplink.h"

#define SWITCH_PORT_NAME 64

enum switch_port_kind {
	SWITCH_URXED,   /* the daemon itself: ARP, ND and QP1 */
	SWITCH_UPLINK,  /* an interface on the Ethernet to other hosts */
	SWITCH_VM,      /* a virtual machine's NIC */
	SWITCH_PROCESS, /* a process's vNIC */
};
/* Returns "urxed", "uplink", "vm" or "process". */
const char *switch_port_kind_name(enum switch_port_kind kind);

/* The counters of a port, each as X(identifier, printed name, meaning). */
#define SWITCH_COUNTER_LIST(X)                                           \
	X(IN_FRAMES, "in_frames", "frames from the port")                \
	X(IN_BYTES, "in_bytes", "bytes of these frames")                 \
	X(OUT_FRAMES, "out_frames", "frames delivered to the port")      \
	X(OUT_BYTES, "out_bytes", "bytes of these frames")               \
	X(COPIES, "copies", "additional copies of frames from the port") \
	X(UNLEARNED, "unlearned",                                        \
	  "source MACs not learned because the port's share of the table is full")

#define SWITCH_COUNTER_ENUM(id, name, text) SWITCH_##id,
enum switch_counter { SWITCH_COUNTER_LIST(SWITCH_COUNTER_ENUM) SWITCH_COUNTER_COUNT };

/* The reasons of drops, each as X(identifier, printed name, meaning). */
#define SWITCH_DROP_LIST(X)                                                                      \
	X(RUNT, "runt", "no complete Ethernet header")                                           \
	X(BOND_COPY, "bond_copy",                                                                \
	  "from a bond's member: a frame of this host, or a copy of a frame that the bond "      \
	  "accepts from another member")                                                         \
	X(SOCKET_COPY, "socket_copy",                                                            \
	  "from an uplink, to a process that also receives it by its own packet socket")         \
	X(SPOOFED_MAC, "spoofed_mac", "a source MAC that the sender may not use")                \
	X(SPOOFED_IP, "spoofed_ip",                                                              \
	  "a process used a source address that the host does not have in that VLAN, or a "      \
	  "station used an address of the host or a pinned one, or sent ARP or neighbour "       \
	  "discovery that the switch cannot check")                                              \
	X(SPOOFED_QPN, "spoofed_qpn",                                                            \
	  "a process sent a datagram from a QPN that it has not leased")                         \
	X(UNREGISTERED, "unregistered",                                                          \
	  "a process sent to a remote QP to which it is not connected")                          \
	X(NOT_MUTUAL, "not_mutual",                                                              \
	  "a process sent to a QP of this host that is not connected to its own QP")             \
	X(CONTESTED, "contested",                                                                \
	  "a process sent to a remote QP that is connected to another process")                  \
	X(MANAGEMENT, "management",                                                              \
	  "a process sent from or to QP0 or QP1, which belong to the daemon")                    \
	X(MALFORMED, "malformed",                                                                \
	  "a process sent a fragment, or a packet whose length fields disagree")                 \
	X(NO_SERVICE, "no_service", "a process sent an opcode of neither RC, UC, UD nor CNP")    \
	X(NOT_ROCE, "not_roce", "neither RoCE nor the daemon's own ARP and ND")                  \
	X(NOT_OURS, "not_ours",                                                                  \
	  "from an uplink or a VM, to a MAC that is neither the host's nor behind another port") \
	X(MULTICAST, "multicast", "RoCE to a multicast MAC, but not to the multicast QPN")       \
	X(UNHEARD, "unheard", "to a group that no other port receives")                          \
	X(NO_QP, "no_qp", "no process holds the destination QPN")                                \
	X(NO_UPLINK, "no_uplink", "to another host, but no port leads to it")                    \
	X(TOO_LONG, "too_long", "longer than the receiver's MTU allows")                         \
	X(RX_DOWN, "rx_down", "the receiver's NIC is not active")                                \
	X(RX_STALLED, "rx_stalled",                                                              \
	  "the receiver has no buffer, and the sender has spent its 100 ms for waits")           \
	X(RX_FULL, "rx_full", "the receiver has no buffer, and the frame cannot wait")           \
	X(UPLINK_FULL, "uplink_full",                                                            \
	  "the uplink's or VM's queue is full, and the frame cannot wait or waited 10 ms, or "   \
	  "the sender has spent its 100 ms for waits")                                           \
	X(UPLINK_GONE, "uplink_gone",                                                            \
	  "the uplink's interface does not exist, or the uplink or VM went with its queue")      \
	X(UPLINK_DOWN, "uplink_down", "the uplink's interface has no link")

#define SWITCH_DROP_ENUM(id, name, text) SWITCH_DROP_##id,
enum switch_drop { SWITCH_DROP_LIST(SWITCH_DROP_ENUM) SWITCH_DROP_COUNT };
#define SWITCH_NO_DROP SWITCH_DROP_COUNT
/* Returns NULL for SWITCH_NO_DROP. */
const char *switch_drop_name(enum switch_drop drop);

struct switch_stats {
	uint64_t counters[SWITCH_COUNTER_COUNT];
	uint64_t drops[SWITCH_DROP_COUNT];
};
/* Adds b to a. */
void switch_stats_add(struct switch_stats *a, const struct switch_stats *b);

TAILQ_HEAD(switch_port_list, switch_port);

struct switch_port {
	struct switch_port *next;
	TAILQ_ENTRY(switch_port) turn; /* link in the switch's `turns`, for a process */
	enum switch_port_kind kind;
	uint32_t number; /* unique among the present ports */
	char name[SWITCH_PORT_NAME];
	struct switch_stats stats;
	struct uplink *uplink;
	uint64_t moved_at;              /* uplink or VM: time of its last frame, sent or received */
	struct remote_qp_owner remotes; /* process: remote QPs to which it may send */
	struct qpn_holder added;        /* process: the QPNs that it has added (qpn_table.h) */
	struct vnic_device *dev;        /* process: its NIC; NULL before it exists */
	uint64_t waited;                /* process: spent part of its budget, ns (deliver.h) */
	uint64_t settled_at;            /* time up to which `waited` accounts for waits */
	uint32_t taken;   /* uplink or VM: frames that it took and no sender has counted yet */
	bool dirty;       /* the driver must be notified of received frames */
	uint32_t waiting; /* bit mask of transmit queues whose first frame waits */
	/*
	 * Bit mask of QPN blocks. Either the daemon has introduced this process to the block's
	 * owner, so that it can send to the owner's inbox, past the switch (switch_introduce_fn);
	 * or the daemon will never do so.
	 */
	uint64_t introduction_settled[LEASE_BLOCKS / 64];
	uint64_t introduce_at; /* no introduction of this process before this time, ns */
	/* Bit mask of uplinks: the process has packet sockets of its own on them (direct_uplink.h).
	 */
	uint32_t sockets;
	/* Bit mask of uplinks, valid until closing_until (ns): the process has to close its packet
	 * sockets on them, but may not have closed them yet. */
	uint32_t closing_sockets;
	uint64_t closing_until;
	bool held_up; /* a frame has waited for a process or VM since settled_at */
	bool ending;  /* the process ends: its frames no longer wait for receivers */
	bool held;    /* the frame being forwarded has waited: in_frames counts it already */
};

enum switch_direction { SWITCH_IN, SWITCH_OUT };

/*
 * Called for each frame that comes from a port or goes to a port. drop: the reason why the frame is
 * dropped, or SWITCH_NO_DROP. The bytes are those that the switch has checked, and do not change
 * during the call.
 */
typedef void switch_tap_fn(void *ctx, const struct switch_port *port, enum switch_direction dir,
			   const uint8_t *data, uint32_t len, enum switch_drop drop);

/* Takes a frame for the host's QP1. */
typedef void switch_gsi_fn(void *ctx, uint64_t now, const uint8_t *frame, uint32_t len);

/*
 * Introduces two processes: gives `from` the inbox of `to`, so that later frames bypass the switch.
 * The switch calls it when `from` sends its first frame to a QPN of `to`. Returns 0; -EPERM if they
 * may not share an inbox, so that frames go on passing the switch; -EAGAIN if `from` does not read
 * its notices; -ENOENT if `to` has no inbox yet. After -EAGAIN and -ENOENT the switch calls again
 * at the next frame, after another negative errno value at the next frame that comes 100 ms later
 * or more.
 */
typedef int switch_introduce_fn(struct switch_port *from, struct switch_port *to, uint32_t qpn);

#endif
