/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dpdk_start_keeping_mac starts a net_af_packet device as rte_eth_dev_start does, but does not set
 * the MAC address of the kernel's interface. rte_eth_dev_start sets the present address once more
 * (eth_dev_mac_restore, DPDK 22.11). The kernel reports that as a change: it removes all GIDs of
 * the interface's RDMA devices, and adds them again. Meanwhile rdma_rxe fails each request that it
 * should send (IBV_WC_LOC_QP_OP_ERR).
 */
#ifndef URXE_NETDEV_DPDK_KEEP_MAC_H
#define URXE_NETDEV_DPDK_KEEP_MAC_H

#include <stdint.h>

/* `id`: number of the DPDK port. Returns what rte_eth_dev_start returns. */
int dpdk_start_keeping_mac(uint16_t id);

#endif
