/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The packet buffers of a DPDK port. */
#ifndef URXE_NETDEV_DPDK_POOL_H
#define URXE_NETDEV_DPDK_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <rte_mempool.h>

/* How the driver uses the buffers, which decides about their memory. */
enum dpdk_pool_use {
	DPDK_POOL_COPIED, /* the driver copies: huge pages if enough are free */
	DPDK_POOL_XDP,    /* as DPDK_POOL_COPIED, but each buffer is one page: AF_XDP requires
			     that */
	DPDK_POOL_DEVICE, /* DMA, or shared with a guest: the EAL's memory */
};

/* At least n buffers for frames of up to `room` bytes; with DPDK_POOL_XDP the page size decides how
 * long frames may be. NULL: rte_errno has the error. */
struct rte_mempool *dpdk_pool_create(const char *name, uint32_t n, uint32_t room,
				     enum dpdk_pool_use use, int socket);
/* Makes as many buffers in `memory` as it has room for. The memory stays the caller's. NULL:
 * rte_errno has the error. */
struct rte_mempool *dpdk_pool_create_in(const char *name, void *memory, size_t size, uint32_t room,
					int socket);
/* Page size of the buffers' memory in bytes. */
size_t dpdk_pool_page_size(struct rte_mempool *pool);

#endif
