/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_VNIC_PLACE_FD_H
#define URXE_VNIC_PLACE_FD_H

/* What the owner's function makes of a new descriptor (vnic_driver_place_fds); without one, `fd`.
 * Call it before the number is stored. */
int vnic_place_fd(int fd);

#endif
