/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine's time. It stands still while the process has neither a daemon nor a direct uplink:
 * the engine can send and receive nothing then, so none of its timers may expire.
 */
#ifndef URXE_VERBS_ENGINE_CLOCK_H
#define URXE_VERBS_ENGINE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/*
 * Nanoseconds by which the engine's time is behind CLOCK_MONOTONIC; with CLOCK_STOPPED, the time at
 * which it stands.
 */
extern _Atomic uint64_t clock_state;
#define CLOCK_STOPPED (UINT64_C(1) << 63)

/*
 * A call of clock_gettime takes longer than to build the headers of a small packet, and waits for
 * all earlier loads. So each thread asks the kernel now and then, and in between extrapolates from
 * the processor's counter: for CLOCK_SPAN cycles, at the rate between the last two answers, lowered
 * a little so that the time does not go back at the next answer. If the answer takes long, because
 * the kernel asks a device, as in many virtual machines, it is used for proportionally longer. If
 * the counter jumps, as after the restore of a virtual machine, or differs between processors, the
 * time is wrong by that span at most.
 */
struct clock_anchor {
	uint64_t ns;     /* the kernel's answer */
	uint64_t cycles; /* the counter before the question */
	uint64_t late;   /* cycles until the answer */
	uint64_t scale;  /* nanoseconds per cycle, << CLOCK_SHIFT; 0 = not known */
	uint64_t span;   /* cycles for which this anchor is used; 0: scale is not known */
};
extern __thread struct clock_anchor clock_anchor __attribute__((tls_model("initial-exec")));
#define CLOCK_SPAN  (UINT64_C(1) << 20)
#define CLOCK_SHIFT 32

/* Asks the kernel for CLOCK_MONOTONIC in nanoseconds, and may update the thread's anchor. */
uint64_t clock_read_kernel(void);

/*
 * CLOCK_MONOTONIC in nanoseconds, or some microseconds less; up to about 50 us less where the
 * kernel answers slowly. Never goes back in one thread, unless the counter of cycles jumps.
 */
static inline uint64_t clock_monotonic(void)
{
#if defined(__x86_64__)
	uint64_t passed = __builtin_ia32_rdtsc() - clock_anchor.cycles;

	if (passed < clock_anchor.span)
		return clock_anchor.ns + (passed * clock_anchor.scale >> CLOCK_SHIFT);
#endif
	return clock_read_kernel();
}

/*
 * The engine's time in nanoseconds. If another thread stops and resumes the time within this call,
 * the result may be a past time. Callers expect that: a thread that waits for adapter.lock after
 * this call has a past time, too.
 */
static inline uint64_t clock_now(void)
{
	uint64_t now = clock_monotonic();
	uint64_t state = atomic_load_explicit(&clock_state, memory_order_relaxed);

	return state & CLOCK_STOPPED ? state & ~CLOCK_STOPPED : now - state;
}

/* Stops the engine's time; no effect if it stands already. Only one thread at a time may call
 * clock_stop or clock_resume. */
void clock_stop(void);
/* Lets the engine's time go on from where it stands; no effect if it runs. */
void clock_resume(void);

#endif
