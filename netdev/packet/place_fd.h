/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_NETDEV_PACKET_PLACE_FD_H
#define URXE_NETDEV_PACKET_PLACE_FD_H

/*
 * Passes a new descriptor to the function that packet_port_place_fds has set, which may move the
 * descriptor to another number and close `fd`. Returns the descriptor that the caller stores;
 * without such a function, `fd`.
 */
int packet_place_fd(int fd);

#endif
