/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine's time. It stands still while the process has no daemon: nothing
 * can be sent or heard then, and no peer is to blame for that.
 */
#ifndef URXE_VERBS_ENGINE_CLOCK_H
#define URXE_VERBS_ENGINE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* How far the engine's time is behind CLOCK_MONOTONIC; with CLOCK_STOPPED what it stands at. */
extern _Atomic uint64_t clock_state;
#define CLOCK_STOPPED (UINT64_C(1) << 63)

/*
 * To ask the kernel takes longer than to build a small packet's headers, and waits for all loads
 * before. So each thread asks it now and then, and goes by the processor's counter in between: for
 * CLOCK_SPAN cycles, at the rate between the last two answers, slowed down a little so that it does
 * not go back at the next one. Where the kernel has to ask a device, as in many virtual machines,
 * the answer takes so long that it is for as many cycles more. A counter that jumps, as when a
 * virtual machine is restored, or that is another one on another processor, is wrong by that span
 * at most.
 */
struct clock_anchor {
	uint64_t ns;     /* the kernel's answer */
	uint64_t cycles; /* of the counter, when it was asked */
	uint64_t late;   /* and until it answered */
	uint64_t scale;  /* nanoseconds a cycle, << CLOCK_SHIFT; 0 = not known */
	uint64_t span;   /* cycles for which that holds; 0 = it is not known */
};
extern __thread struct clock_anchor clock_anchor __attribute__((tls_model("initial-exec")));
#define CLOCK_SPAN  (UINT64_C(1) << 20)
#define CLOCK_SHIFT 32

/* Asks the kernel. */
uint64_t clock_ask(void);

/* Nanoseconds, CLOCK_MONOTONIC, or some microseconds behind it. In one thread it does not go back.
 */
static inline uint64_t clock_monotonic(void)
{
#if defined(__x86_64__)
	uint64_t passed = __builtin_ia32_rdtsc() - clock_anchor.cycles;

	if (passed < clock_anchor.span)
		return clock_anchor.ns + (passed * clock_anchor.scale >> CLOCK_SHIFT);
#endif
	return clock_ask();
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
