/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What stands behind a port of the switch, and what is counted there.
 *
 * A frame is counted in at the port that it came from. Then each copy of it is
 * counted once: out at the port that got it, or dropped, where it happened. So over
 * all ports, and without what still waits in the queue of an uplink,
 *
 *   in_frames + copies = out_frames + drops
 */
#ifndef URXE_URXED_SWITCH_PORT_H
#define URXE_URXED_SWITCH_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/device.h>

#include "urxed/session/qpn_lease.h"
#include "urxed/switch/remote_qp_acl.h"
#include "urxed/uplink/uplink.h"

#define SWITCH_PORT_NAME 64

enum switch_port_kind {
	SWITCH_URXED,   /* the daemon itself: ARP, ND and QP1 */
	SWITCH_UPLINK,  /* a real Ethernet */
	SWITCH_VM,      /* a virtual machine's NIC */
	SWITCH_PROCESS, /* a process's vNIC */
};
/* "urxed", "uplink", "vm", "process" */
const char *switch_port_kind_name(enum switch_port_kind kind);

/* X(identifier, printed name, meaning) */
#define SWITCH_COUNTER_LIST(X)                                         \
	X(IN_FRAMES, "in_frames", "frames that came from the port")    \
	X(IN_BYTES, "in_bytes", "bytes of them")                       \
	X(OUT_FRAMES, "out_frames", "frames that were given to it")    \
	X(OUT_BYTES, "out_bytes", "bytes of them")                     \
	X(COPIES, "copies", "more copies of frames that came from it") \
	X(UNLEARNED, "unlearned", "source MACs that were not learned, since it has its share")

#define SWITCH_COUNTER_ENUM(id, name, text) SWITCH_##id,
enum switch_counter { SWITCH_COUNTER_LIST(SWITCH_COUNTER_ENUM) SWITCH_COUNTER_COUNT };
const char *switch_counter_name(enum switch_counter counter);

/* X(identifier, printed name, meaning) */
#define SWITCH_DROP_LIST(X)                                                                        \
	X(RUNT, "runt", "no whole Ethernet header")                                                \
	X(SPOOFED_MAC, "spoofed_mac", "from a MAC that is not the sender's to use")                \
	X(SPOOFED_IP, "spoofed_ip",                                                                \
	  "a process sent from an address that the host does not have in that VLAN, or a station " \
	  "from one that it has")                                                                  \
	X(SPOOFED_QPN, "spoofed_qpn",                                                              \
	  "a process sent a datagram from a QPN that it has not leased")                           \
	X(UNREGISTERED, "unregistered",                                                            \
	  "a process sent to a remote QP to which it is not connected")                            \
	X(MANAGEMENT, "management",                                                                \
	  "a process sent from or to QP0 or QP1, which are the daemon's")                          \
	X(MALFORMED, "malformed",                                                                  \
	  "a process sent what hosts may read differently: a fragment, or lengths that disagree")  \
	X(NO_SERVICE, "no_service", "a process sent with an opcode of no RC, UC, UD or CNP")       \
	X(NOT_ROCE, "not_roce", "neither RoCE nor the daemon's own ARP and ND")                    \
	X(NOT_OURS, "not_ours",                                                                    \
	  "from an uplink or a VM, to a MAC that is neither ours nor behind another port")         \
	X(MULTICAST, "multicast", "RoCE to a multicast MAC, but to a single QP")                   \
	X(UNHEARD, "unheard", "to a group, and nobody else is there to hear it")                   \
	X(NO_QP, "no_qp", "no process holds the destination QPN")                                  \
	X(NO_UPLINK, "no_uplink", "to another host, but there is no port that leads out")          \
	X(TOO_LONG, "too_long", "longer than the receiver takes")                                  \
	X(RX_DOWN, "rx_down", "the receiver's NIC is not active")                                  \
	X(RX_STALLED, "rx_stalled", "the receiver has not given back a buffer for 100 ms")         \
	X(RX_FULL, "rx_full", "cannot wait, and the receiver has no buffer")                       \
	X(UPLINK_FULL, "uplink_full",                                                              \
	  "the uplink or VM has no room, and the frame cannot wait or has for 10 ms")              \
	X(UPLINK_GONE, "uplink_gone", "the uplink's interface is not there")

#define SWITCH_DROP_ENUM(id, name, text) SWITCH_DROP_##id,
enum switch_drop { SWITCH_DROP_LIST(SWITCH_DROP_ENUM) SWITCH_DROP_COUNT };
#define SWITCH_NO_DROP SWITCH_DROP_COUNT
/* NULL for SWITCH_NO_DROP. */
const char *switch_drop_name(enum switch_drop drop);

struct switch_stats {
	uint64_t counters[SWITCH_COUNTER_COUNT];
	uint64_t drops[SWITCH_DROP_COUNT];
};
/* Adds b to a. */
void switch_stats_add(struct switch_stats *a, const struct switch_stats *b);

struct switch_port {
	struct switch_port *next;
	enum switch_port_kind kind;
	uint32_t number; /* of no other port at the time */
	char name[SWITCH_PORT_NAME];
	struct switch_stats stats;
	struct uplink *uplink;
	uint64_t moved_at;              /* when a frame last came from an uplink or went there */
	struct remote_qp_owner remotes; /* which remote QPs a process speaks to */
	struct vnic_device *dev;        /* of a process; NULL until there is one */
	uint64_t full_since;            /* when it last ran out of buffers; 0 = it has some */
	bool dirty;                     /* its driver is to be told */
	uint32_t waiting; /* transmit queues whose oldest frame had to wait, a bit each */
	uint64_t met[LEASE_BLOCKS / 64]; /* blocks whose processes it has been introduced to */
	bool held;                       /* the frame at hand is such a one, and counted already */
};

enum switch_direction { SWITCH_IN, SWITCH_OUT };

/*
 * Sees a frame that came from a port or goes to it. drop: why it goes no further,
 * SWITCH_NO_DROP where it does. The bytes are those that were checked, and stay
 * as they are during the call.
 */
typedef void switch_tap_fn(void *ctx, const struct switch_port *port, enum switch_direction dir,
			   const uint8_t *data, uint32_t len, enum switch_drop drop);

/* A frame for the host's QP1. */
typedef void switch_gsi_fn(void *ctx, uint64_t now, const uint8_t *frame, uint32_t len);

/* A process has sent its first frame to a process by the switch, to that QPN. */
typedef void switch_introduce_fn(struct switch_port *from, struct switch_port *to, uint32_t qpn);

#endif
