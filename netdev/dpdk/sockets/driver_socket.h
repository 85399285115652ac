/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds the socket that a DPDK driver opened and does not show to its caller. */
#ifndef URXE_NETDEV_DPDK_SOCKETS_DRIVER_SOCKET_H
#define URXE_NETDEV_DPDK_SOCKETS_DRIVER_SOCKET_H

#include <stdint.h>

#define DRIVER_SOCKETS_MAX 64

struct driver_sockets {
	int domain; /* AF_PACKET, AF_XDP... */
	int fds[DRIVER_SOCKETS_MAX];
	uint32_t n;
};

/* Lists the process's sockets of a domain before the driver opens its own. */
void driver_socket_list(struct driver_sockets *sockets, int domain);
/* A socket of the list's domain that is open now and not in the list: the driver's. -1 = none. The
 * driver still owns it. */
int driver_socket_find(const struct driver_sockets *before);

#endif
