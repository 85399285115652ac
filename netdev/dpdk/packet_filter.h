/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a packet socket is given of an interface that the host's own traffic shares. */
#ifndef URXE_NETDEV_DPDK_PACKET_FILTER_H
#define URXE_NETDEV_DPDK_PACKET_FILTER_H

/* Of what comes in, RoCE, ARP and neighbour discovery alone. 0 or a negative errno. */
int packet_filter_roce(int fd);
/* Of what comes in, ARP and neighbour discovery alone. 0 or a negative errno. */
int packet_filter_resolution(int fd);
/* All that comes in. 0 or a negative errno. */
int packet_filter_incoming(int fd);

#endif
