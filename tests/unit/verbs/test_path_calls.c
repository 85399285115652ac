/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the interposed functions of libc tell of the device's directory in sysfs. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapter/adapter.h"

#define DEVICE "/sys/class/infiniband/urxe0"
#define MTIME  1000

static char run_dir[] = "/tmp/urxe-test-path-calls-XXXXXX";
/* The directories in run_dir, each after the one that has it. */
static const char *const dirs[] = {"/sys", "/sys/class", "/sys/class/infiniband", DEVICE};
#define DIRS (sizeof(dirs) / sizeof(dirs[0]))

static const char *in_run_dir(const char *path)
{
	static char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", run_dir, path);
	return full;
}

static int setup(void **state)
{
	const struct timespec times[2] = {{0, MTIME}, {0, MTIME}};

	(void)state;
	if (!mkdtemp(run_dir) || setenv("URXE_DIR", run_dir, 1))
		return -1;
	for (size_t i = 0; i < DIRS; i++)
		if (mkdir(in_run_dir(dirs[i]), 0700))
			return -1;
	return utimensat(AT_FDCWD, in_run_dir(DEVICE), times, 0);
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = DIRS; i-- > 0;)
		if (rmdir(in_run_dir(dirs[i])))
			return -1;
	return rmdir(run_dir);
}

static long stat_mtime(void)
{
	struct stat st;

	assert_int_equal(stat(DEVICE, &st), 0);
	return st.st_mtim.tv_nsec;
}

static long lstat_mtime(void)
{
	struct stat st;

	assert_int_equal(lstat(DEVICE, &st), 0);
	return st.st_mtim.tv_nsec;
}

static long fstatat_mtime(void)
{
	struct stat st;

	assert_int_equal(fstatat(AT_FDCWD, DEVICE, &st, 0), 0);
	return st.st_mtim.tv_nsec;
}

static long statx_mtime(void)
{
	struct statx st;

	assert_int_equal(statx(AT_FDCWD, DEVICE, 0, STATX_MTIME, &st), 0);
	return st.stx_mtime.tv_nsec;
}

static void expect_mtime(long mtime)
{
	assert_int_equal(stat_mtime(), mtime);
	assert_int_equal(lstat_mtime(), mtime);
	assert_int_equal(fstatat_mtime(), mtime);
	assert_int_equal(statx_mtime(), mtime);
}

/* libibverbs knows a new device by its modification time. */
static void each_function_shows_a_new_device_after_a_death(void **state)
{
	(void)state;
	expect_mtime(MTIME);
	adapter_note_death(true);
	expect_mtime(MTIME + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_function_shows_a_new_device_after_a_death),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
