/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/aeth.h"

/* RNR timers by their codes (IBA table 45), in units of 10 us. */
static const uint32_t rnr_timer[32] = {
	65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
	48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t aeth_rnr_ns(uint8_t code)
{
	return rnr_timer[code & 31] * UINT64_C(10000);
}

uint8_t aeth_credit_code(uint32_t n)
{
	uint32_t log;

	if (n < 2)
		return (uint8_t)n;
	if (n >= AETH_CREDITS_MAX)
		return AETH_CREDITS_INVALID - 1;
	log = 31u - (uint32_t)__builtin_clz(n);
	return (uint8_t)(2 * log + (n >> (log - 1) & 1));
}

uint32_t aeth_credits(uint8_t code)
{
	return code < 2 ? code : (2u | (code & 1u)) << (code / 2 - 1);
}
