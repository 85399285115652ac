/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Do two processes share a user namespace? Root's daemon needs CAP_SYS_PTRACE to see that in /proc.
 * So that the daemon can drop this capability, a helper process keeps it, and does nothing but
 * answer that question.
 */
#ifndef URXE_URXED_PRIVILEGE_NAMESPACE_QUERY_H
#define URXE_URXED_PRIVILEGE_NAMESPACE_QUERY_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Starts the helper if this process has the capability. Call it before the process has threads.
 * Returns 0, also without the capability, or a negative errno value.
 */
int namespace_query_start(void);
void namespace_query_stop(void);
/*
 * Whether processes a and b are in one user namespace; false also if that is unknown. Waits up to 1
 * s for the helper's answer. While a later answer is outstanding, the result is false at once.
 * Without a helper this process looks itself; after the helper has ended the result is always
 * false. `ctx` is not used.
 */
bool namespace_query(void *ctx, pid_t a, pid_t b);

#endif
