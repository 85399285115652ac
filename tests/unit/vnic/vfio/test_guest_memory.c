/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory of a virtual machine: regions, their borders, and ranges that are unmapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vnic/dirty_log.h>
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

/* --- Files */

static int map_error(struct fixture *f, int fd, uint64_t size)
{
	return vnic_guest_memory_map(f->memory, 0, size, fd, 0, false);
}

/* An access to a file of another kind may wait for another process. */
static void test_only_files_of_memory_and_disks_are_mapped(void **state)
{
	struct fixture *f = *state;
	const int proc = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	assert_int_equal(map_error(f, proc, PAGE), -EOPNOTSUPP);
	assert_int_equal(map_error(f, zero, PAGE), -EOPNOTSUPP);
	assert_int_equal(map_error(f, -1, PAGE), -EBADF);
	assert_int_equal(region_count(f), 0);
	close(proc);
	close(zero);
}

#define HUGE_PAGE  (UINT64_C(2) << 20)
#define HUGE_PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

static bool set_huge_pages(int pool, long number)
{
	char text[24];
	const int len = snprintf(text, sizeof(text), "%ld", number);

	return pwrite(pool, text, (size_t)len, 0) == len;
}

/*
 * Allocates the file's two huge pages. An administrator's test adds them to the machine's, with the
 * lock that the Python tests take as well (tests/harness/hugetlb.py), and restores the number:
 * pages in use stay until they are freed.
 */
static bool allocate_huge(int fd)
{
	const int pool = open(HUGE_PAGES, O_RDWR | O_CLOEXEC);
	char text[24] = "";
	bool allocated;

	if (pool < 0)
		return !fallocate(fd, 0, 0, 2 * HUGE_PAGE);
	flock(pool, LOCK_EX);
	if (pread(pool, text, sizeof(text) - 1, 0) > 0)
		set_huge_pages(pool, atol(text) + 2);
	allocated = !fallocate(fd, 0, 0, 2 * HUGE_PAGE);
	if (*text)
		assert_true(set_huge_pages(pool, atol(text)));
	close(pool);
	return allocated;
}

/*
 * A file of two huge pages; -1: there are none. Without an administrator's rights they have to be
 * free already (vm.nr_hugepages).
 */
static int open_huge_file(void)
{
	const int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);

	if (fd < 0)
		return -1;
	if (allocate_huge(fd))
		return fd;
	close(fd);
	return -1;
}

/* A hypervisor maps parts of huge pages: a PC has no memory below 1 MiB for 384 KiB. */
static void test_parts_of_huge_pages(void **state)
{
	struct fixture *f = *state;
	const int fd = open_huge_file();
	const uint64_t hole = 0xa0000, high = 0x100000;
	char *low, *top;

	if (fd < 0)
		skip();
	assert_int_equal(vnic_guest_memory_map(f->memory, 0, hole, fd, 0, true), 0);
	assert_int_equal(
		vnic_guest_memory_map(f->memory, high, 2 * HUGE_PAGE - high, fd, high, true), 0);
	low = vnic_guest_memory_range(f->memory, hole - 1, 1, true);
	top = vnic_guest_memory_range(f->memory, high, HUGE_PAGE, true);
	*low = 'l';
	top[0] = 't';
	top[HUGE_PAGE] = 'u';
	/* A part of the first page, and all of the second. */
	assert_int_equal(vnic_guest_memory_unmap(f->memory, high, PAGE), 0);
	assert_int_equal(vnic_guest_memory_unmap(f->memory, HUGE_PAGE, HUGE_PAGE), 0);
	assert_int_equal(top[0], 't');
	assert_int_equal(*low, 'l');
	assert_non_null(
		vnic_guest_memory_range(f->memory, high + PAGE, HUGE_PAGE - high - PAGE, true));
	assert_null(vnic_guest_memory_range(f->memory, high, 1, false));
	assert_null(vnic_guest_memory_range(f->memory, HUGE_PAGE, 1, false));
	close(fd);
}

/* --- Lost pages */

/* In a test, because cmocka installs its own handlers before each test. */
static void catch_faults(void)
{
	assert_int_equal(vnic_guest_memory_catch_faults(NULL, NULL), 0);
}

static char *at(struct fixture *f, uint64_t page)
{
	return vnic_guest_memory_range(f->memory, page * PAGE, PAGE, true);
}

static void expect_lost(struct fixture *f, uint64_t page, uint64_t count)
{
	uint64_t addr, size;

	assert_true(vnic_guest_memory_find_lost(f->memory, &addr, &size));
	assert_int_equal(addr, page * PAGE);
	assert_int_equal(size, count * PAGE);
	vnic_guest_memory_forget(f->memory, addr, size);
	for (uint64_t i = page; i < page + count; i++)
		assert_null(at(f, i));
}

static void expect_none_lost(struct fixture *f)
{
	uint64_t addr, size;

	assert_false(vnic_guest_memory_find_lost(f->memory, &addr, &size));
}

