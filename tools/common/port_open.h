/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens a frame port by its specification, the value of urxed's --uplink and of urxe bench's
 * --port.
 */
#ifndef URXE_COMMON_PORT_OPEN_H
#define URXE_COMMON_PORT_OPEN_H

#include <stdbool.h>

struct netdev;

#define PORT_OPEN_ERROR 256

/*
 * Opens any port that netdev_dpdk_open or netdev_qemu_open knows, for frames of up to HOST_MTU; an
 * af_packet port, which also carries frames of virtual machines, for up to VM_PORT_MTU. An af_xdp
 * port that names no XDP program gets urxe's own. Returns 0, or a negative errno value and a
 * sentence in `error`.
 */
int port_open(const char *spec, struct netdev **port, char error[PORT_OPEN_ERROR]);
/* Does the specification name an af_xdp port? */
bool port_is_xdp(const char *spec);

#endif
