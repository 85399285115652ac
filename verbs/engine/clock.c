/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "engine/clock.h"

#include <stdbool.h>

_Atomic uint64_t clock_state;
__thread struct clock_anchor clock_anchor;

static uint64_t read_kernel_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#if defined(__x86_64__)
/*
 * The rate between two anchors (struct clock_anchor) has errors: the delays of the kernel's two
 * answers, and the kernel's adjustments of its clock. An anchor is exact if its delay is at most
 * 1/LATE of the time between the anchors. The rate is lowered by 1/SLOWER, more than all errors.
 */
#define LATE   1024u
#define SLOWER 256u
/* Longest time between two anchors that give a rate, in units of CLOCK_SPAN: after a longer one the
 * machine may have slept. */
#define SPANS_MAX 1024u
/* The longest use of one anchor (clock_anchor.span), in units of CLOCK_SPAN. */
#define SPANS_LATE 32u
/* Two rates count as the same if they differ by at most 1/SAME. */
#define SAME 64u

/* The rate between two anchors, lowered by 1/SLOWER, as clock_anchor.scale. 0: the anchors are too
 * far apart, or no processor's counter has such a rate. */
static uint64_t scale_between(uint64_t ns, uint64_t cycles)
{
	uint64_t scale;

	if (cycles > CLOCK_SPAN * SPANS_MAX || ns > 2 * cycles || ns < cycles / 16)
		return 0;
	scale = (ns << CLOCK_SHIFT) / cycles;
	return scale - scale / SLOWER;
}

static bool is_same_rate(uint64_t scale, uint64_t other)
{
	return (scale > other ? scale - other : other - scale) <= scale / SAME;
}

/*
 * Returns clock_anchor.span for the rate `scale`: LATE times the delay of the kernel's answer
 * (`late`), at least CLOCK_SPAN and at most SPANS_LATE * CLOCK_SPAN; 0: no rate. More than
 * CLOCK_SPAN only if the rate at the last anchor (`before`) was the same: else the processor's
 * counter may have jumped.
 */
static uint64_t span_for(uint64_t scale, uint64_t before, uint64_t late)
{
	uint64_t wanted = LATE * late;

	if (!scale)
		return 0;
	if (wanted < CLOCK_SPAN || !is_same_rate(scale, before))
		return CLOCK_SPAN;
	return wanted < CLOCK_SPAN * SPANS_LATE ? wanted : CLOCK_SPAN * SPANS_LATE;
}

/* Replaces the thread's anchor by a new answer of the kernel, if that is exact enough. The kernel's
 * clock was `ns` at some time within `late` cycles after `cycles`. */
static void update_anchor(uint64_t ns, uint64_t cycles, uint64_t late)
{
	struct clock_anchor *anchor = &clock_anchor;
	uint64_t passed = cycles - anchor->cycles, least = passed / LATE, scale;
	bool exact = late <= least && anchor->late <= least;

	/* Keeps the last anchor, unless its answer took more than twice as long as this one. */
	if (!exact && late >= anchor->late / 2)
		return;
	scale = exact ? scale_between(ns - anchor->ns, passed) : 0;
	*anchor = (struct clock_anchor){
		.ns = ns,
		.cycles = cycles,
		.late = late,
		.scale = scale,
		.span = span_for(scale, anchor->scale, late),
	};
}

uint64_t clock_read_kernel(void)
{
	uint64_t cycles = __builtin_ia32_rdtsc(), ns = read_kernel_clock();

	if (cycles - clock_anchor.cycles >= CLOCK_SPAN)
		update_anchor(ns, cycles, __builtin_ia32_rdtsc() - cycles);
	return ns;
}
#else
uint64_t clock_read_kernel(void)
{
	return read_kernel_clock();
}
#endif

void clock_stop(void)
{
	atomic_store_explicit(&clock_state, clock_now() | CLOCK_STOPPED, memory_order_relaxed);
}

void clock_resume(void)
{
	uint64_t state = atomic_load_explicit(&clock_state, memory_order_relaxed);

	if (state & CLOCK_STOPPED)
		atomic_store_explicit(&clock_state, clock_monotonic() - (state & ~CLOCK_STOPPED),
				      memory_order_relaxed);
}
