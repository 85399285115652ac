/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Do two processes share a user namespace? Root's daemon needs CAP_SYS_PTRACE to see that in /proc.
 * A helper process keeps the capability and answers this question only, so that the daemon drops
 * it.
 */
#ifndef URXE_URXED_PRIVILEGE_NAMESPACE_QUERY_H
#define URXE_URXED_PRIVILEGE_NAMESPACE_QUERY_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Starts the helper if this process has the capability, before it has threads. Returns 0 or a
 * negative errno value.
 */
int namespace_query_start(void);
void namespace_query_stop(void);
/* Without a helper this process looks itself. False if unknown. `ctx` is not used. */
bool namespace_query(void *ctx, pid_t a, pid_t b);

#endif
