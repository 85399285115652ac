/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A packet socket on an interface that the host's own traffic shares. */
#ifndef URXE_NETDEV_PACKET_SOCKET_H
#define URXE_NETDEV_PACKET_SOCKET_H

#include <stdint.h>

/* A descriptor, non-blocking, that hears nothing yet; or a negative errno. */
int packet_socket(void);
/*
 * Hears what comes in by the interface, of which `filter` (packet_filter.h) chooses, and nothing
 * that the host sends. As long as it is open the interface hears all multicast. 0 or a negative
 * errno.
 */
int packet_socket_bind(int fd, unsigned int ifindex, int (*filter)(int fd));
/* Both in one. */
int packet_socket_open(unsigned int ifindex, int (*filter)(int fd));

#endif
