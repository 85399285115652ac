/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The AF_XDP sockets of this process, which DPDK's driver opens and keeps to itself. */
#ifndef URXE_NETDEV_XDP_SOCKET_H
#define URXE_NETDEV_XDP_SOCKET_H

#include <stdint.h>

#define XDP_SOCKETS 64

struct xdp_sockets {
	int fds[XDP_SOCKETS];
	uint32_t n;
};

void xdp_sockets_list(struct xdp_sockets *sockets);
/* One that was opened since, -1 where there is none. poll(2) says of it whether frames are there.
 */
int xdp_sockets_since(const struct xdp_sockets *before);

#endif
