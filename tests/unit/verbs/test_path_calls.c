/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the interposed functions of libc tell of the device's directory in sysfs. */
#include <errno.h>
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

#define PORTS     DEVICE "/ports"
#define PORT      PORTS "/1"
#define GID_ATTRS "/gid_attrs"
#define NDEVS     PORT GID_ATTRS "/ndevs"
#define TYPES     PORT GID_ATTRS "/types"
/* Files that the run directory has: of entry 0, whose interface exists, and of entry 1. */
static const struct {
	const char *path, *text;
} files[] = {
	{TYPES "/0", "RoCE v2\n"},
	{NDEVS "/0", "lo\n"},
	{TYPES "/1", "RoCE v2\n"},
	{NDEVS "/1", "nosuch0\n"},
};
#define FILES (sizeof(files) / sizeof(files[0]))

static char run_dir[] = "/tmp/urxe-test-path-calls-XXXXXX";
/* The directories in run_dir, each after the one that has it. */
static const char *const dirs[] = {"/sys",         "/sys/class", "/sys/class/infiniband",
				   DEVICE,         PORTS,        PORT,
				   PORT GID_ATTRS, NDEVS,        TYPES};
#define DIRS (sizeof(dirs) / sizeof(dirs[0]))

static const char *in_run_dir(const char *path)
{
	static char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", run_dir, path);
	return full;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(in_run_dir(path), "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
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
	for (size_t i = 0; i < FILES; i++)
		write_file(files[i].path, files[i].text);
	return utimensat(AT_FDCWD, in_run_dir(DEVICE), times, 0);
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < FILES; i++)
		if (unlink(in_run_dir(files[i].path)))
			return -1;
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

/* --- Attributes of entries of the GID table */

/* 0, or the errno value of the call that failed: of the opening negative, of the read positive. */
static int read_by_open(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int rc;

	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	rc = n < 0 ? errno : 0;
	text[n < 0 ? 0 : n] = '\0';
	close(fd);
	return rc;
}

static int read_by_fopen(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t n;
	int rc;

	if (!file)
		return -errno;
	n = fread(text, 1, size - 1, file);
	rc = ferror(file) ? errno : 0;
	text[n] = '\0';
	fclose(file);
	return rc;
}

static int (*const readers[])(const char *path, char *text, size_t size) = {read_by_open,
									    read_by_fopen};
#define READERS (sizeof(readers) / sizeof(readers[0]))

static void expect_read(const char *path, int result, const char *text)
{
	for (size_t i = 0; i < READERS; i++) {
		char got[64] = "";

		assert_int_equal(readers[i](path, got, sizeof(got)), result);
		assert_string_equal(got, text);
	}
}

static void attributes_of_a_gid_are_read(void **state)
{
	(void)state;
	expect_read(TYPES "/0", 0, "RoCE v2\n");
	expect_read(NDEVS "/0", 0, "lo\n");
	expect_read(TYPES "/1", 0, "RoCE v2\n");
}

/* As in Linux, which has a file for each entry. */
static void attributes_of_an_empty_entry_are_invalid(void **state)
{
	(void)state;
	expect_read(TYPES "/2", EINVAL, "");
	expect_read(NDEVS "/31", EINVAL, "");
}

static void an_interface_of_another_namespace_is_invalid(void **state)
{
	(void)state;
	expect_read(NDEVS "/1", EINVAL, "");
}

static void other_attributes_do_not_exist(void **state)
{
	(void)state;
	expect_read(TYPES "/32", -ENOENT, "");
	expect_read(TYPES "/02", -ENOENT, "");
	expect_read(PORT GID_ATTRS "/others/2", -ENOENT, "");
	expect_read(PORTS "/2" GID_ATTRS "/types/2", -ENOENT, "");
}

/* Linux' files of attributes are read-only, also for root. */
static void an_empty_entry_is_not_written(void **state)
{
	(void)state;
	assert_int_equal(open(TYPES "/2", O_WRONLY | O_CLOEXEC), -1);
	assert_int_equal(errno, EACCES);
	assert_null(fopen(TYPES "/2", "r+e"));
	assert_int_equal(errno, EACCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_of_a_gid_are_read),
		cmocka_unit_test(attributes_of_an_empty_entry_are_invalid),
		cmocka_unit_test(an_interface_of_another_namespace_is_invalid),
		cmocka_unit_test(other_attributes_do_not_exist),
		cmocka_unit_test(an_empty_entry_is_not_written),
		cmocka_unit_test(each_function_shows_a_new_device_after_a_death),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
