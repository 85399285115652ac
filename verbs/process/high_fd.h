/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Numbers of the descriptors that this library keeps for itself. The kernel gives out the lowest
 * free number, so the library's descriptors would change the numbers that the program's own open()
 * returns. Descriptors that the program gets keep the kernel's numbers.
 */
#ifndef URXE_VERBS_PROCESS_HIGH_FD_H
#define URXE_VERBS_PROCESS_HIGH_FD_H

/*
 * Moves a descriptor of this library to a number from 1024 on (lower if RLIMIT_NOFILE is below
 * 1152), sets close-on-exec, and returns that number. Returns `fd` itself if `fd` is negative or
 * already that high, or if no such number is free. Call it before the number is stored or added to
 * an epoll set. errno is unchanged. Any thread; no lock.
 *
 * The first call with a number that the kernel's table of descriptors lacks enlarges the table. If
 * the process has a second thread, the kernel waits there for an RCU grace period (expand_files in
 * fs/file.c): F_DUPFD_CLOEXEC took 9.6 to 24 ms then, and 0.01 ms in a process with one thread.
 */
int high_fd(int fd);

/*
 * Returns a duplicate for this library of a descriptor that the program gets: numbered as by
 * high_fd(), or with the lowest free number if no high number is free; close-on-exec. It is not in
 * the table of emulated_fd.h, even if `fd` has an entry there. -1 with errno: EBADF, EMFILE. Any
 * thread; no lock.
 */
int high_fd_duplicate(int fd);

#endif
