/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_URXE_INIT_PROCESS_H
#define URXE_URXE_INIT_PROCESS_H

/*
 * Forks, for a urxe run that is the first process of a container (PID 1). Linux makes PID 1 the
 * parent of the private daemon, so a program as PID 1 would have a child that it did not start.
 * Returns -1 in the child, which executes the program. The parent forwards signals, except SIGCHLD
 * and those of the terminal (but it forwards SIGHUP), and reaps all processes. It returns the
 * child's exit status, 128 + N if signal N ended the child, or STATUS_FAILED if it cannot fork,
 * which is logged.
 */
int init_process_fork(void);

#endif
