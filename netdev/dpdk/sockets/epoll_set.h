/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One descriptor for poll(2) that stands for several: dpdk_wait_fd of a port with several sockets.
 */
#ifndef URXE_NETDEV_DPDK_SOCKETS_EPOLL_SET_H
#define URXE_NETDEV_DPDK_SOCKETS_EPOLL_SET_H

#include <stdint.h>

/*
 * Returns an epoll descriptor of these n, of which each may be -1. -1: the kernel refused. While it
 * is open, the kernel looks for a sleeping thread at each frame; over veth the sender's processor
 * does.
 */
int epoll_set_open(const int *fds, uint32_t n);

#endif
