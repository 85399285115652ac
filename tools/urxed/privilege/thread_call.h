/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls a function in every thread of the process, as capabilities belong to threads. DPDK starts
 * threads before the daemon drops its capabilities.
 */
#ifndef URXE_URXED_PRIVILEGE_THREAD_CALL_H
#define URXE_URXED_PRIVILEGE_THREAD_CALL_H

/*
 * `call` runs in a signal handler, also in this thread. A thread that blocks the signal is left
 * out, and a line says so. Returns 0, or the first negative errno value that a call returned, or
 * -ETIMEDOUT: a thread does not handle the signal.
 */
int thread_call_all(int (*call)(void));

#endif
