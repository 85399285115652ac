/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells whether two processes share a user namespace. Root's daemon needs CAP_SYS_PTRACE to see
 * that in /proc. So that the daemon can drop this capability, a helper process keeps it, and does
 * nothing but answer that question.
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
 * Compares the user namespaces of processes a and b. Returns 0 if they are the same, -EPERM if they
 * differ or if the helper has ended, or -EBUSY if the helper has not answered yet or the kernel had
 * no memory for the question; the caller then asks again later. Waits up to 1 s for the helper's
 * answer, and up to 100 ms once an answer has been late. Does not wait while a late answer is
 * outstanding, nor for 1 s after a second late answer. If no helper was started, the daemon itself
 * looks. `ctx` is not used.
 */
int namespace_query(void *ctx, pid_t a, pid_t b);

#endif
