/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The speed of a network interface, which the rate of the RDMA port follows. */
#ifndef URXE_URXED_KERNEL_LINK_SPEED_H
#define URXE_URXED_KERNEL_LINK_SPEED_H

#include <stdint.h>

/* Returns the speed in Mb/s; 1,000 if it is unknown, as for Linux' RoCE devices. `socket`: any
 * socket in the interface's network namespace. */
uint32_t link_speed_mbps(int socket, const char *ifname);

#endif
