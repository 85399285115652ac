/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_NETDEV_PACKET_PLACE_FD_H
#define URXE_NETDEV_PACKET_PLACE_FD_H

/*
 * The function that packet_port_place_fds has set may move a new descriptor to another number, and
 * close `fd`. The caller stores only the result. If no function is set, the result is `fd`.
 */
int packet_place_fd(int fd);

#endif
