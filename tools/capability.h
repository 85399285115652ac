/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the kernel would let a client do, where the daemon decides in its place. */
#ifndef URXE_TOOLS_CAPABILITY_H
#define URXE_TOOLS_CAPABILITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Whether a process has a capability (CAP_...) in effect, in the daemon's own user namespace:
 * in one of their own all have all. False where /proc does not tell.
 */
bool capability_of(pid_t pid, uint32_t capability);

#endif
