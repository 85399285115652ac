/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One descriptor for poll(2) that stands for several: dpdk_wait_fd of a port with several sockets.
 */
#ifndef URXE_NETDEV_DPDK_SOCKETS_EPOLL_SET_H
#define URXE_NETDEV_DPDK_SOCKETS_EPOLL_SET_H

#include <stdint.h>

/*
 * Returns an epoll descriptor that is readable while one of these n descriptors is; entries of -1
 * are left out. -1: the kernel refused. An open set costs time: for each frame the kernel looks for
 * a thread that sleeps on the set, over veth on the sender's processor.
 */
int epoll_set_open(const int *fds, uint32_t n);

#endif
