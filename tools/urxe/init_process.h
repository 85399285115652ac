/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_URXE_INIT_PROCESS_H
#define URXE_URXE_INIT_PROCESS_H

/*
 * For urxe run as the first process of a container (PID 1), which becomes the parent of the private
 * daemon. A program in its place would find a child that it has not started. So this forks, and
 * returns -1 in the child, which then executes the program. The parent forwards signals to the
 * child, reaps all processes, and returns the child's exit status, 128 + N if signal N ended it.
 */
int init_process_fork(void);

#endif
