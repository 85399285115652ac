/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What /proc says of a client. */
#ifndef URXE_URXED_SESSION_PROCESS_INFO_H
#define URXE_URXED_SESSION_PROCESS_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_NAME 40
#define PROCESS_BOOT 40

/* "PROGRAM-PID"; the name is the process's own choice, and goes to people's terminals. */
void process_name(pid_t pid, char name[PROCESS_NAME]);

/*
 * Whether a process has a capability (CAP_...) in effect, in the daemon's own user namespace:
 * in one of their own all have all. False where /proc does not tell.
 */
bool process_capable(pid_t pid, uint32_t capability);

/* When it started, in clock ticks since boot; 0: there is no such process, or it has ended. */
uint64_t process_start(pid_t pid);

/* Which boot of the machine this is, as text with a 0; empty where it is not known. */
void process_boot(char id[PROCESS_BOOT]);

#endif
