/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xoshiro256**, seeded by splitmix64 (Blackman and Vigna): one seed, one sequence on any machine.
 */
#ifndef URXE_NETDEV_PRNG_H
#define URXE_NETDEV_PRNG_H

#include <stdint.h>

struct prng {
	uint64_t s[4];
};

static inline uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline void prng_seed(struct prng *prng, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		prng->s[i] = splitmix64(&seed);
}

static inline uint64_t prng_rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

static inline uint64_t prng_next(struct prng *prng)
{
	uint64_t *s = prng->s;
	uint64_t result = prng_rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = prng_rotl(s[3], 45);
	return result;
}

/* A random number from 0 to bound - 1; 0 for a bound of 0. */
static inline uint64_t prng_below(struct prng *prng, uint64_t bound)
{
	return (unsigned __int128)prng_next(prng) * bound >> 64;
}

/* True with the given probability: never at 0, always at 1. */
static inline int prng_chance(struct prng *prng, double probability)
{
	return (prng_next(prng) >> 11) * 0x1p-53 < probability;
}

#endif
