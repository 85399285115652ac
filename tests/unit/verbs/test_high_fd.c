/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers of the library's descriptors, also if limits or open descriptors leave no high one. */
#include "process/high_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static rlim_t first_limit;

static void set_limit(rlim_t most)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int remember_limit(void **state)
{
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	first_limit = limit.rlim_cur;
	return 0;
}

static int restore(void **state)
{
	(void)state;
	set_limit(first_limit);
	return close_range(3, ~0u, 0);
}

static int low_number(void)
{
	const int fd = open("/dev/null", O_RDONLY);

	assert_in_range(fd, 3, 31);
	return fd;
}

static void expect_closed(int fd)
{
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}

static void a_descriptor_moves(int lowest, int highest)
{
	const int fd = low_number();
	int high;

	errno = ERANGE;
	high = high_fd(fd);
	assert_int_equal(errno, ERANGE);
	assert_in_range(high, lowest, highest);
	assert_int_equal(fcntl(high, F_GETFD), FD_CLOEXEC);
	expect_closed(fd);
	assert_int_equal(high_fd(high), high);
	close(high);
}

static void descriptors_move_to_the_top_of_the_limit(void **state)
{
	(void)state;
	set_limit(1152);
	a_descriptor_moves(1024, 1151);
	set_limit(1151);
	a_descriptor_moves(1023, 1150);
	set_limit(256);
	a_descriptor_moves(128, 255);
	set_limit(64);
	a_descriptor_moves(32, 63);
}

static void errors_of_descriptors_are_passed_on(void **state)
{
	(void)state;
	errno = EMFILE;
	assert_int_equal(high_fd(-1), -1);
	assert_int_equal(errno, EMFILE);
	assert_int_equal(high_fd_duplicate(-1), -1);
	assert_int_equal(errno, EBADF);
}

/* A descriptor keeps its number, and a duplicate has the lowest free one, while there is one. */
static void descriptor_stays_without_a_free_high_number(void **state)
{
	int fd, copy;

	(void)state;
	set_limit(64);
	fd = low_number();
	for (int to = 32; to < 64; to++)
		assert_int_equal(dup2(fd, to), to);
	errno = ERANGE;
	assert_int_equal(high_fd(fd), fd);
	copy = high_fd_duplicate(fd);
	assert_in_range(copy, 3, 31);
	assert_int_equal(fcntl(copy, F_GETFD), FD_CLOEXEC);
	assert_int_equal(errno, ERANGE);
	while (dup(fd) >= 0)
		;
	errno = ERANGE;
	assert_int_equal(high_fd(fd), fd);
	assert_int_equal(errno, ERANGE);
	assert_int_equal(high_fd_duplicate(fd), -1);
	assert_int_equal(errno, EMFILE);
}

/* fcntl() refuses numbers from the limit on (EINVAL). */
static void descriptor_at_the_limit_is_not_moved(void **state)
{
	const int input = dup(STDIN_FILENO);

	(void)state;
	set_limit(1);
	errno = ERANGE;
	assert_int_equal(high_fd(STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(high_fd(input), input);
	assert_int_equal(errno, ERANGE);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	assert_int_equal(high_fd_duplicate(STDIN_FILENO), -1);
	assert_int_equal(errno, EMFILE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, remember_limit, restore)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(descriptors_move_to_the_top_of_the_limit),
		TEST(errors_of_descriptors_are_passed_on),
		TEST(descriptor_stays_without_a_free_high_number),
		TEST(descriptor_at_the_limit_is_not_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
