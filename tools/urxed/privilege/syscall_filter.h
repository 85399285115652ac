/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The seccomp filter of the daemon and of its helper processes, except helpers that start programs.
 * It allows only the system calls of the list in syscall_filter.c; others fail with EPERM.
 */
#ifndef URXE_URXED_PRIVILEGE_SYSCALL_FILTER_H
#define URXE_URXED_PRIVILEGE_SYSCALL_FILTER_H

/* Filters the system calls of all threads until the process ends. Returns 0, also if the kernel or
 * container has no seccomp; or a negative errno value. */
int syscall_filter_install(void);

#endif
