/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_VNIC_PLACE_FD_H
#define URXE_VNIC_PLACE_FD_H

/*
 * The function that vnic_driver_place_fds has set may move a new descriptor to another number, and
 * close `fd`. The caller stores only the result. If no function is set, the result is `fd`.
 */
int vnic_place_fd(int fd);

#endif
