/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "clock.h"

_Atomic uint64_t clock_state;
__thread struct clock_anchor clock_anchor;

static uint64_t ask_kernel(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#if defined(__x86_64__)
/*
 * The rate between two anchors is wrong by what either answer is late, and by what the kernel
 * changes its clock's: an anchor that is later than LATE cycles is none, and SLOWER is more than
 * all of that in a span.
 */
#define LATE   1024u
#define SLOWER 256u
/* Spans that are too long to tell the rate: the machine may have slept. */
#define SPANS_MAX 1024u

/* Nothing where no counter has such a rate. */
static uint64_t scale_of(uint64_t ns, uint64_t cycles)
{
	uint64_t scale;

	if (cycles > CLOCK_SPAN * SPANS_MAX || ns > 2 * cycles || ns < cycles / 16)
		return 0;
	scale = (ns << CLOCK_SHIFT) / cycles;
	return scale - scale / SLOWER;
}

uint64_t clock_ask(void)
{
	struct clock_anchor *anchor = &clock_anchor;
	uint64_t cycles = __builtin_ia32_rdtsc(), passed = cycles - anchor->cycles;
	uint64_t ns = ask_kernel();

	if (passed < CLOCK_SPAN)
		return ns;
	if (__builtin_ia32_rdtsc() - cycles <= LATE)
		*anchor = (struct clock_anchor){
			.ns = ns, .cycles = cycles, .scale = scale_of(ns - anchor->ns, passed)};
	return ns;
}
#else
uint64_t clock_ask(void)
{
	return ask_kernel();
}
#endif

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
