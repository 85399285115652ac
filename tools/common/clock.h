/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The monotonic clock: the time base of all deadlines in urxed and urxe. */
#ifndef URXE_COMMON_CLOCK_H
#define URXE_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000ull
#define NS_PER_MS  1000000ull

/* CLOCK_MONOTONIC, in nanoseconds. */
static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

#endif
