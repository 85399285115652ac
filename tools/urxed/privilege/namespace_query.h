/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Do two processes share a user namespace? Root's daemon needs CAP_SYS_PTRACE to see that in /proc.
 * So that the daemon can drop this capability, a helper process keeps it, and does nothing but
 * answer that question.
 */
#ifndef URXE_URXED_PRIVILEGE_NAMESPACE_QUERY_H
#define URXE_URXED_PRIVILEGE_NAMESPACE_QUERY_H

#include <sys/types.h>

/*
 * Starts the helper if this process has the capability. Call it before the process has threads.
 * Returns 0, also without the capability, or a negative errno value.
 */
int namespace_query_start(void);
void namespace_query_stop(void);
/*
 * Compares the user namespaces of processes a and b. 0: they are in one; -EPERM: they are not, or
 * this process can see it no more, because the helper has ended; -EBUSY: the helper has not
 * answered yet, or the kernel had no memory for the question, so the caller asks again later.
 * Waits up to 1 s for the helper's answer, after the first answer that took longer up to 100 ms;
 * while a late answer is outstanding, and for 1 s after another late one, not at all. Without a
 * helper this process looks itself. `ctx` is not used.
 */
int namespace_query(void *ctx, pid_t a, pid_t b);

#endif
