/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The CRC-32 of each library, whole and in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <isa-l/crc.h>

#include "engine/crc.h"

#define LONGEST   9000
#define ALIGNMENT 8

static const enum crc_library libraries[] = {CRC_ISAL, CRC_ZLIB};

#define N_LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

static uint8_t data[LONGEST + ALIGNMENT];

/* Bit by bit, with the reflected polynomial. */
static uint32_t reference(uint32_t crc, const uint8_t *bytes, uint32_t n)
{
	crc = ~crc;
	for (uint32_t i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static int fill(void **state)
{
	uint32_t x = 1;

	(void)state;
	for (uint32_t i = 0; i < sizeof(data); i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (uint8_t)(x >> 24);
	}
	return 0;
}

static void test_check_value_is_right(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < N_LIBRARIES; i++) {
		assert_int_equal(crc_select(libraries[i]), 0);
		assert_int_equal(crc32_gzip_refl(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
	}
}

static void test_all_lengths_match_the_reference(void **state)
{
	(void)state;
	for (uint32_t n = 0; n <= LONGEST; n += n < 300 ? 1 : 97) {
		const uint8_t *from = data + n % ALIGNMENT;
		uint32_t wanted = reference(n, from, n);

		for (uint32_t i = 0; i < N_LIBRARIES; i++) {
			assert_int_equal(crc_select(libraries[i]), 0);
			assert_int_equal(crc32_gzip_refl(n, from, n), wanted);
		}
	}
}

static void test_pieces_match_the_whole(void **state)
{
	uint32_t wanted = reference(0, data, LONGEST);

	(void)state;
	for (uint32_t i = 0; i < N_LIBRARIES; i++) {
		assert_int_equal(crc_select(libraries[i]), 0);
		for (uint32_t first = 0; first < LONGEST; first += 13)
			assert_int_equal(crc32_gzip_refl(crc32_gzip_refl(0, data, first),
							 data + first, LONGEST - first),
					 wanted);
	}
}

static void test_crc_load_is_idempotent(void **state)
{
	(void)state;
	assert_int_equal(crc_load(), 0);
	assert_int_equal(crc_load(), 0);
	assert_int_equal(crc32_gzip_refl(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc_load_is_idempotent),
		cmocka_unit_test(test_check_value_is_right),
		cmocka_unit_test(test_all_lengths_match_the_reference),
		cmocka_unit_test(test_pieces_match_the_whole),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}
