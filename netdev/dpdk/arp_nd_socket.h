/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A packet socket that hears ARP and neighbour discovery beside a driver that leaves them to the
 * kernel: of addresses that only urxed has, the kernel answers no question and takes no answer.
 */
#ifndef URXE_NETDEV_DPDK_ARP_ND_SOCKET_H
#define URXE_NETDEV_DPDK_ARP_ND_SOCKET_H

#include <rte_mbuf.h>

struct dpdk_resolution {
	int fd;      /* -1 = not open */
	int wait_fd; /* readable when this is, or the driver; -1 = nobody watches */
};

#define DPDK_RESOLUTION_CLOSED ((struct dpdk_resolution){-1, -1})

/* 0 or a negative errno. As long as it is open the interface hears all multicast. */
int dpdk_resolution_open(struct dpdk_resolution *resolution, unsigned int ifindex);
/*
 * Opens wait_fd, once; driver_fd is what the driver has to sleep on, -1 for nothing. From then on
 * each frame that comes costs the kernel a look at who sleeps, on the sender's processor over veth.
 */
void dpdk_resolution_watch(struct dpdk_resolution *resolution, int driver_fd);
void dpdk_resolution_close(struct dpdk_resolution *resolution);
/* The next frame, with its VLAN tag, in a buffer of the pool; NULL where none is there. */
struct rte_mbuf *dpdk_resolution_recv(const struct dpdk_resolution *resolution,
				      struct rte_mempool *pool);

#endif
