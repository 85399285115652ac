/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One descriptor for poll(2) that stands for two: dpdk_wait_fd of a port with two sockets. */
#ifndef URXE_NETDEV_DPDK_SOCKETS_EPOLL_PAIR_H
#define URXE_NETDEV_DPDK_SOCKETS_EPOLL_PAIR_H

/*
 * Returns an epoll descriptor of both; `a` or `b` may be -1. -1: the kernel refused. While it is
 * open, the kernel looks for a sleeping thread at each frame; over veth the sender's processor
 * does.
 */
int epoll_pair_open(int a, int b);

#endif
