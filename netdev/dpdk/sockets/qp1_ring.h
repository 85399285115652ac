/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A receive ring only for packets to QP1 (connection management), on the interface of an af_packet
 * or af_xdp port. Data packets that fill the port's ring then displace no MAD, whose sender would
 * repeat it only after seconds (IBA 12.9.8.4). An HCA has a queue for QP1, too.
 */
#ifndef URXE_NETDEV_DPDK_SOCKETS_QP1_RING_H
#define URXE_NETDEV_DPDK_SOCKETS_QP1_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/netdev.h>

/*
 * Most packets of one qp1_ring_rx. The daemon's QP1 (tools/urxed/qp1/) queues only a few hundred
 * MADs; small bursts leave the others in the ring.
 */
#define QP1_RING_BURST 8

struct packet_port;

struct qp1_ring {
	struct packet_port *port; /* NULL = closed */
	uint64_t missed;          /* packets lost because the ring was full */
};

/*
 * The ring receives nothing before qp1_ring_enable. 0, or a negative errno value, such as -EPERM
 * without CAP_NET_RAW. On error the ring is closed, which the other functions accept: the port's
 * ring receives all packets.
 */
int qp1_ring_open(struct qp1_ring *ring, unsigned int ifindex);
void qp1_ring_close(struct qp1_ring *ring);
/* Sets whether the ring receives packets to QP1, and no others, from now on. 0 or a negative errno
 * value. */
int qp1_ring_enable(const struct qp1_ring *ring, bool on);
/*
 * Returns up to n frames, QP1_RING_BURST at most. They stay valid until qp1_ring_release, which
 * must come before the next call.
 */
uint32_t qp1_ring_rx(struct qp1_ring *ring, struct netdev_frame *frames, uint32_t n);
void qp1_ring_release(struct qp1_ring *ring);
/* A descriptor for poll(2), readable while frames are in the ring; -1 = the ring is closed. */
int qp1_ring_fd(const struct qp1_ring *ring);
uint64_t qp1_ring_missed(struct qp1_ring *ring);

#endif
