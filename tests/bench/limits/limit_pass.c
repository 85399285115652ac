/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two CPUs that pass packets by copies: one copies a message in packets of 4 KiB into a ring, with
 * a CRC-32 of each, and the other one copies them out, with the same CRC-32. This is not a limit,
 * because a payload reference needs only one copy.
 */
#include "limits.h"

#include <err.h>
#include <isa-l/crc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PACKET 4096
#define COPIED (UINT64_C(1) << 30) /* bytes, for one figure */

/* Larger than a core's own cache: a shared cache is faster than another core's own one. */
#define RING 512

struct place {
	/* How often the place was filled and emptied. */
	_Alignas(64) atomic_uint filled;
	_Alignas(64) atomic_uint emptied;
	_Alignas(64) uint8_t packet[PACKET];
};

struct pass {
	struct place *ring;
	size_t size;
	uint64_t messages;
};

static void copy(uint8_t *to, const uint8_t *from, size_t len)
{
	memcpy(to, from, len);
	__asm__ volatile("" : : "r"(to) : "memory"); /* the compiler must not remove the copy */
}

static size_t packet_len(size_t size, size_t at)
{
	return size - at < PACKET ? size - at : PACKET;
}

static void take_out(void *argument)
{
	const struct pass *pass = argument;
	uint8_t *sink = limit_buffer(pass->size);
	volatile uint32_t crc = 0;
	uint64_t packet = 0;

	for (uint64_t i = 0; i < pass->messages; i++)
		for (size_t at = 0; at < pass->size; at += PACKET, packet++) {
			struct place *place = &pass->ring[packet % RING];
			const unsigned int lap = (unsigned int)(packet / RING + 1);
			const size_t len = packet_len(pass->size, at);

			while (atomic_load_explicit(&place->filled, memory_order_acquire) != lap)
				;
			crc = crc ^ crc32_gzip_refl(0, place->packet, len);
			copy(sink + at, place->packet, len);
			atomic_store_explicit(&place->emptied, lap, memory_order_release);
		}
	free(sink);
}

static void wait_empty(const struct place *place, unsigned int lap)
{
	while (atomic_load_explicit(&place->emptied, memory_order_acquire) != lap)
		;
}

/* Waits until the last packets have been taken out. */
static void wait_all_empty(const struct pass *pass)
{
	const uint64_t packets = pass->messages * ((pass->size + PACKET - 1) / PACKET);

	for (uint64_t i = packets < RING ? 0 : packets - RING; i < packets; i++)
		wait_empty(&pass->ring[i % RING], (unsigned int)(i / RING + 1));
}

static double put_in(const struct pass *pass)
{
	uint8_t *source = limit_buffer(pass->size);
	volatile uint32_t crc = 0;
	uint64_t packet = 0;
	double start = 0;

	for (uint64_t i = 0; i < pass->messages; i++) {
		/* The first tenth waits until the other core runs. */
		if (i == pass->messages / 10)
			start = bench_now();
		for (size_t at = 0; at < pass->size; at += PACKET, packet++) {
			struct place *place = &pass->ring[packet % RING];
			const unsigned int lap = (unsigned int)(packet / RING);
			const size_t len = packet_len(pass->size, at);

			wait_empty(place, lap);
			copy(place->packet, source + at, len);
			crc = crc ^ crc32_gzip_refl(0, place->packet, len);
			atomic_store_explicit(&place->filled, lap + 1, memory_order_release);
		}
	}
	wait_all_empty(pass);
	free(source);
	return bench_now() - start;
}

double limit_pass_crc(const struct bench_cpus *cpus, size_t size)
{
	struct pass pass = {.size = size, .messages = COPIED / (size < PACKET ? PACKET : size)};
	double seconds;
	pid_t child;

	pass.ring = mmap(NULL, RING * sizeof(*pass.ring), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pass.ring == MAP_FAILED)
		err(1, "mmap");
	child = bench_child(cpus, take_out, &pass);
	seconds = put_in(&pass);
	bench_end(child);
	munmap(pass.ring, RING * sizeof(*pass.ring));
	return (double)((pass.messages - pass.messages / 10) * size) / seconds;
}
