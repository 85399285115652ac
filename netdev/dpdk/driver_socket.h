/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sockets of this process, among them those that DPDK's drivers open and keep to themselves. */
#ifndef URXE_NETDEV_DPDK_DRIVER_SOCKET_H
#define URXE_NETDEV_DPDK_DRIVER_SOCKET_H

#include <stdint.h>

#define OWN_SOCKETS 64

struct own_sockets {
	int domain; /* AF_PACKET, AF_XDP... */
	int fds[OWN_SOCKETS];
	uint32_t n;
};

/* Those that are open now. */
void own_sockets_list(struct own_sockets *sockets, int domain);
/* One that was opened since, -1 where there is none. */
int own_sockets_since(const struct own_sockets *before);

#endif
