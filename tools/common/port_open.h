/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frame ports by the specifications of --uplink and --port. */
#ifndef URXE_COMMON_PORT_OPEN_H
#define URXE_COMMON_PORT_OPEN_H

#include <stdbool.h>

struct netdev;

#define PORT_OPEN_ERROR 256

/*
 * Any that netdev_dpdk_open or netdev_qemu_open knows, for frames of up to HOST_MTU; af_xdp with
 * urxe's own program, where none is named. 0 or a negative errno value, with one sentence in
 * `error`.
 */
int port_open(const char *spec, struct netdev **port, char error[PORT_OPEN_ERROR]);
bool port_is_xdp(const char *spec);

#endif
