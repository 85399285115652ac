/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the descriptors that a DPDK driver opened and does not show to its caller. net_af_xdp of
 * DPDK 22.11 also leaves them open when its device is closed: the AF_XDP socket, which keeps the
 * packet buffers in memory, the XDP program, its maps and its types. From driver_fds_list to
 * driver_fds_find no other thread may open such descriptors.
 */
#ifndef URXE_NETDEV_DPDK_SOCKETS_DRIVER_FDS_H
#define URXE_NETDEV_DPDK_SOCKETS_DRIVER_FDS_H

#include <stdint.h>

#define DRIVER_FDS_MAX 128

struct driver_fds {
	int domain; /* AF_PACKET, AF_XDP... */
	int fds[DRIVER_FDS_MAX];
	uint32_t n;
};

/* Lists the process's sockets of a domain and its BPF objects before the driver opens its own. */
void driver_fds_list(struct driver_fds *list, int domain);
/* Replaces the list by the descriptors of these kinds that are open now and not in it: those of the
 * driver. */
void driver_fds_find(struct driver_fds *list);
/* The socket in the list; -1 = none. The driver still owns it. */
int driver_fds_socket(const struct driver_fds *list);
/* Closes the descriptors in the list that net_af_xdp has left open. Call it after the device is
 * closed, and before any other descriptor is opened. */
void driver_fds_close(struct driver_fds *list);

#endif
