/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits of memory: the round trip of a cache line between two cores, which no message between two
 * processes can beat; and the copy of a message in packets of 4 KiB by one core, with and without
 * the CRC-32 of packets on a wire.
 */
#include "lib/laps.h"
#include "limits.h"

#include <err.h>
#include <isa-l/crc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BOUNCES    200000
#define LAP        1000
#define CACHE_LINE 64
#define PACKET     4096
#define COPIED     (UINT64_C(1) << 30) /* bytes, for one figure */
#define PIECES     200                 /* of locked memory */

static void return_ball(void *argument)
{
	atomic_uint *ball = argument;

	for (unsigned int i = 0; i < BOUNCES; i++) {
		while (atomic_load_explicit(ball, memory_order_acquire) != 2 * i + 1)
			;
		atomic_store_explicit(ball, 2 * i + 2, memory_order_release);
	}
}

double limit_bounce(const struct bench_cpus *cpus, size_t size)
{
	atomic_uint *ball =
		mmap(NULL, PACKET, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct laps laps;
	pid_t child;

	(void)size;
	if (ball == MAP_FAILED)
		err(1, "mmap");
	child = bench_child(cpus, return_ball, ball);
	for (unsigned int i = 0; i < BOUNCES; i++) {
		/* The first tenth waits until the other core runs. */
		if (i == BOUNCES / 10)
			laps_start(&laps);
		else if (i > BOUNCES / 10 && i % LAP == 0)
			laps_mark(&laps);
		atomic_store_explicit(ball, 2 * i + 1, memory_order_release);
		while (atomic_load_explicit(ball, memory_order_acquire) != 2 * i + 2)
			;
	}
	bench_end(child);
	return laps_median(&laps) / LAP / 2;
}

static uint32_t copy(uint8_t *to, const uint8_t *from, size_t len)
{
	memcpy(to, from, len);
	__asm__ volatile("" : : "r"(to) : "memory"); /* the compiler must not remove the copy */
	return 0;
}

static uint32_t copy_crc(uint8_t *to, const uint8_t *from, size_t len)
{
	copy(to, from, len);
	return crc32_gzip_refl(0, to, len);
}

/* perftest walks through a page if two messages or more fit into it on lines of their own. */
static size_t next_place(size_t at, size_t size)
{
	const size_t step = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

	return size > PACKET / 2 || at + 2 * step > PACKET ? 0 : at + step;
}

static double bandwidth(size_t size, uint32_t (*packet)(uint8_t *, const uint8_t *, size_t))
{
	const uint64_t messages = COPIED / size;
	uint8_t *source = limit_buffer(size), *sink = limit_buffer(size);
	volatile uint32_t crc = 0;
	double start = 0;
	size_t place = 0;

	for (uint64_t i = 0; i < messages + messages / 10; i++) {
		if (i == messages / 10)
			start = bench_now();
		for (size_t at = 0; at < size; at += PACKET)
			crc = crc ^ packet(sink + place + at, source + place + at,
					   size - at < PACKET ? size - at : PACKET);
		place = next_place(place, size);
	}
	start = bench_now() - start;
	free(source);
	free(sink);
	return (double)(messages * size) / start;
}

double limit_memcpy(const struct bench_cpus *cpus, size_t size)
{
	(void)cpus;
	return bandwidth(size, copy);
}

double limit_copy_crc(const struct bench_cpus *cpus, size_t size)
{
	(void)cpus;
	return bandwidth(size, copy_crc);
}

/* mlock of fresh memory: the kernel allocates and pins pages, as for a registration. */
double limit_mlock(const struct bench_cpus *cpus, size_t size)
{
	uint8_t *memory = mmap(NULL, PIECES * size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct laps laps;

	(void)cpus;
	if (memory == MAP_FAILED)
		err(1, "mmap");
	laps_start(&laps);
	for (size_t i = 0; i < PIECES; i++) {
		if (mlock(memory + i * size, size))
			err(1, "mlock");
		laps_mark(&laps);
	}
	munmap(memory, PIECES * size);
	return laps_median(&laps);
}
