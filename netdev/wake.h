/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A packet socket that only tells poll(2) that something for an RDMA host has arrived. */
#ifndef URXE_NETDEV_WAKE_H
#define URXE_NETDEV_WAKE_H

#include <stdbool.h>

/*
 * A descriptor or a negative errno. Open it before the socket that receives: the
 * kernel serves the sockets of an interface newest first, so that what has woken
 * us is in the other's ring already. As long as it is open the interface hears all
 * multicast.
 */
int wake_open(unsigned int ifindex);
/* Makes it quiet; true if it was not. */
bool wake_drain(int fd);

#endif
