/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_COMMON_STANDARD_FDS_H
#define URXE_COMMON_STANDARD_FDS_H

/*
 * Opens /dev/null for each of standard input, output and error that is closed, so that no socket or
 * pipe of the program gets such a number. Each program's main() calls it first.
 */
void standard_fds_fill(void);
/*
 * From now on exit() logs an error if standard output lacks a part of what the program has printed,
 * for example because a disk is full; status 0 becomes STATUS_FAILED (command_line.h).
 */
void standard_fds_check_output(void);

#endif
