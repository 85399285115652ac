/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The index of registered pages, compared with a list of the regions; and the pages of System V
 * segments in /proc/self/maps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "memory/mr_index.h"
#include "memory/proc_maps.h"
#include "sim/rand.h"

#define PAGE    UINT64_C(4096)
#define REGIONS 32

static void test_region_borders_are_exact(void **state)
{
	static const struct {
		uint64_t start, length, first, last; /* start and length of the region; first and
							last: the pages that it covers */
	} rows[] = {
		{0x7f0000001000, 1, 0x7f0000001000, 0x7f0000001fff},
		{0x7f0000001fff, 2, 0x7f0000001000, 0x7f0000002fff},
		{0x1ff000, 0x2000, 0x1ff000, 0x200fff},
		{0x200000, 0x200000, 0x200000, 0x3fffff},
		{0x1234567, UINT64_C(1) << 41, 0x1234000, (UINT64_C(1) << 41) + 0x1234fff},
		{UINT64_C(1) << 48, UINT64_C(1) << 48, UINT64_C(1) << 48, (UINT64_C(1) << 49) - 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(mr_index_add(rows[i].start, rows[i].length), 0);
		assert_true(mr_index_any());
		assert_true(mr_index_overlaps(rows[i].first, 1));
		assert_true(mr_index_overlaps(rows[i].last, 1));
		assert_true(mr_index_overlaps(0, UINT64_C(1) << 57));
		assert_false(mr_index_overlaps(rows[i].first - 1, 1));
		assert_false(mr_index_overlaps(rows[i].last + 1, 1));
		assert_false(mr_index_overlaps(0, rows[i].first));
		assert_false(mr_index_overlaps(rows[i].first, 0));
		mr_index_remove(rows[i].start, rows[i].length);
		assert_false(mr_index_overlaps(0, UINT64_C(1) << 57));
		assert_false(mr_index_any());
	}
}

struct region {
	uint64_t start, length;
};

static bool overlap(const struct region *r, const struct region *asked)
{
	return asked->length && asked->start / PAGE <= (r->start + r->length - 1) / PAGE &&
	       r->start / PAGE <= (asked->start + asked->length - 1) / PAGE;
}

/* A region of random size, so that borders lie on each level of the tree. */
static struct region any_region(struct rand *rand)
{
	uint64_t place = UINT64_C(1) << rand_below(rand, 48), size = 1u << rand_below(rand, 31);

	return (struct region){place + rand_next(rand) % place, 1 + rand_next(rand) % size};
}

static void test_index_equals_a_list(void **state)
{
	struct region regions[REGIONS];
	struct rand rand = {1};
	uint32_t n = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct region asked = any_region(&rand);
		bool expected = false;

		if (n < REGIONS && rand_below(&rand, 2)) {
			regions[n] = any_region(&rand);
			assert_int_equal(mr_index_add(regions[n].start, regions[n].length), 0);
			n++;
		} else if (n) {
			uint32_t which = rand_below(&rand, n);

			mr_index_remove(regions[which].start, regions[which].length);
			regions[which] = regions[--n];
		}
		for (uint32_t r = 0; r < n; r++)
			expected |= overlap(&regions[r], &asked);
		assert_int_equal(mr_index_overlaps(asked.start, asked.length), expected);
		assert_int_equal(mr_index_any(), n > 0);
	}
	mr_index_forget();
	assert_false(mr_index_any());
	assert_false(mr_index_overlaps(0, UINT64_C(1) << 57));
}

/* Expects that shmdt would unmap these pages of the segment: of each digit one page. */
static void expect_attached(const uint8_t *at, const char *pages)
{
	struct mapping m = {0};
	struct text_lines maps;
	char found[16] = "";
	size_t n = 0;

	assert_true(proc_maps_open(&maps));
	while (proc_maps_next_attached(&maps, (uintptr_t)at, &m))
		for (uint64_t page = m.start; page < m.end; page += PAGE)
			found[n++] = (char)('0' + (page - (uintptr_t)at) / PAGE);
	text_lines_close(&maps);
	assert_string_equal(found, pages);
}

static uint8_t *attach(int segment, void *at, int flags)
{
	uint8_t *attached = shmat(segment, at, flags);

	assert_ptr_not_equal(attached, (void *)-1);
	return attached;
}

static void test_attached_pages_of_a_segment_are_found(void **state)
{
	int segment = shmget(IPC_PRIVATE, 8 * PAGE, 0600);
	uint8_t *at = attach(segment, NULL, 0);

	(void)state;
	assert_int_equal(shmctl(segment, IPC_RMID, NULL), 0);
	expect_attached(at, "01234567");
	/* Now two mappings of one piece of the segment. */
	assert_int_equal(mprotect(at, 3 * PAGE, PROT_READ), 0);
	expect_attached(at, "01234567");
	expect_attached(at + 3 * PAGE, "");
	assert_int_equal(munmap(at + 5 * PAGE, PAGE), 0);
	expect_attached(at, "0123467");
	assert_int_equal(munmap(at, PAGE), 0);
	expect_attached(at, "123467");
	assert_int_equal(shmdt(at), 0);
	expect_attached(at, "");
}

/* Neither a file's pages, nor another place of the same segment, nor another segment. */
static void test_other_mappings_are_not_attached(void **state)
{
	int segment = shmget(IPC_PRIVATE, 4 * PAGE, 0600), file = memfd_create("SYSV", 0);
	uint8_t *at = attach(segment, NULL, 0);

	(void)state;
	assert_int_equal(shmctl(segment, IPC_RMID, NULL), 0);
	assert_int_equal(ftruncate(file, 4 * (off_t)PAGE), 0);
	assert_ptr_equal(mmap(at + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, file, PAGE),
			 at + PAGE);
	assert_ptr_equal(
		mremap(at + 3 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 2 * PAGE),
		at + 2 * PAGE);
	expect_attached(at, "0");
	assert_int_equal(shmdt(at), 0);
	assert_int_equal(munmap(at + PAGE, PAGE), 0);
	assert_int_equal(shmdt(at - PAGE), 0);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_region_borders_are_exact),
		cmocka_unit_test(test_index_equals_a_list),
		cmocka_unit_test(test_attached_pages_of_a_segment_are_found),
		cmocka_unit_test(test_other_mappings_are_not_attached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
