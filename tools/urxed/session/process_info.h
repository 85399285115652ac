/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Facts about a process from /proc: its name, capabilities and start time, and the boot ID.
 *
 * The kernel answers from its own data (comm, status, stat). It must not read the process's memory,
 * as for cmdline, environ or maps: memory behind a FUSE file or userfaultfd would block the daemon.
 */
#ifndef URXE_URXED_SESSION_PROCESS_INFO_H
#define URXE_URXED_SESSION_PROCESS_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_NAME 40
#define PROCESS_BOOT 40

/*
 * Writes "PROGRAM-PID". The process chooses its name, which is shown on terminals, so unprintable
 * characters become '?'.
 */
void process_name(pid_t pid, char name[PROCESS_NAME]);

/*
 * Does the process have a capability (CAP_...) in effect, within the daemon's own user namespace?
 * In a namespace of its own every process has all of them. False if /proc does not tell.
 */
bool process_capable(pid_t pid, uint32_t capability);

/* Start time in clock ticks since boot; 0: no such process, or the process has ended. */
uint64_t process_start(pid_t pid);

/* Writes the ID of this boot as a string; empty if unknown. */
void process_boot(char id[PROCESS_BOOT]);

#endif
