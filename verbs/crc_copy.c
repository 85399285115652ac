/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A copy, and its CRC before it leaves the first-level cache. To read the copy for it takes longer:
 * its lines belonged to the core that read what was there before, and are not here yet.
 *
 * The CRC is that of Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction" (Intel, 2009): what was seen of a message is the polynomial of a few bytes, which
 * are moved on and added to those that come next.
 */
#include "crc.h"

#include <stdbool.h>
#include <string.h>

#include <isa-l/crc.h>

static uint32_t copy_first(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t n)
{
	memcpy(to, from, n);
	return crc32_gzip_refl(crc, to, n);
}

#ifdef __x86_64__

#include <immintrin.h>

#define AVX512       __attribute__((target("avx512f,vpclmulqdq")))
#define BLOCK        64
#define WARM         4096 /* a packet's payload, at most */
#define STEP         (4 * BLOCK)
#define XOR_OF_THREE 0x96
/* x^(n + 32) and x^(n - 32) modulo the polynomial, reflected: they move 128 bits n bits on. */
#define BY_512  0x154442bd4, 0x1c6e41596
#define BY_2048 0x11542778a, 0x1322d1430

AVX512 static inline __m512i constants(int64_t low, int64_t high)
{
	return _mm512_set_epi64(high, low, high, low, high, low, high, low);
}

/* The bytes are read once, as they may change meanwhile: the compiler must not read them again. */
AVX512 static inline __m512i copy_block(uint8_t *to, const uint8_t *from)
{
	__m512i block = _mm512_loadu_si512(from);

	__asm__("" : "+v"(block));
	_mm512_storeu_si512(to, block);
	return block;
}

AVX512 static inline __m512i fold(__m512i sum, __m512i by, __m512i block)
{
	__m512i low = _mm512_clmulepi64_epi128(sum, by, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(sum, by, 0x11);

	return _mm512_ternarylogic_epi64(low, high, block, XOR_OF_THREE);
}

/* Four sums, since each multiplication takes some time until the next one can have its result. */
AVX512 static uint32_t copy_by_avx512(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t n)
{
	const __m512i by_512 = constants(BY_512), by_2048 = constants(BY_2048);
	const uint8_t *end = from + n;
	__m512i a = copy_block(to, from), b = copy_block(to + BLOCK, from + BLOCK);
	__m512i c = copy_block(to + 2 * BLOCK, from + 2 * BLOCK);
	__m512i d = copy_block(to + 3 * BLOCK, from + 3 * BLOCK);
	uint8_t rest[2 * BLOCK];

	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
	for (to += STEP, from += STEP; end - from >= STEP; to += STEP, from += STEP) {
		a = fold(a, by_2048, copy_block(to, from));
		b = fold(b, by_2048, copy_block(to + BLOCK, from + BLOCK));
		c = fold(c, by_2048, copy_block(to + 2 * BLOCK, from + 2 * BLOCK));
		d = fold(d, by_2048, copy_block(to + 3 * BLOCK, from + 3 * BLOCK));
	}
	d = fold(fold(fold(a, by_512, b), by_512, c), by_512, d);
	for (; end - from >= BLOCK; to += BLOCK, from += BLOCK)
		d = fold(d, by_512, copy_block(to, from));
	_mm512_storeu_si512(rest, d);
	n = (uint64_t)(end - from);
	memcpy(rest + BLOCK, from, n);
	memcpy(to, rest + BLOCK, n);
	/* The sum stands for all before it, from a CRC register of 0 on. */
	return crc32_gzip_refl(~0u, rest, BLOCK + n);
}

/*
 * By way of what is in the first-level cache: libc's copy fills whole lines without having them
 * sent first, which stores of ours would wait for.
 */
static uint32_t copy(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t n)
{
	_Alignas(BLOCK) uint8_t warm[WARM];

	for (; n >= STEP; to += WARM, from += WARM) {
		uint64_t some = n < WARM ? n : WARM;

		crc = copy_by_avx512(crc, warm, from, some);
		memcpy(to, warm, some);
		n -= some;
		if (!n)
			return crc;
	}
	return copy_first(crc, to, from, n);
}

static uint32_t take(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t n)
{
	return n < STEP ? copy_first(crc, to, from, n) : copy_by_avx512(crc, to, from, n);
}

static bool has_avx512(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

crc_copy_fn *crc_best_copy(void)
{
	return has_avx512() ? copy : copy_first;
}

crc_copy_fn *crc_best_take(void)
{
	return has_avx512() ? take : copy_first;
}

#else

crc_copy_fn *crc_best_copy(void)
{
	return copy_first;
}

crc_copy_fn *crc_best_take(void)
{
	return copy_first;
}

#endif
