/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A packet socket that receives ARP, RARP and neighbour discovery for an af_xdp port, whose XDP
 * program leaves them to the kernel. The kernel does not answer for addresses that only urxed has.
 */
#ifndef URXE_NETDEV_XDP_ARP_ND_SOCKET_H
#define URXE_NETDEV_XDP_ARP_ND_SOCKET_H

#include <rte_mbuf.h>

struct arp_nd_socket {
	int fd; /* -1 = not open */
};

#define ARP_ND_SOCKET_CLOSED ((struct arp_nd_socket){-1})

/* 0, or a negative errno value. While open, the interface receives all multicast. */
int arp_nd_socket_open(struct arp_nd_socket *socket, unsigned int ifindex);
void arp_nd_socket_close(struct arp_nd_socket *socket);
/* The next frame with its VLAN tag, in a buffer of the pool; NULL: no frame, or no free buffer. */
struct rte_mbuf *arp_nd_socket_recv(const struct arp_nd_socket *socket, struct rte_mempool *pool);

#endif
