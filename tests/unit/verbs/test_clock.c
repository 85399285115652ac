/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/clock.h"

#define PAUSE_US 20000
/* Largest error after a jump of the time-stamp counter: CLOCK_SPAN at 0.5 GHz, and a margin. */
#define WRONG_NS 5000000

#if defined(__x86_64__)
static uint64_t answer_takes; /* cycles, at least */
static uint32_t asked;

/* Replaces libc's function: a kernel whose clock may be slow. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t since = __builtin_ia32_rdtsc();
	long rc = syscall(SYS_clock_gettime, clock, ts);

	while (__builtin_ia32_rdtsc() - since < answer_takes)
		;
	asked++;
	return (int)rc;
}
#endif

static uint64_t kernel(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t read_beside_kernel(void)
{
	uint64_t before = kernel(), now = clock_monotonic(), after = kernel();

	assert_in_range(now, before - WRONG_NS, after + WRONG_NS);
	return now;
}

static void clock_agrees_with_the_kernel(void **state)
{
	uint64_t last = clock_monotonic(), end = last + PAUSE_US * 1000u;

	(void)state;
	while (last < end) {
		uint64_t now = read_beside_kernel();

		assert_true(now >= last);
		last = now;
	}
}

#if defined(__x86_64__)
/*
 * The counter jumps, as when a virtual machine's memory moves to another host: the old scale is
 * wrong.
 */
static void jump_of_the_tsc_does_not_move_the_clock(void **state)
{
	const uint64_t jumps[] = {
		1, CLOCK_SPAN / 2, CLOCK_SPAN,      2 * CLOCK_SPAN,   UINT64_C(1) << 40,
		0, 0 - CLOCK_SPAN, 0 - UINT64_C(1), UINT64_C(1) << 63};
	const uint64_t scales[] = {0, 1, UINT64_C(1) << CLOCK_SHIFT, UINT64_C(2) << CLOCK_SHIFT};

	(void)state;
	for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++)
		for (size_t k = 0; k < sizeof(scales) / sizeof(scales[0]); k++) {
			clock_anchor = (struct clock_anchor){
				.ns = kernel(),
				.cycles = __builtin_ia32_rdtsc() - jumps[i],
				.scale = scales[k],
				.span = scales[k] ? CLOCK_SPAN : 0,
			};
			for (uint64_t end = kernel() + PAUSE_US * 1000u; kernel() < end;)
				read_beside_kernel();
		}
}
#endif

#if defined(__x86_64__)
#define READS 100000

/* The clock does not call the kernel each time, and never goes back. */
static void slow_kernel_clock_is_rarely_asked(void **state)
{
	uint64_t last, end;
	uint32_t before;

	(void)state;
	answer_takes = CLOCK_SPAN / 256;
	for (end = kernel() + 4 * PAUSE_US * 1000u; kernel() < end;)
		read_beside_kernel();
	last = clock_monotonic();
	before = asked;
	for (int i = 0; i < READS; i++) {
		uint64_t now = clock_monotonic();

		assert_true(now >= last);
		last = now;
	}
	assert_true(asked - before < READS / 4);
	read_beside_kernel();
	answer_takes = 0;
}
#endif

static void stopped_clock_stands_still(void **state)
{
	uint64_t at;

	(void)state;
	clock_stop();
	at = clock_now();
	usleep(PAUSE_US);
	assert_int_equal(clock_now(), at);
	clock_stop();
	assert_int_equal(clock_now(), at);
	clock_resume();
}

/* After a jump the clock continues from its last value. */
static void resumed_clock_continues_from_its_last_value(void **state)
{
	uint64_t behind = atomic_load(&clock_state), at;

	(void)state;
	for (int i = 1; i <= 2; i++) {
		clock_stop();
		at = clock_now();
		usleep(PAUSE_US);
		clock_resume();
		assert_true(clock_now() >= at);
		assert_true(atomic_load(&clock_state) >= behind + PAUSE_US * 1000u);
		behind = atomic_load(&clock_state);
	}
}

static void resume_of_a_running_clock_has_no_effect(void **state)
{
	uint64_t before = clock_now(), after;

	(void)state;
	clock_resume();
	after = clock_now();
	assert_true(after >= before);
	assert_false(after & CLOCK_STOPPED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock_agrees_with_the_kernel),
#if defined(__x86_64__)
		cmocka_unit_test(jump_of_the_tsc_does_not_move_the_clock),
		cmocka_unit_test(slow_kernel_clock_is_rarely_asked),
#endif
		cmocka_unit_test(stopped_clock_stands_still),
		cmocka_unit_test(resumed_clock_continues_from_its_last_value),
		cmocka_unit_test(resume_of_a_running_clock_has_no_effect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
