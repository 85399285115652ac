/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The speed of a network interface, which the rate of the RDMA port follows. */
#ifndef URXE_URXED_KERNEL_LINK_SPEED_H
#define URXE_URXED_KERNEL_LINK_SPEED_H

#include <stdint.h>

/*
 * Mb/s. If the interface has no known speed, 1,000, as for Linux' RoCE devices. `socket`: any one
 * in the interface's network namespace.
 */
uint32_t link_speed_mbps(int socket, const char *ifname);

#endif
