/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Clocks. CLOCK_MONOTONIC is the time base of all deadlines in urxed and urxe. */
#ifndef URXE_COMMON_CLOCK_H
#define URXE_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000ull
#define NS_PER_MS  1000000ull

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC, in nanoseconds. */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* The earlier of two deadlines; UINT64_MAX is none. */
static inline uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* CLOCK_REALTIME, in nanoseconds since 1970: the time of frames and calls in captures. */
static inline uint64_t wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

#endif
