/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The CRC-32 of each library, whole and in pieces, and the CRC that a copy computes over the bytes
 * that it has written.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <isa-l/crc.h>

#include <rxe/rxe.h>

#include "engine/crc.h"

#define LONGEST   9000
#define ALIGNMENT 8
#define LINE      64
#define PAGE      4096
#define CHANGING  20000 /* copies */

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

/* A copy between any offsets changes no byte beside its destination. */
static void check_copy_by(crc_copy_fn *copy, uint32_t n, uint32_t to_offset, uint32_t from_offset,
			  uint32_t wanted)
{
	static uint8_t to[LONGEST + 2 * LINE], untouched[LONGEST + 2 * LINE];
	const uint8_t *from = data + from_offset;

	memset(to, 0xa5, sizeof(to));
	memset(untouched, 0xa5, sizeof(untouched));
	assert_int_equal(copy(n, to + to_offset, from, n), wanted);
	assert_memory_equal(to + to_offset, from, n);
	assert_memory_equal(to, untouched, to_offset);
	assert_memory_equal(to + to_offset + n, untouched, sizeof(to) - to_offset - n);
}

/* Checks the copy for this processor, and the portable copy. */
static void check_copy(uint32_t n, uint32_t to_offset, uint32_t from_offset)
{
	uint32_t wanted = reference(n, data + from_offset, n);

	check_copy_by(crc_fastest_copy(), n, to_offset, from_offset, wanted);
	check_copy_by(crc_copy_then_sum, n, to_offset, from_offset, wanted);
}

static void test_copy_computes_the_crc_of_written_bytes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < N_LIBRARIES; i++) {
		assert_int_equal(crc_select(libraries[i]), 0);
		for (uint32_t n = 0; n <= LONGEST; n += n < 600 ? 1 : 8)
			check_copy(n, n * 7 % LINE, n % ALIGNMENT);
		for (uint32_t n = 4 * LINE; n <= LONGEST; n += LINE)
			check_copy(n, n / LINE % LINE, n / LINE % ALIGNMENT);
		for (uint32_t at = 0; at < LINE; at++)
			check_copy(1024, at, 0);
	}
}

/* A page of the program's memory whose neighbour pages are unmapped. */
static void test_copy_reads_no_neighbour_page(void **state)
{
	static uint8_t to[PAGE + LINE];
	uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	memcpy(pages + PAGE, data, PAGE);
	assert_int_equal(crc_select(CRC_ISAL), 0);
	for (uint32_t at = 0; at < LINE; at++) {
		assert_int_equal(crc_fastest_copy()(at, to + at, pages + PAGE, PAGE),
				 reference(at, data, PAGE));
		assert_memory_equal(to + at, data, PAGE);
	}
	munmap(pages, 3 * PAGE);
}

static atomic_bool stop;

static void *scribble(void *bytes)
{
	volatile uint8_t *at = bytes;

	for (uint32_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++)
		at[i * 61 % LONGEST]++;
	return NULL;
}

/* A program may write to the source meanwhile: the CRC belongs to the bytes in the destination. */
static void test_crc_belongs_to_the_copied_bytes(void **state)
{
	static uint8_t from[LONGEST], to[LONGEST];
	pthread_t thread;

	(void)state;
	atomic_store(&stop, false);
	assert_int_equal(crc_select(CRC_ISAL), 0);
	assert_int_equal(pthread_create(&thread, NULL, scribble, from), 0);
	for (uint32_t i = 0; i < CHANGING; i++) {
		uint32_t crc = crc_fastest_copy()(0, to, from, LONGEST);

		assert_int_equal(crc, crc32_gzip_refl(0, to, LONGEST));
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_crc_load_is_idempotent(void **state)
{
	(void)state;
	assert_int_equal(crc_load(), 0);
	assert_int_equal(crc_load(), 0);
	assert_int_equal(crc32_gzip_refl(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
	assert_int_equal(crc_copy(0, data, (const uint8_t *)"123456789", 9), 0xcbf43926);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc_load_is_idempotent),
		cmocka_unit_test(test_check_value_is_right),
		cmocka_unit_test(test_all_lengths_match_the_reference),
		cmocka_unit_test(test_pieces_match_the_whole),
		cmocka_unit_test(test_copy_computes_the_crc_of_written_bytes),
		cmocka_unit_test(test_copy_reads_no_neighbour_page),
		cmocka_unit_test(test_crc_belongs_to_the_copied_bytes),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}
