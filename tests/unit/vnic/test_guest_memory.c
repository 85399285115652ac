/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory of a virtual machine: regions, their borders, and ranges that are unmapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vnic/guest_memory.h>

#define PAGE  UINT64_C(4096)
#define PAGES UINT64_C(64)

struct fixture {
	struct vnic_guest_memory *memory;
	int fd;
};

static int setup(void **state)
{
	static struct fixture f;

	f.fd = memfd_create("guest", MFD_CLOEXEC);
	*state = &f;
	return ftruncate(f.fd, PAGES * PAGE) != 0 || vnic_guest_memory_create(&f.memory) != 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	vnic_guest_memory_destroy(f->memory);
	return close(f->fd);
}

static uint32_t region_count(const struct fixture *f)
{
	uint32_t count;

	vnic_guest_memory_regions(f->memory, &count);
	return count;
}

static void map_pages(struct fixture *f, uint64_t page, uint64_t count, uint64_t file_page)
{
	assert_int_equal(vnic_guest_memory_map(f->memory, page * PAGE, count * PAGE, f->fd,
					       file_page * PAGE, true),
			 0);
}

static void test_addresses_reach_the_bytes_of_the_file(void **state)
{
	struct fixture *f = *state;
	char text[8] = "";

	map_pages(f, 16, 4, 8);
	map_pages(f, 2, 4, 0);
	memcpy(vnic_guest_memory_range(f->memory, 17 * PAGE + 5, 8, true), "seventn", 8);
	assert_int_equal(pread(f->fd, text, 8, 9 * PAGE + 5), 8);
	assert_string_equal(text, "seventn");
	assert_null(vnic_guest_memory_range(f->memory, PAGE, 1, false));
	assert_null(vnic_guest_memory_range(f->memory, 6 * PAGE, 1, false));
	assert_null(vnic_guest_memory_range(f->memory, UINT64_MAX, 1, false));
	assert_non_null(vnic_guest_memory_range(f->memory, 6 * PAGE - 1, 1, false));
}

static void test_a_range_ends_at_the_border_of_its_region(void **state)
{
	struct fixture *f = *state;
	uint64_t size = 3 * PAGE;

	map_pages(f, 0, 2, 0);
	map_pages(f, 2, 2, 8);
	assert_non_null(vnic_guest_memory_at(f->memory, PAGE, &size, true));
	assert_int_equal(size, PAGE);
	assert_null(vnic_guest_memory_range(f->memory, PAGE, PAGE + 1, true));
}

static void test_a_read_only_region_is_not_written(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(vnic_guest_memory_map(f->memory, 0, PAGE, f->fd, 0, false), 0);
	assert_null(vnic_guest_memory_range(f->memory, 0, 1, true));
	assert_non_null(vnic_guest_memory_range(f->memory, 0, 1, false));
}

static void test_wrong_regions_are_refused(void **state)
{
	struct fixture *f = *state;
	struct {
		uint64_t addr, size, offset;
		int error;
	} wrong[] = {
		{0, 0, 0, -EINVAL},
		{1, PAGE, 0, -EINVAL},
		{0, PAGE + 1, 0, -EINVAL},
		{0, PAGE, 1, -EINVAL},
		{-PAGE, 2 * PAGE, 0, -EINVAL},
		{0, PAGE, -PAGE, -EINVAL},
		{0, PAGE, PAGES * PAGE, -EFBIG},
		{PAGES * PAGE, (PAGES + 1) * PAGE, 0, -EFBIG},
		{9 * PAGE, 2 * PAGE, 0, -EEXIST},
		{11 * PAGE, PAGE, 0, -EEXIST},
		{13 * PAGE, PAGE, 0, -EEXIST},
		{8 * PAGE, 8 * PAGE, 0, -EEXIST},
	};

	map_pages(f, 10, 4, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(vnic_guest_memory_map(f->memory, wrong[i].addr, wrong[i].size,
						       f->fd, wrong[i].offset, true),
				 wrong[i].error);
	assert_int_equal(vnic_guest_memory_map(f->memory, 0, PAGE, -1, 0, true), -EBADF);
	assert_int_equal(region_count(f), 1);
	assert_int_equal(vnic_guest_memory_map(f->memory, -PAGE, PAGE, f->fd, 0, true), 0);
	assert_non_null(vnic_guest_memory_range(f->memory, UINT64_MAX, 1, true));
}

static void test_a_part_in_the_middle_is_unmapped(void **state)
{
	struct fixture *f = *state;

	map_pages(f, 0, 8, 0);
	*(char *)vnic_guest_memory_range(f->memory, 5 * PAGE, 1, true) = 'x';
	assert_int_equal(vnic_guest_memory_unmap(f->memory, 3 * PAGE, 2 * PAGE), 0);
	assert_int_equal(region_count(f), 2);
	assert_null(vnic_guest_memory_range(f->memory, 3 * PAGE, 1, false));
	assert_null(vnic_guest_memory_range(f->memory, 5 * PAGE - 1, 1, false));
	assert_non_null(vnic_guest_memory_range(f->memory, 0, 3 * PAGE, false));
	assert_int_equal(*(char *)vnic_guest_memory_range(f->memory, 5 * PAGE, 3 * PAGE, false),
			 'x');
}

static void test_one_range_unmaps_several_regions(void **state)
{
	struct fixture *f = *state;

	map_pages(f, 0, 2, 0);
	map_pages(f, 4, 2, 8);
	map_pages(f, 8, 4, 16);
	assert_int_equal(vnic_guest_memory_unmap(f->memory, PAGE, 9 * PAGE), 0);
	assert_int_equal(region_count(f), 2);
	assert_non_null(vnic_guest_memory_range(f->memory, 0, PAGE, false));
	assert_null(vnic_guest_memory_range(f->memory, 4 * PAGE, 1, false));
	assert_non_null(vnic_guest_memory_range(f->memory, 10 * PAGE, 2 * PAGE, false));
	assert_int_equal(vnic_guest_memory_unmap(f->memory, PAGE, 9 * PAGE), -ENOENT);
	assert_int_equal(vnic_guest_memory_unmap(f->memory, 0, 0), -EINVAL);
	assert_int_equal(vnic_guest_memory_unmap(f->memory, 0, UINT64_MAX - PAGE + 1), 0);
	assert_int_equal(region_count(f), 0);
}

static void test_a_full_table_refuses_regions_and_splits(void **state)
{
	struct fixture *f = *state;

	map_pages(f, 0, 3, 0);
	for (uint64_t i = 1; i < VNIC_GUEST_REGIONS; i++)
		map_pages(f, 8 * i, 1, 0);
	assert_int_equal(vnic_guest_memory_map(f->memory, 5 * PAGE, PAGE, f->fd, 0, true), -ENOSPC);
	assert_int_equal(vnic_guest_memory_unmap(f->memory, PAGE, PAGE), -ENOSPC);
	assert_int_equal(vnic_guest_memory_unmap(f->memory, PAGE, 2 * PAGE), 0);
	assert_non_null(vnic_guest_memory_range(f->memory, 0, PAGE, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_addresses_reach_the_bytes_of_the_file),
		TEST(test_a_range_ends_at_the_border_of_its_region),
		TEST(test_a_read_only_region_is_not_written),
		TEST(test_wrong_regions_are_refused),
		TEST(test_a_part_in_the_middle_is_unmapped),
		TEST(test_one_range_unmaps_several_regions),
		TEST(test_a_full_table_refuses_regions_and_splits),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
