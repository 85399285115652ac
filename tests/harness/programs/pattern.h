/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test contents: each byte depends on the message (seed) and on its position. */
#ifndef URXE_TEST_PATTERN_H
#define URXE_TEST_PATTERN_H

#include <stdint.h>

/* The multiplier moves the position into the high bits, so the pattern has no period at any MTU. */
static inline uint8_t pattern_byte(uint32_t seed, uint32_t i)
{
	return ((i + seed * 977) * 2654435761u) >> 24;
}

static inline void pattern_fill(uint8_t *data, uint32_t seed, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		data[i] = pattern_byte(seed, i);
}

/* Number of bytes that differ from bytes [from, from + size) of the pattern. */
static inline uint32_t pattern_differs(const uint8_t *data, uint32_t seed, uint32_t from,
				       uint32_t size)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < size; i++)
		wrong += data[i] != pattern_byte(seed, from + i);
	return wrong;
}

#endif
