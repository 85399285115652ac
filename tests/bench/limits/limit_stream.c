/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The limit of two CPUs for small messages: one writes cache lines with a sequence word and 62
 * bytes into a ring of 512 lines, and the other one reads all bytes. Each message between two
 * processes needs at least one cache line. The lines of this ring are adjacent; those of an inbox
 * are a frame apart.
 */
#include "limits.h"

#include <err.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define LINES    512
#define BATCH    64 /* lines that the receiver reads, and gives back, at a time */
#define AHEAD    32 /* lines that the sender prefetches */
#define PAYLOAD  62 /* bytes */
#define MESSAGES (UINT64_C(1) << 23)

struct line {
	_Alignas(64) _Atomic uint16_t lap; /* how often the place was filled */
	uint8_t payload[PAYLOAD];
};

struct stream {
	_Alignas(64) _Atomic uint64_t taken; /* messages that the receiver has taken */
	struct line lines[LINES];
};

/* The lap in which the message is in its place. */
static uint16_t lap_of(uint64_t message)
{
	return (uint16_t)(message / LINES + 1);
}

static struct line *line_of(struct stream *stream, uint64_t message)
{
	return &stream->lines[message % LINES];
}

/*
 * Waits for the last line of a batch first: polling each line would take the line away from the
 * sender, which is about to write it.
 */
static void take_batch(struct stream *stream, uint64_t first, uint8_t sink[PAYLOAD])
{
	const uint64_t last = first + BATCH - 1;

	while (atomic_load_explicit(&line_of(stream, last)->lap, memory_order_acquire) !=
	       lap_of(last))
		;
	for (uint64_t i = first; i <= last; i++) {
		memcpy(sink, line_of(stream, i)->payload, PAYLOAD);
		__asm__ volatile(""
				 :
				 : "r"(sink)
				 : "memory"); /* the compiler must not remove the copy */
	}
	atomic_store_explicit(&stream->taken, first + BATCH, memory_order_release);
}

static void take_all(void *argument)
{
	uint8_t sink[PAYLOAD];

	for (uint64_t i = 0; i < MESSAGES; i += BATCH)
		take_batch(argument, i, sink);
}

static void wait_taken(const struct stream *stream, uint64_t messages)
{
	while (atomic_load_explicit(&stream->taken, memory_order_acquire) < messages)
		;
}

static void put(struct stream *stream, uint64_t message, const uint8_t payload[PAYLOAD])
{
	struct line *line = line_of(stream, message);

	__builtin_prefetch(line_of(stream, message + AHEAD));
	__asm__ volatile("" : : "r"(payload) : "memory"); /* the payload changes each time */
	memcpy(line->payload, payload, PAYLOAD);
	atomic_store_explicit(&line->lap, lap_of(message), memory_order_release);
}

static double put_all(struct stream *stream)
{
	const uint8_t payload[PAYLOAD] = {0x5a};
	double start = 0;

	for (uint64_t i = 0; i < MESSAGES; i += BATCH) {
		/* The first messages wait until the other core runs. */
		if (i == MESSAGES / 16)
			start = bench_now();
		if (i >= LINES)
			wait_taken(stream, i + BATCH - LINES);
		for (uint64_t k = i; k < i + BATCH; k++)
			put(stream, k, payload);
	}
	wait_taken(stream, MESSAGES);
	return bench_now() - start;
}

double limit_stream(const struct bench_cpus *cpus, size_t size)
{
	struct stream *stream = mmap(NULL, sizeof(*stream), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double seconds;
	pid_t child;

	(void)size;
	if (stream == MAP_FAILED)
		err(1, "mmap");
	child = bench_child(cpus, take_all, stream);
	seconds = put_all(stream);
	bench_end(child);
	munmap(stream, sizeof(*stream));
	return (double)(MESSAGES - MESSAGES / 16) / seconds;
}
