/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine's time. It stands still while the process has no daemon: nothing
 * can be sent or heard then, and no peer is to blame for that.
 */
#ifndef URXE_VERBS_CLOCK_H
#define URXE_VERBS_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* How far the engine's time is behind CLOCK_MONOTONIC; with CLOCK_STOPPED what it stands at. */
extern _Atomic uint64_t clock_state;
#define CLOCK_STOPPED (UINT64_C(1) << 63)

/* Nanoseconds, CLOCK_MONOTONIC. */
static inline uint64_t clock_monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * The engine's time, nanoseconds. A thread that sleeps in here over a whole stop
 * gets a time that has passed, as one does that waits for a lock after it.
 */
static inline uint64_t clock_now(void)
{
	uint64_t now = clock_monotonic();
	uint64_t state = atomic_load_explicit(&clock_state, memory_order_relaxed);

	return state & CLOCK_STOPPED ? state & ~CLOCK_STOPPED : now - state;
}

/* One thread at a time; nothing where it stands, or goes, already. */
void clock_stop(void);
void clock_go(void);

#endif
