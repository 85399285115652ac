/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "engine/clock.h"

#include <stdbool.h>

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
 * changes its clock's: neither is later than one of LATE parts of the time between them, and one
 * of SLOWER is more than all of that.
 */
#define LATE   1024u
#define SLOWER 256u
/* Spans that are too long to tell the rate: the machine may have slept. */
#define SPANS_MAX 1024u
/* Of the longest span. */
#define SPANS_LATE 32u
/* Two rates are the same that differ by one of so many parts at most. */
#define SAME 64u

/* Nothing where no counter has such a rate. */
static uint64_t scale_of(uint64_t ns, uint64_t cycles)
{
	uint64_t scale;

	if (cycles > CLOCK_SPAN * SPANS_MAX || ns > 2 * cycles || ns < cycles / 16)
		return 0;
	scale = (ns << CLOCK_SHIFT) / cycles;
	return scale - scale / SLOWER;
}

static bool is_same(uint64_t scale, uint64_t other)
{
	return (scale > other ? scale - other : other - scale) <= scale / SAME;
}

/* Only a rate that was so before holds for longer: at the other one the counter may have jumped. */
static uint64_t span_of(uint64_t scale, uint64_t before, uint64_t late)
{
	uint64_t wanted = LATE * late;

	if (!scale)
		return 0;
	if (wanted < CLOCK_SPAN || !is_same(scale, before))
		return CLOCK_SPAN;
	return wanted < CLOCK_SPAN * SPANS_LATE ? wanted : CLOCK_SPAN * SPANS_LATE;
}

/* The kernel said `ns` within `late` cycles from `cycles`. */
static void drop_anchor(uint64_t ns, uint64_t cycles, uint64_t late)
{
	struct clock_anchor *anchor = &clock_anchor;
	uint64_t passed = cycles - anchor->cycles, least = passed / LATE, scale;
	bool exact = late <= least && anchor->late <= least;

	/* Another one only if that one was held up. */
	if (!exact && late >= anchor->late / 2)
		return;
	scale = exact ? scale_of(ns - anchor->ns, passed) : 0;
	*anchor = (struct clock_anchor){
		.ns = ns,
		.cycles = cycles,
		.late = late,
		.scale = scale,
		.span = span_of(scale, anchor->scale, late),
	};
}

uint64_t clock_ask(void)
{
	uint64_t cycles = __builtin_ia32_rdtsc(), ns = ask_kernel();

	if (cycles - clock_anchor.cycles >= CLOCK_SPAN)
		drop_anchor(ns, cycles, __builtin_ia32_rdtsc() - cycles);
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
