/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two ports of netdev/ that are connected by memory, with a ring of `depth` frames each way; a full
 * ring refuses frames. Each ring has one producer and one consumer, so two threads may use the two
 * ends without a lock.
 */
#ifndef URXE_TEST_MEM_PORT_H
#define URXE_TEST_MEM_PORT_H

#include <netdev/netdev.h>

#define NETDEV_MEM_DEPTH_MAX (1u << 20)
/*
 * Opens both ends, which are closed separately. -EINVAL: depth is 0 or more than
 * NETDEV_MEM_DEPTH_MAX.
 */
int netdev_mem_pair(uint32_t depth, struct netdev *ends[2]);

#endif
