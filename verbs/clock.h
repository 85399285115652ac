/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_VERBS_CLOCK_H
#define URXE_VERBS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The engine's time: nanoseconds, CLOCK_MONOTONIC. */
static inline uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
