/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Filters for packet sockets on an interface that carries the host's own traffic, too. */
#ifndef URXE_NETDEV_DPDK_SOCKETS_PACKET_FILTER_H
#define URXE_NETDEV_DPDK_SOCKETS_PACKET_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/netdev.h>

/* Unicast MACs of the host beside the interface's own, which is not among them: those of a bond. */
struct packet_filter_macs {
	uint8_t macs[NETDEV_MACS][6];
	uint32_t n;
};

/*
 * Each function sets the filter of a packet socket. The socket then receives only the frames that
 * the comment names, none of them in a service VLAN (802.1ad). 0, or a negative errno value.
 */

/* ARP, RARP, neighbour discovery, and RoCE except to queue pairs of the n blocks of QPNs
 * (netdev/packet_port.h). Receives RoCE to QP1 only if `qp1`. */
int packet_filter_roce(int fd, bool qp1, const uint16_t *blocks, uint32_t n);
/* As packet_filter_roce, but leaves out the unicast RoCE that packet_filter_other_macs receives:
 * that to other MACs than the interface's own and those of `host`, except to QP1. */
int packet_filter_own_roce(int fd, bool qp1, const struct packet_filter_macs *host);
/* Only RoCE to QP1. */
int packet_filter_qp1(int fd);
/* RoCE to QP1 and to queue pairs of the n blocks, ARP, RARP and neighbour discovery. */
int packet_filter_admitted(int fd, const uint16_t *blocks, uint32_t n);
/* ARP, RARP and neighbour discovery. */
int packet_filter_resolution(int fd);
/*
 * Frames to other MACs than the interface's own: all but ARP, RARP, neighbour discovery, RoCE to
 * groups and to the MACs of `host`, and RoCE to QP1. xdp: also RoCE that urxe's XDP program does
 * not take.
 */
int packet_filter_other_macs(int fd, bool xdp, const struct packet_filter_macs *host);
/* The socket receives no frames. */
int packet_filter_nothing(int fd);

#endif
