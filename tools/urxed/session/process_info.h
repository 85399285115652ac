/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Facts about a process: its name, capabilities and identity; and the boot ID.
 *
 * Of a program that it does not trust, the daemon reads only /proc/PID/comm and ns/user
 * (namespace_query.h), which the kernel answers from its own data, and before Linux 6.9 also
 * /proc/PID/stat (process_identity, process_lives). For cmdline, environ and maps the kernel reads
 * the program's memory, where a FUSE file or userfaultfd may let the read wait. For stat and status
 * the kernel holds that memory for a moment: if the program ends in that moment, the reader closes
 * the files that the program has mapped, such as a TCP socket with SO_LINGER, and may have to wait
 * for that.
 */
#ifndef URXE_URXED_SESSION_PROCESS_INFO_H
#define URXE_URXED_SESSION_PROCESS_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_NAME 40
#define PROCESS_BOOT 40

/* Writes "PROGRAM-PID". Unprintable characters become '?', because the process chooses its name,
 * and terminals show it. */
void process_name(pid_t pid, char name[PROCESS_NAME]);

/* Reads a mask in hexadecimal digits from the file `path`, /proc/.../status: that of the line
 * "field:". Returns 0 if /proc does not tell. */
uint64_t process_status_mask(const char *path, const char *field);
/*
 * Whether the process has a capability (CAP_...) in effect. False for a process in another user
 * namespace, where any process may have all capabilities, and if /proc or the helper
 * (namespace_query.h) does not tell. Call it only for processes of the daemon's own user and of
 * root.
 */
bool process_capable(pid_t pid, uint32_t capability);

/*
 * Returns a number that no other process with this PID has had since boot. 0: the process has
 * ended, or the daemon cannot find the number: it lacks a descriptor or memory, or, before Linux
 * 6.9, /proc hides the process (hidepid of proc(5)).
 */
uint64_t process_identity(pid_t pid);
/*
 * Whether the process for which process_identity() returned this number lives; with 0, whether any
 * process has the PID. Also true if the daemon cannot find that out, and for PID 0, which stands
 * for a process in a PID namespace that the daemon does not see.
 */
bool process_lives(pid_t pid, uint64_t identity);

/* Writes the ID of this boot as a string; an empty one if it is unknown. */
void process_boot(char id[PROCESS_BOOT]);

#endif
