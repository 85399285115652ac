/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "clock.h"

_Atomic uint64_t clock_state;

void clock_stop(void)
{
	atomic_store_explicit(&clock_state, clock_now() | CLOCK_STOPPED, memory_order_relaxed);
}

void clock_go(void)
{
	uint64_t state = atomic_load_explicit(&clock_state, memory_order_relaxed);

	if (state & CLOCK_STOPPED)
		atomic_store_explicit(&clock_state, clock_monotonic() - (state & ~CLOCK_STOPPED),
				      memory_order_relaxed);
}
