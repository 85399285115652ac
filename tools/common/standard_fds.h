/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_COMMON_STANDARD_FDS_H
#define URXE_COMMON_STANDARD_FDS_H

/*
 * Opens /dev/null for each of standard input, output and error that is closed, so that no socket or
 * pipe of the program gets such a number. Each program's main() calls it first.
 */
void standard_fds_fill(void);
/*
 * From now on the program ends with a message and STATUS_FAILED, instead of 0, if standard output
 * lacks a part of what it has printed, for example because a disk is full.
 */
void standard_fds_check_output(void);

#endif
