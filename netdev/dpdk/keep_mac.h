/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The start of a net_af_packet device without an event of the interface. At its start the driver
 * sets the interface's MAC address to the present one (eth_dev_mac_restore, DPDK 22.11). The kernel
 * then removes all GIDs of the interface's RDMA devices, and adds them again. Meanwhile rdma_rxe
 * fails each request that it should send (IBV_WC_LOC_QP_OP_ERR).
 */
#ifndef URXE_NETDEV_DPDK_KEEP_MAC_H
#define URXE_NETDEV_DPDK_KEEP_MAC_H

#include <stdint.h>

/* As rte_eth_dev_start. */
int dpdk_start_keeping_mac(uint16_t id);

#endif
