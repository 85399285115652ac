/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls a function in every thread of the process, because Linux keeps capabilities per thread.
 * DPDK starts threads before the daemon drops its capabilities. */
#ifndef URXE_URXED_PRIVILEGE_THREAD_CALL_H
#define URXE_URXED_PRIVILEGE_THREAD_CALL_H

/*
 * Runs `call` once in each thread, this one included, each time in a signal handler. A thread that
 * blocks the signal is left out, and a line in the log says so. Returns 0, or the first negative
 * errno value that a call returned, or -ETIMEDOUT: a thread has not handled the signal within 2 s;
 * or another negative errno value if the threads cannot be called.
 */
int thread_call_all(int (*call)(void));

#endif
