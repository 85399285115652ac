/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory's limit for messages over many QPs: each message touches 8 cache lines of the engine's
 * QP and 10 of librxe's QP and rings. Both CPUs touch these lines of one QP after another, with
 * prefetch, and do nothing else.
 */
#include "limits.h"

#include <err.h>
#include <stdint.h>
#include <stdlib.h>

#define LINES   18
#define STEP    576 /* bytes from one line to the next: nine lines, so that they spread in a cache */
#define STRIDE  10752 /* bytes from one queue pair to the next */
#define AHEAD   4     /* queue pairs */
#define TOUCHES 2000000

struct places {
	uint8_t *memory;
	size_t count;
};

static uint64_t *line(const struct places *places, size_t i, unsigned int k)
{
	return (uint64_t *)(places->memory + i % places->count * STRIDE + (size_t)k * STEP);
}

static void touch(const struct places *places, size_t touches)
{
	for (size_t i = 0; i < touches; i++) {
		for (unsigned int k = 0; k < LINES; k++)
			__builtin_prefetch(line(places, i + AHEAD, k), 1);
		for (unsigned int k = 0; k < LINES; k++)
			++*(volatile uint64_t *)line(places, i, k);
	}
}

static void touch_too(void *argument)
{
	touch(argument, TOUCHES + TOUCHES / 10);
}

double limit_lines(const struct bench_cpus *cpus, size_t count)
{
	struct places own = {.count = count}, other = {.count = count};
	double start;
	pid_t child;

	if (!count)
		errx(2, "lines of how many queue pairs?");
	own.memory = limit_buffer(count * STRIDE);
	other.memory = limit_buffer(count * STRIDE);
	child = bench_child(cpus, touch_too, &other);
	touch(&own, TOUCHES / 10);
	start = bench_now();
	touch(&own, TOUCHES);
	start = bench_now() - start;
	bench_end(child);
	free(own.memory);
	free(other.memory);
	return TOUCHES / start;
}
