/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the user has set by environment variables. Threads of this library must not read the
 * environment, because the program's threads may change it (setenv(3), MT-Unsafe const:env). So a
 * thread of the program reads it when it opens a device or an rdma_cm channel, and all threads use
 * the values that were read last.
 */
#ifndef URXE_VERBS_PROCESS_SETTINGS_H
#define URXE_VERBS_PROCESS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <hca/way.h>

/* Reads the environment, in a thread of the program. Before the first call the defaults
 * hold. */
void settings_read(void);

/*
 * The whole time for which a process looks for another daemon: URXE_RECONNECT_S, in nanoseconds.
 * Any thread, as the functions below.
 */
uint64_t settings_reconnect_ns(void);
/* The value of URXE_WAY; HCA_WAY_AUTO if it is not set. */
enum hca_way settings_hca_way(void);
/* Whether the engine takes over the queue pairs of an HCA that goes: URXE_HCA_GONE=engine. */
bool settings_engine_takes_over(void);

#endif
