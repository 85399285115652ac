/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wait of a program that starts while its daemon restarts.
 *
 * The program waits only if the run directory shows that a daemon may return. A daemon that ends
 * while no program needs its files removes the lock file, so without that file nobody waits.
 *
 *    the lock file, and a socket that refuses connections: the daemon was killed since the boot.
 *        The program waits for URXE_RECONNECT_S (default 5 s).
 *    the lock file without the socket: the daemon has stopped while programs used it, or another
 *        one starts. The program waits until URXE_RECONNECT_S have passed since the directory
 *        changed.
 *
 * When a process has waited in vain, it does not wait again before the directory changes.
 */
#ifndef URXE_VERBS_PROCESS_DAEMON_RETURN_H
#define URXE_VERBS_PROCESS_DAEMON_RETURN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Call it when no daemon has answered in the run directory. True: the function has slept for
 * RECONNECT_INTERVAL_NS, and the caller tries again. False: no daemon is about to return, or none
 * came in time. *until is the time of CLOCK_MONOTONIC, in ns, until which the caller waits in any
 * case; 0 at the first call: this function sets it. The caller holds no lock.
 */
bool daemon_return_wait(uint64_t *until);

#endif
