/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "draw.h"

static uint64_t state;

/* The generator splitmix64. */
static uint64_t next(void)
{
	uint64_t x = state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

void draw_start(uint64_t seed, uint32_t operation)
{
	state = seed << 32 | operation;
	state = next();
}

uint32_t draw_below(uint32_t n)
{
	return (uint32_t)(next() % n);
}

bool draw_one_in(uint32_t n)
{
	return !draw_below(n);
}

uint32_t draw_length(void)
{
	static const uint32_t lengths[] = {
		0,    1,    7,    8,    64,   100,   512,   1023,  1024,   1025,
		3000, 4096, 8191, 8192, 8193, 10000, 32768, 65536, 131072, 200000,
	};

	return lengths[draw_below(sizeof(lengths) / sizeof(lengths[0]))];
}
