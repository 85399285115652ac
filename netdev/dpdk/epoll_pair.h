/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One descriptor for poll(2) that stands for two: dpdk_wait_fd of a port with two sockets. */
#ifndef URXE_NETDEV_DPDK_EPOLL_PAIR_H
#define URXE_NETDEV_DPDK_EPOLL_PAIR_H

/*
 * An epoll set of both descriptors, of which one that is -1 does not count. -1: there is no set.
 * From then on, each frame costs the kernel a check for sleeping threads, over veth on the sender's
 * processor.
 */
int epoll_pair_open(int a, int b);

#endif
