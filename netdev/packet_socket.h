/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A packet socket on an interface that the host's own traffic shares. */
#ifndef URXE_NETDEV_PACKET_SOCKET_H
#define URXE_NETDEV_PACKET_SOCKET_H

#include <stdint.h>

/*
 * A descriptor, non-blocking, or a negative errno. `filter` is one of packet_filter.h. As long
 * as it is open the interface hears all multicast.
 */
int packet_socket_open(unsigned int ifindex, int (*filter)(int fd));

/*
 * Has the kernel send what is in a socket's transmit ring, and gives the bytes that it took. 0:
 * nothing is left there; -EAGAIN: something is, for which neither the socket's send buffer nor the
 * queueing discipline has room now; or another negative errno.
 */
int packet_socket_send_ring(int fd, uint64_t *bytes);

#endif
