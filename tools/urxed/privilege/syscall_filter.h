/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The seccomp filter of the daemon and of its helper processes, except helpers that start programs.
 * It allows only the system calls of the list in syscall_filter.c; others fail with EPERM.
 */
#ifndef URXE_URXED_PRIVILEGE_SYSCALL_FILTER_H
#define URXE_URXED_PRIVILEGE_SYSCALL_FILTER_H

/*
 * Filters the calls of all threads, for ever. Returns 0, also on a kernel or in a container without
 * seccomp; or a negative errno value.
 */
int syscall_filter_install(void);

#endif
