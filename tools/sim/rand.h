/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pseudo-random numbers by SplitMix64 (Steele, Lea, Flood 2014), the same on every machine. */
#ifndef URXE_SIM_RAND_H
#define URXE_SIM_RAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rand {
	uint64_t state;
};

static inline uint64_t rand_next(struct rand *r)
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Uniform in [0, n); 0 for n = 0. */
static inline uint32_t rand_below(struct rand *r, uint32_t n)
{
	return (uint32_t)(((rand_next(r) >> 32) * n) >> 32);
}

/* Uniform in [low, high]. */
static inline uint32_t rand_in(struct rand *r, uint32_t low, uint32_t high)
{
	return low + rand_below(r, high - low + 1);
}

/* True with probability p. */
static inline bool rand_chance(struct rand *r, double p)
{
	return (double)(rand_next(r) >> 11) < p * 9007199254740992.0; /* 2^53 */
}

static inline void rand_fill(struct rand *r, void *data, size_t length)
{
	uint8_t *at = data;

	while (length) {
		uint64_t v = rand_next(r);
		size_t n = length < sizeof(v) ? length : sizeof(v);

		memcpy(at, &v, n);
		at += n;
		length -= n;
	}
}

#endif