static void test_a_page_of_a_shortened_file_is_lost(void **state)
{
	struct fixture *f = *state;
	char *bytes;

	catch_faults();
	map_pages(f, 10, 8, 0);
	bytes = at(f, 10);
	memset(bytes, 'x', 8 * PAGE);
	assert_int_equal(ftruncate(f->fd, 4 * PAGE), 0);
	expect_none_lost(f);
	assert_true(vnic_guest_memory_is_intact(f->memory, bytes + 5 * PAGE, PAGE));
	assert_int_equal(bytes[5 * PAGE + 9], 0);
	bytes[5 * PAGE] = 'y';
	assert_false(vnic_guest_memory_is_intact(f->memory, bytes + 5 * PAGE + 7, 1));
	assert_true(vnic_guest_memory_is_intact(f->memory, bytes, 5 * PAGE));
	assert_true(vnic_guest_memory_is_intact(f->memory, bytes + 6 * PAGE, 2 * PAGE));
	assert_false(vnic_guest_memory_is_intact(f->memory, bytes, 8 * PAGE));
	expect_lost(f, 15, 1);
	expect_none_lost(f);
	/* The kernel can give the others. */
	assert_int_equal(bytes[3 * PAGE], 'x');
	bytes[7 * PAGE] = 'y';
	expect_lost(f, 17, 1);
	expect_none_lost(f);
	assert_int_equal(region_count(f), 2);
	/* Other memory takes the place of a lost page. */
	assert_int_equal(ftruncate(f->fd, PAGES * PAGE), 0);
	map_pages(f, 15, 1, 20);
	*at(f, 15) = 'z';
	expect_none_lost(f);
	assert_int_equal(pread(f->fd, bytes, 1, 20 * PAGE), 1);
	assert_int_equal(bytes[0], 'z');
}

struct reader {
	char *at;
	unsigned calls;
	bool faults;
};

/* As another process reads. */
static void read_page(void *ctx)
{
	struct reader *reader = ctx;
	char byte;
	struct iovec to = {&byte, 1}, from = {reader->at, 1};

	reader->calls++;
	reader->faults = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == -1;
}

/* Other processes are told of a loss before they can read zeros. */
static void test_loss_is_told_before_the_page_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct reader reader = {0};

	assert_int_equal(vnic_guest_memory_catch_faults(read_page, &reader), 0);
	map_pages(f, 10, 2, 0);
	reader.at = at(f, 11);
	*reader.at = 'x';
	assert_int_equal(reader.calls, 0);
	assert_int_equal(ftruncate(f->fd, PAGE), 0);
	*reader.at = 'y';
	assert_int_equal(reader.calls, 1);
	assert_true(reader.faults);
	expect_lost(f, 11, 1);
	catch_faults();
}

/* Memory of a request may continue in the next mapping. */
static void test_lost_pages_of_two_mappings(void **state)
{
	struct fixture *f = *state;
	char *first, *second;

	catch_faults();
	map_pages(f, 10, 4, 0);
	map_pages(f, 20, 4, 8);
	first = at(f, 10);
	second = at(f, 20);
	/* The kernel puts the second before the first, except into a hole between older mappings.
	 */
	if (second + 4 * PAGE != first)
		skip();
	assert_int_equal(ftruncate(f->fd, 2 * PAGE), 0);
	first[2 * PAGE] = 'x';
	assert_true(vnic_guest_memory_is_intact(f->memory, second, 6 * PAGE));
	assert_false(vnic_guest_memory_is_intact(f->memory, second, 6 * PAGE + 1));
	expect_lost(f, 12, 1);
	expect_none_lost(f);
}

static void test_a_region_with_many_lost_pages_is_lost(void **state)
{
	struct fixture *f = *state;
	const uint64_t pages = 100;
	char *bytes;

	catch_faults();
	assert_int_equal(ftruncate(f->fd, (off_t)(pages * PAGE)), 0);
	map_pages(f, 1000, pages, 0);
	map_pages(f, 10, 1, 0);
	bytes = at(f, 1000);
	assert_int_equal(ftruncate(f->fd, PAGE), 0);
	for (uint64_t i = 1; i < pages; i++)
		bytes[i * PAGE] = 'y';
	assert_false(vnic_guest_memory_is_intact(f->memory, bytes, 1));
	expect_lost(f, 1000, pages);
	expect_none_lost(f);
	assert_int_equal(*at(f, 10), 0);
	assert_int_equal(vnic_guest_memory_unmap(f->memory, 1000 * PAGE, pages * PAGE), -ENOENT);
}

/* As if the host had no free huge page for one that a balloon has freed. */
static void test_a_huge_page_is_lost(void **state)
{
	struct fixture *f = *state;
	const int fd = open_huge_file();
	const uint64_t end = 2 * HUGE_PAGE / PAGE - 1; /* the last page is not the machine's */
	char *bytes;

	if (fd < 0)
		skip();
	catch_faults();
	assert_int_equal(
		vnic_guest_memory_map(f->memory, PAGE, 2 * HUGE_PAGE - 2 * PAGE, fd, PAGE, true),
		0);
	bytes = at(f, 1);
	bytes[0] = 'x';
	assert_int_equal(ftruncate(fd, HUGE_PAGE), 0);
	bytes[HUGE_PAGE + 5 * PAGE] = 'y';
	expect_lost(f, HUGE_PAGE / PAGE, end - HUGE_PAGE / PAGE);
	expect_none_lost(f);
	assert_int_equal(bytes[0], 'x');
	close(fd);
}

