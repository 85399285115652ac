/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies a payload and computes its CRC while the data is in the first-level cache. A second pass
 * over the destination takes longer: its cache lines still belong to the core that read their old
 * contents.
 *
 * The CRC folds as in Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction" (Intel, 2009): the bytes so far are one polynomial of a few bytes, which is
 * multiplied to the position of the next bytes and added to them.
 */
#include "engine/crc_copy.h"

#include <stdbool.h>
#include <string.h>

#include <isa-l/crc.h>

uint32_t crc_copy_then_sum(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t n)
{
	memcpy(to, from, n);
	return crc32_gzip_refl(crc, to, n);
}

#ifdef __x86_64__

#include <immintrin.h>

#define AVX512       __attribute__((target("avx512f,pclmul,vpclmulqdq")))
#define BLOCK        64
#define CACHED_MAX   4096 /* the largest payload of a packet */
#define STEP         (4 * BLOCK)
#define XOR_OF_THREE 0x96
#define LAST_128     0xc0
/* x^(n + 32) and x^(n - 32) modulo the polynomial, reflected: they shift 128 bits by n bits. */
#define BY_128  0x1751997d0, 0x0ccaa009e
#define BY_256  0x0f1da05aa, 0x15a546366
#define BY_384  0x03db1ecdc, 0x174359406
#define BY_512  0x154442bd4, 0x1c6e41596
#define BY_2048 0x11542778a, 0x1322d1430
/* x^64 and x^96 modulo the polynomial: they reduce 128 bits to 96, and 96 to 64. */
#define BY_32_64 0x163cd6124, 0x0ccaa009e
/* The polynomial, and x^64 divided by it. */
#define BARRETT 0x1db710641, 0x1f7011641

AVX512 static inline __m512i constants(int64_t low, int64_t high)
{
	return _mm512_set_epi64(high, low, high, low, high, low, high, low);
}

/* Copies a block, and returns it. The program may change the bytes meanwhile: the compiler must not
 * read them a second time. */
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

/* Folds the four lanes of a sum into its last 128 bits. */
AVX512 static inline __m128i fold_lanes(__m512i sum)
{
	static const int64_t by[] = {BY_384, BY_256, BY_128, 0, 0};
	__m512i last = _mm512_maskz_mov_epi64(LAST_128, sum);
	__m256i half;

	sum = fold(sum, _mm512_loadu_si512(by), last);
	half = _mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
	return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* The sum times x^32, modulo the polynomial: the CRC. */
AVX512 static inline uint32_t remainder_of(__m512i sum)
{
	static const int64_t by[] = {BY_32_64}, barrett[] = {BARRETT};
	const __m128i on = _mm_loadu_si128((const __m128i *)by);
	const __m128i divisor = _mm_loadu_si128((const __m128i *)barrett);
	const __m128i word = _mm_set_epi32(0, 0, 0, -1);
	__m128i rest = fold_lanes(sum), high;

	high = _mm_clmulepi64_si128(rest, on, 0x10);
	rest = _mm_xor_si128(_mm_srli_si128(rest, 8), high);
	high = _mm_clmulepi64_si128(_mm_and_si128(rest, word), on, 0x00);
	rest = _mm_xor_si128(_mm_srli_si128(rest, 4), high);
	high = _mm_clmulepi64_si128(_mm_and_si128(rest, word), divisor, 0x10);
	high = _mm_clmulepi64_si128(_mm_and_si128(high, word), divisor, 0x00);
	return ~(uint32_t)_mm_extract_epi32(_mm_xor_si128(rest, high), 1);
}

/*
 * Copies the whole blocks of n bytes, at least four, and returns their sum. Four sums run in
 * parallel, to hide the latency of the multiplication.
 */
AVX512 static __m512i copy_blocks(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t n)
{
	const __m512i by_512 = constants(BY_512), by_2048 = constants(BY_2048);
	const uint8_t *end = from + n;
	__m512i a = copy_block(to, from), b = copy_block(to + BLOCK, from + BLOCK);
	__m512i c = copy_block(to + 2 * BLOCK, from + 2 * BLOCK);
	__m512i d = copy_block(to + 3 * BLOCK, from + 3 * BLOCK);

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
	return d;
}

AVX512 static uint32_t copy_cached(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t n)
{
	__m512i sum = copy_blocks(crc, to, from, n);
	uint64_t tail = n % BLOCK;
	uint8_t rest[2 * BLOCK];

	if (!tail)
		return remainder_of(sum);
	_mm512_storeu_si512(rest, sum);
	memcpy(rest + BLOCK, from + n - tail, tail);
	memcpy(to + n - tail, rest + BLOCK, tail);
	/* The sum replaces all bytes before, with a CRC register that starts at 0. */
	return crc32_gzip_refl(~0u, rest, BLOCK + tail);
}

/*
 * Copies through a buffer in the first-level cache: libc's copy fills whole cache lines without
 * fetching them first; stores of 64 bytes would wait for the fetch.
 */
static uint32_t crc_copy_avx512(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t n)
{
	_Alignas(BLOCK) uint8_t cached[CACHED_MAX];

	for (; n >= STEP; to += CACHED_MAX, from += CACHED_MAX) {
		uint64_t part = n < CACHED_MAX ? n : CACHED_MAX;

		crc = copy_cached(crc, cached, from, part);
		memcpy(to, cached, part);
		n -= part;
		if (!n)
			return crc;
	}
	return crc_copy_then_sum(crc, to, from, n);
}

static bool has_avx512(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

crc_copy_fn *crc_fastest_copy(void)
{
	return has_avx512() ? crc_copy_avx512 : crc_copy_then_sum;
}

#else

crc_copy_fn *crc_fastest_copy(void)
{
	return crc_copy_then_sum;
}

#endif
