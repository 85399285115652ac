/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory at addresses that a command contains. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <rxe/rxe.h>

#include "memory/sigbus_guard.h"
#include "memory/uaccess.h"

static uint8_t *map(size_t pages, int protection)
{
	void *p = mmap(NULL, pages * 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void check_copies(void)
{
	uint8_t *page = map(2, PROT_READ | PROT_WRITE);
	uint64_t at = (uint64_t)(uintptr_t)page;
	char text[8];

	munmap(page + 4096, 4096);
	assert_int_equal(uaccess_write(at + 4088, "1234567", 8), 0);
	assert_int_equal(uaccess_read(text, at + 4088, 8), 0);
	assert_string_equal(text, "1234567");
	assert_int_equal(uaccess_write(at + 4089, "1234567", 8), -EFAULT);
	assert_int_equal(uaccess_read(text, at + 4089, 8), -EFAULT);
	assert_int_equal(uaccess_read(text, 0, 8), -EFAULT);
	assert_int_equal(uaccess_write(8, text, 8), -EFAULT);
	assert_int_equal(uaccess_write(0, text, 0), 0);
	/* At the addresses at and above 2^47, which are never mapped. */
	for (uint64_t beyond = UINT64_MAX; beyond >= (uint64_t)1 << 47; beyond >>= 1) {
		assert_int_equal(uaccess_read(text, beyond & ~(uint64_t)3, 8), -EFAULT);
		assert_int_equal(uaccess_write(beyond & ~(uint64_t)3, text, 8), -EFAULT);
		assert_int_equal(uaccess_read(text, ~(beyond >> 1), 8), -EFAULT);
	}
	mprotect(page, 4096, PROT_READ);
	assert_int_equal(uaccess_write(at, "1234567", 8), -EFAULT);
	assert_int_equal(uaccess_read(text, at + 4088, 8), 0);
	munmap(page, 4096);
}

static void copy_of_unmapped_memory_returns_efault(void **state)
{
	(void)state;
	assert_false(sigbus_guard_installed());
	check_copies();
}

/* The signal handlers are installed, as when the device is open. */
static void copy_returns_efault_beside_the_sigbus_guard(void **state)
{
	(void)state;
	assert_int_equal(sigbus_guard_install(), 0);
	check_copies();
}

static void touch_one(void *arg)
{
	(void)*(volatile uint8_t *)arg;
}

static bool guarded(uint8_t *byte, void (*touch)(void *arg))
{
	const struct urxe_extent bytes = {.addr = byte, .length = 1};

	return sigbus_guard_run(NULL, &bytes, touch, byte);
}

static uint8_t *handlers_byte;
static bool handlers_result;

static void access_in_handler(int number)
{
	(void)number;
	handlers_result = guarded(handlers_byte, touch_one);
}

static void touch_after_signal(void *arg)
{
	raise(SIGUSR1);
	touch_one(arg);
}

/* The handler's access succeeds or fails, while that of the interrupted thread is to fail later. */
static void an_access_stays_guarded_after_that_of_a_signal_handler(void **state)
{
	uint8_t *page = map(2, PROT_READ);

	(void)state;
	assert_int_equal(sigbus_guard_install(), 0);
	signal(SIGUSR1, access_in_handler);
	munmap(page + 4096, 4096);
	for (int good = 0; good < 2; good++) {
		handlers_byte = good ? page : page + 4096;
		assert_false(guarded(page + 4096, touch_after_signal));
		assert_int_equal(handlers_result, good);
	}
	signal(SIGUSR1, SIG_DFL);
	munmap(page, 4096);
}

static void registration_checks_mapping_and_write_right(void **state)
{
	uint8_t *page = map(3, PROT_READ | PROT_WRITE);
	uint64_t at = (uint64_t)(uintptr_t)page;

	(void)state;
	page[0] = 1;
	assert_int_equal(uaccess_populate(at + 5, 3 * 4096 - 5, 1), 0);
	assert_int_equal(page[0], 1);
	mprotect(page + 4096, 4096, PROT_READ);
	assert_int_equal(uaccess_populate(at, 3 * 4096, 0), 0);
	assert_int_equal(uaccess_populate(at, 3 * 4096, 1), -EFAULT);
	assert_int_equal(uaccess_populate(at, 4096, 1), 0);
	mprotect(page + 4096, 4096, PROT_NONE);
	assert_int_equal(uaccess_populate(at + 4095, 2, 0), -EFAULT);
	munmap(page + 4096, 4096);
	assert_int_equal(uaccess_populate(at, 3 * 4096, 0), -EFAULT);
	assert_int_equal(uaccess_populate(at + 4095, 1, 1), 0);
	munmap(page, 3 * 4096);
	assert_int_equal(uaccess_populate(at, 1, 0), -EFAULT);
}

/*
 * A region larger than the machine's memory: only mapped pages count, and registration populates
 * none.
 */
static void registration_of_sparse_memory_touches_no_page(void **state)
{
	const size_t length = (size_t)1 << 46, page = 4096;
	unsigned char present;
	uint8_t *room = mmap(NULL, length, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t at = (uint64_t)(uintptr_t)room;

	(void)state;
	/* The address space is limited (RLIMIT_AS), or the system does not overcommit memory. */
	if (room == MAP_FAILED)
		skip();
	assert_int_equal(uaccess_populate(at, length, 1), 0);
	assert_int_equal(mincore(room, page, &present), 0);
	assert_false(present & 1);
	assert_int_equal(uaccess_populate(at, length + page, 1), -EFAULT);
	mprotect(room + length / 2, page, PROT_READ);
	assert_int_equal(uaccess_populate(at, length, 1), -EFAULT);
	assert_int_equal(uaccess_populate(at, length, 0), 0);
	munmap(room + length / 2, page);
	assert_int_equal(uaccess_populate(at, length, 0), -EFAULT);
	munmap(room, length);
}

/* Protected memory is mapped, and so are pages behind the end of a file: accesses fail there. */
static void mapped_memory_has_no_hole(void **state)
{
	uint8_t *page = map(3, PROT_NONE), *file;
	uint64_t at = (uint64_t)(uintptr_t)page;
	int fd = memfd_create("truncated", 0);

	(void)state;
	assert_true(uaccess_is_mapped(at, 3 * 4096));
	assert_true(uaccess_is_mapped(at + 4095, 2));
	munmap(page + 4096, 4096);
	assert_false(uaccess_is_mapped(at, 3 * 4096));
	assert_false(uaccess_is_mapped(at + 4095, 2));
	assert_false(uaccess_is_mapped(at + 4096, 1));
	assert_true(uaccess_is_mapped(at, 4096));
	assert_true(uaccess_is_mapped(at + 2 * 4096, 1));
	assert_true(uaccess_is_mapped(at + 4096, 0));
	munmap(page, 3 * 4096);
	assert_int_equal(ftruncate(fd, 8192), 0);
	file = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_true(uaccess_is_mapped((uintptr_t)file, 8192));
	munmap(file, 8192);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copy_of_unmapped_memory_returns_efault),
		cmocka_unit_test(copy_returns_efault_beside_the_sigbus_guard),
		cmocka_unit_test(an_access_stays_guarded_after_that_of_a_signal_handler),
		cmocka_unit_test(registration_checks_mapping_and_write_right),
		cmocka_unit_test(registration_of_sparse_memory_touches_no_page),
		cmocka_unit_test(mapped_memory_has_no_hole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
