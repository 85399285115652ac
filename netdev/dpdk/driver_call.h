/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls of net_af_packet and net_af_xdp without some of their system calls (DPDK 22.11):
 *
 * - ioctl(SIOCSIFHWADDR): rte_eth_dev_start sets the present MAC address of the kernel's interface
 *   once more (eth_dev_mac_restore). The kernel reports that as a change: it removes all GIDs of
 *   the interface's RDMA devices, and adds them again. Meanwhile rdma_rxe fails each request that
 *   it should send (IBV_WC_LOC_QP_OP_ERR).
 * - ioctl(SIOCSIFFLAGS): rte_eth_dev_start clears IFF_PROMISC, also if the administrator set it
 *   (eth_dev_config_restore).
 * - setsockopt(PACKET_FANOUT): rte_dev_probe joins the socket to a group, also if no other socket
 *   is in that group. The kernel then copies each frame that the interface sends, and computes a
 *   flow hash of each frame in both directions, before the socket's filter drops it: 12 % of the
 *   time of a program with a direct uplink that exchanges small messages.
 */
#ifndef URXE_NETDEV_DPDK_DRIVER_CALL_H
#define URXE_NETDEV_DPDK_DRIVER_CALL_H

#include <stdint.h>

/* As rte_dev_probe, without the driver's call of setsockopt(PACKET_FANOUT). */
int dpdk_probe_without_fanout(const char *devargs);
/* As rte_eth_dev_start, but SIOCSIFHWADDR and SIOCSIFFLAGS have no effect; `id`: number of the DPDK
 * port. */
int dpdk_start_keeping_interface(uint16_t id);

#endif
