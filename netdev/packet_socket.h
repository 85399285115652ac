/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A packet socket on an interface that the host's own traffic shares. */
#ifndef URXE_NETDEV_PACKET_SOCKET_H
#define URXE_NETDEV_PACKET_SOCKET_H

/*
 * A descriptor, non-blocking, or a negative errno. `filter` is one of packet_filter.h. As long
 * as it is open the interface hears all multicast.
 */
int packet_socket_open(unsigned int ifindex, int (*filter)(int fd));

#endif
