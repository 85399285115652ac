/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The system calls that the process of a vhost: uplink may make, for vhost_sandbox.c. */
#ifndef URXE_URXED_VHOST_VHOST_SYSCALLS_H
#define URXE_URXED_VHOST_VHOST_SYSCALLS_H

#include <stdbool.h>

/*
 * Installs a seccomp filter in all threads of the process, which has set no_new_privs. A system
 * call outside the list in vhost_syscalls.c fails with EPERM; a system call of another architecture
 * kills the process. `connects`: the process may connect UNIX sockets. Returns 0 or a negative
 * errno value; -ENOTSUP on architectures other than x86-64 and arm64.
 */
int vhost_syscalls_limit(bool connects);
/* Takes away the calls that only the port's start needs; call it after that start. Returns as
 * vhost_syscalls_limit. */
int vhost_syscalls_limit_further(bool connects);

#endif
