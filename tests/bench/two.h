/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two processes, one a processor, and the time. */
#ifndef URXE_BENCH_TWO_H
#define URXE_BENCH_TWO_H

#include <sys/types.h>

/* The processors, of the caller's affinity mask: the program runs on the first. */
struct bench_cpus {
	int own, other;
};

/* Seconds, CLOCK_MONOTONIC. */
double bench_now(void);
/* The calling thread; ends the program where that is not possible. */
void bench_pin(int cpu);
/* A child on the other processor that runs `body`, until bench_end or that of this program. */
pid_t bench_child(const struct bench_cpus *cpus, void (*body)(void *argument), void *argument);
void bench_end(pid_t child);

#endif
