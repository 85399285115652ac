/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_NETDEV_PACKET_PLACE_FD_H
#define URXE_NETDEV_PACKET_PLACE_FD_H

/* What the owner's function makes of a new descriptor (packet_port_place_fds); without one, `fd`.
 * Call it before the number is stored. */
int packet_place_fd(int fd);

#endif