/* Without room for the split the whole region is lost. */
static void test_a_lost_page_of_a_full_table(void **state)
{
	struct fixture *f = *state;
	char *bytes;

	catch_faults();
	map_pages(f, 0, 3, 0);
	for (uint64_t i = 1; i < VNIC_GUEST_REGIONS; i++)
		map_pages(f, 8 * i, 1, 0);
	bytes = at(f, 0);
	assert_int_equal(ftruncate(f->fd, PAGE), 0);
	bytes[PAGE] = 'x';
	expect_lost(f, 0, 3);
	expect_none_lost(f);
}

static void test_all_memory_is_unmapped(void **state)
{
	struct fixture *f = *state;
	char *bytes;

	catch_faults();
	map_pages(f, 0, 4, 0);
	map_pages(f, 8, 4, 8);
	bytes = at(f, 8);
	assert_int_equal(ftruncate(f->fd, PAGE), 0);
	bytes[0] = 'x';
	vnic_guest_memory_unmap_all(f->memory);
	assert_int_equal(region_count(f), 0);
	expect_none_lost(f);
}

/* Runs fn in a child, which is expected to die of SIGBUS. */
static void expect_death(void (*fn)(void))
{
	const pid_t child = fork();
	int status;

	if (!child) {
		signal(SIGBUS, SIG_DFL);
		catch_faults();
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

static void touch_other_memory(void)
{
	const int fd = memfd_create("other", MFD_CLOEXEC);

	*(volatile char *)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) = 1;
}

static void send_signal(void)
{
	raise(SIGBUS);
}

static void test_other_faults_are_not_handled(void **state)
{
	map_pages(*state, 0, 4, 0);
	expect_death(touch_other_memory);
	expect_death(send_signal);
}

/* --- The log of written pages */

static bool out_of_memory;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return out_of_memory ? NULL : __real_calloc(n, size);
}

static void write_logged(struct fixture *f, uint64_t page)
{
	vnic_dirty_mark(vnic_guest_memory_log(f->memory), at(f, page), 1);
}

/* Moves the log of the first 64 pages to a bitmap, and returns it. */
static uint64_t take_log(struct fixture *f)
{
	uint64_t bitmap = 0;

	vnic_guest_memory_take_log(f->memory, 0, 64 * PAGE, PAGE, &bitmap);
	return bitmap;
}

/* Else a live migration would copy all of the memory in each of its rounds. */
static void test_the_log_recovers_from_a_lack_of_memory(void **state)
{
	struct fixture *f = *state;

	map_pages(f, 0, 8, 0);
	vnic_guest_memory_start_log(f->memory);
	out_of_memory = true;
	write_logged(f, 3);
	/* Until there is memory again, each page may have been written. */
	assert_true(take_log(f) & 1 << 3);
	assert_true(take_log(f) & 1 << 3);
	out_of_memory = false;
	write_logged(f, 4);
	assert_int_equal(take_log(f) & 3 << 3, 3 << 3);
	assert_int_equal(take_log(f), 0);
	write_logged(f, 5);
	assert_int_equal(take_log(f), 1 << 5);
}

/* The log has no room for so many parts of the memory that it cannot follow. */
static void test_the_log_of_large_memory_without_memory(void **state)
{
	struct fixture *f = *state;
	const uint64_t part = UINT64_C(1) << 27, parts = 80;
	uint64_t bitmap;

	for (uint64_t i = 0; i < parts; i++)
		map_pages(f, i * (part / PAGE), 1, i % PAGES);
	vnic_guest_memory_start_log(f->memory);
	out_of_memory = true;
	for (uint64_t i = 0; i < parts; i++)
		write_logged(f, i * (part / PAGE));
	out_of_memory = false;
	for (uint64_t i = 0; i < parts; i++) {
		bitmap = 0;
		vnic_guest_memory_take_log(f->memory, i * part, PAGE, PAGE, &bitmap);
		assert_int_equal(bitmap, 1);
	}
	/* The next log begins anew. */
	vnic_guest_memory_stop_log(f->memory);
	vnic_guest_memory_start_log(f->memory);
	assert_int_equal(take_log(f), 0);
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
		TEST(test_only_files_of_memory_and_disks_are_mapped),
		TEST(test_parts_of_huge_pages),
		TEST(test_a_page_of_a_shortened_file_is_lost),
		TEST(test_loss_is_told_before_the_page_is_replaced),
		TEST(test_lost_pages_of_two_mappings),
		TEST(test_a_region_with_many_lost_pages_is_lost),
		TEST(test_a_huge_page_is_lost),
		TEST(test_a_lost_page_of_a_full_table),
		TEST(test_all_memory_is_unmapped),
		TEST(test_other_faults_are_not_handled),
		TEST(test_the_log_recovers_from_a_lack_of_memory),
		TEST(test_the_log_of_large_memory_without_memory),
#undef TEST
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
