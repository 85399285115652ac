/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Facts about a process: its name, capabilities and identity, and the boot ID.
 *
 * Of a program that it does not trust, the daemon reads only /proc/PID/comm, which the kernel
 * answers from its own data; before Linux 6.9 also /proc/PID/stat (process_identity,
 * process_lives). For cmdline, environ and maps the kernel reads the program's memory, which may be
 * behind a FUSE file or userfaultfd. For stat and status the kernel holds that memory for a moment:
 * if the program ends in that moment, the reader closes the program's mapped files, such as a TCP
 * socket with SO_LINGER.
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
 * Does the process have a capability (CAP_...) in effect? False for a process in another user
 * namespace, where each process may have all of them, and if /proc or the helper
 * (namespace_query.h) does not tell. Call it only for processes of the daemon's own user and of
 * root.
 */
bool process_capable(pid_t pid, uint32_t capability);

/*
 * Returns a number that no other process with this PID has had since boot; 0: the process has
 * ended, or the daemon cannot find the number out: it lacks a descriptor or memory, or, before
 * Linux 6.9, /proc hides the process (hidepid of proc(5)).
 */
uint64_t process_identity(pid_t pid);
/*
 * Whether the process of which process_identity() returned this number lives; with 0, whether any
 * process has the PID. True also while the daemon cannot find that out, and for PID 0: the process
 * lives in a PID namespace that the daemon does not see.
 */
bool process_lives(pid_t pid, uint64_t identity);

/* Writes the ID of this boot as a string; empty if unknown. */
void process_boot(char id[PROCESS_BOOT]);

#endif
