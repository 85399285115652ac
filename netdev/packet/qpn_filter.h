/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Instructions of classic BPF that compare the destination QPN of RoCE packets with blocks of
 * QPNs, for the filters of packet ports and of urxed's own packet socket
 * (dpdk/sockets/packet_filter.c).
 */
#ifndef URXE_NETDEV_PACKET_QPN_FILTER_H
#define URXE_NETDEV_PACKET_QPN_FILTER_H

#include <linux/filter.h>
#include <stdint.h>

/* Bytes that a filter passes: more than any frame has. */
#define QPN_FILTER_PASS 262144u

/*
 * Writes instructions that return `verdict` (0 = drop, QPN_FILTER_PASS) for RoCEv1 and RoCEv2
 * packets to QPNs of the n blocks (n may be 0); for other frames the instruction behind them is
 * next. VLAN tags are not in the frame when a socket filter runs. Returns the number of
 * instructions; 0: they need more than `room`.
 */
uint32_t qpn_filter_write(struct sock_filter *to, uint32_t room, const uint16_t *blocks, uint32_t n,
			  uint32_t verdict);

#endif
