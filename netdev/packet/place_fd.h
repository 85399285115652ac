/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_NETDEV_PACKET_PLACE_FD_H
#define URXE_NETDEV_PACKET_PLACE_FD_H

/* Passes a new descriptor to the function that packet_port_place_fds has set, and returns the
 * result of that function; returns `fd` if no function is set. The caller stores only the result.
 */
int packet_place_fd(int fd);

#endif
