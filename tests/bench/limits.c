/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What this machine's memory can do: the limits that urxe's figures stand beside.
 *
 * limits CPU CPU prints JSON: one way of a cache line between the two cores (no
 * message between two processes can be faster), and the speed of memcpy and of
 * copying with a CRC-32 (a packet on a wire needs one of each at least) over a
 * 64 KiB message in packets of 4 KiB.
 */
#include <err.h>
#include <errno.h>
#include <isa-l/crc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BOUNCES  200000
#define MESSAGE  65536
#define PACKET   4096
#define MESSAGES 10000

static _Alignas(128) atomic_uint ball; /* even: the main thread's turn */
static uint8_t source[MESSAGE], sink[MESSAGE];

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static void pin(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(atoi(cpu), &set);
	errno = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (errno)
		err(1, "cannot run on CPU %s", cpu);
}

static void *return_ball(void *cpu)
{
	pin(cpu);
	for (unsigned int i = 0; i < BOUNCES; i++) {
		while (atomic_load_explicit(&ball, memory_order_acquire) != 2 * i + 1)
			;
		atomic_store_explicit(&ball, 2 * i + 2, memory_order_release);
	}
	return NULL;
}

/* Nanoseconds one way. */
static double bounce(char *cpu)
{
	pthread_t other;
	double start = 0;

	errno = pthread_create(&other, NULL, return_ball, cpu);
	if (errno)
		err(1, "pthread_create");
	for (unsigned int i = 0; i < BOUNCES; i++) {
		/* The first tenth wakes the other core. */
		if (i == BOUNCES / 10)
			start = now();
		atomic_store_explicit(&ball, 2 * i + 1, memory_order_release);
		while (atomic_load_explicit(&ball, memory_order_acquire) != 2 * i + 2)
			;
	}
	start = (now() - start) / (BOUNCES - BOUNCES / 10) / 2 * 1e9;
	pthread_join(other, NULL);
	return start;
}

static uint32_t copy_packet(uint8_t *to, const uint8_t *from)
{
	memcpy(to, from, PACKET);
	__asm__ volatile("" : : "r"(to) : "memory"); /* the copy has to happen */
	return 0;
}

static uint32_t copy_crc_packet(uint8_t *to, const uint8_t *from)
{
	copy_packet(to, from);
	return crc32_gzip_refl(0, to, PACKET);
}

/* Bytes per second. */
static double bandwidth(uint32_t (*packet)(uint8_t *, const uint8_t *))
{
	volatile uint32_t crc = 0;
	double start = 0;

	for (int i = -MESSAGES / 10; i < MESSAGES; i++) {
		if (i == 0)
			start = now();
		for (int at = 0; at < MESSAGE; at += PACKET)
			crc = crc ^ packet(sink + at, source + at);
	}
	return (double)MESSAGES * MESSAGE / (now() - start);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		errx(2, "usage: limits CPU CPU");
	pin(argv[1]);
	memset(source, 0x5a, sizeof(source));
	printf("{\"bounce_ns\": %.1f, ", bounce(argv[2]));
	printf("\"memcpy\": %.0f, ", bandwidth(copy_packet));
	printf("\"copy_crc\": %.0f}\n", bandwidth(copy_crc_packet));
	return 0;
}
