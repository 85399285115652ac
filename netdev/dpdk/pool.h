/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packet buffers of a port. */
#ifndef URXE_NETDEV_DPDK_POOL_H
#define URXE_NETDEV_DPDK_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <rte_mempool.h>

/* What becomes of the buffers, which decides where they lie. */
enum dpdk_pool_use {
	DPDK_POOL_COPIED, /* a driver copies from and to them: huge pages where there are some */
	DPDK_POOL_XDP,    /* the same; AF_XDP wants one a page, which decides about their length */
	DPDK_POOL_DEVICE, /* a device reaches for them, or shares them: memory of the EAL's own */
};

/* n buffers at least, for frames of up to `room` bytes; NULL: rte_errno. */
struct rte_mempool *dpdk_pool_create(const char *name, uint32_t n, uint32_t room,
				     enum dpdk_pool_use use, int socket);
/* Bytes of a page of the memory that they lie in. */
size_t dpdk_pool_page_size(struct rte_mempool *pool);

#endif
