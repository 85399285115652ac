/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two processes pinned to one CPU each, and a clock. */
#ifndef URXE_BENCH_TWO_H
#define URXE_BENCH_TWO_H

#include <sys/types.h>

/* Two CPUs of the caller's affinity mask; the program runs on the first one. */
struct bench_cpus {
	int own, other;
};

/* Seconds, CLOCK_MONOTONIC. */
double bench_now(void);
/* Pins the calling thread; ends the program on failure. */
void bench_pin(int cpu);
/*
 * Forks a child on the other processor that runs `body`, until bench_end or the end of this
 * program.
 */
pid_t bench_child(const struct bench_cpus *cpus, void (*body)(void *argument), void *argument);
void bench_end(pid_t child);

#endif
