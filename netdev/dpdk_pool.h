/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packet buffers of a port. */
#ifndef URXE_NETDEV_DPDK_POOL_H
#define URXE_NETDEV_DPDK_POOL_H

#include <stdint.h>

#include <rte_mempool.h>

/* n buffers for frames of up to `room` bytes; NULL: rte_errno. */
struct rte_mempool *dpdk_pool_create(const char *name, uint32_t n, uint32_t room, int socket);
/* The same as AF_XDP wants them, one a page, which decides about the frames' length. */
struct rte_mempool *dpdk_pool_create_xdp(const char *name, uint32_t n, int socket);

#endif
