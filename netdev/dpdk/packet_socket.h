/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A packet socket on an interface that the host's own traffic shares. */
#ifndef URXE_NETDEV_DPDK_PACKET_SOCKET_H
#define URXE_NETDEV_DPDK_PACKET_SOCKET_H

#include <stdint.h>

/*
 * A descriptor, non-blocking, or a negative errno. `filter` is one of packet_filter.h. As long
 * as it is open the interface hears all multicast.
 */
int packet_socket_open(unsigned int ifindex, int (*filter)(int fd));

/* The interface hears all multicast as long as the socket is open. 0 or a negative errno. */
int packet_socket_hear_groups(int fd, unsigned int ifindex);

/* Forgets the error that makes poll(2) return at once, if there is one. */
void packet_socket_take_error(int fd);

/*
 * Has the kernel send what is in a socket's transmit ring, and gives the bytes that it took. 0:
 * nothing is left there; -EAGAIN: something is, for which neither the socket's send buffer nor the
 * queueing discipline has room now; or another negative errno.
 */
int packet_socket_send_ring(int fd, uint64_t *bytes);

#endif
