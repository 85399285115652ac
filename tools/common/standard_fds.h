/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_COMMON_STANDARD_FDS_H
#define URXE_COMMON_STANDARD_FDS_H

/*
 * Opens /dev/null for standard input, output or error where the starter closed
 * it: a socket or a pipe of ours must not get its number.
 */
void fill_standard_fds(void);

#endif
